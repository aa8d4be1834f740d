"""All metrics of a set of trials, together and by condition, and as the evaluations of NIST score them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import NONTARGET, TARGET, UNKNOWN
from evenscore.errors import InputError
from evenscore.metrics.cllr import cllr
from evenscore.metrics.costs import DEFAULT_POINTS, DetectionCost, PointsLike, as_operating_points, detection_costs
from evenscore.metrics.points import LabelsLike, Points, ScoresLike, as_points, labelled_scores
from evenscore.metrics.rates import MERGE, EerMethod, auc, equal_error_rate

__all__ = ["NIST_PRESETS", "Evaluation", "EvaluationBy", "NistPreset", "NotEvaluated"]
__all__ += ["evaluate", "evaluate_by", "evaluate_nist"]


@dataclass(frozen=True, repr=False)
class Evaluation:
    """All metrics of one set of trials, as `evaluate` returns them."""

    eer: float  #: equal error rate, a fraction
    eer_threshold: float  #: a threshold near it
    min_dcf: float  #: detection cost at the first operating point with the best threshold
    act_dcf: float  #: with the Bayes threshold
    min_c_primary: float  #: mean of the minimum detection costs at all operating points
    act_c_primary: float  #: mean of the actual detection costs at all operating points: NIST's primary metric
    cllr: float  #: cross-entropy in bits
    min_cllr: float  #: the same after the best monotone calibration
    calibration_loss: float  #: Cllr - minCllr: what is lost because the scores are not calibrated LLRs
    auc: float  #: area under the ROC
    n_target: int  #: numbers of trials
    n_nontarget: int
    costs: tuple[DetectionCost, ...]  #: at each operating point

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, ready for JSON but for infinite ones; ``dcf`` has a dictionary for each point."""
        figures = {name: value for name, value in vars(self).items() if name != "costs"}
        return figures | {"dcf": [cost.to_dict() for cost in self.costs]}

    def __repr__(self) -> str:
        dcf = ", ".join(f"minDCF {at.min_dcf:.3f}, actDCF {at.act_dcf:.3f} at {at.point.name}" for at in self.costs)
        figures = f"EER {100 * self.eer:.2f} %, {dcf}, minCllr {self.min_cllr:.3f}, Cllr {self.cllr:.3f}"
        return f"Evaluation({figures}; {self.n_target} targets, {self.n_nontarget} non-targets)"


def evaluate(
    scores: ScoresLike,
    labels: LabelsLike = None,
    *,
    points: PointsLike = DEFAULT_POINTS,
    eer_method: EerMethod = "rocch",
    normalize: bool = True,
    weights: npt.ArrayLike | None = None,
) -> Evaluation:
    """Return all metrics of one set of trials, exact for any number of them.

    Parameters
    ----------
    scores
        One real number per trial, maybe infinite; higher means more like a target. Or a `TrialList` with scores; or a
        `ScoreMatrix`, also one of a dask array, which is larger than memory; or `Points`.
    labels
        1 or True (target), 0 or False (non-target), -1 (unknown: left out). With tables also `Labels` or a key with
        labels, a `TrialList`; they may be left out if a list has labels, or both sides have speakers.
    points, normalize
        Operating points of the detection cost: priors, or (p_target, c_miss, c_fa) triples. Costs are divided by that
        of the better of "accept everything" and "reject everything".
    eer_method, weights
        Convention of the EER, see `equal_error_rate`; weight of each trial within its class, by default all equal.

    Examples
    --------
    >>> result = evaluate([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1], points=0.5)
    >>> result
    Evaluation(EER 25.00 %, minDCF 0.500, actDCF 1.000 at 0.5, minCllr 0.500, Cllr 0.748; 2 targets, 2 non-targets)
    >>> result.eer, result.to_dict()["min_cllr"]
    (0.25, 0.5)
    """
    places = as_operating_points(points)
    thresholds = [point.threshold for point in places]
    found = as_points(scores, labels, weights, thresholds=thresholds, merge=MERGE.get(eer_method, False))
    equal = equal_error_rate(found, method=eer_method)
    costs = tuple(detection_costs(found, points=places, normalize=normalize))
    minimum, actual = [cost.min_dcf for cost in costs], [cost.act_dcf for cost in costs]
    dcfs = (minimum[0], actual[0], sum(minimum) / len(costs), sum(actual) / len(costs))
    total, least = cllr(found), found.hull.min_cllr
    others = (total, least, total - least, auc(found))
    return Evaluation(equal.eer, equal.threshold, *dcfs, *others, found.n_target, found.n_nontarget, costs)


