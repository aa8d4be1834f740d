"""Densities of what the score model leaves: real scores are skewed, and have heavier tails than Gaussians.

The model's prediction p_h of a trial's score, and the variance v_h of that, are the best that is linear in the cohort
scores, whatever the distribution. Only the density of the standardized residual z_h = (s - p_h) / sqrt(v_h) need not be
Gaussian. Here it is hyperbolic (Barndorff-Nielsen, 1977):

    log f(z) = constant - slope sqrt(width^2 + (z - location)^2) + lean (z - location)                (R1)
    LLR = log f_1(z_1) - log f_0(z_0) + log(v_0 / v_1) / 2                                            (R2)

Near its middle a hyperbola is a parabola, far out it is straight: the LLR has no floor that two parabolas have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["ResidualDensities", "hyperbolic_llr"]

_RANGES = {"location": (-1e3, 1e3), "scale": (1e-3, 1e3), "skew": (-8.0, 8.0), "tail": (1e-4, 1e6)}  # far beyond fits


@dataclass(frozen=True, eq=False, init=False)
class ResidualDensities:
    """The density of the standardized residual of each class (non-target, target), (R1).

    Parameters
    ----------
    location, scale
        Where it lies, and the standard deviation of its middle.
    skew
        Positive: the longer tail is on the right.
    tail
        Small: the tails of a Laplace density; large: a Gaussian.

    Examples
    --------
    >>> nearly_gaussian = ResidualDensities(location=[0, 0], scale=[1, 1], skew=[0, 0], tail=[1e5, 1e5])
    >>> float(nearly_gaussian.log_density(np.array(0.0), 0).round(3))
    -0.919
    """

    location: Float[np.ndarray, "2"]
    scale: Float[np.ndarray, "2"]
    skew: Float[np.ndarray, "2"]
    tail: Float[np.ndarray, "2"]

    def __init__(
        self, *, location: npt.ArrayLike, scale: npt.ArrayLike, skew: npt.ArrayLike, tail: npt.ArrayLike
    ) -> None:
        for name, value in zip(_RANGES, (location, scale, skew, tail), strict=True):
            array = np.array(value, dtype=np.float64)
            low, high = _RANGES[name]
            if array.shape != (2,) or not ((array >= low) & (array <= high)).all():
                numbers = f"2 numbers from {low:g} to {high:g} (non-target, target)"
                raise InputError(f"{name} must be {numbers}, but is {array.tolist()}")
            object.__setattr__(self, name, array)

    @cached_property
    def coefficients(self) -> Float[np.ndarray, "4 2"]:
        """Constant, width, slope and lean of (R1) for each class."""
        from scipy.special import kve

        lean, width, gamma = np.tanh(self.skew), self.scale * np.sqrt(self.tail), np.sqrt(self.tail) / self.scale
        slope = gamma / np.sqrt(1 - lean**2)
        constant = np.log(gamma / (2 * slope * width)) - np.log(kve(1, self.tail)) + self.tail
        return np.stack([constant, width, slope, lean * slope])

    def log_density(self, residual: npt.NDArray[Any], label: int) -> npt.NDArray[np.float64]:
        """Return the log-density of residuals of a class."""
        constant, width, slope, lean = self.coefficients[:, label]
        d = residual - self.location[label]
        return np.asarray(constant - slope * np.sqrt(width**2 + d**2) + lean * d)  # (R1)

    def constants(self, variance: Float[np.ndarray, "2"]) -> tuple[float, ...]:
        """Return the constants of `hyperbolic_llr` for scores whose predictions have this variance."""
        constant, width, slope, lean = self.coefficients
        scale = np.sqrt(variance)
        first = constant[1] - constant[0] + np.log(scale[0] / scale[1])
        each = np.stack([self.location * scale, (width * scale) ** 2, slope / scale, lean / scale])
        return (float(first), *each[:, 0].tolist(), *each[:, 1].tolist())

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as plain numbers, for JSON."""
        return {"family": "hyperbolic"} | {name: getattr(self, name).tolist() for name in _RANGES}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ResidualDensities:
        """Return the densities of such numbers."""
        if values.get("family") != "hyperbolic":
            raise InputError("the residual densities are not hyperbolic but of an earlier version; fit the model again")
        absent = [name for name in _RANGES if name not in values]
        if absent:
            raise InputError(f"residual densities need {absent[0]!r}, which is not there")
        return cls(**{name: values[name] for name in _RANGES})

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, ResidualDensities) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


def hyperbolic_llr(
    s: Any, e0: Any, e1: Any, t0: Any, t1: Any, constant: float,
    location0: float, width0: float, slope0: float, lean0: float,
    location1: float, width1: float, slope1: float, lean1: float,
) -> Any:  # fmt: skip
    """Return the LLR of scores whose predictions are p_h = e_h + t_h, (R2)."""
    d0 = s - e0 - t0 - location0
    d1 = s - e1 - t1 - location1
    log0 = lean0 * d0 - slope0 * np.sqrt(width0 + d0 * d0)
    log1 = lean1 * d1 - slope1 * np.sqrt(width1 + d1 * d1)
    return constant + log1 - log0
