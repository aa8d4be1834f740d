"""Sums of scores by class: all that training and scoring need of a matrix, in one pass over it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import NONTARGET, TARGET, Labels
from evenscore.data.score_matrix import ScoreMatrix, as_scores
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.large import COMPILED, is_dask
from evenscore.model.pattern import MISSING, Array, Index, PairLabels, Shape, group_pairs
from evenscore.parallel import busy_thread, run_blocks

__all__ = ["ClassSums", "Scores", "labelled_parts", "list_sums", "matrix_sums", "part_sums", "split_by_class"]

Scores = Any  #: K x L scores: an array of NumPy or dask, or `BilinearScores`
Whole = tuple[Array, Array, float]  # sums over rows, over columns, of squares

_BLOCK = 1 << 17  # scores at a time in NumPy: they stay in the cache
_LARGE_BLOCK = 1 << 22  # scores at a time in the compiled loop


@dataclass(frozen=True, eq=False)
class ClassSums:
    """Sums of the scores of a matrix, less ``center``, by class; ``labels`` tells which scores there are."""

    labels: PairLabels
    rows: Array  #: sums over each row, K x 2
    cols: Array  #: sums over each column, L x 2
    squares: Array  #: sums of squares over the matrix
    center: Array  #: what was subtracted from the scores, so that squares keep their digits

    @cached_property
    def counts(self) -> tuple[Array, Array]:
        """Numbers of scores of each class in every row, and in every column."""
        return self.labels.row_counts(), self.labels.T.row_counts()

    @property
    def T(self) -> ClassSums:  # noqa: N802
        """The sums of the transposed matrix."""
        return ClassSums(self.labels.T, self.cols, self.rows, self.squares, self.center)

    def moved(self, center: Array) -> ClassSums:
        """Return the sums of the same scores less another center of each class."""
        (row_n, col_n), step = self.counts, center - self.center
        squares = self.squares - 2 * step * self.rows.sum(0) + row_n.sum(0) * step**2
        return ClassSums(self.labels, self.rows - row_n * step, self.cols - col_n * step, squares, center)


def matrix_sums(scores: Scores, labels: PairLabels, center: float | None = None) -> ClassSums:
    """Return the sums of a K x L matrix, NumPy or dask; NaN is a missing score."""
    if labels.background == MISSING:
        i, j = labels.i, labels.j
        values = scores.vindex[i, j].compute() if is_dask(scores) else scores[i, j]
        return list_sums(labels.shape, i, j, values, labels.label, center)
    if is_dask(scores):
        return _dask_sums(scores, labels)
    center = _rough_center(scores) if center is None else center
    rows, cols, square, missing = _sum_rows(scores, center)
    if 2 * missing.sum() > scores.size:
        i, j = np.nonzero(~np.isnan(scores))
        key = np.where((labels.rows[:, None] == labels.cols) & (labels.rows[:, None] >= 0), TARGET, NONTARGET)
        key[labels.i, labels.j] = labels.label
        return list_sums(labels.shape, i, j, scores[i, j], key[i, j], center)
    there = np.flatnonzero(missing)
    i, j = np.nonzero(np.isnan(scores[there]))
    labels = labels.without(there[i], j) if len(i) else labels
    i, j = group_pairs(labels.rows, labels.cols)
    s = np.nan_to_num(scores[i, j].astype(float) - center)
    target = np.bincount(i, s, len(rows)), np.bincount(j, s, len(cols)), float(s @ s)
    own = np.nan_to_num(scores[labels.i, labels.j].astype(float) - center)
    return split_by_class(labels, (rows, cols, square), target, own, center)


def _rough_center(scores: Array) -> float:
    """Return the median of some scores: taken from all, it keeps the digits of their squares."""
    first = scores[: 1 + 10000 // max(scores.shape[1], 1)]
    known = first[np.isfinite(first)]
    return float(np.median(known)) if known.size else 0.0


def _sum_rows(scores: Array, center: float) -> tuple[Array, Array, float, Index]:
    """Return sums over rows and columns, the sum of squares, and how many scores each row misses."""
    K, L = scores.shape
    rows, squares, missing, cols = np.zeros(K), np.zeros(K), np.zeros(K, np.intp), np.zeros(L)
    lock, large = threading.Lock(), scores.size >= COMPILED

    def sum_block(block: slice) -> None:
        if large:
            from evenscore.kernels import sum_scores

            part = np.zeros(L)
            sum_scores(scores[block], center, rows[block], part, squares[block], missing[block])
        else:
            x = scores[block] - np.float64(center)
            missing[block] = np.isnan(x).sum(1)
            x = np.where(np.isnan(x), 0.0, x) if missing[block].any() else x
            rows[block], squares[block], part = x.sum(1), np.einsum("ij,ij->i", x, x), x.sum(0)
        with lock:
            cols[:] += part

    run_blocks(sum_block, K, L, _LARGE_BLOCK if large else _BLOCK)
    _refuse_infinite(squares)
    return rows, cols, float(squares.sum()), missing


def _refuse_infinite(values: Array) -> None:
    if not np.isfinite(values).all():
        raise InputError("a score is infinite or too large; use NaN if it is missing")


def split_by_class(labels: PairLabels, whole: Whole, target: Whole, own: Array, center: float) -> ClassSums:
    """Return sums by class, given those of all pairs, of targets by speaker, and scores of pairs with own labels."""
    i, j, (K, L) = labels.i, labels.j, labels.shape
    was_target, is_target = labels.by_speaker(i, j) == TARGET, labels.label == TARGET
    moved = is_target.astype(float) - was_target  # 1: into the targets, -1: out of them
    target_rows = target[0] + np.bincount(i, moved * own, K)
    target_cols = target[1] + np.bincount(j, moved * own, L)
    target_square = target[2] + float(moved @ own**2)
    missing = labels.label == MISSING
    rows = whole[0] - np.bincount(i, missing * own, K) - target_rows
    cols = whole[1] - np.bincount(j, missing * own, L) - target_cols
    square = whole[2] - float(missing @ own**2) - target_square
    by_row, by_col = np.stack([rows, target_rows], 1), np.stack([cols, target_cols], 1)
    return ClassSums(labels, by_row, by_col, np.array([square, target_square]), np.full(2, center))


def list_sums(shape: Shape, i: Index, j: Index, scores: Array, label: Index, center: float | None = None) -> ClassSums:
    """Return the sums of a list of trials; those of unknown label, or without a score, are not used."""
    used = (label != MISSING) & ~np.isnan(scores)
    i, j, label, s = i[used].astype(np.intp), j[used].astype(np.intp), label[used], scores[used].astype(float)
    _refuse_infinite(s)
    center = (float(s.mean()) if len(s) else 0.0) if center is None else center
    weights = [(s - center) * (label == h) for h in (NONTARGET, TARGET)]
    rows = np.stack([np.bincount(i, w, shape[0]) for w in weights], 1)
    cols = np.stack([np.bincount(j, w, shape[1]) for w in weights], 1)
    labels = PairLabels.from_exceptions(shape, i, j, label, MISSING)
    return ClassSums(labels, rows, cols, np.array([w @ w for w in weights]), np.full(2, center))


def _dask_sums(scores: Scores, labels: PairLabels) -> ClassSums:
    """Sum every block where it is, then put the parts together."""
    import dask

    center = _rough_center(np.asarray(scores[:10, :10000].compute()))

    def sum_block(block: Array, part: PairLabels) -> tuple[npt.NDArray[np.generic], ...]:
        with busy_thread():
            found = matrix_sums(np.asarray(block), part, center)
            return found.rows, found.cols, found.squares, *np.nonzero(np.isnan(block))

    rows, cols = ([slice(*ends) for ends in pairwise(np.cumsum([0, *sizes]).tolist())] for sizes in scores.chunks)
    blocks, places = scores.to_delayed(), [(n, k) for n in range(len(rows)) for k in range(len(cols))]
    tasks = [dask.delayed(sum_block)(blocks[n, k], labels.take(rows[n], cols[k])) for n, k in places]
    by_row, by_col, squares = np.zeros((len(labels.rows), 2)), np.zeros((len(labels.cols), 2)), np.zeros(2)
    missing = [np.empty((2, 0), np.intp)]
    for (n, k), (in_rows, in_cols, in_all, i, j) in zip(places, dask.compute(*tasks), strict=True):
        by_row[rows[n]], by_col[cols[k]] = by_row[rows[n]] + in_rows, by_col[cols[k]] + in_cols
        squares += in_all
        missing.append(np.stack([i + rows[n].start, j + cols[k].start]))
    return ClassSums(labels.without(*np.concatenate(missing, axis=1)), by_row, by_col, squares, np.full(2, center))


Part = tuple[Scores, Labels | None]  #: a matrix and its labels, or a labelled `TrialList` and None


def labelled_parts(data: Any, labels: Any = None) -> list[Part]:
    """Return one or more labelled matrices or lists: (scores, labels), a `TrialList`, or a list of them."""
    if labels is None and isinstance(data, tuple) and len(data) == 2 and not isinstance(data[0], tuple):
        data, labels = data
    if labels is not None or not isinstance(data, list | tuple):
        return [_labelled(data, labels)]
    if not data:
        raise InputError("there are no scores; give at least one labelled matrix or list")
    return [_labelled(*part) if isinstance(part, tuple) else _labelled(part, None) for part in data]


def _labelled(scores: Any, labels: Any) -> Part:
    """Return a matrix and its `Labels`, or a labelled `TrialList` and None, of scores in any form."""
    if isinstance(scores, TrialList):
        if labels is not None:
            scores = scores.join(labels) if hasattr(labels, "enroll") else scores.with_labels(labels)
        if scores.labels is None:
            raise InputError("the trials have no labels; give them")
        return scores, None
    if isinstance(scores, ScoreMatrix):
        labels = Labels.from_speakers(scores.enroll, scores.test) if labels is None else labels
        labels = Labels.from_trials(labels) if hasattr(labels, "to_matrix") else labels
        labels = labels.align(scores.enroll, scores.test) if isinstance(labels, Labels) else labels
        scores = scores.scores
    elif not is_dask(scores) and not hasattr(scores, "class_sums"):
        scores = as_scores(scores, ndim=2)
    if labels is None:
        raise InputError("the scores have no labels; give Labels, or a matrix of 1 (target), 0 and -1 (unknown)")
    labels = labels if isinstance(labels, Labels) else Labels.from_key(labels)
    if labels.shape != scores.shape:
        raise InputError(f"labels are {labels.shape}, but the scores are {scores.shape}; make them agree")
    return scores, labels


def part_sums(scores: Scores, labels: Labels | None) -> ClassSums:
    """Return the sums of a labelled part."""
    if labels is None:
        return list_sums(scores.shape, scores.rows, scores.cols, scores.needs_scores(), np.asarray(scores.labels))
    if labels.by_speaker and labels.counts[2]:  # rows and columns of unknown speakers have no label at all
        rows, cols = (np.flatnonzero(codes >= 0) for codes in labels.speaker_codes[:2])
        scores, labels = scores[rows][:, cols], labels.take(rows, cols)
    pairs = PairLabels.from_labels(labels)
    return scores.class_sums(pairs) if hasattr(scores, "class_sums") else matrix_sums(scores, pairs)
