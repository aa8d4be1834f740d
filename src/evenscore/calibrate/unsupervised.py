"""Calibration without labels: a mixture of two Gaussians, fitted by expectation maximization."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.calibration import Calibration, as_input, finite, positive
from evenscore.calibrate.gaussian import gaussian_llr
from evenscore.errors import InputError
from evenscore.log_odds import expit
from evenscore.metrics.trials import ScoresLike, unlabelled_points
from evenscore.threads import one_thread_per_product

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Mixture", "UnsupervisedCalibration", "em_step", "fit_mixture", "log_likelihood", "variance_of"]

Array = npt.NDArray[np.float64]

_LEAST_SCORES = 20
_LEAST_MEMBERS = 5.0  # trials of the rarer component
_LEAST_SEPARATION = 1.0  # standard deviations between the means
_REMEDY = "label some trials and use a supervised calibration"

_SPLITS = (0.5, 0.7, 0.85, 0.95, 0.99)  # shares of non-targets to start from
_SKETCH = 2000  # scores that the starts are tried on: evenly spaced order statistics
_STEPS = 400
_STILL = 1e-9  # gain in log-likelihood per score below which EM stops
_POINT = 1e-6  # share of the total variance below which a component has shrunk to a point


@dataclass(frozen=True, kw_only=True, eq=False)
class UnsupervisedCalibration(Calibration):
    """Unlabelled scores are a mixture of non-targets and targets, each Gaussian.

    s ~ (1 - p_target) N(mean_0, variance_0) + p_target N(mean_1, variance_1),  mean_0 < mean_1     (U1)
    llr(s) = log N(s; mean_1, variance_1) - log N(s; mean_0, variance_0)                            (U2)

    Attributes
    ----------
    mean, variance
        Of the lower component (non-targets) and of the higher one (targets).
    p_target
        Share of the targets.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = np.concatenate((rng.normal(-3, 1, 900), rng.normal(3, 1, 100)))
    >>> calibration = UnsupervisedCalibration.fit(scores)
    >>> round(calibration.p_target, 2)
    0.1
    """

    kind: ClassVar[str] = "unsupervised"

    mean: Float[np.ndarray, "2"]
    variance: Float[np.ndarray, "2"]
    p_target: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", finite("mean", self.mean, (2,)))
        object.__setattr__(self, "variance", positive("variance", self.variance, (2,)))
        if not 0 < self.p_target < 1:
            raise InputError(f"p_target is {self.p_target}, but must lie between 0 and 1")

    @classmethod
    @one_thread_per_product()
    def fit(
        cls,
        scores: ScoresLike,
        labels: npt.ArrayLike | None = None,
        *,
        p_target: float | None = None,
        shared_variance: bool = False,
    ) -> UnsupervisedCalibration:
        """Fit by expectation maximization, from several starts.

        Parameters
        ----------
        scores
            At least 20 finite scores. Or a `ScoreSummary`, whatever its labels: each bin is then one score, the mean
            of it.
        labels
            Not used: they are accepted so that all calibrations are called alike.
        p_target
            Share of the targets, if it is known; else it is estimated.
        shared_variance
            Give both components one variance, so that the LLR is a straight line.

        Raises
        ------
        InputError
            If the scores do not show two groups: one Gaussian explains them as well (by the Bayesian information
            criterion), the components overlap (means less than one standard deviation apart), or one has fewer than
            5 trials.
        """
        if p_target is not None and not 0 < p_target < 1:
            raise InputError(f"p_target is {p_target}, but must lie between 0 and 1")
        found = unlabelled_points(scores)
        found.refuse_infinite()
        values, counts = found.pooled_scores()
        _refuse_few(values, counts)
        mixture = fit_mixture(values, counts, p_target, shared_variance)
        if mixture is None:
            raise InputError(f"no two Gaussians fit the scores: one of them shrinks to a point; {_REMEDY}")
        _refuse_one_group(values, counts, mixture, estimated=(p_target is None) + (not shared_variance) + 1)
        return cls(mean=mixture.mean, variance=mixture.variance, p_target=mixture.p_target)

    def __call__(self, scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the LLR of each score; NaN stays NaN."""
        return gaussian_llr(as_input(scores), self.mean, self.variance)


def _refuse_few(values: Array, counts: Array) -> None:
    number = counts.sum()
    if number < _LEAST_SCORES:
        raise InputError(
            f"there are {number:.0f} scores, too few to tell two groups apart; give at least {_LEAST_SCORES}"
        )
    if not np.ptp(values) > 0:
        raise InputError("all scores are equal, so they do not show two groups")


