"""Fitting the densities of residuals to left-out training trials, from counts that add up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.model.residuals import ResidualDensities
from evenscore.tables.labels import NONTARGET, TARGET

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["ResidualCounts", "fit_densities"]

Array = np.ndarray

# Counts of arsinh(r), which is r near 0 and its logarithm far away: a bin is 1/256 wide, or 0.4 % of r.
_PER_UNIT, _REACH = 256, 40
_BINS = 2 * _REACH * _PER_UNIT

# What is known before any data: near a Gaussian. Standard deviations of (location, log scale, skew, log tail).
_PRIOR = np.array([0.5, 0.35, 0.5, 0.35])
# Trials of one speaker are not independent: so many count for each speaker.
_PER_SPEAKER = 10
_FEWEST_SPEAKERS = 4
_BOUNDS = np.array([[-5, -3, -3, -1.6], [5, 3, 3, 1.6]])
_STEP, _ITERATIONS, _TOLERANCE, _GIVE_UP = 1e-4, 100, 1e-9, 1e8


@dataclass(frozen=True, kw_only=True, eq=False)
class ResidualCounts:
    """How many residuals of each class lie in each bin; a sum over trials.

    Examples
    --------
    >>> counts = ResidualCounts.of(np.array([0.0, 0.1, 3.0]), 1) + ResidualCounts.of(np.array([-1.0]), 0)
    >>> counts.total
    array([1., 3.])
    """

    counts: Float[Array, "2 b"]

    @classmethod
    def of(cls, residuals: npt.NDArray[Any], label: int) -> ResidualCounts:
        """Count residuals of one class; NaN are left out."""
        counts = np.zeros((2, _BINS))
        place = np.floor((np.arcsinh(residuals[~np.isnan(residuals)].astype(np.float64)) + _REACH) * _PER_UNIT)
        counts[label] = np.bincount(np.clip(place, 0, _BINS - 1).astype(np.intp), minlength=_BINS)
        return cls(counts=counts)

    def __add__(self, other: ResidualCounts) -> ResidualCounts:
        return ResidualCounts(counts=self.counts + other.counts)

    @property
    def total(self) -> Float[Array, "2"]:
        """Number of residuals of each class."""
        return self.counts.sum(axis=1)

    def values(self, label: int) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Return the middles of the bins of a class that have residuals, and the numbers of these."""
        at = np.flatnonzero(self.counts[label])
        return np.sinh((at + 0.5) / _PER_UNIT - _REACH), self.counts[label][at]


def fit_densities(counts: ResidualCounts, n_speakers: int) -> ResidualDensities | None:
    """Fit the densities by maximum posterior likelihood; None where there are too few speakers to tell.

    Parameters
    ----------
    counts
        Of the residuals of trials whose speakers are not in their cohorts.
    n_speakers
        Of the training trials. Trials of one speaker depend on each other, so ten of them count for each speaker; the
        prior, which is near a Gaussian, keeps few speakers from bending a density.
    """
    if n_speakers < _FEWEST_SPEAKERS or not (counts.total > 0).all():
        return None
    found = np.stack([_fit_class(counts, label, n_speakers) for label in (NONTARGET, TARGET)])
    return _densities(found)


def _fit_class(counts: ResidualCounts, label: int, n_speakers: int) -> Float[Array, " 4"]:
    residuals, number = counts.values(label)
    share = number / number.sum()
    effective = min(float(number.sum()), _PER_SPEAKER * n_speakers)

    def loss(parameters: Array) -> float:
        densities = _densities(np.stack([parameters, parameters]))
        logs = densities.log_density(residuals, NONTARGET)
        return float(-effective * (share @ np.maximum(logs, -1e6)) + 0.5 * ((parameters / _PRIOR) ** 2).sum())

    start = np.array([share @ residuals.clip(-3, 3), 0.0, 0.0, 0.0])
    heavier = np.array([0.0, -0.3, 0.0, -0.3])
    return min((_minimum(loss, begin) for begin in (start, start + heavier)), key=loss)


def _minimum(loss: Callable[[Array], float], x: Array) -> Float[Array, " n"]:
    """Return a minimum within the bounds, by Newton's steps with differences, damped until they go down."""
    damping, value, steps = 1e-3, loss(x), _STEP * np.eye(len(x))
    for _ in range(_ITERATIONS):
        ahead, behind = (np.array([loss(x + sign * step) for step in steps]) for sign in (1, -1))
        gradient = (ahead - behind) / (2 * _STEP)
        hessian = np.diag((ahead + behind - 2 * value) / _STEP**2)
        for i in range(len(x)):
            for j in range(i):
                both = loss(x + steps[i] + steps[j]) - ahead[i] - ahead[j] + value
                hessian[i, j] = hessian[j, i] = both / _STEP**2
        scale = np.maximum(np.abs(np.diag(hessian)), 1.0)
        while damping < _GIVE_UP:
            values, vectors = np.linalg.eigh(hessian / np.sqrt(np.outer(scale, scale)))
            slope = vectors.T @ (gradient / np.sqrt(scale))
            move = vectors @ (slope / (np.maximum(values, 1e-3) + damping)) / np.sqrt(scale)
            moved = np.clip(x - move, *_BOUNDS)
            if loss(moved) < value:
                break
            damping *= 10
        else:
            return x
        gained, damping = value - loss(moved), max(damping / 10, 1e-9)
        x, value = moved, value - gained
        if gained < _TOLERANCE:
            return x
    return x


def _densities(parameters: Float[Array, "2 4"]) -> ResidualDensities:
    location, log_scale, skew, log_tail = parameters.T
    return ResidualDensities(location=location, scale=np.exp(log_scale), skew=skew, tail=np.exp(log_tail))
