"""Scores that are bilinear in embeddings: training and scoring without ever forming the matrix.

    s_ij = u_i' v_j + a_i + b_j                                                                     (B1)

as cosine, dot product and PLDA scores are. With the means of all vectors and offsets taken out,

    s_ij - mean = (u_i - mean u)'(v_j - mean v) + f_i + g_j,     sum f = sum g = 0                    (B2)

the sums over rows and columns are L f and K g, and the sum of squares is tr(U'U V'V) + L f'f + K g'g. A weighted sum of
the cohort scores of an enrolment is one more dot product with its vector:

    sum_j w_j s_ij = (sum_j w_j v_j)' u_i + (sum_j w_j) a_i + sum_j w_j b_j                          (B3)
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import NONTARGET
from evenscore.errors import InputError
from evenscore.large import map_rows
from evenscore.model.pattern import PairLabels
from evenscore.model.sums import ClassSums, split_by_class
from evenscore.parallel import one_blas_thread, run_blocks

__all__ = ["BilinearScores"]

Array = npt.NDArray[np.floating]
Index = npt.NDArray[np.integer]
_CHUNK = 1 << 21  # numbers of vectors in float64 at a time
_TILE = 1 << 20  # scores at a time in a product
_BATCH = 128  # vectors at a time in products of speakers


@dataclass(frozen=True, eq=False)
class BilinearScores:
    """The scores (B1) of K enrolments against L tests, for `fit_score_model` and `ScoreModelNormalizer`.

    Examples
    --------
    >>> scores = BilinearScores(np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([[0.0, 1.0]]))
    >>> scores.shape, np.asarray(scores)
    ((2, 1), array([[0. ],
           [0.8]]))
    >>> scores.weighted_rows(np.array([[2.0], [1.0]]))
    array([[0. , 0. ],
           [1.6, 0.8]])
    """

    left: Array  #: vectors of enrolments, K x d
    right: Array  #: vectors of tests, L x d
    left_offset: Array = None  # type: ignore[assignment]  #: offsets a; None: 0
    right_offset: Array = None  # type: ignore[assignment]
    missing: tuple[Index, Index] | None = None  #: pairs (i, j) without score, such as utterances against themselves
    shape: tuple[int, int] = field(init=False)  #: numbers of enrolments and tests
    dtype: np.dtype[Any] = field(init=False)  #: type of the scores

    def __post_init__(self) -> None:
        if self.left.ndim != 2 or self.right.ndim != 2 or self.left.shape[1] != self.right.shape[1]:
            raise InputError(f"vectors must be K x d and L x d, but are {self.left.shape} and {self.right.shape}")
        object.__setattr__(self, "shape", (len(self.left), len(self.right)))
        object.__setattr__(self, "dtype", np.result_type(self.left, self.right))
        for name, vectors in (("left_offset", self.left), ("right_offset", self.right)):
            values = getattr(self, name)
            values = np.zeros(len(vectors)) if values is None else np.asarray(values, float)
            if values.shape != (len(vectors),):
                raise InputError(f"{name} has shape {values.shape}, but there are {len(vectors)} vectors")
            object.__setattr__(self, name, values)

    @property
    def T(self) -> BilinearScores:  # noqa: N802
        """The same scores with the sides swapped."""
        missing = None if self.missing is None else self.missing[::-1]
        return type(self)(self.right, self.left, self.right_offset, self.left_offset, missing)

    def __getitem__(self, at: Index | slice | tuple[Index | slice, Index | slice]) -> BilinearScores:
        """Return some rows, and some columns, without computing their scores."""
        rows, cols = at if isinstance(at, tuple) else (at, slice(None))
        offsets, missing = (self.left_offset[rows], self.right_offset[cols]), None
        if self.missing is not None:
            i, j = np.full(len(self.left), -1), np.full(len(self.right), -1)
            i[rows], j[cols] = np.arange(len(offsets[0])), np.arange(len(offsets[1]))
            i, j = i[self.missing[0]], j[self.missing[1]]
            missing = i[(i >= 0) & (j >= 0)], j[(i >= 0) & (j >= 0)]
        return type(self)(self.left[rows], self.right[cols], *offsets, missing)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        """Return all scores."""
        scores = np.empty(self.shape, self.dtype)

        def multiply(rows: slice) -> None:
            np.matmul(self.left[rows], self.right.T, out=scores[rows])
            if self.left_offset.any() or self.right_offset.any():
                scores[rows] += (self.left_offset[rows, None] + self.right_offset).astype(scores.dtype)

        run_blocks(multiply, *self.shape, _TILE)
        if self.missing is not None:
            scores[self.missing] = np.nan
        return scores if dtype is None else scores.astype(dtype)

    def weighted_rows(self, weights: Array) -> Array:
        """Return the weighted sums of every row, (B3)."""
        step, folded = max(1, _CHUNK // max(self.right.shape[1], 1)), np.zeros((self.right.shape[1], len(weights)))
        for start in range(0, len(self.right), step):
            folded += self.right[start : start + step].astype(float).T @ weights[:, start : start + step].T
        sums = map_rows(lambda rows: rows.astype(float) @ folded, self.left, len(weights))
        return sums + self.left_offset[:, None] * weights.sum(1) + weights @ self.right_offset

    def class_sums(self, labels: PairLabels) -> ClassSums:
        """Return the sums that training needs, in O((K + L) d^2) and the number of target pairs."""
        if labels.background != NONTARGET:
            raise InputError("most pairs have no label; form the scores and give those that have one as a TrialList")
        labels = labels if self.missing is None else labels.without(*self.missing)
        (K, L), left_mean, right_mean = self.shape, self.left.mean(0, dtype=float), self.right.mean(0, dtype=float)
        with one_blas_thread():
            f = map_rows(lambda rows: rows.astype(float) @ right_mean[:, None], self.left, 1)[:, 0] + self.left_offset
            g = map_rows(lambda rows: rows.astype(float) @ left_mean[:, None], self.right, 1)[:, 0] + self.right_offset
            center = float(f.mean() + g.mean() - left_mean @ right_mean)  # the mean score
            f, g = f - f.mean(), g - g.mean()
            whole_product = np.vdot(_centered_gram(self.left, left_mean), _centered_gram(self.right, right_mean))
            whole = L * f, K * g, float(whole_product + L * (f @ f) + K * (g @ g))  # (B2)
            rows, cols, square = np.zeros(K), np.zeros(L), 0.0  # of the pairs of one speaker
            shared = np.intersect1d(labels.rows[labels.rows >= 0], labels.cols)
            row_order, col_order = np.argsort(labels.rows, kind="stable"), np.argsort(labels.cols, kind="stable")
            row_order = row_order[np.isin(labels.rows[row_order], shared)]
            col_order = col_order[np.isin(labels.cols[col_order], shared)]
            at = np.searchsorted(labels.rows[row_order], shared), np.searchsorted(labels.cols[col_order], shared)
            first = np.flatnonzero(np.diff(sum(at) // _BATCH, prepend=-1))  # one product for several small speakers
            for r, c in zip(np.split(row_order, at[0][first])[1:], np.split(col_order, at[1][first])[1:], strict=True):
                block = (self.left[r] - left_mean) @ (self.right[c] - right_mean).T + (f[r, None] + g[c])
                block *= labels.rows[r, None] == labels.cols[c]
                rows[r], cols[c] = block.sum(1), block.sum(0)
                square += float(np.vdot(block, block))
            own, step = np.empty(len(labels.i)), max(1, _CHUNK // max(self.left.shape[1], 1))
            for start in range(0, len(own), step):
                i, j = labels.i[start : start + step], labels.j[start : start + step]
                product = np.vecdot(self.left[i] - left_mean, self.right[j] - right_mean)
                own[start : start + step] = product + f[i] + g[j]
            return split_by_class(labels, whole, (rows, cols, square), own, center)


def _centered_gram(vectors: Array, mean: Array) -> Array:
    """Return sum (u - mean)(u - mean)', in float64."""
    total, lock = np.zeros((vectors.shape[1], vectors.shape[1])), threading.Lock()

    def add(rows: slice) -> None:
        part = vectors[rows] - mean
        product = part.T @ part
        with lock:
            total[:] += product

    run_blocks(add, len(vectors), vectors.shape[1], _CHUNK)
    return total
