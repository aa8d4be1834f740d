"""Scores that are products of vectors, made when they are used: cosine, dot product and PLDA without their matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.parallel import one_blas_thread, run_blocks

__all__ = ["BilinearScores"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class BilinearScores:
    """Scores s_ij = left_i' right_j + left_offset_i + right_offset_j, which every norm takes as cohort scores.

    Rows are computed when they are sliced, so that a norm of m x M cohort scores needs no m x M matrix.

    Examples
    --------
    >>> scores = BilinearScores(np.eye(2), np.array([[1.0, 0.0], [3.0, 4.0]]))
    >>> scores[0:1]
    array([[1., 3.]])
    >>> scores.pairs(np.array([1]), np.array([1]))
    array([4.])
    """

    left: Array  #: m x d
    right: Array  #: n x d
    left_offset: Array | None = None
    right_offset: Array | None = None

    def __post_init__(self) -> None:
        if self.left.ndim != 2 or self.right.ndim != 2 or self.left.shape[1] != self.right.shape[1]:
            raise InputError(f"vectors of shapes {self.left.shape} and {self.right.shape} have no product")

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return len(self.left), len(self.right)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the scores."""
        return np.result_type(self.left, self.right)

    @property
    def T(self) -> BilinearScores:  # noqa: N802
        """The same scores with the sides swapped."""
        return BilinearScores(self.right, self.left, self.right_offset, self.left_offset)

    def __getitem__(self, rows: Any) -> Array:
        """Return some whole rows."""
        with one_blas_thread():
            scores: Array = self.left[rows] @ self.right.T
        if self.left_offset is not None:
            scores += self.left_offset[rows, None]
        if self.right_offset is not None:
            scores += self.right_offset
        return scores

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        """Return all scores."""
        return np.asarray(self[:], dtype)

    def pairs(self, rows: Array, cols: Array) -> Array:
        """Return the scores of listed pairs."""
        scores = np.empty(len(rows), self.dtype)

        def work(block: slice) -> None:
            scores[block] = np.vecdot(self.left[rows[block]], self.right[cols[block]])
            if self.left_offset is not None:
                scores[block] += self.left_offset[rows[block]]
            if self.right_offset is not None:
                scores[block] += self.right_offset[cols[block]]

        run_blocks(work, len(rows), self.left.shape[1], 1 << 17)
        return scores
