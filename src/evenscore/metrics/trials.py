"""Trials in memory, checked once: the door through which everything that is measured comes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.points import Points, SortedScores
from evenscore.tables import NONTARGET, TARGET, UNKNOWN, Labels, ScoreMatrix, ScoreTable, TrialList, labels_for
from evenscore.tables.arrays import as_scores, frozen
from evenscore.tables.pair_values import table_of_labels

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["ScoresLike", "SortedScores", "Trials", "points_of", "sort_scores", "unlabelled_points", "validate"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Trials(Points):
    """Scores in memory with their labels, in any order.

    Attributes
    ----------
    values
        A score for each trial; for a fusion one of each system, then the quality measures.
    key
        Label of each trial; trials with label -1 are left out, so that parts share their values.
    n_systems
        How many systems.

    Examples
    --------
    >>> trials = Trials(values=np.array([2.0, -1.0, 3.0]), key=np.array([1, 0, 1], np.int8))
    >>> part = trials.part(np.array([True, True, False]))
    >>> part.n_target, (part + trials).n_target
    (1, 2)
    """

    values: Float[np.ndarray, "n ..."]
    key: Int[np.ndarray, " n"]
    n_systems: int = 1

    def __add__(self, other: Trials) -> Trials:
        """Return the trials of two parts of the same trials."""
        return replace(self, key=np.maximum(self.key, other.key))

    def part(self, member: npt.NDArray[np.bool_]) -> Trials:
        """Return some of the trials."""
        return replace(self, key=np.where(member, self.key, np.int8(UNKNOWN)))

    def number(self, label: int) -> int:
        """Return the number of scores of a class."""
        return int(np.count_nonzero(self.key == label))

    @cached_property
    def tied(self) -> SortedScores:
        """The scores of each class in order."""
        tar, non = np.sort(self.values[self.key == TARGET]), np.sort(self.values[self.key == NONTARGET])
        if np.isnan(tar[-1]) or np.isnan(non[-1]):  # sorted to the end
            _refuse_nan(int(np.argmax(np.isnan(self.values) & (self.key != UNKNOWN))))
        return SortedScores(target=frozen(tar), nontarget=frozen(non))

    def class_scores(self, label: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the scores of a class, each of which stands for one trial."""
        scores = self.values[self.key == label].astype(np.float64, copy=False)
        return scores, np.broadcast_to(1.0, len(scores))

    def refuse_infinite(self) -> None:
        """Refuse scores and quality measures that are not finite."""
        finite = np.isfinite(self.values)
        if finite.all():
            return
        odd = (~finite.T & (self.key != UNKNOWN)).T.reshape(len(self.key), -1)
        for what, columns in (("scores", odd[:, : self.n_systems]), ("quality", odd[:, self.n_systems :])):
            if columns.any():
                raise InputError(f"{what}[{np.argwhere(columns)[0, 0]}] is not finite; drop the trial or label it -1")


ScoresLike: TypeAlias = "npt.ArrayLike | ScoreTable | Points"


def points_of(
    scores: ScoresLike, labels: Any = None, *, weights: npt.ArrayLike | None = None, **counting: Any
) -> Points:
    """Return what is measured: the only door of metrics and calibrations.

    Parameters
    ----------
    scores, labels
        As in `validate`. Points are returned as they are. Tables that are not in memory are counted tile by tile, with
        labels as in `labels_for`.
    weights
        A finite weight of at least 0 for each trial; only its share of the total weight of its class counts.
    **counting
        Options of `summarize`, for scores that are not in memory.

    Examples
    --------
    >>> found = points_of([2.0, -1.0, 3.0], [1, 0, 1])
    >>> found.n_target, found.tied.target
    (2, array([2., 3.]))
    """
    if is_lazy(scores):
        from evenscore.metrics.counting import summarize_table

        if weights is not None:
            raise InputError("scores that are not in memory are counted, each once; leave out the weights")
        scores, labels = summarize_table(scores, labels, **counting), None
    if isinstance(scores, Points):
        if labels is not None or weights is not None:
            raise InputError("these scores have their labels, which must not be given again; leave out labels, weights")
        if isinstance(scores, Trials):
            as_scores(scores.values, "scores", ndim=1)  # several systems are refused, as in an array
        scores.check_classes()
        return scores
    values, key = validate(scores, labels)
    if weights is not None:
        return _sorted_with_weights(values, key, weights)
    return Trials(values=values, key=key)


def unlabelled_points(scores: ScoresLike) -> Points:
    """Return scores whatever their labels, as if all of them were of one class."""
    if is_lazy(scores):
        from evenscore.metrics.counting import count_unlabelled

        return count_unlabelled(scores)
    if isinstance(scores, Points):
        return scores
    values = as_scores(_scores_in(scores), "scores", ndim=1)
    return Trials(values=values, key=np.zeros(values.size, np.int8))


