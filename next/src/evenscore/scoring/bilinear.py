"""Scores that are products of vectors, made when they are used: cosine, dot product and PLDA without their matrix."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.data.side import Side
from evenscore.large import CHUNKS
from evenscore.model.bilinear import BilinearScores as Products
from evenscore.parallel import one_blas_thread, run_blocks

__all__ = ["BilinearScores", "self_pairs"]

Array = npt.NDArray[np.floating]
Index = npt.NDArray[np.integer]
Where = Index | slice


class BilinearScores(Products):
    """Scores s_ij = left_i' right_j + left_offset_i + right_offset_j, in place of a matrix of cohort scores.

    Rows and columns can be selected as those of an array; scores are computed where ``np.asarray`` asks for them. So a
    norm of m x M cohort scores needs no m x M matrix. ``missing`` are positions (rows, columns) of pairs without score.

    Examples
    --------
    >>> scores = BilinearScores(np.eye(2), np.array([[1.0, 0.0], [3.0, 4.0]]))
    >>> np.asarray(scores[0:1])
    array([[1., 3.]])
    >>> scores.pairs(np.array([1]), np.array([1]))
    array([4.])
    """

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Type of the scores."""
        return np.result_type(self.left, self.right)

    @cached_property
    def T(self) -> BilinearScores:  # type: ignore[override]  # noqa: N802
        """The same scores with the sides swapped; ``scores.T.T is scores``."""
        missing = None if self.missing is None else self.missing[::-1]
        other = BilinearScores(self.right, self.left, self.right_offset, self.left_offset, missing)
        other.__dict__["T"] = self
        return other

    def __getitem__(self, at: Where | tuple[Where, Where]) -> BilinearScores:
        """Return some rows, and some columns, without computing their scores."""
        rows, cols = at if isinstance(at, tuple) else (at, slice(None))
        offsets = self.left_offset[rows], self.right_offset[cols]  # type: ignore[index]
        missing = None
        if self.missing is not None:
            i, j = np.full(len(self.left), -1), np.full(len(self.right), -1)
            i[rows], j[cols] = np.arange(len(offsets[0])), np.arange(len(offsets[1]))
            i, j = i[self.missing[0]], j[self.missing[1]]
            missing = i[(i >= 0) & (j >= 0)], j[(i >= 0) & (j >= 0)]
        return BilinearScores(self.left[rows], self.right[cols], *offsets, missing)

    def pairs(self, rows: Index, cols: Index) -> Array:
        """Return the scores of listed pairs, none of which is missing."""
        scores = np.empty(len(rows), self.dtype)

        def work(block: slice) -> None:
            i, j = rows[block], cols[block]
            offsets = self.left_offset[i] + self.right_offset[j]  # type: ignore[index]
            scores[block] = np.vecdot(self.left[i], self.right[j]) + offsets

        run_blocks(work, len(rows), self.left.shape[1], 1 << 17)
        return scores

    def to_dask(self) -> Any:
        """Return the scores as a dask array, whose chunks are computed from parts of the vectors."""
        import dask.array as da

        tall, wide = (min(most, max(size, 1)) for most, size in zip(CHUNKS, self.shape, strict=True))
        by_row = (self.left, "id", self.left_offset, "i", self.missing_columns(), "i")
        by_col = (self.right, "jd", self.right_offset, "j", np.arange(self.shape[1]), "j")
        parts = [
            da.from_array(part, (chunk, -1)[: np.ndim(part)]) if isinstance(part, np.ndarray) else part
            for given, chunk in ((by_row, tall), (by_col, wide))
            for part in given
        ]
        meta = np.empty((0, 0), self.dtype)
        return da.blockwise(_chunk, "ij", *parts, dtype=self.dtype, meta=meta, concatenate=True)

    def missing_columns(self) -> Index:
        """Return the column of each row's missing pair, -1 where there is none."""
        own = np.full(len(self.left), -1)
        if self.missing is not None:
            own[self.missing[0]] = self.missing[1]
        return own


def _chunk(left: Array, left_offset: Array, own: Index, right: Array, right_offset: Array, columns: Index) -> Array:
    """Return a chunk of the scores; ``own`` is the column of each row's missing pair."""
    with one_blas_thread():
        scores: Array = left @ right.T
    scores += (left_offset[:, None] + right_offset).astype(scores.dtype)
    scores[own[:, None] == columns] = np.nan
    return scores


def self_pairs(enroll: Side, test: Side) -> tuple[Index, Index] | None:
    """Return the positions (rows, columns) of pairs with the same id on both sides, or None if there are none."""
    cols = np.arange(len(enroll)) if test is enroll else test.find(enroll.ids)
    rows = np.flatnonzero(cols >= 0)
    return (rows, cols[rows]) if len(rows) else None
