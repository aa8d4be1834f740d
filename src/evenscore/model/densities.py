"""Densities of what the score model leaves: real scores are skewed, and have heavier tails than Gaussians.

The model's prediction p_h of a trial's score, and the variance v_h of that, are the best that is linear in the cohort
scores, whatever the distribution. Only the density of the standardized residual z_h = (s - p_h) / sqrt(v_h) need not be
Gaussian. Here it is hyperbolic (Barndorff-Nielsen, 1977):

    log f(z) = constant - slope sqrt(width^2 + (z - location)^2) + lean (z - location)                (R1)
    LLR = log f_1(z_1) - log f_0(z_0) + log(v_0 / v_1) / 2                                            (R2)

Near its middle a hyperbola is a parabola, far out it is straight: the LLR has no floor that two parabolas have.
Formulas of LLRs take a score, the sides' parts of its predictions p_h = e_h + t_h, and constants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError

__all__ = ["Formula", "ResidualDensities", "SinhArcsinhDensities", "gaussian_llr"]

_RANGES = {"location": (-1e3, 1e3), "scale": (1e-3, 1e3), "skew": (-8.0, 8.0), "tail": (1e-4, 1e6)}  # far beyond fits
Array = npt.NDArray[np.float64]
Values = Any  #: a number or an array of them; NumPy runs a formula on arrays, numba compiles it for numbers
Formula = tuple[Callable[..., Values], tuple[float, ...]]  #: an LLR, and its constants


@dataclass(frozen=True, kw_only=True, eq=False)
class ResidualDensities:
    """The hyperbolic density of the standardized residual of each class (non-target, target), (R1).

    Examples
    --------
    >>> nearly_gaussian = ResidualDensities(location=[0, 0], scale=[1, 1], skew=[0, 0], tail=[1e5, 1e5])
    >>> float(nearly_gaussian.log_density(np.array(0.0), 0).round(3))
    -0.919
    """

    location: Array  #: where it lies, of each class
    scale: Array  #: the standard deviation of its middle
    skew: Array  #: positive: the longer tail is on the right
    tail: Array  #: small: the tails of a Laplace density; large: a Gaussian

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.shape != (2,) or not ((array >= low) & (array <= high)).all():
                numbers = f"2 numbers from {low:g} to {high:g} (non-target, target)"
                raise InputError(f"{name} must be {numbers}, but is {array.tolist()}")
            object.__setattr__(self, name, array)

    @cached_property
    def coefficients(self) -> Array:
        """Constant, width, slope and lean of (R1) for each class."""
        from scipy.special import kve

        lean, width, gamma = np.tanh(self.skew), self.scale * np.sqrt(self.tail), np.sqrt(self.tail) / self.scale
        slope = gamma / np.sqrt(1 - lean**2)
        constant = np.log(gamma / (2 * slope * width)) - np.log(kve(1, self.tail)) + self.tail
        return np.stack([constant, width, slope, lean * slope])

    def log_density(self, residual: Values, label: int) -> Values:
        """Return the log-density of residuals of a class."""
        constant, width, slope, lean = self.coefficients[:, label]
        d = residual - self.location[label]
        return constant - slope * np.sqrt(width**2 + d**2) + lean * d  # (R1)

    def formula(self, variance: Array) -> Formula:
        """Return (R2) for scores whose predictions have this variance."""
        constant, width, slope, lean = self.coefficients
        scale = np.sqrt(variance)
        first = constant[1] - constant[0] + np.log(scale[0] / scale[1])
        each = np.stack([self.location * scale, (width * scale) ** 2, slope / scale, lean / scale])
        return _hyperbolic_llr, (float(first), *each.ravel().tolist())


def gaussian_llr(s: Values, e0: Values, e1: Values, t0: Values, t1: Values, c: float, h0: float, h1: float) -> Values:
    """Return the LLR of Gaussian scores, (S3), with c = log(v_0 / v_1) / 2 and h_h = 1 / 2 v_h."""
    d0 = s - e0 - t0
    d1 = s - e1 - t1
    return c + h0 * d0 * d0 - h1 * d1 * d1


def _hyperbolic_llr(
    s: Values, e0: Values, e1: Values, t0: Values, t1: Values, constant: float,
    location0: float, location1: float, width0: float, width1: float,
    slope0: float, slope1: float, lean0: float, lean1: float,
) -> Values:  # fmt: skip
    d0 = s - e0 - t0 - location0
    d1 = s - e1 - t1 - location1
    log0 = lean0 * d0 - slope0 * np.sqrt(width0 + d0 * d0)
    log1 = lean1 * d1 - slope1 * np.sqrt(width1 + d1 * d1)
    return constant + log1 - log0


class SinhArcsinhDensities(ResidualDensities):
    """Densities of model files of the first edition: sinh(tail arsinh((z - location) / scale) - skew) ~ N(0, 1)."""

    def formula(self, variance: Array) -> Formula:
        """Return (R2) for scores whose predictions have this variance."""
        scale = self.scale * np.sqrt(variance)
        constant = np.log(self.tail[1] / self.tail[0] * scale[0] / scale[1])
        each = np.stack([self.location * np.sqrt(variance), 1 / scale, self.skew, self.tail])
        return _sinh_arcsinh_llr, (float(constant), *each.ravel().tolist())


def _sinh_arcsinh_llr(
    s: Values, e0: Values, e1: Values, t0: Values, t1: Values, constant: float,
    location0: float, location1: float, scale0: float, scale1: float,
    skew0: float, skew1: float, tail0: float, tail1: float,
) -> Values:  # fmt: skip
    x0 = (s - e0 - t0 - location0) * scale0
    x1 = (s - e1 - t1 - location1) * scale1
    u0 = np.minimum(np.abs(tail0 * np.arcsinh(x0) - skew0), 350.0)  # beyond, squares do not fit into float64
    u1 = np.minimum(np.abs(tail1 * np.arcsinh(x1) - skew1), 350.0)
    log0 = np.log(np.cosh(u0)) - 0.5 * np.log(1 + x0 * x0) - 0.5 * np.sinh(u0) ** 2
    log1 = np.log(np.cosh(u1)) - 0.5 * np.log(1 + x1 * x1) - 0.5 * np.sinh(u1) ** 2
    return constant + log1 - log0
