"""Detection costs: with the best threshold and with the Bayes threshold; presets of NIST; spoofing-aware costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from numbers import Real
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from evenscore.data.score_matrix import as_scores
from evenscore.errors import InputError
from evenscore.metrics.cross_entropy import PriorCurve, as_log_odds, expit
from evenscore.metrics.hull import Hull
from evenscore.metrics.points import LabelsLike, Points, ScoresLike, as_points
from evenscore.metrics.rates import EerMethod, eer

__all__ = ["NIST_PRESETS", "SPOOF_COSTS", "DetectionCost", "NistPreset", "OperatingPoint", "SpoofCosts"]
__all__ += ["SpoofingEvaluation", "act_dcf", "bayes_error_curve", "detection_costs", "evaluate_spoofing", "min_dcf"]


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
        if not (0 < self.c_miss < math.inf and 0 < self.c_fa < math.inf):
            raise InputError(f"costs are {self.c_miss} and {self.c_fa}, but must be finite numbers above 0")

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
        """Cost of the better of "accept everything" and "reject everything"; normalized costs are divided by it."""
        return min(self.miss_weight, self.fa_weight)

    @property
    def effective_prior(self) -> float:
        """The prior that has the same threshold with costs of 1."""
        return self.miss_weight / (self.miss_weight + self.fa_weight)

    @property
    def threshold(self) -> float:
        """The Bayes threshold: accept when llr >= -logit(effective prior)."""
        return math.log(self.fa_weight) - math.log(self.miss_weight)


PointLike: TypeAlias = "OperatingPoint | float | tuple[float, float, float]"

DEFAULT_POINTS = (OperatingPoint(0.01),)  #: p_target 0.01, costs of 1


def as_operating_points(points: PointLike | Iterable[PointLike]) -> tuple[OperatingPoint, ...]:
    """Return operating points from one prior or `OperatingPoint`, or from a list of priors, triples or points.

    A triple is (p_target, c_miss, c_fa); it must stand in a list, because three numbers alone are three priors.

    Examples
    --------
    >>> as_operating_points([0.05, (0.01, 10, 1)])
    (OperatingPoint(p_target=0.05, c_miss=1.0, c_fa=1.0), OperatingPoint(p_target=0.01, c_miss=10, c_fa=1))
    """
    several: object = [points] if isinstance(points, OperatingPoint | Real) else points
    if isinstance(several, str | bytes) or not isinstance(several, Iterable):
        raise InputError(f"operating points must be priors or (p_target, c_miss, c_fa) triples, not {points!r}")
    found = []
    for point in several:
        if isinstance(point, tuple | list) and len(point) == 3 and all(isinstance(value, Real) for value in point):
            found.append(OperatingPoint(*point))
        elif isinstance(point, OperatingPoint):
            found.append(point)
        elif isinstance(point, Real):
            found.append(OperatingPoint(float(point)))
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
    act_threshold: float  #: log((1 - p_target) c_fa / (p_target c_miss))
    act_p_miss: float
    act_p_fa: float

    def to_dict(self) -> dict[str, float]:
        """Return the point and the costs as one flat dictionary of numbers."""
        return {**asdict(self.point), **{name: value for name, value in vars(self).items() if name != "point"}}


def detection_costs(
    scores: ScoresLike,
    labels: LabelsLike = None,
    *,
    points: PointLike | Iterable[PointLike] = DEFAULT_POINTS,
    normalize: bool = True,
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
    return [_cost(found, point, normalize) for point in places]


def _cost(found: Points, point: OperatingPoint, normalize: bool) -> DetectionCost:
    unit = point.default_cost if normalize else 1.0
    hull: Hull = found.hull
    costs = point.miss_weight * hull.p_miss + point.fa_weight * hull.p_fa
    best = int(np.argmin(costs))
    k = found.rejected(point.threshold)
    p_miss, p_fa = float(found.p_miss[k]), float(found.p_fa[k])
    return DetectionCost(
        point=point,
        min_dcf=float(costs[best]) / unit,
        min_threshold=float(hull.threshold[best]),
        min_p_miss=float(hull.p_miss[best]),
        min_p_fa=float(hull.p_fa[best]),
        act_dcf=(point.miss_weight * p_miss + point.fa_weight * p_fa) / unit,
        act_threshold=point.threshold,
        act_p_miss=p_miss,
        act_p_fa=p_fa,
    )


def min_dcf(
    scores: ScoresLike,
    labels: LabelsLike = None,
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
    llr: ScoresLike,
    labels: LabelsLike = None,
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
    return detection_costs(llr, labels, points=point, normalize=normalize)[0].act_dcf


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
    priors = as_log_odds(np.linspace(-10, 10, 201) if log_odds is None else log_odds)
    points = as_points(llr, labels, thresholds=(-priors).tolist())
    at = np.array([points.rejected(-prior) for prior in priors.tolist()], np.intp)
    p, q = expit(priors), expit(-priors)
    default = np.minimum(p, q)
    unit = default if normalize else np.ones_like(default)
    minimum = np.array([np.min(a * points.hull.p_miss + b * points.hull.p_fa) for a, b in zip(p, q, strict=True)])
    actual = p * points.p_miss[at] + q * points.p_fa[at]
    return PriorCurve(priors, actual / unit, minimum / unit, default / unit)


@dataclass(frozen=True)
class NistPreset:
    """How one evaluation of NIST is scored.

    Partitions are columns of the trial key and their values (none: any); each combination is a partition, and all of
    them have the same weight.
    """

    points: tuple[OperatingPoint, ...]  #: C_primary is the mean of the costs at these
    partitions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


_CTS, _AV = as_operating_points((0.01, 0.005)), as_operating_points(0.05)
_ENROLLED = {"num_enroll_segs": ("1", "3"), "phone_num_match": ("Y", "N"), "gender": ("male", "female")}

#: ``sre18`` and ``sre18-vast`` were compared with NIST's own scoring program of 2018 (``sre18_submission_scorer.py``
#: and ``scoring_utils.py``): operating points, partitions, and non-targets of the same phone number, which are left
#: out. ``sre19`` is the same for a corpus of the same kind. Nothing else was compared with a program of NIST: of
#: ``sre16``, ``sre19-av`` and ``sre21``, no such program was found. The columns of ``sre21`` are those of the key that
#: Hyperion's recipe reads, but that recipe, by participants of SRE21, scores at the priors 0.01 and 0.05, without
#: partitions; here they are 0.01 and 0.005. To score as it does, give these points to `evaluate`.
NIST_PRESETS: Mapping[str, NistPreset] = {
    "sre16": NistPreset(_CTS, {**_ENROLLED, "language": ()}),
    "sre18": NistPreset(_CTS, {**_ENROLLED, "source_type": ("pstn", "voip")}),
    "sre18-vast": NistPreset(_AV, {"data_source": ("vast",)}),
    "sre19": NistPreset(_CTS, {**_ENROLLED, "source_type": ("pstn", "voip")}),
    "sre19-av": NistPreset(_AV),
    "sre21": NistPreset(_CTS, {**_ENROLLED, "source_type_match": ("Y", "N"), "language_match": ("Y", "N")}),
}

SPOOF_CLASSES = ("target", "nontarget", "spoof")  #: classes of trials of spoofing-aware verification


@dataclass(frozen=True)
class SpoofCosts:
    """Priors of the three classes, which add up to 1, and costs of errors; by default those of ASVspoof 5, track 2.

    Examples
    --------
    >>> SpoofCosts(0.9, 0.05, 0.05, 1, 10, 20).weights
    (0.9, 0.5, 1.0)
    """

    p_target: float = 0.9405
    p_nontarget: float = 0.0095
    p_spoof: float = 0.05
    c_miss: float = 1.0
    c_fa: float = 10.0  #: of accepting a non-target
    c_fa_spoof: float = 10.0

    def __post_init__(self) -> None:
        priors = (self.p_target, self.p_nontarget, self.p_spoof)
        if min(priors) <= 0 or abs(sum(priors) - 1) > 1e-9:
            raise InputError(f"the priors are {priors}, but must be above 0 and add up to 1")
        if min(self.c_miss, self.c_fa, self.c_fa_spoof) <= 0:
            raise InputError("the costs of errors must be above 0")

    @property
    def weights(self) -> tuple[float, float, float]:
        """What a rate of 1 costs: of misses, of accepted non-targets, and of accepted spoofs."""
        return self.c_miss * self.p_target, self.c_fa * self.p_nontarget, self.c_fa_spoof * self.p_spoof


#: By name: those of the challenge, and those of the paper that defines the a-DCF.
SPOOF_COSTS: Mapping[str, SpoofCosts] = {
    "asvspoof5": SpoofCosts(),
    "a-dcf": SpoofCosts(0.9, 0.05, 0.05, 1.0, 10.0, 20.0),
}


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

    def to_dict(self) -> dict[str, float]:
        """Return plain numbers, ready for JSON."""
        return asdict(self)


def evaluate_spoofing(
    scores: npt.ArrayLike,
    classes: npt.ArrayLike,
    *,
    costs: SpoofCosts = SPOOF_COSTS["asvspoof5"],
    eer_method: EerMethod = "rocch",
) -> SpoofingEvaluation:
    """Return the metrics of spoofing-aware verification.

    a-DCF(t) = c_miss p_target Pmiss(t) + c_fa p_nontarget Pfa(t) + c_fa_spoof p_spoof Pfa_spoof(t): with the two kinds
    of non-targets weighted by what they cost, it is an ordinary detection cost.

    ``classes`` are ``target``, ``nontarget`` or ``spoof`` for each trial.

    Examples
    --------
    >>> found = evaluate_spoofing([3.0, 1.0, -2.0, 2.0], ["target", "target", "nontarget", "spoof"])
    >>> found.sv_eer, found.spf_eer, round(found.min_a_dcf, 3)
    (0.0, 0.3333333333333333, 0.79)
    """
    values, kinds = as_scores(scores, "scores", ndim=1), np.asarray(classes).astype(str)
    if kinds.shape != values.shape:
        raise InputError(f"there are {kinds.size} classes for {values.size} scores; give one for each")
    for kind in np.setdiff1d(kinds, SPOOF_CLASSES).tolist():
        raise InputError(f"the class {kind!r} is not known; use {', '.join(SPOOF_CLASSES)}")
    target, nontarget, spoof = (kinds == name for name in SPOOF_CLASSES)
    n_target, n_nontarget, n_spoof = (int(np.count_nonzero(member)) for member in (target, nontarget, spoof))
    for name, number in zip(SPOOF_CLASSES, (n_target, n_nontarget, n_spoof), strict=True):
        if not number:
            raise InputError(f"there are no {name} trials, but all three classes are needed; check the key")
    _, fa_weight, spoof_weight = costs.weights
    weights = target / n_target + nontarget * (fa_weight / n_nontarget) + spoof * (spoof_weight / n_spoof)
    point = OperatingPoint(costs.p_target, costs.c_miss, (fa_weight + spoof_weight) / (1 - costs.p_target))
    (cost,) = detection_costs(as_points(values, target, weights), points=[point])
    every = eer(values, target, method=eer_method)
    others = eer(values[~spoof], target[~spoof], method=eer_method)
    spoofs = eer(values[~nontarget], target[~nontarget], method=eer_method)
    figures = (cost.min_dcf, cost.min_threshold, cost.act_dcf, cost.act_threshold)
    return SpoofingEvaluation(every, others, spoofs, *figures, n_target, n_nontarget, n_spoof)
