"""Densities of what the score model leaves: real scores are skewed, and have heavier tails than Gaussians.

The model's prediction p_h of a trial's score, and the variance v_h of that, are the best that is linear in the cohort
scores, whatever the distribution. Only the density of the standardized residual r_h = (s - p_h) / sqrt(v_h) need not be
Gaussian. Here it is the sinh-arcsinh density of Jones and Pewsey (2009), whose Gaussian is one of its members:

    z = sinh(tail_h arsinh((r_h - location_h) / scale_h) - skew_h) ~ N(0, 1)            (R1)
    LLR = log f_1(r_1) - log f_0(r_0) - (log v_1 - log v_0) / 2                          (R2)

Equation numbers as in docs/math.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.compiled import few
from evenscore.errors import InputError
from evenscore.tables.arrays import frozen, in_type, same_array
from evenscore.tables.labels import NONTARGET, TARGET
from evenscore.threads import in_parallel

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Residual", "ResidualDensities"]

Array = np.ndarray
_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)
_FAR = 350.0  # of a sinh whose square float64 just holds; what lies beyond is as unlikely
_NODES_PER_SCALE, _REACH = 64, 24.0  # of the table of a density: nodes in a unit of its scale, and how far it goes
_RANGES = {"location": (-1e3, 1e3), "scale": (1e-3, 1e3), "skew": (-30.0, 30.0), "tail": (0.1, 10.0)}  # far beyond fits
_PARAMETERS = tuple(_RANGES)


@dataclass(frozen=True, eq=False, init=False)
class ResidualDensities:
    """The density of the standardized residual of each class, (R1).

    Parameters
    ----------
    location, scale
        Where it lies, and how wide it is; positive.
    skew
        Positive: the longer tail is on the right.
    tail
        Below 1: heavier tails than a Gaussian; above 1: lighter ones; positive.

    Examples
    --------
    >>> gaussian = ResidualDensities(location=[0, 0], scale=[1, 1], skew=[0, 0], tail=[1, 1])
    >>> float(gaussian.log_density(np.array(0.0), 0).round(4))
    -0.9189
    """

    location: Float[Array, "2"]
    scale: Float[Array, "2"]
    skew: Float[Array, "2"]
    tail: Float[Array, "2"]

    def __init__(
        self, *, location: npt.ArrayLike, scale: npt.ArrayLike, skew: npt.ArrayLike, tail: npt.ArrayLike
    ) -> None:
        for name, value in zip(_PARAMETERS, (location, scale, skew, tail), strict=True):
            array = np.array(value, dtype=np.float64)
            low, high = _RANGES[name]
            if array.shape != (2,) or not ((array >= low) & (array <= high)).all():
                numbers = f"2 numbers from {low:g} to {high:g} (non-target, target)"
                raise InputError(f"{name} must be {numbers}, but is {array.tolist()}")
            object.__setattr__(self, name, frozen(array))

    def log_density(self, residual: npt.NDArray[Any], label: int) -> npt.NDArray[np.float64]:
        """Return the log-density of residuals of a class."""
        x = (residual - self.location[label]) / self.scale[label]
        u = self.tail[label] * np.arcsinh(x) - self.skew[label]
        steep = np.logaddexp(u, -u) - np.log(2)  # log cosh(u)
        constant = np.log(self.tail[label] / self.scale[label]) - _HALF_LOG_2PI
        return np.asarray(constant + steep - np.log(np.hypot(1, x)) - 0.5 * np.sinh(np.clip(u, -_FAR, _FAR)) ** 2)

    def quantile(self, z: npt.NDArray[Any], label: int) -> npt.NDArray[np.float64]:
        """Return the residuals of a class that stand where these do among those of a standard Gaussian.

        Examples
        --------
        >>> skewed = ResidualDensities(location=[0, 0], scale=[1, 1], skew=[0, 0.5], tail=[1, 1])
        >>> skewed.quantile(np.array([-2.0, 0.0, 2.0]), 1).round(2)
        array([-1.09,  0.52,  3.42])
        """
        x = np.sinh((np.arcsinh(z) + self.skew[label]) / self.tail[label])
        return np.asarray(self.location[label] + self.scale[label] * x)

    def of_trials(
        self, scores: npt.NDArray[Any], mean: Float[Array, "t 2"], variance: Float[Array, "*t 2"]
    ) -> Float[Array, " t"]:
        """Return the log-likelihood ratios of scores with these predictions, (R2)."""
        residual = (np.asarray(scores, dtype=np.float64)[:, None] - mean) / np.sqrt(variance)
        logs = [self.log_density(residual[:, label], label) for label in (NONTARGET, TARGET)]
        scales = 0.5 * np.log(variance)
        found: Array = logs[TARGET] - logs[NONTARGET] + scales[..., NONTARGET] - scales[..., TARGET]
        return found

    def of_one(self, score: float, mean: Float[Array, "2"], variance: Float[Array, "2"]) -> float:
        """Return the log-likelihood ratio of one score, in plain numbers: arrays of one take five times as long."""
        logs = []
        for p, v, (location, scale, skew, tail) in zip(mean.tolist(), variance.tolist(), self._numbers, strict=True):
            x = ((score - p) / math.sqrt(v) - location) / scale
            u = tail * math.asinh(x) - skew
            steep = abs(u) + math.log1p(math.exp(-2 * abs(u)))
            far = math.sinh(min(abs(u), _FAR))
            logs.append(math.log(tail / scale / math.sqrt(v)) + steep - math.log(math.hypot(1, x)) - 0.5 * far**2)
        return logs[TARGET] - logs[NONTARGET]

    @cached_property
    def _numbers(self) -> list[list[float]]:
        """The four parameters of each class."""
        return np.stack([getattr(self, name) for name in _PARAMETERS], axis=1).tolist()

    def of_sums(
        self,
        scores: npt.NDArray[Any],
        sides: tuple[Float[Array, "m 2"], Float[Array, "2 n"]],
        variance: Float[Array, "2"],
        listed: Any,
        out: npt.NDArray[Any],
        sound: npt.NDArray[np.bool_],
    ) -> npt.NDArray[Any]:
        """Set ``out`` to the log-likelihood ratios of a matrix of scores, or of those of listed trials.

        ``sound`` is set where all results of a row are known to be scores.
        """
        if few(scores.size):
            mean = _paired(sides, listed)
            found = self.of_trials(scores.reshape(-1), mean.reshape(-1, 2), variance).reshape(scores.shape)
            out[...] = in_type(found, out.dtype)
            return out
        from evenscore.model.residual_kernels import density_list, density_matrix

        scores, enroll, test = (np.ascontiguousarray(part) for part in (scores, *sides))
        precision = 1 / np.sqrt(variance)
        how = enroll, test, precision, float(np.log(precision[TARGET] / precision[NONTARGET])), *self._cubics
        if listed is None:
            in_parallel(lambda start, stop: density_matrix(scores, *how, start, stop, out, sound), *scores.shape)
        else:
            pairs = listed.enroll_index, listed.test_index
            in_parallel(lambda start, stop: density_list(scores, *pairs, *how, start, stop, out), scores.size)
        return out

    @cached_property
    def _cubics(self) -> tuple[Array, Array, Array]:
        """The log-densities as cubics between even nodes; where these begin and how many make 1; all parameters.

        A cubic has the values and slopes of the density at its ends. With 64 nodes in a unit of the scale it is right
        to 1e-8.
        """
        step = self.scale / _NODES_PER_SCALE
        start = self.location - _REACH * self.scale
        nodes = start[:, None] + step[:, None] * np.arange(int(2 * _REACH * _NODES_PER_SCALE) + 1)
        f = np.stack([self.log_density(nodes[h], h) for h in (NONTARGET, TARGET)])
        g = np.stack([step[h] * self._slope(nodes[h], h) for h in (NONTARGET, TARGET)])
        rise = np.diff(f)
        cubics = [f[:, :-1], g[:, :-1], 3 * rise - 2 * g[:, :-1] - g[:, 1:], g[:, :-1] + g[:, 1:] - 2 * rise]
        parameters = np.stack([getattr(self, name) for name in _PARAMETERS])
        return np.stack(cubics, axis=2), np.stack([start, 1 / step]), parameters

    def _slope(self, residual: npt.NDArray[Any], label: int) -> npt.NDArray[np.float64]:
        """Return the derivative of the log-density."""
        x = (residual - self.location[label]) / self.scale[label]
        u = self.tail[label] * np.arcsinh(x) - self.skew[label]
        inner = self.tail[label] / np.hypot(1, x) * (np.tanh(u) - 0.5 * np.sinh(2 * u))
        return np.asarray((inner - x / (1 + x**2)) / self.scale[label])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ResidualDensities):
            return NotImplemented
        return all(same_array(getattr(self, name), getattr(other, name)) for name in _PARAMETERS)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Residual:
    """In place of the log-likelihood ratio: the standardized residual of one class."""

    label: int

    def of_trials(
        self, scores: npt.NDArray[Any], mean: Float[Array, "t 2"], variance: Float[Array, "*t 2"]
    ) -> Float[Array, " t"]:
        """Return (s - p_h) / sqrt(v_h)."""
        found: Array = (scores - mean[:, self.label]) / np.sqrt(variance[..., self.label])
        return found

    def of_sums(
        self,
        scores: npt.NDArray[Any],
        sides: tuple[Float[Array, "m 2"], Float[Array, "2 n"]],
        variance: Float[Array, "2"],
        listed: Any,
        out: npt.NDArray[Any],
        sound: npt.NDArray[np.bool_],
    ) -> npt.NDArray[Any]:
        """Set ``out`` to the residuals of a matrix of scores, or of those of listed trials."""
        enroll, test = sides[0][:, self.label], sides[1][self.label]
        mean = enroll[:, None] + test if listed is None else enroll[listed.enroll_index] + test[listed.test_index]
        out[...] = in_type((scores - mean) / np.sqrt(variance[self.label]), out.dtype)
        return out


def _paired(sides: tuple[Float[Array, "m 2"], Float[Array, "2 n"]], listed: Any) -> Float[Array, "*t 2"]:
    enroll, test = sides[0], sides[1].T
    if listed is None:
        return enroll[:, None] + test
    found: Array = enroll[listed.enroll_index] + test[listed.test_index]
    return found
