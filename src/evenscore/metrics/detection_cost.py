"""Detection costs: the price of decisions, with the best threshold and with the Bayes threshold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.log_odds import expit
from evenscore.metrics.hull import Rocch
from evenscore.metrics.operating_points import DEFAULT_POINTS, OperatingPoint, PointLike, as_points
from evenscore.metrics.points import Points
from evenscore.metrics.trials import ScoresLike, points_of, sort_scores
from evenscore.tables.arrays import frozen

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["BayesErrorCurve", "DetectionCost", "act_dcf", "bayes_error_curve", "detection_costs", "min_dcf"]


@dataclass(frozen=True, kw_only=True)
class DetectionCost:
    """Cost at one operating point: p_target c_miss Pmiss(t) + (1 - p_target) c_fa Pfa(t).

    Attributes
    ----------
    point
        Prior and costs.
    min_dcf
        The cost at the best threshold, chosen with the labels.
    min_threshold, min_p_miss, min_p_fa
        That threshold (scores at or above it are accepted; of equally good ones the lowest), and its error rates.
    act_dcf
        The cost at the Bayes threshold, where scores are taken to be LLRs.
    act_threshold, act_p_miss, act_p_fa
        That threshold, log((1 - p_target) c_fa / (p_target c_miss)), and its error rates.
    min_dcf_bounds
        The least and the largest possible ``min_dcf`` where scores were counted in bins; None where it is exact.
    """

    point: OperatingPoint
    min_dcf: float
    min_threshold: float
    min_p_miss: float
    min_p_fa: float
    act_dcf: float
    act_threshold: float
    act_p_miss: float
    act_p_fa: float
    min_dcf_bounds: tuple[float, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the point and the costs as one flat dictionary of numbers."""
        fields = {name: value for name, value in vars(self).items() if name != "point" and value is not None}
        return {"p_target": self.point.p_target, "c_miss": self.point.c_miss, "c_fa": self.point.c_fa, **fields}


def detection_costs(
    scores: ScoresLike,
    labels: npt.ArrayLike | None = None,
    *,
    points: PointLike | Iterable[PointLike] = DEFAULT_POINTS,
    normalize: bool = True,
) -> list[DetectionCost]:
    """Return minimum and actual detection costs at each operating point.

    Parameters
    ----------
    scores, labels
        As in `validate`, or `SortedScores`.
    points
        Priors, or (p_target, c_miss, c_fa) triples.
    normalize
        Divide by the cost of the better system that does not listen, min(p_target c_miss, (1 - p_target) c_fa).

    Examples
    --------
    >>> cost, = detection_costs([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1], points=0.5)
    >>> cost.min_dcf, cost.min_threshold, cost.act_dcf
    (0.5, -1.0, 1.0)
    """
    found, places = points_of(scores, labels, points=points), as_points(points)
    return [_cost(found, point, normalize) for point in places]


def _cost(found: Points, point: OperatingPoint, normalize: bool) -> DetectionCost:
    unit = point.default_cost if normalize else 1.0
    hull = found.tied.hull
    best = int(np.argmin(_hull_costs(hull, point)))
    low, high = found.bounds(lambda order: float(_hull_costs(order.hull, point).min()) / unit)
    p_miss, p_fa = found.rates_at(point)
    return DetectionCost(
        point=point,
        min_dcf=(low + high) / 2,
        min_threshold=float(hull.threshold[best]),
        min_p_miss=float(hull.p_miss[best]),
        min_p_fa=float(hull.p_fa[best]),
        act_dcf=(point.miss_weight * p_miss + point.fa_weight * p_fa) / unit,
        act_threshold=point.threshold,
        act_p_miss=p_miss,
        act_p_fa=p_fa,
        min_dcf_bounds=(low, high) if len(found.orders) > 1 else None,
    )


