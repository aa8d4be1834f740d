"""Calibration by one Gaussian per class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.base import Calibration, finite, positive
from evenscore.calibrate.training import Floats, Training
from evenscore.errors import InputError

__all__ = ["GaussianCalibration", "gaussian_llr"]


@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianCalibration(Calibration):
    """Scores of each class are Gaussian.

    s | h ~ N(mean_h, variance_h),  h in (NONTARGET, TARGET) = (0, 1)               (G1)
    llr(s) = log N(s; mean_1, variance_1) - log N(s; mean_0, variance_0)            (G2)

    With different variances the LLR is a parabola: it does not rise everywhere, and far from the data it may rank
    scores the other way round. With a shared variance it is a straight line.

    Attributes
    ----------
    mean, variance
        Of the non-targets and of the targets.

    Examples
    --------
    >>> calibration = GaussianCalibration.fit([0.0, 2.0, 4.0, 8.0], [0, 0, 1, 1])
    >>> calibration.mean, calibration.variance
    (array([1., 6.]), array([1., 4.]))
    >>> calibration([1.0, 6.0]).round(3)
    array([-3.818, 11.807])
    """

    kind: ClassVar[str] = "gaussian"

    mean: Floats
    variance: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", finite("mean", self.mean, (2,)))
        object.__setattr__(self, "variance", positive("variance", self.variance, (2,)))

    @classmethod
    def fit(
        cls, scores: Any, labels: Any = None, weights: npt.ArrayLike | None = None, *, shared_variance: bool = False
    ) -> Self:
        """Fit by maximum likelihood.

        Parameters
        ----------
        scores, labels, weights
            As in `Calibration.fit`.
        shared_variance
            Give both classes the variance within classes, so that the LLR is a straight line.
        """
        training = Training.from_scores(scores, labels, weights)
        number, mean, variance = training.moments()
        if shared_variance:
            variance = np.full(2, np.average(variance, weights=number))
        for name, size, spread in zip(("non-target", "target"), number, variance, strict=True):
            if not spread > 0:
                raise InputError(
                    f"the {size:.0f} {name} scores do not vary, so they have no Gaussian; give more trials"
                    + ("" if shared_variance else ", or use shared_variance=True")
                )
        return cls(mean=mean, variance=variance)._fitted_to(training, shared_variance=shared_variance)

    def _llr(self, scores: Floats) -> Floats:
        return gaussian_llr(scores, self.mean, self.variance)


def gaussian_llr(scores: Floats, mean: Floats, variance: Floats) -> Floats:
    """Return the LLRs of (G2).

    Examples
    --------
    >>> gaussian_llr(np.array([0.0, 1.0]), np.array([0.0, 2.0]), np.array([1.0, 1.0]))
    array([-2.,  0.])
    """
    if variance[0] == variance[1]:  # without the squares, which cancel
        return np.asarray((mean[1] - mean[0]) / variance[0] * (scores - mean.mean()))
    nontarget, target = (scores - mean[0]) ** 2 / variance[0], (scores - mean[1]) ** 2 / variance[1]
    return np.asarray(0.5 * (nontarget - target) + 0.5 * np.log(variance[0] / variance[1]))
