"""Calibration by a density of scores for each class: a Gaussian, or a Gaussian whose parameters are integrated out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evenscore.calibrate.base import Calibration, Pair
from evenscore.calibrate.trials import Floats, Trials
from evenscore.errors import InputError

__all__ = ["BayesianCalibration", "GaussianCalibration"]


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
    >>> calibration.mean, calibration.df
    (array([1., 6.]), array([2., 2.]))
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

        scaled = [
            (scores - mean) ** 2 / (df * s2) for mean, s2, df in zip(self.mean, self.scale2, self.df, strict=True)
        ]
        constant = -betaln(0.5, self.df / 2) - 0.5 * np.log(self.df * self.scale2)  # exact for millions of trials
        nontarget, target = (c - (df + 1) / 2 * np.log1p(x) for c, df, x in zip(constant, self.df, scaled, strict=True))
        return np.asarray(target - nontarget)  # (B2)