def _hull_costs(hull: Rocch, point: OperatingPoint) -> npt.NDArray[np.float64]:
    """Return the cost at each vertex of the hull."""
    return point.miss_weight * hull.p_miss + point.fa_weight * hull.p_fa


def min_dcf(
    scores: ScoresLike,
    labels: npt.ArrayLike | None = None,
    *,
    p_target: float = 0.01,
    c_miss: float = 1.0,
    c_fa: float = 1.0,
    normalize: bool = True,
) -> float:
    """Return the detection cost at the best threshold, "accept everything" and "reject everything" included.

    Examples
    --------
    >>> min_dcf([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1], p_target=0.5)
    0.5
    """
    point = OperatingPoint(p_target, c_miss, c_fa)
    return detection_costs(scores, labels, points=point, normalize=normalize)[0].min_dcf


def act_dcf(
    scores: ScoresLike,
    labels: npt.ArrayLike | None = None,
    *,
    p_target: float = 0.01,
    c_miss: float = 1.0,
    c_fa: float = 1.0,
    normalize: bool = True,
) -> float:
    """Return the detection cost of LLRs at the Bayes threshold: accept when llr >= -logit(effective prior).

    Examples
    --------
    >>> act_dcf([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1], p_target=0.5)
    1.0
    """
    point = OperatingPoint(p_target, c_miss, c_fa)
    p_miss, p_fa = points_of(scores, labels, points=point).rates_at(point)
    cost = point.miss_weight * p_miss + point.fa_weight * p_fa
    return cost / point.default_cost if normalize else cost


@dataclass(frozen=True, kw_only=True, eq=False)
class BayesErrorCurve:
    """Bayes error rates over a range of priors.

    Attributes
    ----------
    log_odds
        Prior log-odds, logit(p).
    actual
        p Pmiss(t) + (1 - p) Pfa(t) at the Bayes threshold t = -logit(p).
    minimum
        The same at the best threshold for each prior.
    default
        The error rate of the prior alone, min(p, 1 - p).
    normalized
        Whether all three are divided by the default.
    """

    log_odds: Float[np.ndarray, " k"]
    actual: Float[np.ndarray, " k"]
    minimum: Float[np.ndarray, " k"]
    default: Float[np.ndarray, " k"]
    normalized: bool


def bayes_error_curve(
    scores: ScoresLike,
    labels: npt.ArrayLike | None = None,
    *,
    log_odds: npt.ArrayLike | None = None,
    normalize: bool = True,
) -> BayesErrorCurve:
    """Return actual, minimum and default Bayes error rates at each prior.

    Parameters
    ----------
    scores, labels
        As in `validate`, or `SortedScores`.
    log_odds
        Prior log-odds, by default 201 values from -10 to 10.
    normalize
        Divide by the default error rate, so that 1 is the rate of the prior alone.

    Examples
    --------
    >>> curve = bayes_error_curve([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1], log_odds=[-2.0, 0.0])
    >>> curve.actual, curve.minimum, curve.default
    (array([0.5, 1. ]), array([0.5, 0.5]), array([1., 1.]))
    """
    priors = np.linspace(-10, 10, 201) if log_odds is None else np.asarray(log_odds, dtype=np.float64)
    if priors.ndim != 1 or not np.isfinite(priors).all():
        raise InputError("log_odds must be a list of finite numbers")
    trials = sort_scores(scores, labels)
    hull = trials.hull
    p, q = expit(priors), expit(-priors)
    i, j = trials.below(-priors)
    default = np.minimum(p, q)
    unit = default if normalize else np.ones_like(default)
    minimum = [np.min(a * hull.p_miss + b * hull.p_fa) for a, b in zip(p, q, strict=True)]
    return BayesErrorCurve(
        log_odds=frozen(priors),
        actual=frozen((p * trials.miss_rate(i) + q * trials.false_alarm_rate(j)) / unit),
        minimum=frozen(np.asarray(minimum) / unit),
        default=frozen(default / unit),
        normalized=normalize,
    )
