"""Sums of scores by class: all that training and scoring need of a matrix, in one pass over it.

They add up over blocks, so a dask array is summed block by block, wherever its blocks are.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import NONTARGET, TARGET, Labels
from evenscore.data.score_matrix import LARGEST_SCORE, ScoreMatrix, as_scores
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.large import is_dask
from evenscore.model.pattern import MISSING, PairLabels, group_pairs
from evenscore.parallel import busy_thread, run_blocks

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["ClassSums", "as_parts", "list_sums", "matrix_sums", "split_by_class", "table_sums", "with_labels"]

Index = npt.NDArray[np.intp]
Whole = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], float]  # sums over rows, over columns, of squares

_COMPILED = 1 << 24  # scores from which a compiled loop repays the time to load it
_BLOCK = 1 << 17  # scores at a time in NumPy: they stay in the cache
_LARGE_BLOCK = 1 << 22  # scores at a time in the compiled loop


@dataclass(frozen=True, eq=False)
class ClassSums:
    """Sums of the scores of a matrix, less ``center``, by class; ``labels`` tells which scores there are."""

    labels: PairLabels
    rows: Float[np.ndarray, "k 2"]  #: sums over each row
    cols: Float[np.ndarray, "l 2"]  #: sums over each column
    squares: Float[np.ndarray, "2"]  #: sums of squares over the matrix
    center: float = 0.0  #: what was subtracted from the scores, so that squares keep their digits

    @property
    def T(self) -> ClassSums:  # noqa: N802
        """The sums of the transposed matrix."""
        return ClassSums(self.labels.T, self.cols, self.rows, self.squares, self.center)


def matrix_sums(scores: Any, labels: PairLabels, center: float | None = None) -> ClassSums:
    """Return the sums of a K x L matrix, NumPy or dask; NaN is a missing score.

    Examples
    --------
    >>> labels = PairLabels.from_key(np.array([[1, 0], [0, 1]]))
    >>> matrix_sums(np.array([[3.0, 1.0], [0.0, np.nan]]), labels, center=0.0).rows
    array([[1., 3.],
           [0., 0.]])
    """
    if labels.background == MISSING:
        i, j = labels.i, labels.j
        values = scores.vindex[i, j].compute() if is_dask(scores) else scores[i, j]
        return list_sums(labels.shape, i, j, values, labels.label, center)
    if is_dask(scores):
        return _dask_sums(scores, labels)
    center = _rough_mean(scores) if center is None else center
    rows, cols, square, missing = _pass(scores, center)
    if 2 * missing.sum() > scores.size:
        i, j = np.nonzero(~np.isnan(scores))
        return list_sums(labels.shape, i, j, scores[i, j], labels.pairs(i, j), center)
    if missing.any():
        there = np.flatnonzero(missing)
        i, j = np.nonzero(np.isnan(scores[there]))
        labels = labels.without(there[i], j)
    i, j = group_pairs(labels.rows, labels.cols)
    s = np.nan_to_num(scores[i, j].astype(float) - center)
    target = np.bincount(i, s, len(rows)), np.bincount(j, s, len(cols)), float(s @ s)
    own = np.nan_to_num(scores[labels.i, labels.j].astype(float) - center)
    return split_by_class(labels, (rows, cols, square), target, own, center)


def _rough_mean(scores: npt.NDArray[Any]) -> float:
    first = scores[: 1 + 10000 // max(scores.shape[1], 1)]
    known = first[~np.isnan(first)]
    return float(known.mean(dtype=float)) if known.size else 0.0


def _pass(scores: npt.NDArray[Any], center: float) -> tuple[Any, Any, float, Int[np.ndarray, " k"]]:
    """Return sums over rows and columns, the sum of squares, and how many scores each row misses."""
    K, L = scores.shape
    rows, squares, missing, cols = np.zeros(K), np.zeros(K), np.zeros(K, np.intp), np.zeros(L)
    lock = threading.Lock()

    def sum_block(block: slice) -> None:
        x = scores[block] - np.float64(center)
        absent = np.isnan(x)
        if absent.any():
            x[absent] = 0.0
            missing[block] = absent.sum(1)
        rows[block], squares[block] = x.sum(1), np.einsum("ij,ij->i", x, x)
        with lock:
            cols[:] += x.sum(0)

    def sum_compiled(block: slice) -> None:
        from evenscore.kernels import sum_scores

        part = np.zeros(L)
        sum_scores(scores[block], center, rows[block], part, squares[block], missing[block])
        with lock:
            cols[:] += part

    large = scores.size >= _COMPILED
    run_blocks(sum_compiled if large else sum_block, K, L, _LARGE_BLOCK if large else _BLOCK)
    return rows, cols, float(squares.sum()), missing


def split_by_class(labels: PairLabels, whole: Whole, target: Whole, own: Any, center: float) -> ClassSums:
    """Return sums by class, given those of all pairs, those of the pairs that are targets by speaker, and the scores
    of the pairs with labels of their own.
    """  # fmt: skip
    (rows, cols, square), (target_rows, target_cols, target_square) = whole, target
    i, j, missing = labels.i, labels.j, labels.label == MISSING
    into = 1.0 * (labels.label == TARGET) - (labels.by_speaker(i, j) == TARGET)  # into the targets, or out of them
    target_rows = target_rows + np.bincount(i, into * own, len(rows))
    target_cols = target_cols + np.bincount(j, into * own, len(cols))
    target_square += float(into @ own**2)
    rows = rows - np.bincount(i, missing * own, len(rows)) - target_rows
    cols = cols - np.bincount(j, missing * own, len(cols)) - target_cols
    squares = np.array([square - float(missing @ own**2) - target_square, target_square])
    return ClassSums(labels, np.stack([rows, target_rows], 1), np.stack([cols, target_cols], 1), squares, center)


def list_sums(
    shape: tuple[int, int], i: Index, j: Index, scores: Any, label: Int[np.ndarray, " n"], center: float | None = None
) -> ClassSums:
    """Return the sums of a list of trials; those of unknown label, or without a score, are not used.

    Examples
    --------
    >>> rows, cols = np.array([0, 0, 1]), np.array([0, 1, 1])
    >>> list_sums((2, 2), rows, cols, np.array([3.0, 1.0, 2.0]), np.array([1, 0, 1]), 0.0).cols
    array([[0., 3.],
           [1., 2.]])
    """
    used = (label != MISSING) & ~np.isnan(scores)
    i, j, label, s = i[used].astype(np.intp), j[used].astype(np.intp), label[used], scores[used].astype(float)
    center = (float(s.mean()) if len(s) else 0.0) if center is None else center
    s -= center
    weights = [s * (label == h) for h in (NONTARGET, TARGET)]
    rows = np.stack([np.bincount(i, w, shape[0]) for w in weights], 1)
    cols = np.stack([np.bincount(j, w, shape[1]) for w in weights], 1)
    return ClassSums(PairLabels.from_list(shape, i, j, label), rows, cols, np.array([w @ w for w in weights]), center)


def _dask_sums(scores: Any, labels: PairLabels) -> ClassSums:
    """Sum every block where it is, then put the parts together."""
    import dask

    row_edges, col_edges = (np.cumsum([0, *sizes]).tolist() for sizes in scores.chunks)
    rows = [slice(*pair) for pair in zip(row_edges, row_edges[1:], strict=False)]
    cols = [slice(*pair) for pair in zip(col_edges, col_edges[1:], strict=False)]
    center = _rough_mean(np.asarray(scores[:10, :10000].compute()))

    def sum_block(block: Any, part: PairLabels) -> tuple[Any, Any, Any, Index, Index]:
        with busy_thread():
            refuse_infinite(np.asarray(block))
            found = matrix_sums(np.asarray(block), part, center)
            return found.rows, found.cols, found.squares, *np.nonzero(np.isnan(block))  # type: ignore[return-value]

    blocks, places = scores.to_delayed(), [(n, k) for n in range(len(rows)) for k in range(len(cols))]
    tasks = [dask.delayed(sum_block)(blocks[n, k], labels.take(rows[n], cols[k])) for n, k in places]
    by_row, by_col, squares = np.zeros((len(labels.rows), 2)), np.zeros((len(labels.cols), 2)), np.zeros(2)
    missing_i, missing_j = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
    for (n, k), part in zip(places, dask.compute(*tasks), strict=True):
        by_row[rows[n]] += part[0]
        by_col[cols[k]] += part[1]
        squares += part[2]
        missing_i.append(part[3] + rows[n].start)
        missing_j.append(part[4] + cols[k].start)
    labels = labels.without(np.concatenate(missing_i), np.concatenate(missing_j))
    return ClassSums(labels, by_row, by_col, squares, center)


def refuse_infinite(scores: npt.NDArray[Any]) -> None:
    """Raise an error if a score is infinite, or too large for its square to be summed."""
    if scores.size and not (np.nanmax(abs(scores), initial=0.0) <= LARGEST_SCORE):
        raise InputError("a score is infinite or larger than 1e30; use NaN if it is missing")


def with_labels(scores: Any, labels: Any = None) -> tuple[Any, Any]:
    """Return an array and its `Labels`, or a labelled `TrialList` and None, of scores in any form."""
    if isinstance(scores, TrialList):
        if labels is not None:
            scores = scores.join(labels) if isinstance(labels, Labels | TrialList) else scores.with_labels(labels)
        if scores.labels is None:
            raise InputError("the trials have no labels; give them")
        return scores, None
    if isinstance(scores, ScoreMatrix):
        labels = Labels.from_speakers(scores.enroll, scores.test) if labels is None else labels
        labels = Labels.from_trials(labels) if isinstance(labels, TrialList) else labels
        labels = labels.align(scores.enroll, scores.test) if isinstance(labels, Labels) else labels
        scores = scores.scores
    elif not is_dask(scores) and not hasattr(scores, "class_sums"):
        scores = as_scores(scores, ndim=2)
        refuse_infinite(scores)
    if labels is None:
        raise InputError("the scores have no labels; give Labels, or a matrix of 1 (target), 0 and -1 (unknown)")
    labels = labels if isinstance(labels, Labels) else Labels.from_key(labels)
    if labels.shape != scores.shape:
        raise InputError(f"labels are {labels.shape}, but the scores are {scores.shape}; make them agree")
    return scores, labels


def table_sums(scores: Any, labels: Any = None) -> ClassSums:
    """Return the sums of labelled scores in any form: an array, a table, scores of embeddings, or sums already."""
    if isinstance(scores, ClassSums):
        return scores
    scores, labels = with_labels(scores, labels)
    if isinstance(scores, TrialList):
        return list_sums(scores.shape, scores.rows, scores.cols, scores.needs_scores(), np.asarray(scores.labels))
    if hasattr(scores, "class_sums"):  # scores of embeddings, which need not be formed
        return scores.class_sums(PairLabels.from_labels(labels))
    if labels.by_speaker and labels.counts[2]:  # rows and columns of unknown speakers have no label at all
        rows, cols = (np.flatnonzero(codes >= 0) for codes in labels.speaker_codes[:2])
        scores, labels = scores[rows][:, cols], labels.take(rows, cols)
    return matrix_sums(scores, PairLabels.from_labels(labels))


def as_parts(data: Any, labels: Any = None) -> list[tuple[Any, Any]]:
    """Return one or more labelled matrices or lists as pairs (scores, labels)."""
    if labels is not None or isinstance(data, TrialList | ScoreMatrix | ClassSums):
        return [(data, labels)]
    if isinstance(data, tuple) and len(data) == 2 and not isinstance(data[0], tuple):
        return [data]
    if not isinstance(data, Iterable) or isinstance(data, np.ndarray):
        raise InputError("training needs labelled scores: (scores, labels), a labelled TrialList, or a list of them")
    parts = [part if isinstance(part, tuple) else (part, None) for part in data]
    if not parts:
        raise InputError("there are no scores; give at least one labelled matrix or list")
    return parts
