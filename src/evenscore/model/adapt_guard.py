"""When trials without labels cannot support an adaptation: refusals of one sentence each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.log_odds import expit
from evenscore.model.adapt_data import DenseScores
from evenscore.model.parameters import ScoreModel
from evenscore.tables import TARGET

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = [
    "ScoreGain",
    "certainty",
    "doubts",
    "expected_cllr",
    "matching_scale",
    "refuse_equal",
    "refuse_few",
    "refuse_unsupported",
    "score_gain",
]

Array = np.ndarray
_LEAST_TRIALS = 50
_LEAST_MEMBERS = 10  # expected trials of the rarer class
_LEAST_CERTAINTY = 0.3
_LEAST_SEPARATION = 1.0  # of the class means, in standard deviations
_SHARE_FACTOR = 3.0  # how far the share of targets may be from the prior
_DOUBTFUL_FACTOR = 1.3  # from where on the user is told
_LEVEL = 0.99  # of the one-sided test that the adapted model is better
_WORTHWHILE = 0.75  # the adapted model must expect to bring Cllr down to this share; less is lost by learning labels


@dataclass(frozen=True, kw_only=True)
class ScoreGain:
    """How much better the adapted model explains the scores, each taken by itself, and how sure that is.

    A model of scores is never quite right: another one may fit the scores of these very speakers better, although the
    domain is the same. So the gain has to show in most enrolments and tests: its standard error is that of a sum over
    enrolments (those of one speaker together), and over tests (Vuong's test of two models that may both be wrong).
    """

    nats: float
    error: float  #: standard error
    n_groups: int  #: of enrolments

    @property
    def needed(self) -> float:
        """The least gain that counts."""
        from scipy.special import stdtrit

        return float(stdtrit(max(self.n_groups - 1, 1), _LEVEL)) * self.error


def score_gain(
    trained: ScoreModel,
    adapted: ScoreModel,
    parts: Sequence[DenseScores],
    groups: Sequence[npt.NDArray[np.intp]],
    prior: float,
) -> ScoreGain:
    """Compare two models on the scores of all matrices; `groups` says to which group each of their rows belongs."""
    gains = [_log_density(adapted, part, prior) - _log_density(trained, part, prior) for part in parts]
    rows = np.concatenate([gain.sum(axis=1) for gain in gains])
    columns = np.concatenate([gain.sum(axis=0) for gain in gains])
    grouped = np.bincount(np.concatenate(groups), weights=rows)
    error = np.sqrt(sum(len(side) * side.var(ddof=1) for side in (grouped, columns) if len(side) > 1))
    return ScoreGain(nats=float(rows.sum()), error=float(error), n_groups=len(grouped))


def expected_cllr(model: ScoreModel, adapted: ScoreModel, parts: Sequence[DenseScores], prior: float) -> float:
    """Return the Cllr that the adapted model expects of a model on the trials without labels, each score by itself."""
    llr, belief = (
        np.concatenate([np.diff(part.log_densities(one), axis=0)[0, part.hidden] for part in parts])
        for one in (model, adapted)
    )
    target = expit(belief + np.log(prior) - np.log1p(-prior))
    if not 0 < target.sum() < target.size:
        raise InputError("the adapted model expects targets alone among the trials, or none; give more trials")
    costs = [(np.logaddexp(0, -llr), target), (np.logaddexp(0, llr), 1 - target)]
    return float(sum((cost @ weight) / weight.sum() for cost, weight in costs) / (2 * np.log(2)))


def _log_density(model: ScoreModel, part: DenseScores, prior: float) -> Float[Array, "k l"]:
    """Return the log-density of every score on its own; a hidden label is summed out; 0 where there is no score."""
    non, tar = part.log_densities(model)
    mixed = np.logaddexp(np.log1p(-prior) + non, np.log(prior) + tar)
    density: Float[Array, "k l"] = np.where(part.hidden, mixed, np.where(part.of_class(TARGET), tar, non))
    return np.where(part.present, density, 0.0)


def refuse_few(n_trials: int, prior: float) -> None:
    """Refuse before any work: too few trials without labels, or too few of one class among them."""
    if n_trials < _LEAST_TRIALS:
        raise InputError(
            f"there are {n_trials} trials without labels, too few to adapt to; give at least {_LEAST_TRIALS}"
        )
    for name, expected in (("targets", prior * n_trials), ("non-targets", (1 - prior) * n_trials)):
        if expected < _LEAST_MEMBERS:
            raise InputError(
                f"only {expected:.1f} {name} are expected among {n_trials} trials at prior {prior:g}, too few to adapt "
                "to; give more trials"
            )


def refuse_equal(parts: Sequence[DenseScores]) -> None:
    """Refuse trials whose scores are all the same."""
    hidden = np.concatenate([part.scores[part.hidden] for part in parts])
    if not hidden.std() > 1e-12 * np.abs(hidden).max(initial=0.0):
        raise InputError("all trials without labels have the same score, so that there is nothing to learn; check them")


def doubts(share: float, prior: float) -> tuple[str, ...]:
    """Return what speaks against the prior of an adaptation that was not refused."""
    if max(share, prior) <= _DOUBTFUL_FACTOR * min(share, prior):
        return ()
    return (
        f"{100 * share:.2g} % of the trials look like targets, but the prior says {100 * prior:.2g} %; if the prior is "
        "wrong, so is the model",
    )


def refuse_unsupported(
    model: ScoreModel,
    p: Float[Array, " t"],
    *,
    prior: float,
    gain: float,
    over_one: float,
    n: int,
    alone: ScoreGain,
    cllr: tuple[float, float],
) -> None:
    """Refuse an adaptation that the trials do not support.

    `p` are the probabilities of targets, `gain` and `over_one` the nats by which the bound of the adapted model is
    better than that of the trained one and of a single class, `n` the parameters that were adapted, `alone` the gain
    when scores are taken one by one, `cllr` what the adapted model expects of the trained one and of itself.
    """
    cost = 0.5 * n * np.log(len(p))
    separation = (model.mu[1] - model.mu[0]) / np.sqrt((model.sigma2 + model.variances.nu).mean())
    if over_one <= cost or separation < _LEAST_SEPARATION:
        raise InputError(
            "the trials do not show two classes: non-targets alone explain them as well; label some trials"
        )
    found = certainty(p, prior)
    if found < _LEAST_CERTAINTY:
        raise InputError(
            f"the scores remove only {100 * found:.0f} % of the uncertainty about the labels, too little to learn from "
            "them; label some trials"
        )
    for share, expected, name in ((p.mean(), prior, "targets"), (1 - p.mean(), 1 - prior, "non-targets")):
        if not expected / _SHARE_FACTOR <= share <= expected * _SHARE_FACTOR or share * len(p) < _LEAST_MEMBERS:
            raise InputError(
                f"{100 * share:.2g} % of the trials look like {name}, but the prior says {100 * expected:.2g} %; "
                "correct the prior, or label some trials"
            )
    if gain <= cost:
        raise InputError(
            f"the trained model explains these trials as well: adapting gains {max(gain, 0.0):.1f} nats, less than the "
            f"{cost:.1f} that {n} parameters cost; keep it"
        )
    if alone.nats - cost <= alone.needed:
        raise InputError(
            f"the trained model explains these trials as well: on single scores the adapted one gains "
            f"{alone.nats - cost:.0f} nats, but that differs so much between enrolments that it would take "
            f"{alone.needed:.0f} to be sure; keep it"
        )
    if cllr[1] > _WORTHWHILE * cllr[0]:
        raise InputError(
            f"the trained model serves these trials as well: even the adapted one expects to lower its Cllr only from "
            f"{cllr[0]:.3f} to {cllr[1]:.3f}, which learning without labels may cost; keep it"
        )


def certainty(p: Float[Array, " t"], prior: float) -> float:
    """Return the share of the prior's entropy that the probabilities remove."""
    return 1 - float(_entropy(p).mean() / _entropy(np.array([prior]))[0])


def _entropy(p: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    from scipy.special import entr

    value: npt.NDArray[np.float64] = entr(p) + entr(1 - p)
    return value


def matching_scale(model: ScoreModel, parts: list[DenseScores], prior: float) -> tuple[float, float]:
    """Return (scale, shift) after which the model has the mean and variance of the trials without labels."""
    hidden = np.concatenate([part.scores[part.hidden] for part in parts])
    share = np.array([1 - prior, prior])
    mean = share @ model.mu
    variance = share @ (model.sigma2 + model.variances.nu + (model.mu - mean) ** 2)
    scale = float(np.sqrt(hidden.var() / variance)) or 1.0
    return scale, float(hidden.mean() - scale * mean)
