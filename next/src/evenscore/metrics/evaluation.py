"""All metrics of a set of trials, together and by condition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import NONTARGET, TARGET, UNKNOWN
from evenscore.errors import InputError
from evenscore.large import is_dask
from evenscore.metrics.costs import (
    DEFAULT_POINTS,
    NIST_PRESETS,
    DetectionCost,
    PointLike,
    as_operating_points,
    detection_costs,
)
from evenscore.metrics.cross_entropy import cllr, min_cllr
from evenscore.metrics.points import LabelsLike, Points, ScoresLike, as_labels, as_points, count_groups, labelled_scores
from evenscore.metrics.rates import EerMethod, auc, equal_error_rate

__all__ = ["Evaluation", "EvaluationBy", "NotEvaluated"]
__all__ += ["equalized_weights", "evaluate", "evaluate_by", "evaluate_nist"]

_FIGURES = (
    *("eer", "eer_threshold", "min_dcf", "act_dcf", "min_c_primary", "act_c_primary"),
    *("cllr", "min_cllr", "calibration_loss", "auc", "n_target", "n_nontarget"),
)


@dataclass(frozen=True, repr=False)
class Evaluation:
    """All metrics of one set of trials, as `evaluate` returns them."""

    eer: float  #: equal error rate, a fraction
    eer_threshold: float  #: a threshold near it
    costs: tuple[DetectionCost, ...]  #: at each operating point
    cllr: float  #: cross-entropy in bits
    min_cllr: float  #: the same after the best monotone calibration
    auc: float  #: area under the ROC
    n_target: int  #: numbers of trials
    n_nontarget: int

    @property
    def min_dcf(self) -> float:
        """Detection cost at the first operating point with the best threshold."""
        return self.costs[0].min_dcf

    @property
    def act_dcf(self) -> float:
        """Detection cost at the first operating point with the Bayes threshold."""
        return self.costs[0].act_dcf

    @property
    def min_c_primary(self) -> float:
        """Mean of the minimum detection costs at all operating points, as in the NIST evaluations."""
        return sum(cost.min_dcf for cost in self.costs) / len(self.costs)

    @property
    def act_c_primary(self) -> float:
        """Mean of the actual detection costs at all operating points: NIST's primary metric."""
        return sum(cost.act_dcf for cost in self.costs) / len(self.costs)

    @property
    def calibration_loss(self) -> float:
        """Cllr - minCllr: what is lost because the scores are not calibrated LLRs."""
        return self.cllr - self.min_cllr

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, ready for JSON but for infinite ones; ``dcf`` has a dictionary for each point."""
        return {name: getattr(self, name) for name in _FIGURES} | {"dcf": [cost.to_dict() for cost in self.costs]}

    def __repr__(self) -> str:
        several = len(self.costs) > 1
        figures = [f"EER {100 * self.eer:.2f} %"]
        for cost in self.costs:
            mark = f" at {cost.point.name}" if several else ""
            figures += [f"minDCF{mark} {cost.min_dcf:.3f}", f"actDCF{mark} {cost.act_dcf:.3f}"]
        if several:
            figures += [f"minCprimary {self.min_c_primary:.3f}", f"actCprimary {self.act_c_primary:.3f}"]
        figures += [f"minCllr {self.min_cllr:.3f}", f"Cllr {self.cllr:.3f}"]
        return f"Evaluation({', '.join(figures)}; {self.n_target} targets, {self.n_nontarget} non-targets)"


def evaluate(
    scores: ScoresLike,
    labels: LabelsLike = None,
    *,
    points: PointLike | Iterable[PointLike] = DEFAULT_POINTS,
    eer_method: EerMethod = "rocch",
    normalize: bool = True,
    weights: npt.ArrayLike | None = None,
) -> Evaluation:
    """Return all metrics of one set of trials.

    Parameters
    ----------
    scores
        One real number per trial; higher means more like a target. Infinite scores are accepted. Or a `TrialList`
        with scores; or a `ScoreMatrix`, also one of a dask array, which is larger than memory; or `Points`.
    labels
        1 or True (target), 0 or False (non-target), -1 (unknown: left out). With tables also `Labels` or a key with
        labels, a `TrialList`; they may be left out if a list has labels, or both sides of a matrix have speakers.
    points
        Operating points of the detection cost: priors, or (p_target, c_miss, c_fa) triples.
    eer_method
        Convention of the EER, see `equal_error_rate`.
    normalize
        Divide detection costs by that of the better of "accept everything" and "reject everything".
    weights
        Weight of each trial within its class, by default all equal; see `equalized_weights`.

    Returns
    -------
    Evaluation
        The figures by name; ``to_dict()`` gives plain numbers, ready for JSON. ``cllr`` is infinite if a trial has an
        infinite LLR of the wrong sign. All figures are exact for any number of trials, but for ``eer_threshold`` of
        many trials, which is interpolated between two target scores.

    Examples
    --------
    >>> result = evaluate([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1], points=[0.5, (0.01, 10, 1)])
    >>> result.eer, result.min_dcf, result.min_cllr, result.n_target
    (0.25, 0.5, 0.5, 2)
    >>> evaluate([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1], points=0.5)
    Evaluation(EER 25.00 %, minDCF 0.500, actDCF 1.000, minCllr 0.500, Cllr 0.748; 2 targets, 2 non-targets)
    """
    places = as_operating_points(points)
    merge = None if eer_method in ("rocch", "interpolated") else False
    found = as_points(scores, labels, weights, thresholds=[point.threshold for point in places], merge=merge)
    equal = equal_error_rate(found, method=eer_method)
    return Evaluation(
        eer=equal.eer,
        eer_threshold=equal.threshold,
        costs=tuple(detection_costs(found, points=places, normalize=normalize)),
        cllr=cllr(found),
        min_cllr=min_cllr(found),
        auc=auc(found),
        n_target=found.n_target,
        n_nontarget=found.n_nontarget,
    )


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
    points: PointLike | Iterable[PointLike] = DEFAULT_POINTS,
    eer_method: EerMethod = "rocch",
    normalize: bool = True,
) -> EvaluationBy:
    """Return all metrics of all trials together, and of each condition.

    ``conditions`` has the condition of each trial, such as the gender or the phrase; of a matrix it is an array that
    can be broadcast to its shape, such as one value per row of shape (K, 1). ``equalize`` gives every condition the
    same weight in the pooled metrics, see `equalized_weights`. All else is as in `evaluate`.

    Examples
    --------
    >>> result = evaluate_by([-3.0, -1.0, 0.0, 4.0, 1.0], [0, 1, 0, 1, 1], conditions=["f", "f", "m", "m", "x"])
    >>> round(result.pooled.eer, 3), result.conditions["f"].eer
    (0.2, 0.0)
    >>> result.conditions["x"]
    NotEvaluated(n_target=1, n_nontarget=0, problem='there are no non-target trials')
    """
    places = as_operating_points(points)
    thresholds = [point.threshold for point in places]
    values, key = labelled_scores(scores, labels)
    names, code = _as_conditions(conditions, values.shape)
    if is_dask(values):
        parts = count_groups(values, key, code, len(names), thresholds)
        weighted = parts
        if equalize:
            weighted = [part.scaled(1 / max(part.n_target, 1), 1 / max(part.n_nontarget, 1)) for part in parts]
        pooled = reduce(add, weighted)
    else:
        merge = None if eer_method in ("rocch", "interpolated") else False
        code = np.broadcast_to(code, values.shape)
        weights = _weights(key, code, len(names)) if equalize else None
        pooled = as_points(values, key, weights, thresholds=thresholds, merge=merge)
        members = (code == place for place in range(len(names)))
        parts = [Points.from_scores(values[at], key[at], thresholds=thresholds, merge=merge) for at in members]

    def figures(part: Points) -> Evaluation | NotEvaluated:
        if part.n_target and part.n_nontarget:
            return evaluate(part, points=places, eer_method=eer_method, normalize=normalize)
        problem = f"there are no {'non-target' if part.n_target else 'target'} trials"
        return NotEvaluated(part.n_target, part.n_nontarget, problem)

    return EvaluationBy(
        pooled=evaluate(pooled, points=places, eer_method=eer_method, normalize=normalize),
        conditions={name: figures(part) for name, part in zip(names, parts, strict=True)},
        equalized=equalize,
    )


def equalized_weights(labels: npt.ArrayLike, conditions: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return trial weights with which the pooled error rates are the means of the conditions' error rates.

    The weight of a trial is 1 / (number of trials of its class in its condition), so that at any threshold Pmiss and
    Pfa are plain averages over the conditions, as in the NIST evaluations: a condition without targets has no part in
    Pmiss, and one without non-targets none in Pfa. Trials with unknown label have weight 0.

    Examples
    --------
    >>> equalized_weights([1, 0, 0, 1, 0], ["f", "f", "f", "m", "m"])
    array([1. , 0.5, 0.5, 1. , 1. ])
    """
    key = as_labels(labels, np.shape(labels))
    names, code = _as_conditions(conditions, key.shape)
    return _weights(key, np.broadcast_to(code, key.shape), len(names))


