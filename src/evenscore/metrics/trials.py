"""Scores of the two classes, checked once and sorted once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.tables import NONTARGET, TARGET, UNKNOWN, ScoreTable, TrialList
from evenscore.tables.arrays import as_scores, frozen

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["ScoresLike", "SortedScores", "is_chunked", "sort_scores", "validate"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SortedScores:
    """Target and non-target scores, each sorted upwards: what every metric works on.

    Every metric takes one of these instead of ``(scores, labels)``, so that several metrics need only one sort. Made
    by `sort_scores`.

    Attributes
    ----------
    target, nontarget
        The scores of each class, sorted upwards.
    target_mass, nontarget_mass
        The share of the class's weight that the k lowest scores have, k = 0, ..., n, where trials are weighted; None
        where each trial of a class weighs the same.

    Examples
    --------
    >>> sort_scores([2.0, -1.0, 0.5, 1.0], [1, 0, -1, 1])
    SortedScores(2 targets, 1 non-targets, float64)
    """

    target: Float[np.ndarray, " t"]
    nontarget: Float[np.ndarray, " n"]
    target_mass: Float[np.ndarray, " t+1"] | None = None
    nontarget_mass: Float[np.ndarray, " n+1"] | None = None

    def __repr__(self) -> str:
        weighted = "" if self.target_mass is None else ", weighted"
        sizes = f"{self.target.size} targets, {self.nontarget.size} non-targets"
        return f"SortedScores({sizes}, {self.target.dtype}{weighted})"

    def miss_rate(self, below: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the miss rate when this many target scores are rejected."""
        at = np.asarray(below)
        return np.asarray(at / self.target.size if self.target_mass is None else self.target_mass[at])

    def false_alarm_rate(self, below: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the false-alarm rate when this many non-target scores are rejected."""
        at = np.asarray(below)
        if self.nontarget_mass is None:
            return np.asarray((self.nontarget.size - at) / self.nontarget.size)
        return np.asarray(1.0 - self.nontarget_mass[at])

    def below(self, threshold: npt.ArrayLike) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return how many targets and how many non-targets are rejected: those with score < threshold."""
        exact = np.asarray(threshold, dtype=np.float64)
        limit = exact.astype(self.target.dtype)
        limit = np.where(limit < exact, np.nextafter(limit, np.inf, dtype=limit.dtype), limit)  # for float32 scores
        return np.searchsorted(self.target, limit), np.searchsorted(self.nontarget, limit)

    def threshold(self, target_below: int, nontarget_below: int) -> float:
        """Return the lowest accepted score when this many of each class are rejected.

        If nothing is accepted, it is the next number after the highest score.
        """
        accepted = [
            scores[at]
            for scores, at in ((self.target, target_below), (self.nontarget, nontarget_below))
            if at < scores.size
        ]
        if accepted:
            return float(min(accepted))
        return float(np.nextafter(max(self.target[-1], self.nontarget[-1]), np.inf, dtype=self.target.dtype))


ScoresLike: TypeAlias = "npt.ArrayLike | TrialList | SortedScores"


def validate(
    scores: npt.ArrayLike | TrialList, labels: npt.ArrayLike | None = None
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
    if is_chunked(scores):
        raise InputError("these scores are not in memory; count them first: summarize_table(scores, labels)")
    if isinstance(scores, TrialList):
        if scores.scores is None:
            raise InputError("the trials have no scores; read a score file, or give them with with_scores")
        labels = scores.labels if labels is None else labels
        if labels is None:
            raise InputError("the trials have no labels; join them with a key first")
        scores = scores.scores
    if labels is None:
        raise InputError("labels are missing; give one label per score: 1 (target), 0 (non-target), -1 (unknown)")
    values = as_scores(scores, "scores", ndim=1)
    key = as_labels(labels, len(values))
    target, nontarget = (int(np.count_nonzero(key == label)) for label in (TARGET, NONTARGET))
    if not target or not nontarget:
        raise InputError(
            f"there are {target} target and {nontarget} non-target trials, but both kinds are needed; check the key"
        )
    return values, key


def is_chunked(scores: object) -> TypeGuard[ScoreTable]:
    """Tell whether scores are a table that is not in memory."""
    return isinstance(scores, ScoreTable) and not scores.is_in_memory


def as_labels(labels: npt.ArrayLike, length: int) -> npt.NDArray[np.int8]:
    """Return labels as int8: 1 (target), 0 (non-target), -1 (unknown)."""
    key = np.asarray(labels)
    if key.shape != (length,):
        raise InputError(f"labels have shape {key.shape}, but there are {length} scores; give one label per score")
    if key.size and (key.dtype.kind not in "biu" or key.min() < UNKNOWN or key.max() > TARGET):
        raise InputError("labels must be 1 or True (target), 0 or False (non-target) or -1 (unknown)")
    return key.astype(np.int8, copy=False)


def sort_scores(
    scores: ScoresLike, labels: npt.ArrayLike | None = None, *, weights: npt.ArrayLike | None = None
) -> SortedScores:
    """Check the trials and sort the scores of each class.

    Parameters
    ----------
    scores, labels
        As in `validate`. A `SortedScores` is returned as it is.
    weights
        A finite weight of at least 0 for each trial; only its share of the total weight of its class counts.

    Examples
    --------
    >>> trials = sort_scores([2.0, -1.0, 3.0], [1, 0, 1])
    >>> trials.target, trials.nontarget
    (array([2., 3.]), array([-1.]))
    """
    if isinstance(scores, SortedScores):
        if labels is not None or weights is not None:
            raise InputError("sorted scores were given, so labels and weights must not be given again")
        return scores
    values, key = validate(scores, labels)
    if weights is not None:
        return _sorted_with_weights(values, key, weights)
    tar, non = np.sort(values[key == TARGET]), np.sort(values[key == NONTARGET])
    if np.isnan(tar[-1]) or np.isnan(non[-1]):  # sorted to the end
        _refuse_nan(int(np.argmax(np.isnan(values) & (key != UNKNOWN))))
    return SortedScores(target=frozen(tar), nontarget=frozen(non))


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
