"""Calibration without labels: a mixture of two Gaussians, fitted by expectation maximization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evenscore.calibrate.gaussian import GaussianCalibration
from evenscore.calibrate.trials import Floats, Trials
from evenscore.errors import InputError
from evenscore.metrics.cllr import expit

__all__ = ["UnsupervisedCalibration"]

_REMEDY = "label some trials and use another calibration"
_SPLITS = (0.5, 0.7, 0.85, 0.95, 0.99)  # shares of non-targets to start from
_SAMPLE = 2000  # evenly spaced order statistics that the starts are compared on

Mixture = tuple[Floats, Floats, Floats]  # means, variances and shares of the two components


@dataclass(frozen=True, kw_only=True, eq=False)
class UnsupervisedCalibration(GaussianCalibration):
    """Unlabelled scores are a mixture of non-targets and targets, each Gaussian.

    s ~ (1 - p_target) N(mean_0, variance_0) + p_target N(mean_1, variance_1),  mean_0 < mean_1     (U1)

    The LLR is that of the two Gaussians, (G2). They are fitted by expectation maximization, from several starts; labels
    are not used. It is an error if the scores do not show two groups: one Gaussian explains them as well (by the
    Bayesian information criterion), the means are less than one standard deviation apart, or one group has fewer than 5
    trials. Options of `fit`: ``p_target``, the share of targets, if it is known, and ``shared_variance=True``, one
    variance for both, so that the LLR is a straight line.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = np.concatenate((rng.normal(-3, 1, 900), rng.normal(3, 1, 100)))
    >>> round(UnsupervisedCalibration.fit(scores).p_target, 2)
    0.1
    """

    kind: ClassVar[str] = "unsupervised"
    supervised: ClassVar[bool] = False

    p_target: float

    @classmethod
    def _fit(
        cls, trials: Trials, p_target: float | None = None, shared_variance: bool = False
    ) -> UnsupervisedCalibration:
        order = np.argsort(trials.scores, kind="stable")
        scores, weights = trials.scores[order], trials.weights[order]
        if weights.sum() < 20 or not np.ptp(scores) > 0:
            raise InputError("the scores do not show two groups; give at least 20 scores, not all of them equal")
        known = None if p_target is None else np.array([1 - p_target, p_target])
        running = np.cumsum(weights)
        size = int(min(running[-1], _SAMPLE))
        at = np.searchsorted(running, (np.arange(size) + 0.5) * running[-1] / size, side="right")
        sample, once, ends = scores[np.minimum(at, len(scores) - 1)], np.ones(size), []
        for split in _SPLITS if known is None else (known[0], *_SPLITS):
            start = _split(sample, split, known, shared_variance)
            ends += _run_em(sample, once, start, known, shared_variance)
        likeliest = max(ends, key=lambda end: end[1], default=None)
        found = [] if likeliest is None else _run_em(scores, weights, likeliest[0], known, shared_variance)
        if not found:
            raise InputError(f"no two Gaussians fit the scores: one of them shrinks to a point; {_REMEDY}")
        mixture, likelihood = found[0]
        _refuse_one_group(scores, weights, mixture, likelihood, (p_target is None) + (not shared_variance) + 1)
        return cls(mean=mixture[0], variance=mixture[1], p_target=float(mixture[2][1]))


def _split(ranked: Floats, split: float, known: Floats | None, shared_variance: bool) -> Mixture:
    """Split sorted scores; each part starts a component."""
    cut = int(np.clip(round(split * ranked.size), 2, ranked.size - 2))
    low, high = ranked[:cut], ranked[cut:]
    variance = np.array([low.var(), high.var()])
    if shared_variance or not (variance > 0).all():
        variance = np.full(2, max(np.average(variance, weights=[low.size, high.size]), 1e-4 * ranked.var()))
    share = np.array([cut, ranked.size - cut]) / ranked.size if known is None else known
    return np.array([low.mean(), high.mean()]), variance, share


def _run_em(
    scores: Floats, weights: Floats, mixture: Mixture, known: Floats | None, shared_variance: bool
) -> list[tuple[Mixture, float]]:
    """Return the mixture and its mean log-likelihood; nothing if one shrinks to a point or they change places."""
    least, before = 1e-6 * np.cov(scores, aweights=weights, ddof=0), -np.inf
    for _ in range(400):
        mean, variance, share = (part[:, None] for part in mixture)
        joint = np.log(share) - 0.5 * (np.log(2 * np.pi * variance) + (scores - mean) ** 2 / variance)
        value = float(np.average(np.logaddexp(*joint), weights=weights))
        if value - before < 1e-9:
            break
        posterior = expit(joint[1] - joint[0])
        parts = weights * np.stack((1 - posterior, posterior))
        count = np.maximum(parts.sum(axis=1), np.finfo(float).tiny)
        centre = parts @ scores / count
        scatter = np.einsum("hn,hn->h", parts, (scores - centre[:, None]) ** 2)
        width = np.full(2, scatter.sum() / count.sum()) if shared_variance else scatter / count
        if not (width > least).all() or not 0 < count[1] < count.sum():
            return []
        mixture, before = (centre, width, count / count.sum() if known is None else known), value
    return [(mixture, value)] if mixture[0][0] < mixture[0][1] else []


def _refuse_one_group(scores: Floats, weights: Floats, mixture: Mixture, likelihood: float, n_parameters: int) -> None:
    """Raise an error if the data do not support two components, which have so many parameters more than one."""
    mean, variance, share = mixture
    number, separation = weights.sum(), (mean[1] - mean[0]) / np.sqrt(variance.mean())
    alone = -0.5 * (np.log(2 * np.pi * np.cov(scores, aweights=weights, ddof=0)) + 1)
    problem = ""
    if 2 * number * (likelihood - alone) <= n_parameters * np.log(number):
        problem = "one Gaussian explains them as well as two"
    elif number * share.min() < 5:
        problem = f"the rarer one has only {number * share.min():.1f} trials"
    elif separation < 1:
        problem = f"their means are {separation:.2f} standard deviations apart"
    if problem:
        raise InputError(f"the scores do not show two groups: {problem}; {_REMEDY}")
