"""Scores with labels as dense matrices, for the methods that look at every score in each iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.model.statistics import TrainingData
from evenscore.tables import NONTARGET, TARGET, UNKNOWN, Labels, ScoreMatrix, ScoreTable, TrialList
from evenscore.tables.arrays import as_scores

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["DenseScores", "class_counts", "dense_scores"]

Array = np.ndarray
_LARGEST = 50_000_000  # pairs of one matrix: 400 MB, several times over


@dataclass(frozen=True, kw_only=True, eq=False)
class DenseScores:
    """One matrix: finite scores (0 where there is none), which of them exist, and their labels (-1: not known)."""

    scores: Float[Array, "k l"]
    present: npt.NDArray[np.bool_]
    key: npt.NDArray[np.int8]

    def of_class(self, h: int) -> npt.NDArray[np.bool_]:
        """Tell which pairs have a score and belong to a class for certain."""
        mask: npt.NDArray[np.bool_] = self.present & (self.key == h)
        return mask

    @property
    def hidden(self) -> npt.NDArray[np.bool_]:
        """Which pairs have a score, but no label."""
        return self.of_class(UNKNOWN)

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Which pairs have a score and a label."""
        mask: npt.NDArray[np.bool_] = self.present & (self.key != UNKNOWN)
        return mask

    def standardized(self, center: float, scale: float) -> DenseScores:
        """Return (score - center) / scale."""
        scores = np.where(self.present, (self.scores - center) / scale, 0.0)
        return DenseScores(scores=scores, present=self.present, key=self.key)


def dense_scores(data: TrainingData, *, labelled: bool = True) -> list[DenseScores]:
    """Return each matrix or list of trials as a dense matrix; if `labelled`, all of them must have labels."""
    if isinstance(data, ScoreTable) or (isinstance(data, tuple) and isinstance(data[-1], Labels)):
        data = [data]
    parts = [_one(item, labelled) for item in data]
    if not parts:
        raise InputError("there are no scores; give at least one pair (scores, labels)")
    return parts


def _one(item: object, labelled: bool) -> DenseScores:
    scores: Any
    scores, labels = item if isinstance(item, tuple) and len(item) == 2 else (item, None)
    if isinstance(scores, ScoreTable) and not scores.is_in_memory:
        raise InputError("scores that are not in memory cannot be looked at in each iteration; read a part of them")
    if isinstance(scores, TrialList):
        return _from_list(scores if labels is None else scores.join(labels), labelled)
    if labelled and not isinstance(labels, Labels):
        raise InputError(
            "data must be pairs (scores, labels) or labelled trial lists; make labels with Labels.from_..."
        )
    if isinstance(scores, ScoreMatrix):
        key = None if labels is None else labels.align(scores.enroll_ids, scores.test_ids).matrix
        return _from_arrays(scores.scores, key, labelled)
    array = as_scores(scores, "scores", ndim=2)
    if not np.isfinite(array).all():
        raise InputError("scores must be finite; make a ScoreMatrix with missing='nan' if pairs have no score")
    if labels is not None and labels.shape != array.shape:
        raise InputError(
            f"scores are {array.shape[0]} x {array.shape[1]}, but labels are {labels.shape[0]} x {labels.shape[1]}"
        )
    return _from_arrays(array, None if labels is None else labels.matrix, labelled)


def _from_arrays(scores: npt.NDArray[np.floating], key: npt.NDArray[np.int8] | None, labelled: bool) -> DenseScores:
    _refuse_too_large(scores.shape[0], scores.shape[1])
    key = np.full(scores.shape, UNKNOWN, dtype=np.int8) if key is None else key
    present = ~np.isnan(scores) & (key != UNKNOWN) if labelled else ~np.isnan(scores)
    rows, columns = present.any(axis=1), present.any(axis=0)
    kept = np.ix_(rows, columns)
    values = np.where(present, scores, 0.0).astype(np.float64)
    return DenseScores(scores=values[kept], present=present[kept], key=key[kept])


def _from_list(trials: TrialList, labelled: bool) -> DenseScores:
    if trials.scores is None or (labelled and trials.labels is None):
        raise InputError("the trial list needs scores and labels; join it with a key first")
    n_rows, n_columns = len(trials.enroll_ids), len(trials.test_ids)
    _refuse_too_large(n_rows, n_columns)
    scores = np.full((n_rows, n_columns), np.nan)
    scores[trials.enroll_index, trials.test_index] = trials.scores
    key = np.full(scores.shape, UNKNOWN, dtype=np.int8)
    if trials.labels is not None:
        key[trials.enroll_index, trials.test_index] = trials.labels
    return _from_arrays(scores, key, labelled)


def _refuse_too_large(n_rows: int, n_columns: int) -> None:
    if n_rows * n_columns > _LARGEST:
        raise InputError(
            f"a matrix of {n_rows} x {n_columns} scores is too large to be looked at in each iteration; "
            "take a part of the enrolments and tests"
        )


def class_counts(parts: list[DenseScores]) -> Float[Array, "2"]:
    """Return the numbers of scores that are non-targets and targets for certain."""
    return np.array([sum(float(part.of_class(h).sum()) for part in parts) for h in (NONTARGET, TARGET)])
