"""Operating points: a prior and two costs, which together set the Bayes threshold."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError

__all__ = ["DEFAULT_POINTS", "OperatingPoint", "PointLike", "as_points", "cost_weights"]


@dataclass(frozen=True)
class OperatingPoint:
    """Prior of a target, cost of a miss, cost of a false alarm.

    Examples
    --------
    >>> point = OperatingPoint(0.01)
    >>> round(point.threshold, 4), point.default_cost
    (4.5951, 0.01)
    >>> round(OperatingPoint(0.01, c_miss=10, c_fa=1).effective_prior, 4)
    0.0917
    """

    p_target: float
    c_miss: float = 1.0
    c_fa: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.p_target < 1:
            raise InputError(f"p_target is {self.p_target}, but must lie between 0 and 1")
        for name in ("c_miss", "c_fa"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"{name} is {getattr(self, name)}, but must be a finite number above 0")

    @property
    def name(self) -> str:
        """How tables and options spell it: the prior, with the costs if they are not 1."""
        return f"{self.p_target:g}" + ("" if self.c_miss == self.c_fa == 1 else f",{self.c_miss:g},{self.c_fa:g}")

    @property
    def miss_weight(self) -> float:
        """Cost of missing every target: p_target * c_miss."""
        return self.p_target * self.c_miss

    @property
    def fa_weight(self) -> float:
        """Cost of accepting every non-target: (1 - p_target) * c_fa."""
        return (1 - self.p_target) * self.c_fa

    @property
    def default_cost(self) -> float:
        """Cost of the better of the two systems that do not listen; normalized costs are divided by it."""
        return min(self.miss_weight, self.fa_weight)

    @property
    def effective_prior(self) -> float:
        """The prior that with unit costs has the same threshold."""
        return self.miss_weight / (self.miss_weight + self.fa_weight)

    @property
    def threshold(self) -> float:
        """The Bayes threshold: accept when llr >= -logit(effective prior)."""
        return math.log(self.fa_weight) - math.log(self.miss_weight)


PointLike: TypeAlias = "OperatingPoint | float | tuple[float, float, float]"

DEFAULT_POINTS = (OperatingPoint(0.01),)  #: p_target 0.01, unit costs


def as_points(points: PointLike | Iterable[PointLike]) -> tuple[OperatingPoint, ...]:
    """Return operating points from one prior or `OperatingPoint`, or from a list of priors, triples or points.

    A triple is (p_target, c_miss, c_fa); it must stand in a list, because three numbers alone are three priors.

    Examples
    --------
    >>> as_points([0.05, (0.01, 10, 1)])
    (OperatingPoint(p_target=0.05, c_miss=1.0, c_fa=1.0), OperatingPoint(p_target=0.01, c_miss=10, c_fa=1))
    """
    if isinstance(points, OperatingPoint | Real):
        return (_as_point(points),)
    if isinstance(points, str | bytes) or not isinstance(points, Iterable):
        raise InputError(f"operating points must be priors or (p_target, c_miss, c_fa) triples, not {points!r}")
    found = tuple(_as_point(point) for point in points)
    if not found:
        raise InputError("the list of operating points is empty; give at least one prior or triple")
    return found


def cost_weights(
    points: Iterable[OperatingPoint], normalize: bool
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return what a miss rate and what a false-alarm rate of 1 cost at each point."""
    rows = [(at.miss_weight, at.fa_weight, at.default_cost if normalize else 1.0) for at in points]
    miss, alarm, unit = np.array(rows).reshape(-1, 3).T
    return miss / unit, alarm / unit


def _as_point(point: object) -> OperatingPoint:
    if isinstance(point, OperatingPoint):
        return point
    if isinstance(point, Real):
        return OperatingPoint(float(point))
    if isinstance(point, tuple | list) and len(point) == 3 and all(isinstance(value, Real) for value in point):
        return OperatingPoint(*point)
    raise InputError(f"an operating point must be a prior or a (p_target, c_miss, c_fa) triple, not {point!r}")
