"""Calibration without labels: a mixture of two Gaussians, fitted by expectation maximization."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.base import Calibration, check_prior, finite, positive
from evenscore.calibrate.gaussian import gaussian_llr
from evenscore.calibrate.training import Floats, Training
from evenscore.errors import InputError
from evenscore.metrics.cross_entropy import expit

__all__ = ["UnsupervisedCalibration"]

_LEAST_SCORES = 20
_LEAST_MEMBERS = 5.0  # trials of the rarer component
_LEAST_SEPARATION = 1.0  # standard deviations between the means
_REMEDY = "label some trials and use a supervised calibration"

_SPLITS = (0.5, 0.7, 0.85, 0.95, 0.99)  # shares of non-targets to start from
_SAMPLE = 2000  # evenly spaced order statistics that the starts are compared on
_STEPS = 400
_TOLERANCE = 1e-9  # gain in log-likelihood per score below which EM stops
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

    mean: Floats
    variance: Floats
    p_target: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", finite("mean", self.mean, (2,)))
        object.__setattr__(self, "variance", positive("variance", self.variance, (2,)))
        check_prior(self.p_target)

    @classmethod
    def fit(
        cls,
        scores: Any,
        labels: Any = None,
        weights: npt.ArrayLike | None = None,
        *,
        p_target: float | None = None,
        shared_variance: bool = False,
    ) -> Self:
        """Fit by expectation maximization, from several starts.

        Parameters
        ----------
        scores, weights
            As in `Calibration.fit`; at least 20 scores.
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
        if p_target is not None:
            check_prior(p_target)
        training = Training.from_scores(scores, None, weights, supervised=False)
        values = training.scores.astype(np.float64).reshape(-1)
        counts = np.ones(values.size) if training.weights is None else training.weights.reshape(-1)
        order = np.argsort(values, kind="stable")
        values, counts = values[order][counts[order] > 0], counts[order][counts[order] > 0]
        if counts.sum() < _LEAST_SCORES:
            raise InputError(
                f"there are {counts.sum():.0f} scores, too few to tell two groups apart; give at least {_LEAST_SCORES}"
            )
        if not np.ptp(values) > 0:
            raise InputError("all scores are equal, so they do not show two groups")
        mixture = _fit_mixture(values, counts, p_target, shared_variance)
        if mixture is None:
            raise InputError(f"no two Gaussians fit the scores: one of them shrinks to a point; {_REMEDY}")
        _refuse_one_group(values, counts, mixture, n_parameters=(p_target is None) + (not shared_variance) + 1)
        found = cls(mean=mixture.mean, variance=mixture.variance, p_target=mixture.p_target)
        return found._fitted_to(training, p_target=p_target, shared_variance=shared_variance)

    def _llr(self, scores: Floats) -> Floats:
        return gaussian_llr(scores, self.mean, self.variance)


class _Mixture(NamedTuple):
    """Two Gaussians, and the share of the second."""

    mean: Floats
    variance: Floats
    p_target: float

    def log_joint(self, scores: Floats) -> Floats:
        """Return log(share) + log-density of each component, 2 x n."""
        share = np.array([[1 - self.p_target], [self.p_target]])
        mean, variance = self.mean[:, None], self.variance[:, None]
        return np.asarray(np.log(share) - 0.5 * (np.log(2 * np.pi * variance) + (scores - mean) ** 2 / variance))


def _refuse_one_group(values: Floats, counts: Floats, mixture: _Mixture, n_parameters: int) -> None:
    """Raise an error if the data do not support two components, which have so many parameters more than one."""
    number = counts.sum()
    alone = -0.5 * number * (np.log(2 * np.pi * _variance(values, counts)) + 1)
    gain = 2 * (counts @ np.logaddexp(*mixture.log_joint(values)) - alone)
    if gain <= n_parameters * np.log(number):
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


def _variance(scores: Floats, counts: Floats) -> float:
    return float(np.average((scores - np.average(scores, weights=counts)) ** 2, weights=counts))


def _em_step(
    scores: Floats, counts: Floats, mixture: _Mixture, p_target: float | None, shared_variance: bool
) -> tuple[_Mixture, float]:
    """Return the mixture after one EM step, and the log-likelihood per score before it."""
    nontarget, target = mixture.log_joint(scores)
    posterior = expit(target - nontarget)
    shares = counts * np.stack((1 - posterior, posterior))
    count = np.maximum(shares.sum(axis=1), np.finfo(float).tiny)
    mean = shares @ scores / count
    scatter = np.einsum("hn,hn->h", shares, (scores - mean[:, None]) ** 2)
    variance = np.full(2, scatter.sum() / count.sum()) if shared_variance else scatter / count
    share = float(count[1] / count.sum()) if p_target is None else p_target
    return _Mixture(mean, variance, share), float(np.average(np.logaddexp(nontarget, target), weights=counts))


def _run_em(
    scores: Floats, counts: Floats, start: _Mixture, p_target: float | None, shared_variance: bool
) -> tuple[_Mixture, float] | None:
    """Iterate EM until it converges; None if a component shrinks to a point, vanishes, or they change places."""
    least = _POINT * _variance(scores, counts)
    mixture, before = start, -np.inf
    for _ in range(_STEPS):
        following, value = _em_step(scores, counts, mixture, p_target, shared_variance)
        if value - before < _TOLERANCE:
            before = value
            break
        if not (following.variance > least).all() or not 0 < following.p_target < 1:
            return None
        mixture, before = following, value
    return (mixture, before) if mixture.mean[0] < mixture.mean[1] else None


def _starts(ranked: Floats, p_target: float | None, shared_variance: bool) -> Iterator[_Mixture]:
    """Split the sorted scores at several places; each part starts a component."""
    for split in _SPLITS if p_target is None else (1 - p_target, *_SPLITS):
        cut = int(np.clip(round(split * ranked.size), 2, ranked.size - 2))
        low, high = ranked[:cut], ranked[cut:]
        variance = np.array([low.var(), high.var()])
        if shared_variance or not (variance > 0).all():
            variance = np.full(2, max(np.average(variance, weights=[low.size, high.size]), 1e-4 * ranked.var()))
        share = 1 - cut / ranked.size if p_target is None else p_target
        yield _Mixture(np.array([low.mean(), high.mean()]), variance, share)


def _fit_mixture(ranked: Floats, counts: Floats, p_target: float | None, shared_variance: bool) -> _Mixture | None:
    """Return the likeliest mixture of several starts, or None; ``ranked`` scores occur ``counts`` times each."""
    running = np.cumsum(counts)
    size = int(min(running[-1], _SAMPLE))
    at = np.searchsorted(running, (np.arange(size) + 0.5) * running[-1] / size, side="right")
    sample, once = ranked[np.minimum(at, ranked.size - 1)], np.ones(size)
    starts = _starts(sample, p_target, shared_variance)
    found = [end for start in starts if (end := _run_em(sample, once, start, p_target, shared_variance))]
    if not found:
        return None
    best = _run_em(ranked, counts, max(found, key=lambda end: end[1])[0], p_target, shared_variance)
    return None if best is None else best[0]
