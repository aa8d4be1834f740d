"""Detection costs: with the best threshold and with the Bayes threshold; spoofing-aware costs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from numbers import Real
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from evenscore.data.score_matrix import as_scores
from evenscore.errors import InputError
from evenscore.metrics.cllr import PriorCurve, expit
from evenscore.metrics.points import LabelsLike, ScoresLike, as_points
from evenscore.metrics.rates import EerMethod, eer

__all__ = ["SPOOF_COSTS", "DetectionCost", "OperatingPoint", "SpoofCosts", "SpoofingEvaluation", "act_dcf"]
__all__ += ["as_operating_points", "bayes_error_curve", "detection_costs", "evaluate_spoofing", "min_dcf"]


@dataclass(frozen=True)
class OperatingPoint:
    """Prior of a target, cost of a miss, cost of a false alarm.

    Examples
    --------
    >>> round(OperatingPoint(0.01).threshold, 4)
    4.5951
    """

    p_target: float
    c_miss: float = 1.0
    c_fa: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.p_target < 1 or not 0 < min(self.c_miss, self.c_fa) <= max(self.c_miss, self.c_fa) < math.inf:
            raise InputError(f"{self} must have a prior between 0 and 1, and finite costs above 0")

    @property
    def name(self) -> str:
        """How tables and options spell it: the prior, with the costs if they are not 1."""
        return f"{self.p_target:g}" + ("" if self.c_miss == self.c_fa == 1 else f",{self.c_miss:g},{self.c_fa:g}")

    @property
    def weights(self) -> tuple[float, float]:
        """Cost of missing every target, p_target c_miss, and of accepting every non-target, (1 - p_target) c_fa."""
        return self.p_target * self.c_miss, (1 - self.p_target) * self.c_fa

    @property
    def threshold(self) -> float:
        """The Bayes threshold of LLRs: log((1 - p_target) c_fa / (p_target c_miss))."""
        return math.log(self.weights[1]) - math.log(self.weights[0])


PointLike: TypeAlias = "OperatingPoint | float | tuple[float, float, float]"
PointsLike: TypeAlias = "PointLike | Iterable[PointLike]"

DEFAULT_POINTS = (OperatingPoint(0.01),)  #: p_target 0.01, costs of 1


def as_operating_points(points: PointsLike) -> tuple[OperatingPoint, ...]:
    """Return operating points from a prior, or from a list of priors, (p_target, c_miss, c_fa) triples or points.

    Examples
    --------
    >>> as_operating_points([0.05, (0.01, 10, 1)])
    (OperatingPoint(p_target=0.05, c_miss=1.0, c_fa=1.0), OperatingPoint(p_target=0.01, c_miss=10, c_fa=1))
    """
    found: list[OperatingPoint] = []
    for point in points if isinstance(points, tuple | list) else [points]:
        numbers = point if isinstance(point, tuple | list) and len(point) == 3 else (point,)
        if isinstance(point, OperatingPoint):
            found.append(point)
        elif all(isinstance(number, Real) for number in numbers):
            found.append(OperatingPoint(*numbers))
        else:
            raise InputError(f"an operating point must be a prior or a (p_target, c_miss, c_fa) triple, not {point!r}")
    if not found:
        raise InputError("the list of operating points is empty; give at least one prior or triple")
    return tuple(found)


@dataclass(frozen=True)
class DetectionCost:
    """Cost at one operating point: p_target c_miss Pmiss(t) + (1 - p_target) c_fa Pfa(t)."""

    point: OperatingPoint
    min_dcf: float  #: at the best threshold, chosen with the labels
    min_threshold: float  #: scores at or above it are accepted; of equally good ones the lowest
    min_p_miss: float
    min_p_fa: float
    act_dcf: float  #: at the Bayes threshold, where scores are taken to be LLRs
    act_threshold: float
    act_p_miss: float
    act_p_fa: float

    def to_dict(self) -> dict[str, float]:
        """Return the point and the costs as one flat dictionary of numbers."""
        numbers = asdict(self)
        return {**numbers.pop("point"), **numbers}


def detection_costs(
    scores: ScoresLike, labels: LabelsLike = None, *, points: PointsLike = DEFAULT_POINTS, normalize: bool = True
) -> list[DetectionCost]:
    """Return minimum and actual detection costs at each operating point.

    ``points`` are priors, or (p_target, c_miss, c_fa) triples; ``normalize`` divides costs by that of the better of
    "accept everything" and "reject everything".

    Examples
    --------
    >>> cost, = detection_costs([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1], points=0.5)
    >>> cost.min_dcf, cost.min_threshold, cost.act_dcf
    (0.5, -1.0, 1.0)
    """
    places = as_operating_points(points)
    found = as_points(scores, labels, thresholds=[point.threshold for point in places])
    hull, costs = found.hull, []
    for point in places:
        miss, false_alarm = point.weights
        unit = min(point.weights) if normalize else 1.0
        minimum = miss * hull.p_miss + false_alarm * hull.p_fa
        b, at = int(np.argmin(minimum)), found.rejected(point.threshold)
        least = float(minimum[b]) / unit, float(hull.threshold[b]), float(hull.p_miss[b]), float(hull.p_fa[b])
        p_miss, p_fa = float(found.p_miss[at]), float(found.p_fa[at])
        actual = (miss * p_miss + false_alarm * p_fa) / unit
        costs.append(DetectionCost(point, *least, actual, point.threshold, p_miss, p_fa))
    return costs


def min_dcf(
    scores: ScoresLike, labels: LabelsLike = None, *, p_target: float = 0.01, c_miss: float = 1.0, c_fa: float = 1.0
) -> float:
    """Return the normalized detection cost at the best threshold, "accept" and "reject everything" included.

    Examples
    --------
    >>> min_dcf([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1], p_target=0.5)
    0.5
    """
    return detection_costs(scores, labels, points=OperatingPoint(p_target, c_miss, c_fa))[0].min_dcf


def act_dcf(
    llr: ScoresLike, labels: LabelsLike = None, *, p_target: float = 0.01, c_miss: float = 1.0, c_fa: float = 1.0
) -> float:
    """Return the normalized detection cost of LLRs at the Bayes threshold.

    Examples
    --------
    >>> act_dcf([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1], p_target=0.5)
    1.0
    """
    return detection_costs(llr, labels, points=OperatingPoint(p_target, c_miss, c_fa))[0].act_dcf


def bayes_error_curve(
    llr: ScoresLike, labels: LabelsLike = None, *, log_odds: npt.ArrayLike | None = None, normalize: bool = True
) -> PriorCurve:
    """Return Bayes error rates p Pmiss(t) + (1 - p) Pfa(t) at each prior.

    The actual ones are at the threshold t = -logit(p), the minimum ones at the best, and the default is min(p, 1 - p),
    by which ``normalize`` divides all of them. Prior log-odds are by default from -10 to 10.

    Examples
    --------
    >>> curve = bayes_error_curve([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1], log_odds=[-2.0, 0.0])
    >>> curve.actual, curve.minimum, curve.default
    (array([0.5, 1. ]), array([0.5, 0.5]), array([1., 1.]))
    """
    priors = np.asarray(np.linspace(-10, 10, 201) if log_odds is None else log_odds, np.float64)
    points = as_points(llr, labels, thresholds=(-priors).tolist())
    at = np.array([points.rejected(-prior) for prior in priors.tolist()], np.intp)
    p, q = expit(priors), expit(-priors)
    default = np.minimum(p, q)
    unit = default if normalize else np.ones_like(default)
    minimum = np.array([np.min(a * points.hull.p_miss + b * points.hull.p_fa) for a, b in zip(p, q, strict=True)])
    actual = p * points.p_miss[at] + q * points.p_fa[at]
    return PriorCurve(priors, actual / unit, minimum / unit, default / unit)


SPOOF_CLASSES = ("target", "nontarget", "spoof")  #: classes of trials of spoofing-aware verification


@dataclass(frozen=True)
class SpoofCosts:
    """Priors of the three classes, which add up to 1, and costs of errors; by default those of ASVspoof 5, track 2."""

    p_target: float = 0.9405
    p_nontarget: float = 0.0095
    p_spoof: float = 0.05
    c_miss: float = 1.0
    c_fa: float = 10.0  #: of accepting a non-target
    c_fa_spoof: float = 10.0

    def __post_init__(self) -> None:
        if abs(self.p_target + self.p_nontarget + self.p_spoof - 1) > 1e-9 or min(asdict(self).values()) <= 0:
            raise InputError(f"priors and costs must be above 0, and the priors must add up to 1: {self}")


SPOOF_COSTS = {"asvspoof5": SpoofCosts(), "a-dcf": SpoofCosts(0.9, 0.05, 0.05, 1.0, 10.0, 20.0)}  #: the latter's paper


@dataclass(frozen=True)
class SpoofingEvaluation:
    """Metrics of trials of three classes."""

    sasv_eer: float  #: equal error rate of targets against all others
    sv_eer: float  #: against non-targets
    spf_eer: float  #: against spoofs
    min_a_dcf: float  #: architecture-agnostic cost (Shim et al., Odyssey 2024) at the best threshold, normalized
    min_threshold: float
    act_a_dcf: float  #: at the Bayes threshold of an LLR between targets and all others, mixed by their costs
    act_threshold: float
    n_target: int
    n_nontarget: int
    n_spoof: int


def evaluate_spoofing(
    scores: npt.ArrayLike,
    classes: npt.ArrayLike,
    *,
    costs: SpoofCosts = SPOOF_COSTS["asvspoof5"],
    eer_method: EerMethod = "rocch",
) -> SpoofingEvaluation:
    """Return the metrics of spoofing-aware verification; ``classes`` are ``target``, ``nontarget`` or ``spoof``.

    a-DCF(t) = c_miss p_target Pmiss(t) + c_fa p_nontarget Pfa(t) + c_fa_spoof p_spoof Pfa_spoof(t): with the two kinds
    of non-targets weighted by what they cost, it is an ordinary detection cost.

    Examples
    --------
    >>> found = evaluate_spoofing([3.0, 1.0, -2.0, 2.0], ["target", "target", "nontarget", "spoof"])
    >>> found.sv_eer, found.spf_eer, round(found.min_a_dcf, 3)
    (0.0, 0.3333333333333333, 0.79)
    """
    values, kinds = as_scores(scores, "scores", ndim=1), np.asarray(classes).astype(str)
    target, nontarget, spoof = members = [kinds == name for name in SPOOF_CLASSES]
    numbers = [int(np.count_nonzero(member)) for member in members]
    if kinds.shape != values.shape or sum(numbers) != kinds.size or min(numbers) == 0:
        found = ", ".join(f"{number} {name}" for name, number in zip(SPOOF_CLASSES, numbers, strict=True))
        raise InputError(f"of {values.size} scores and {kinds.size} classes there are {found}; all three are needed")
    fa, fa_spoof = costs.c_fa * costs.p_nontarget, costs.c_fa_spoof * costs.p_spoof
    weights = target / numbers[0] + nontarget * (fa / numbers[1]) + spoof * (fa_spoof / numbers[2])
    point = OperatingPoint(costs.p_target, costs.c_miss, (fa + fa_spoof) / (1 - costs.p_target))
    (cost,) = detection_costs(as_points(values, target, weights), points=[point])
    pairs = (target | ~target, ~spoof, ~nontarget)
    sasv, sv, spf = (eer(values[pair], target[pair], method=eer_method) for pair in pairs)
    figures = (cost.min_dcf, cost.min_threshold, cost.act_dcf, cost.act_threshold)
    return SpoofingEvaluation(sasv, sv, spf, *figures, numbers[0], numbers[1], numbers[2])
