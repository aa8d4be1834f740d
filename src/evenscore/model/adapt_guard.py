"""When trials without labels cannot support an adaptation: refusals of one sentence each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from evenscore.errors import InputError
from evenscore.model.dense_scores import DenseScores
from evenscore.model.parameters import ScoreModel

__all__ = ["certainty", "matching_scale", "refuse_few", "refuse_unsupported"]

Array = np.ndarray
_LEAST_TRIALS = 50
_LEAST_MEMBERS = 10  # expected trials of the rarer class
_LEAST_CERTAINTY = 0.3
_LEAST_SEPARATION = 1.0  # of the class means, in standard deviations
_SHARE_FACTOR = 3.0  # how far the share of targets may be from the prior


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


def refuse_unsupported(
    model: ScoreModel, p: Float[Array, " t"], *, prior: float, gain: float, over_one: float, n: int
) -> None:
    """Refuse an adaptation that the trials do not support.

    `p` are the probabilities of targets, `gain` and `over_one` the nats by which the bound of the adapted model is
    better than that of the trained one and of a single class, `n` the parameters that were adapted.
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
