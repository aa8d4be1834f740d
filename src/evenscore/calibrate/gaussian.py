"""Calibration by one Gaussian per class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.calibration import Calibration, as_input, finite, positive
from evenscore.errors import InputError
from evenscore.metrics.trials import ScoresLike, points_of
from evenscore.tables.arrays import LARGEST_SQUARE
from evenscore.threads import one_thread_per_product

if TYPE_CHECKING:
    from jaxtyping import Float

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

    mean: Float[np.ndarray, "2"]
    variance: Float[np.ndarray, "2"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", finite("mean", self.mean, (2,)))
        object.__setattr__(self, "variance", positive("variance", self.variance, (2,)))

    @classmethod
    @one_thread_per_product()
    def fit(
        cls,
        scores: ScoresLike,
        labels: npt.ArrayLike | None = None,
        *,
        shared_variance: bool = False,
    ) -> GaussianCalibration:
        """Fit by maximum likelihood.

        Parameters
        ----------
        scores, labels
            As in `evenscore.metrics.validate`; scores must be finite. Or a `ScoreSummary`, which gives the same.
        shared_variance
            Give both classes the variance within classes, so that the LLR is a straight line.
        """
        number, mean, variance = points_of(scores, labels).moments()
        if shared_variance:
            variance = np.full(2, np.average(variance, weights=number))
        for name, size, spread in zip(("non-target", "target"), number, variance, strict=True):
            if not spread >= 1 / LARGEST_SQUARE:
                raise InputError(
                    f"the {size:.0f} {name} scores do not vary, so they have no Gaussian; give more trials"
                    + ("" if shared_variance else ", or use shared_variance=True")
                )
        return cls(mean=mean, variance=variance)

    def __call__(self, scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the LLR of each score; NaN stays NaN."""
        return gaussian_llr(as_input(scores), self.mean, self.variance)


def gaussian_llr(
    scores: npt.NDArray[np.float64], mean: Float[np.ndarray, "2"], variance: Float[np.ndarray, "2"]
) -> npt.NDArray[np.float64]:
    """Carry out (G2)."""
    if variance[0] == variance[1]:  # without the squares, which cancel
        return np.asarray((mean[1] - mean[0]) / variance[0] * (scores - mean.mean()))
    non, tar = ((scores - m) ** 2 / v for m, v in zip(mean, variance, strict=True))
    return np.asarray(0.5 * (non - tar) + 0.5 * np.log(variance[0] / variance[1]))