def sort_scores(
    scores: ScoresLike, labels: npt.ArrayLike | None = None, *, weights: npt.ArrayLike | None = None
) -> SortedScores:
    """Check the trials and sort the scores of each class.

    Parameters
    ----------
    scores, labels
        As in `validate`. A `SortedScores` is returned as it is. Of scores that are not in memory, and of a
        `ScoreSummary`, those of one bin are equal.
    weights
        A finite weight of at least 0 for each trial; only its share of the total weight of its class counts.

    Examples
    --------
    >>> trials = sort_scores([2.0, -1.0, 3.0], [1, 0, 1])
    >>> trials.target, trials.nontarget
    (array([2., 3.]), array([-1.]))
    """
    return points_of(scores, labels, weights=weights).tied


def validate(
    scores: npt.ArrayLike | ScoreTable, labels: npt.ArrayLike | None = None
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int8]]:
    """Check scores and labels and return them as arrays of equal length.

    Parameters
    ----------
    scores
        One real number per trial; higher means more like a target. Infinite scores are accepted, NaN is not (NaN of
        trials with unknown label is not looked at). Or a `TrialList` with scores and labels.
    labels
        1 or True (target), 0 or False (non-target), -1 (unknown; such trials are left out). They may be left out with
        a `TrialList`.

    Raises
    ------
    InputError
        If the lengths differ, a label is something else, or there are no targets or no non-targets.

    Examples
    --------
    >>> validate([1, 2, 0], [True, True, False])
    (array([1., 2., 0.]), array([1, 1, 0], dtype=int8))
    """
    scores, labels = scores_and_labels(scores, labels)
    values = as_scores(scores, "scores", ndim=1)
    key = as_labels(labels, len(values))
    Trials(values=values, key=key).check_classes()
    return values, key


def scores_and_labels(scores: npt.ArrayLike | ScoreTable, labels: Any) -> tuple[npt.ArrayLike, npt.ArrayLike]:
    """Return scores and labels, those of a list of trials too; refuse what has none, or has lost the order of both."""
    if isinstance(scores, ScoreMatrix):
        scores = scores.to_trials(table_of_labels(scores, labels_for(scores, labels)))
        labels = None
    elif isinstance(scores, TrialList) and isinstance(labels, Labels | TrialList):
        scores, labels = scores.join(labels, unmatched="drop"), None
    if isinstance(scores, Points):
        raise InputError("sorted or counted scores have lost their order; give scores and labels, one for each trial")
    values = _scores_in(scores)
    if labels is None and isinstance(scores, TrialList):
        labels = scores.labels
        if labels is None:
            raise InputError("the trials have no labels; join them with a key first")
    if labels is None:
        raise InputError("labels are missing; give one label per score: 1 (target), 0 (non-target), -1 (unknown)")
    return values, labels


def is_lazy(scores: object) -> TypeGuard[ScoreTable]:
    """Tell whether scores are a table that is not in memory."""
    return isinstance(scores, ScoreTable) and not scores.is_in_memory


def _scores_in(scores: Any) -> npt.ArrayLike:
    if is_lazy(scores):
        raise InputError("these scores are not in memory, but each trial is needed here; read a part of them")
    if isinstance(scores, ScoreMatrix):
        return scores.scores[~scores.missing]
    if isinstance(scores, TrialList):
        if scores.scores is None:
            raise InputError("the trials have no scores; read a score file, or give them with with_scores")
        return scores.scores
    return scores


def as_labels(labels: npt.ArrayLike, length: int) -> npt.NDArray[np.int8]:
    """Return labels as int8: 1 (target), 0 (non-target), -1 (unknown)."""
    key = np.asarray(labels)
    if key.shape != (length,):
        raise InputError(f"labels have shape {key.shape}, but there are {length} scores; give one label per score")
    if key.size and (key.dtype.kind not in "biu" or key.min() < UNKNOWN or key.max() > TARGET):
        raise InputError("labels must be 1 or True (target), 0 or False (non-target) or -1 (unknown)")
    return key.astype(np.int8, copy=False)


def _sorted_with_weights(values: npt.NDArray[Any], key: npt.NDArray[np.int8], weights: npt.ArrayLike) -> SortedScores:
    mass = np.asarray(weights, dtype=np.float64)
    if mass.shape != values.shape:
        raise InputError(f"weights have shape {mass.shape}, but there are {values.size} scores; give one per score")
    if not np.isfinite(mass).all() or mass.min() < 0:
        raise InputError("weights must be finite and not negative")
    fields: dict[str, npt.NDArray[Any]] = {}
    for name, label in (("target", TARGET), ("nontarget", NONTARGET)):
        at = np.flatnonzero(key == label)
        nan = np.flatnonzero(np.isnan(values[at]))
        _refuse_nan(int(at[nan[0]]) if nan.size else -1)
        at = at[np.argsort(values[at], kind="stable")]
        cumulative = np.concatenate(([0.0], np.cumsum(mass[at])))
        if not cumulative[-1] > 0:
            raise InputError(f"the {name} trials weigh nothing; give some of them a weight above 0")
        fields[name] = frozen(values[at])
        fields[f"{name}_mass"] = frozen(cumulative / cumulative[-1])
    return SortedScores(**fields)


def _refuse_nan(place: int) -> None:
    if place >= 0:
        raise InputError(f"scores[{place}] is nan, so the trial cannot be ranked; drop the trial or label it -1")