@dataclass(frozen=True)
class NotEvaluated:
    """A condition without targets or without non-targets, and a sentence that says what is missing."""

    n_target: int
    n_nontarget: int
    problem: str

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and the problem."""
        return asdict(self)


@dataclass(frozen=True)
class EvaluationBy:
    """All metrics of all trials together and of each condition, as `evaluate_by` returns them."""

    pooled: Evaluation
    conditions: Mapping[str, Evaluation | NotEvaluated]  #: by name, sorted
    equalized: bool  #: whether every condition has the same weight in the pooled figures

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers: ``pooled``, with ``equalized``, and ``conditions`` by name."""
        pooled = self.pooled.to_dict() | {"equalized": self.equalized}
        return {"pooled": pooled, "conditions": {name: found.to_dict() for name, found in self.conditions.items()}}


def evaluate_by(
    scores: ScoresLike,
    labels: LabelsLike = None,
    *,
    conditions: npt.ArrayLike,
    equalize: bool = False,
    points: PointsLike = DEFAULT_POINTS,
    eer_method: EerMethod = "rocch",
    normalize: bool = True,
) -> EvaluationBy:
    """Return all metrics of all trials together, and of each condition.

    ``conditions`` has the condition of each trial, such as the gender or the phrase; of a matrix it is an array that
    can be broadcast to its shape, such as one value per row of shape (K, 1). ``equalize`` gives every condition the
    same weight: at any threshold, the pooled Pmiss and Pfa are the means of those of the conditions, as in the NIST
    evaluations; a condition that lacks a class has no part in the mean of its errors. All else is as in `evaluate`.

    Examples
    --------
    >>> result = evaluate_by([-3.0, -1.0, 0.0, 4.0, 1.0], [0, 1, 0, 1, 1], conditions=["f", "f", "m", "m", "x"])
    >>> round(result.pooled.eer, 3), result.conditions["f"].eer
    (0.2, 0.0)
    >>> result.conditions["x"]
    NotEvaluated(n_target=1, n_nontarget=0, problem='there are no non-target trials')
    """
    places = as_operating_points(points)
    values, key = labelled_scores(scores, labels)
    groups = np.asarray(conditions)
    if groups.ndim != values.ndim or any(n not in (1, m) for n, m in zip(groups.shape, values.shape, strict=True)):
        raise InputError(f"conditions have shape {groups.shape}, but the scores have {values.shape}; give one each")
    names, code = np.unique(groups.astype(str), return_inverse=True)
    code = code.reshape(groups.shape)
    how: dict[str, Any] = {"points": places, "eer_method": eer_method, "normalize": normalize}
    counting: dict[str, Any] = {"thresholds": [at.threshold for at in places], "merge": MERGE.get(eer_method, False)}
    found: dict[str, Evaluation | NotEvaluated] = {}
    for place, name in enumerate(names.tolist()):
        part = Points.from_scores(values, np.where(code == place, key, UNKNOWN), **counting)
        if part.n_target and part.n_nontarget:
            found[name] = evaluate(part, **how)
        else:
            problem = f"there are no {'non-target' if part.n_target else 'target'} trials"
            found[name] = NotEvaluated(part.n_target, part.n_nontarget, problem)
    weights = None
    if equalize:
        share = 1 / np.maximum([(part.n_target, part.n_nontarget) for part in found.values()], 1)
        weights = np.where(key == TARGET, share[code, 0], share[code, 1])
    return EvaluationBy(evaluate(as_points(values, key, weights, **counting), **how), found, equalize)


