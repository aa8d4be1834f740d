"""Coordinates of pairs for a cohort of embeddings, whose scores against itself are never formed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.evidence.pair_space import PairSpace, leading, made, rounding
from evenscore.model.bilinear_cohort import same_utterances
from evenscore.sources.bilinear import Bilinear
from evenscore.tables.ids import Ids
from evenscore.threads import one_thread_if_small

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["pair_space_of_vectors"]

Array = np.ndarray
_PIECE = 1 << 22  # scores that are formed at a time, for the Gram matrix of a small cohort


def pair_space_of_vectors(cohort: Bilinear, test_speakers: Ids | npt.NDArray[Any] | None, rank: int = 128) -> PairSpace:
    """Factorize the scores of a cohort of embeddings, as `pair_space` does with the matrix of them: O((N + M) d r).

    Centred rows and columns lose all offsets, so that R is a product of vectors of d + 2 numbers, less the pairs that
    are missing: those of an utterance with itself, if the same ids stand on both sides.

    Examples
    --------
    >>> from evenscore import Cosine, Embeddings
    >>> takes = Embeddings([f"c{n}" for n in range(30)], np.random.default_rng(0).normal(size=(30, 4)))
    >>> space = pair_space_of_vectors(Cosine().score(takes, takes), [f"s{n % 10}" for n in range(30)])
    >>> space.enroll_map.shape
    (30, 30)
    """
    left, right = cohort.left.astype(np.float64), cohort.right.astype(np.float64)
    rows, columns = same_utterances(cohort)
    own = np.einsum("nd,nd->n", left[rows], right[columns]) + cohort.left_offset[rows] + cohort.right_offset[columns]
    (n, m), (a, c) = cohort.shape, (cohort.left_offset, cohort.right_offset)
    row_sums = left @ right.sum(axis=0) + m * a + c.sum()
    column_sums = right @ left.sum(axis=0) + n * c + a.sum()
    total = row_sums.sum() - own.sum()
    row_counts, column_counts = np.full(n, float(m)), np.full(m, float(n))
    for sums, counts, at in ((row_sums, row_counts, rows), (column_sums, column_counts, columns)):
        sums[at] -= own
        counts[at] -= 1
    mean = float(total / max(row_counts.sum(), 1.0))
    row, column = (
        np.where(counts > 0, sums / np.maximum(counts, 1.0), mean)
        for sums, counts in ((row_sums, row_counts), (column_sums, column_counts))
    )
    p, q = a - row + mean, c - column
    R = _Centred(
        left=np.column_stack((left, p, np.ones(n))),
        right=np.column_stack((right, np.ones(m), q)),
        rows=rows,
        columns=columns,
        values=own - row[rows] - column[columns] + mean,
    )
    with one_thread_if_small(left, right):
        U, g, V = leading(R, rank, rounding(row, column, R.dtype))
    return made(U, g, V, column - mean, row - mean, test_speakers)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Centred:
    """The matrix left right', 0 at some pairs, whose values ``left_i . right_j`` are known."""

    left: Float[Array, "n d"]
    right: Float[Array, "m d"]
    rows: npt.NDArray[np.intp]
    columns: npt.NDArray[np.intp]
    values: Float[Array, " p"]

    dtype = np.dtype(np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.left), len(self.right)

    @property
    def T(self) -> _Centred:  # noqa: N802
        return _Centred(left=self.right, right=self.left, rows=self.columns, columns=self.rows, values=self.values)

    def __matmul__(self, X: Float[Array, "m r"]) -> Float[Array, "n r"]:
        product: Array = self.left @ (self.right.T @ X)
        product[self.rows] -= self.values[:, None] * X[self.columns]
        return product

    def gram(self) -> Float[Array, "n n"]:
        """Return R R', from some columns of R at a time."""
        n, m = self.shape
        total = np.zeros((n, n))
        step = max(1, _PIECE // max(n, 1))
        for first in range(0, m, step):
            part = self.left @ self.right[first : first + step].T
            here = np.flatnonzero((self.columns >= first) & (self.columns < first + step))
            part[self.rows[here], self.columns[here] - first] = 0.0
            total += part @ part.T
        return total
