"""Calibration by a density of the scores of each class: Gaussian, with parameters integrated out, or without labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evenscore.calibrate.base import Calibration, Pair
from evenscore.calibrate.trials import Floats, Trials
from evenscore.errors import InputError
from evenscore.metrics.cllr import expit

__all__ = ["BayesianCalibration", "GaussianCalibration", "UnsupervisedCalibration"]

_REMEDY = "label some trials and use another calibration"
_SPLITS = (0.5, 0.7, 0.85, 0.95, 0.99)  # shares of non-targets to start from
_SAMPLE = 2000  # evenly spaced order statistics that the starts are compared on

Mixture = tuple[Floats, Floats, Floats]  # means, variances and shares of the two components


@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianCalibration(Calibration):
    """Scores of each class are Gaussian, fitted by maximum likelihood.

    s | h ~ N(mean_h, variance_h),  h in (NONTARGET, TARGET) = (0, 1)               (G1)
    llr(s) = log N(s; mean_1, variance_1) - log N(s; mean_0, variance_0)            (G2)

    With different variances the LLR is a parabola: it does not rise everywhere, and far from the data it may rank
    scores the other way round. The option ``shared_variance=True`` of `fit` gives both classes the variance within
    classes, so that the LLR is a straight line.
    """

    kind: ClassVar[str] = "gaussian"
    mean: Pair
    variance: Pair

    @classmethod
    def _fit(cls, trials: Trials, shared_variance: bool = False) -> GaussianCalibration:
        number, mean, variance = trials.moments()
        if shared_variance:
            variance = np.full(2, np.average(variance, weights=number))
        if not (variance > 0).all():
            raise InputError("the scores of a class do not vary; give more trials, or shared_variance=True")
        return cls(mean=mean, variance=variance)

    def _llr(self, scores: Floats) -> Floats:
        mean, variance = self.mean, self.variance
        if variance[0] == variance[1]:  # without the squares, which cancel
            return np.asarray((mean[1] - mean[0]) / variance[0] * (scores - mean.mean()))
        nontarget, target = (scores - mean[0]) ** 2 / variance[0], (scores - mean[1]) ** 2 / variance[1]
        return np.asarray(0.5 * (nontarget - target) + 0.5 * np.log(variance[0] / variance[1]))  # (G2)


@dataclass(frozen=True, kw_only=True, eq=False)
class BayesianCalibration(Calibration):
    """Gaussian scores with unknown mean and precision, which are integrated out (Brümmer and Swart, 2014).

    s | h ~ N(mu_h, 1 / lambda_h),  p(mu_h, lambda_h) = 1 / lambda_h                               (B1)
    llr(s) = log t(s; target scores) - log t(s; non-target scores)                                 (B2)

    where t is the predictive density, a Student t. With few training scores its heavy tails keep the LLR modest far
    from the data; with many it becomes `GaussianCalibration`. The option ``shared_variance=True`` of `fit` gives both
    classes one precision.

    Training trials are taken to be independent. Trials that share a speaker are not: with many trials of few speakers
    the tails are too light and the LLRs too far from 0; see `Calibration.interval`.

    Examples
    --------
    >>> calibration = BayesianCalibration.fit([0.0, 1.0, 2.0, 5.0, 6.0, 7.0], [0, 0, 0, 1, 1, 1])
    >>> calibration([1.0, 3.5, 6.0]).round(3)
    array([-3.509,  0.   ,  3.509])
    """

    kind: ClassVar[str] = "bayesian"
    mean: Pair  #: of the predictive density of non-targets and of targets: location,
    scale2: Pair  #: squared scale,
    df: Pair  #: and degrees of freedom

    @classmethod
    def _fit(cls, trials: Trials, shared_variance: bool = False) -> BayesianCalibration:
        number, mean, variance = trials.moments()
        df, scatter = number - 1, number * variance
        if shared_variance:
            df, scatter = np.full(2, df.sum()), np.full(2, scatter.sum())
        if not ((df > 0) & (scatter > 0)).all():
            raise InputError("the scores do not determine the variances; give two different scores per class")
        return cls(mean=mean, scale2=scatter / df * (1 + 1 / number), df=df)

    def _llr(self, scores: Floats) -> Floats:
        from scipy.special import betaln

        spread, power = self.df * self.scale2, (self.df + 1) / 2
        constant = -betaln(0.5, self.df / 2) - 0.5 * np.log(spread)  # exact for millions of trials
        log_t = [constant[h] - power[h] * np.log1p((scores - self.mean[h]) ** 2 / spread[h]) for h in (0, 1)]
        return np.asarray(log_t[1] - log_t[0])  # (B2)


@dataclass(frozen=True, kw_only=True, eq=False)
class UnsupervisedCalibration(GaussianCalibration):
    """Unlabelled scores are a mixture of non-targets and targets, each Gaussian, fitted by EM from several starts.

    s ~ (1 - p_target) N(mean_0, variance_0) + p_target N(mean_1, variance_1),  mean_0 < mean_1     (U1)

    The LLR is that of the two Gaussians, (G2). It is an error if the scores do not show two groups: one Gaussian
    explains them as well (by the Bayesian information criterion), the means are less than one standard deviation apart,
    or one group has fewer than 5 trials. Options of `fit`: ``p_target``, the share of targets, if it is known, and
    ``shared_variance=True``, one variance for both.

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
        cls, trials: Trials, shared_variance: bool = False, p_target: float | None = None
    ) -> UnsupervisedCalibration:
        order = np.argsort(trials.scores, kind="stable")
        scores, weights = trials.scores[order], trials.weights[order]
        known = None if p_target is None else np.array([1 - p_target, p_target])
        running = np.cumsum(weights)
        size = int(min(running[-1], _SAMPLE))
        at = np.searchsorted(running, (np.arange(size) + 0.5) * running[-1] / size, side="right")
        sample, once, ends = scores[np.minimum(at, len(scores) - 1)], np.ones(size), []
        if running[-1] < 20 or not np.ptp(sample) > 1e-100:  # whose square is not 0
            raise InputError("the scores do not show two groups; give at least 20 scores, not all of them equal")
        for split in _SPLITS if known is None else (known[0], *_SPLITS):
            start = _split(sample, split, known, shared_variance)
            ends += _run_em(sample, once, start, known, shared_variance)
        ends.sort(key=lambda end: end[1])
        found = [end for start, _ in ends[-1:] for end in _run_em(scores, weights, start, known, shared_variance)]
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
    number, alone = weights.sum(), -0.5 * (np.log(2 * np.pi * np.cov(scores, aweights=weights, ddof=0)) + 1)
    problems = {
        "one Gaussian explains them as well": 2 * number * (likelihood - alone) <= n_parameters * np.log(number),
        "one of them has fewer than 5 trials": number * share.min() < 5,
        "they overlap": mean[1] - mean[0] < np.sqrt(variance.mean()),
    }
    for problem in (name for name, found in problems.items() if found):
        raise InputError(f"the scores do not show two groups: {problem}; {_REMEDY}")