@dataclass(frozen=True)
class NistPreset:
    """How one evaluation of NIST is scored: each combination of values of columns of the key is a partition."""

    points: tuple[float, ...]  #: priors, with costs of 1; C_primary is the mean of the costs at these
    partitions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  #: columns and values; none: any value


_ENROLLED = {"num_enroll_segs": ("1", "3"), "phone_num_match": ("Y", "N"), "gender": ("male", "female")}

NIST_PRESETS: Mapping[str, NistPreset] = {
    "sre16": NistPreset((0.01, 0.005), {**_ENROLLED, "language": ()}),
    "sre18": NistPreset((0.01, 0.005), {**_ENROLLED, "source_type": ("pstn", "voip")}),
    "sre18-vast": NistPreset((0.05,), {"data_source": ("vast",)}),
    "sre19": NistPreset((0.01, 0.005), {**_ENROLLED, "source_type": ("pstn", "voip")}),
    "sre19-av": NistPreset((0.05,)),
    "sre21": NistPreset((0.01, 0.05), {**_ENROLLED, "source_type_match": ("Y", "N"), "language_match": ("Y", "N")}),
}


def evaluate_nist(
    scores: ScoresLike, labels: LabelsLike = None, *, preset: str, columns: Mapping[str, npt.ArrayLike] | None = None
) -> EvaluationBy:
    """Score trials as an evaluation of NIST does: the primary metric is ``pooled.act_c_primary``.

    At each threshold, Pmiss and Pfa are plain means over the partitions; one that lacks a class has no part in the mean
    of that class's errors. Non-target trials over one phone number are left out, and so are trials of values that the
    evaluation does not name. The EER is that of straight lines between neighbouring points of the ROC.

    ``columns`` has the columns of the trial key that make the partitions, by name, with a text for each trial.
    ``preset`` is ``sre18`` (CMN2) or ``sre18-vast``, checked against NIST's scoring program of 2018; ``sre19`` (CTS),
    whose points were checked against a public copy of the program of its challenge; ``sre21`` (audio), whose points and
    columns are those of Hyperion's recipe, by participants; or ``sre16``, ``sre19-av``, for which no program was found.

    Examples
    --------
    >>> result = evaluate_nist([5.0, 4.0, 6.0, -7.0, 5.0], [1, 1, 1, 0, 0], preset="sre19-av")
    >>> result.pooled.act_c_primary == 0.95 / 0.05 / 2
    True
    """
    if preset not in NIST_PRESETS:
        raise InputError(f"there is no evaluation {preset!r}; choose one of {', '.join(NIST_PRESETS)}")
    rules = NIST_PRESETS[preset]
    values, key = labelled_scores(scores, labels)
    used, part = key != UNKNOWN, np.full(values.shape, "", object)
    for name, wanted in rules.partitions.items():
        if columns is None or name not in columns or np.shape(columns[name]) != values.shape:
            raise InputError(f"{preset} divides the trials by the column {name!r}; give it, with a text for each trial")
        texts = np.asarray(columns[name]).astype(str)
        part += texts.astype(object) + " "
        used &= np.isin(texts, wanted) if wanted else True
        used &= ~((texts == "Y") & (key == NONTARGET)) if name == "phone_num_match" else True
    if not used.any():
        raise InputError(f"no trial is of a partition of {preset}: {dict(rules.partitions)}; check the columns")
    how: dict[str, Any] = {"equalize": True, "points": rules.points, "eer_method": "interpolated"}
    return evaluate_by(values[used], key[used], conditions=np.char.rstrip(part[used].astype(str)), **how)
