"""All metrics of a set of trials, pooled and per condition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.cross_entropy import cllr, min_cllr
from evenscore.metrics.detection_cost import detection_costs
from evenscore.metrics.error_rates import EerMethod, auc, eer, equal_error_rate
from evenscore.metrics.evaluation_records import Evaluation, EvaluationBy, NotEvaluated
from evenscore.metrics.operating_points import DEFAULT_POINTS, PointLike, as_points
from evenscore.metrics.points import Points
from evenscore.metrics.trials import ScoresLike, Trials, as_labels, points_of, validate
from evenscore.tables import NONTARGET, TARGET, Labels, TrialList
from evenscore.threads import one_thread_per_product

__all__ = ["equalized_weights", "evaluate", "evaluate_by", "figures_or_problem"]


@one_thread_per_product()
def evaluate(
    scores: ScoresLike,
    labels: npt.ArrayLike | Labels | TrialList | None = None,
    *,
    points: PointLike | Iterable[PointLike] = DEFAULT_POINTS,
    eer_method: EerMethod = "rocch",
    normalize: bool = True,
    weights: npt.ArrayLike | None = None,
) -> Evaluation:
    """Return all metrics of one set of trials.

    Parameters
    ----------
    scores, labels
        As in `validate`, or `SortedScores`. Tables that are not in memory are counted tile by tile, with
        labels as in `labels_for`; the result, like that of a `ScoreSummary`, has bounds.
    points
        Operating points of the detection cost: priors, or (p_target, c_miss, c_fa) triples.
    eer_method
        Convention of the EER, see `equal_error_rate`.
    normalize
        Divide detection costs by that of the better system that does not listen.
    weights
        Weight of each trial within its class, by default all equal; see `equalized_weights`.

    Returns
    -------
    Evaluation
        The figures by name; ``to_dict()`` gives plain numbers, ready for JSON. ``cllr`` is infinite if a trial has an
        infinite LLR of the wrong sign.

    Examples
    --------
    >>> result = evaluate([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1], points=[0.5, (0.01, 10, 1)])
    >>> result.eer, result.min_dcf, result.min_cllr, result.n_target
    (0.25, 0.5, 0.5, 2)
    >>> [cost.point.p_target for cost in result.costs]
    [0.5, 0.01]
    >>> evaluate([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1], points=0.5)
    Evaluation(EER 25.00 %, minDCF 0.500, actDCF 1.000, minCllr 0.500, Cllr 0.748; 2 targets, 2 non-targets)
    """
    found = points_of(scores, labels, weights=weights, points=points)
    equal = equal_error_rate(found, method=eer_method)
    figures = Evaluation(
        eer=equal.eer,
        eer_threshold=equal.threshold,
        costs=tuple(detection_costs(found, points=points, normalize=normalize)),
        cllr=cllr(found),
        min_cllr=min_cllr(found),
        auc=auc(found),
        n_target=found.n_target,
        n_nontarget=found.n_nontarget,
    )
    if len(found.orders) == 1:
        return figures
    bounds = {
        "eer": found.bounds(lambda order: eer(order, method=eer_method)),
        "min_cllr": found.bounds(min_cllr),
        "auc": found.bounds(auc),
    }
    return replace(figures, order_bounds=bounds)


def evaluate_by(
    scores: npt.ArrayLike | TrialList,
    labels: npt.ArrayLike | None = None,
    *,
    conditions: npt.ArrayLike,
    equalize: bool = False,
    points: PointLike | Iterable[PointLike] = DEFAULT_POINTS,
    eer_method: EerMethod = "rocch",
    normalize: bool = True,
) -> EvaluationBy:
    """Return all metrics of all trials together, and of each condition.

    Parameters
    ----------
    scores, labels
        As in `validate`.
    conditions
        The condition of each trial, such as the gender or the phrase.
    equalize
        Let every condition weigh the same in the pooled metrics, see `equalized_weights`.
    points, eer_method, normalize
        As in `evaluate`.

    Examples
    --------
    >>> result = evaluate_by([-3.0, -1.0, 0.0, 4.0, 1.0], [0, 1, 0, 1, 1], conditions=["f", "f", "m", "m", "x"])
    >>> round(result.pooled.eer, 3), result.conditions["f"].eer
    (0.2, 0.0)
    >>> result.conditions["x"]
    NotEvaluated(n_target=1, n_nontarget=0, problem='there are no non-target trials')
    """
    values, key = validate(scores, labels)
    names, code = _as_conditions(conditions, len(key))
    options: dict[str, Any] = {"points": as_points(points), "eer_method": eer_method, "normalize": normalize}
    weights = equalized_weights(key, conditions) if equalize else None
    members = {name: code == place for place, name in enumerate(names)}
    return EvaluationBy(
        pooled=evaluate(values, key, weights=weights, **options),
        conditions={
            name: figures_or_problem(Trials(values=values[member], key=key[member]), **options)
            for name, member in members.items()
        },
        equalized=equalize,
    )


def figures_or_problem(found: Points, **options: Any) -> Evaluation | NotEvaluated:
    """Return all metrics of points, or how many they are and the ``problem`` if a class is absent."""
    if found.n_target and found.n_nontarget:
        return evaluate(found, **options)
    problem = f"there are no {'non-target' if found.n_target else 'target'} trials"
    return NotEvaluated(n_target=found.n_target, n_nontarget=found.n_nontarget, problem=problem)


def equalized_weights(labels: npt.ArrayLike, conditions: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return trial weights with which the pooled error rates are the means of the conditions' error rates.

    A trial weighs 1 / (number of trials of its class in its condition), so that at any threshold Pmiss and Pfa are
    plain averages over the conditions, as in the NIST evaluations: a condition without targets has no part in Pmiss,
    and one without non-targets none in Pfa. Trials with unknown label weigh 0.

    Examples
    --------
    >>> equalized_weights([1, 0, 0, 1, 0], ["f", "f", "f", "m", "m"])
    array([1. , 0.5, 0.5, 1. , 1. ])
    """
    key = as_labels(labels, len(np.asarray(labels)))
    names, code = _as_conditions(conditions, len(key))
    weights = np.zeros(len(key))
    for label in (TARGET, NONTARGET):
        of_class = key == label
        count = np.bincount(code[of_class], minlength=len(names))
        weights[of_class] = 1.0 / count[code[of_class]]
    return weights


def _as_conditions(conditions: npt.ArrayLike, length: int) -> tuple[list[str], npt.NDArray[np.intp]]:
    """Return the names of the conditions, sorted, and for each trial which it has."""
    values = np.asarray(conditions)
    if values.shape != (length,):
        raise InputError(f"conditions have shape {values.shape}, but there are {length} trials; give one per trial")
    texts = np.array([str(value) for value in values.tolist()], dtype=object) if values.dtype == object else values
    names, code = np.unique(texts, return_inverse=True)
    return [str(name) for name in names], code
