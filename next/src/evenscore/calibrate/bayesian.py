"""Calibration by Gaussians whose parameters are integrated out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.base import Calibration, finite, positive
from evenscore.calibrate.training import Floats, Training
from evenscore.errors import InputError

__all__ = ["BayesianCalibration", "NormalGammaPrior"]


@dataclass(frozen=True, kw_only=True)
class NormalGammaPrior:
    """What is known of a class before its scores are seen.

    precision ~ Gamma(shape, rate),  mean | precision ~ N(mean, 1 / (mean_count precision))      (B1)

    The default, all 0, is the non-informative prior p(mean, precision) = 1 / precision.

    Attributes
    ----------
    mean, mean_count
        Expected mean, and how many scores this expectation is worth; 0 if nothing is known.
    shape, rate
        Of the precision; 2 shape is the number of scores that it is worth, rate / shape the expected variance.

    Examples
    --------
    >>> prior = NormalGammaPrior(mean=5.0, mean_count=1.0, shape=1.0, rate=2.0)
    >>> fit = BayesianCalibration.fit([0.0, 1.0, 2.0, 6.0], [0, 0, 0, 1], target_prior=prior)
    >>> fit.mean, fit.df
    (array([1. , 5.5]), array([2., 3.]))
    """

    mean: float = 0.0
    mean_count: float = 0.0
    shape: float = 0.0
    rate: float = 0.0

    def __post_init__(self) -> None:
        finite("mean", self.mean)
        for name in ("mean_count", "shape", "rate"):
            if not 0 <= getattr(self, name) < np.inf:
                raise InputError(f"{name} is {getattr(self, name)}, but must be finite and at least 0")


@dataclass(frozen=True, kw_only=True, eq=False)
class BayesianCalibration(Calibration):
    """Gaussian scores with unknown mean and variance, which are integrated out (Brümmer and Swart, 2014).

    s | h ~ N(mu_h, 1 / lambda_h),  (mu_h, lambda_h) ~ normal-gamma prior (B1)
    llr(s) = log t(s; target scores) - log t(s; non-target scores)                                 (B2)

    where t is the predictive density, a Student t. With few training scores its heavy tails keep the LLR modest far
    from the data; with many it becomes `GaussianCalibration`.

    Attributes
    ----------
    mean, scale2, df
        Location, squared scale and degrees of freedom of the predictive density of non-targets and of targets.

    Notes
    -----
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

    mean: Floats
    scale2: Floats
    df: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", finite("mean", self.mean, (2,)))
        object.__setattr__(self, "scale2", positive("scale2", self.scale2, (2,)))
        object.__setattr__(self, "df", positive("df", self.df, (2,)))

    @classmethod
    def fit(
        cls,
        scores: Any,
        labels: Any = None,
        weights: npt.ArrayLike | None = None,
        *,
        nontarget_prior: NormalGammaPrior | None = None,
        target_prior: NormalGammaPrior | None = None,
        shared_variance: bool = False,
    ) -> Self:
        """Return the predictive densities given the training scores.

        Parameters
        ----------
        scores, labels, weights
            As in `Calibration.fit`.
        nontarget_prior, target_prior
            Non-informative by default; then each class needs two different scores.
        shared_variance
            One precision for both classes, with the non-target prior's shape and rate.
        """
        training = Training.from_scores(scores, labels, weights)
        priors = (nontarget_prior or NormalGammaPrior(), target_prior or NormalGammaPrior())
        m, kappa, shape, rate = np.array([(p.mean, p.mean_count, p.shape, p.rate) for p in priors]).T
        n, average, variance = training.moments()
        gain = (n - (kappa == 0)) / 2  # an unknown mean uses up one score
        loss = (variance * n + kappa * n / (kappa + n) * (average - m) ** 2) / 2
        if shared_variance:
            shape, rate, gain, loss = (np.full(2, value) for value in (shape[0], rate[0], gain.sum(), loss.sum()))
        shape, rate = shape + gain, rate + loss
        if not ((shape > 0) & (rate > 0)).all():
            raise InputError(
                f"{n[0]:.0f} non-target and {n[1]:.0f} target scores do not determine the variance; give at least "
                "two different scores per class, a prior, or shared_variance=True"
            )
        mean = (kappa * m + n * average) / (kappa + n)
        found = cls(mean=mean, scale2=rate / shape * (1 + 1 / (kappa + n)), df=2 * shape)
        options = {"nontarget_prior": priors[0], "target_prior": priors[1], "shared_variance": shared_variance}
        return found._fitted_to(training, **options)

    def _llr(self, scores: Floats) -> Floats:
        nontarget = _log_t(scores, self.mean[0], self.scale2[0], self.df[0])
        return np.asarray(_log_t(scores, self.mean[1], self.scale2[1], self.df[1]) - nontarget)


def _log_t(scores: Floats, mean: float, scale2: float, df: float) -> Floats:
    """Return the log-density of a Student t; the beta function stays exact for millions of degrees of freedom."""
    from scipy.special import betaln

    normalizer = -betaln(0.5, df / 2) - 0.5 * np.log(df * scale2)
    return np.asarray(normalizer - (df + 1) / 2 * np.log1p((scores - mean) ** 2 / (df * scale2)))