def _refuse_one_group(values: Array, counts: Array, mixture: Mixture, estimated: int) -> None:
    """Refuse when the data cannot support two components; ``estimated`` parameters were added to one Gaussian's."""
    number = counts.sum()
    alone = -0.5 * number * (np.log(2 * np.pi * variance_of(values, counts)) + 1)
    gain = 2 * (log_likelihood(values, counts, mixture) - alone)
    if gain <= estimated * np.log(number):
        raise InputError(f"one Gaussian explains the scores as well as two, so they do not show two groups; {_REMEDY}")
    rarer = number * min(mixture.p_target, 1 - mixture.p_target)
    if rarer < _LEAST_MEMBERS:
        raise InputError(f"the rarer of the two groups has only {rarer:.1f} trials, too few to trust; {_REMEDY}")
    separation = (mixture.mean[1] - mixture.mean[0]) / np.sqrt(mixture.variance.mean())
    if separation < _LEAST_SEPARATION:
        raise InputError(
            f"the two groups overlap: their means are {separation:.2f} standard deviations apart, less than "
            f"{_LEAST_SEPARATION:g}; {_REMEDY}"
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixture:
    """Two Gaussians, the one with the lower mean first, and the share of the second."""

    mean: Float[np.ndarray, "2"]
    variance: Float[np.ndarray, "2"]
    p_target: float


def _log_joint(scores: npt.NDArray[np.float64], mixture: Mixture) -> list[npt.NDArray[np.float64]]:
    """Return log(share) + log-density of each component."""
    shares = (1 - mixture.p_target, mixture.p_target)
    return [
        np.log(share) - 0.5 * (np.log(2 * np.pi * v) + (scores - m) ** 2 / v)
        for share, m, v in zip(shares, mixture.mean, mixture.variance, strict=True)
    ]


def variance_of(scores: Array, counts: Array) -> float:
    """Return the variance of scores, each of which occurs so many times."""
    return float(np.average((scores - np.average(scores, weights=counts)) ** 2, weights=counts))


def log_likelihood(scores: Array, counts: Array, mixture: Mixture) -> float:
    """Return the log-likelihood of all scores, each of which occurs so many times."""
    return float(counts @ np.logaddexp(*_log_joint(scores, mixture)))


def em_step(
    scores: Array, counts: Array, mixture: Mixture, p_target: float | None, shared_variance: bool
) -> tuple[Mixture, float]:
    """Return the mixture after one EM step, and the log-likelihood per score before it."""
    non, tar = _log_joint(scores, mixture)
    posterior = expit(tar - non)
    shares = counts * np.stack((1 - posterior, posterior))
    count = np.maximum(shares.sum(axis=1), np.finfo(float).tiny)
    mean = shares @ scores / count
    scatter = np.array([share @ (scores - m) ** 2 for share, m in zip(shares, mean, strict=True)])
    variance = np.full(2, scatter.sum() / count.sum()) if shared_variance else scatter / count
    share = float(count[1] / count.sum()) if p_target is None else p_target
    return Mixture(mean=mean, variance=variance, p_target=share), float(
        np.average(np.logaddexp(non, tar), weights=counts)
    )


def _climb(
    scores: Array, counts: Array, start: Mixture, p_target: float | None, shared_variance: bool
) -> tuple[Mixture, float] | None:
    """Iterate EM until it stands still; None if a component shrinks to a point or vanishes."""
    least = _POINT * variance_of(scores, counts)
    mixture, before = start, -np.inf
    for _ in range(_STEPS):
        following, value = em_step(scores, counts, mixture, p_target, shared_variance)
        if value - before < _STILL:
            return mixture, value
        if not (following.variance > least).all() or not 0 < following.p_target < 1:
            return None
        mixture, before = following, value
    return mixture, before


def _starts(ranked: npt.NDArray[np.float64], p_target: float | None, shared_variance: bool) -> Iterator[Mixture]:
    """Split the sorted scores at several places, and take each part for a component."""
    for split in _SPLITS if p_target is None else (1 - p_target, *_SPLITS):
        cut = int(np.clip(round(split * ranked.size), 2, ranked.size - 2))
        parts = ranked[:cut], ranked[cut:]
        variance = np.array([part.var() for part in parts])
        if shared_variance or not (variance > 0).all():
            variance = np.full(2, max(np.average(variance, weights=[cut, ranked.size - cut]), 1e-4 * ranked.var()))
        share = 1 - cut / ranked.size if p_target is None else p_target
        yield Mixture(mean=np.array([part.mean() for part in parts]), variance=variance, p_target=share)


def fit_mixture(scores: Array, counts: Array, p_target: float | None, shared_variance: bool) -> Mixture | None:
    """Return the likeliest mixture of several starts, or None if all of them shrink to a point.

    Each score occurs so many times. Starts are tried on a sketch of the scores; the best is then fitted to all of them.
    """
    order = np.argsort(scores, kind="stable")
    ranked, often = scores[order], counts[order]
    running = np.cumsum(often)
    size = int(min(running[-1], _SKETCH))
    sketch = ranked[np.searchsorted(running, (np.arange(size) + 0.5) * running[-1] / size, side="right")]
    once = np.ones(size)
    starts = _starts(sketch, p_target, shared_variance)
    climbs = [_climb(sketch, once, start, p_target, shared_variance) for start in starts]
    found = [climb for climb in climbs if climb is not None and climb[0].mean[0] < climb[0].mean[1]]
    if not found:
        return None
    best = _climb(ranked, often, max(found, key=lambda climb: climb[1])[0], p_target, shared_variance)
    return None if best is None or not best[0].mean[0] < best[0].mean[1] else best[0]