def _weights(key: npt.NDArray[np.int8], code: npt.NDArray[np.intp], n_conditions: int) -> npt.NDArray[np.float64]:
    weights = np.zeros(key.shape)
    for label in (TARGET, NONTARGET):
        of_class = key == label
        weights[of_class] = 1.0 / np.bincount(code[of_class], minlength=n_conditions)[code[of_class]]
    return weights


def _as_conditions(conditions: npt.ArrayLike, shape: tuple[int, ...]) -> tuple[list[str], npt.NDArray[np.intp]]:
    """Return the names of the conditions, sorted, and for each trial, row or column which it has."""
    values = np.asarray(conditions)
    if values.ndim != len(shape) or any(n not in (1, m) for n, m in zip(values.shape, shape, strict=True)):
        raise InputError(f"conditions have shape {values.shape}, but the scores have {shape}; give one per trial")
    if values.dtype == object:
        values = np.array([str(value) for value in values.ravel()], dtype=object).reshape(values.shape)
    names, code = np.unique(values, return_inverse=True)
    return [str(name) for name in names], code.reshape(values.shape)


def evaluate_nist(
    scores: ScoresLike,
    labels: LabelsLike = None,
    *,
    preset: str,
    columns: Mapping[str, npt.ArrayLike] | None = None,
) -> EvaluationBy:
    """Score trials as an evaluation of NIST does: the primary metric is ``pooled.act_c_primary``.

    At each threshold, Pmiss and Pfa are plain means over the partitions; one that lacks a class has no part in the mean
    of that class's errors. Non-target trials over one phone number are left out, and so are trials of values that the
    evaluation does not name. The EER is that of straight lines between neighbouring points of the ROC.

    ``preset`` is ``sre16``, ``sre18`` (CMN2), ``sre18-vast``, ``sre19`` (CTS), ``sre19-av`` or ``sre21``; ``columns``
    has the columns of the trial key that make the partitions, by name, with a text for each trial.

    ``sre18`` and ``sre18-vast`` are as in NIST's scoring program of 2018, and ``sre19`` is the same. ``sre16``,
    ``sre19-av`` and ``sre21`` were not compared with a program of NIST; see the comment on `NIST_PRESETS`.

    Examples
    --------
    >>> result = evaluate_nist([5.0, 4.0, 6.0, -7.0, 5.0], [1, 1, 1, 0, 0], preset="sre19-av")
    >>> result.pooled.act_c_primary == 0.95 / 0.05 / 2
    True
    """
    if preset not in NIST_PRESETS:
        raise InputError(f"there is no evaluation {preset!r}; choose one of {', '.join(NIST_PRESETS)}")
    places, partitions = NIST_PRESETS[preset].points, NIST_PRESETS[preset].partitions
    values, key = labelled_scores(scores, labels)
    known = {name: _as_texts(columns, name, values.shape) for name in partitions}
    used = key != UNKNOWN
    for name, wanted in partitions.items():
        if wanted:
            used &= np.isin(known[name], wanted)
        if name == "phone_num_match":
            used &= ~((known[name] == "Y") & (key == NONTARGET))
    if not used.any():
        asked = ", ".join(f"{name} {' or '.join(wanted) or 'of any value'}" for name, wanted in partitions.items())
        raise InputError(f"no trial is of a partition of {preset}: {asked}; check the columns")
    parts = [" ".join(row) for row in zip(*known.values(), strict=True)] if known else ["all"] * len(key)
    how: dict[str, Any] = {"equalize": True, "points": places, "eer_method": "interpolated"}
    return evaluate_by(values[used], key[used], conditions=np.array(parts)[used], **how)


def _as_texts(columns: Mapping[str, npt.ArrayLike] | None, name: str, shape: tuple[int, ...]) -> npt.NDArray[np.str_]:
    if columns is None or name not in columns:
        raise InputError(f"the column {name!r} is missing, by which this evaluation divides its trials; give it")
    texts = np.asarray(columns[name]).astype(str)
    if texts.shape != shape:
        raise InputError(f"the column {name!r} has shape {texts.shape}, but the scores have {shape}; give one each")
    return texts
