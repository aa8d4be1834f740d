"""Scores that are a bilinear form of embeddings: a matrix of scores that need not exist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.compiled import few
from evenscore.errors import InputError
from evenscore.sources.chunks import each_chunk, sum_of_chunks
from evenscore.sources.computed import ComputedScores, ComputedTiles, Places
from evenscore.tables.arrays import as_scores, check_vectors, frozen, hashed, no_score, usable
from evenscore.tables.axis import Axis, as_axis
from evenscore.tables.ids import IdsLike
from evenscore.threads import in_parallel, product

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Bilinear"]

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Bilinear(ComputedScores):
    """Scores of K enrolments against L tests, given by vectors and offsets instead of a matrix.

    s_ij = left_i . right_j + left_offset_i + right_offset_j        (B1)

    Dot products, cosines and PLDA log-likelihood ratios all have this form; `DotProduct`, `Cosine` and `PLDA` make it
    from embeddings. Sums that training and normalization need take O((K + L) d^2) operations, so K x L scores are
    formed only where somebody asks for them.

    Parameters
    ----------
    left, right
        K x d and L x d vectors, float32 or float64.
    enroll_ids, test_ids
        Ids of the K enrolments and of the L tests, or axes, which may know their speakers.
    left_offset, right_offset
        What each enrolment and each test adds to its scores, nothing by default.

    Examples
    --------
    >>> import numpy as np
    >>> scores = Bilinear(
    ...     left=[[1.0, 0.0], [0.5, 2.0]],
    ...     right=[[1.0, 1.0]],
    ...     enroll_ids=["e1", "e2"],
    ...     test_ids=["t1"],
    ...     left_offset=[0.0, 10.0],
    ... )
    >>> scores.in_memory().scores
    array([[ 1. ],
           [12.5]])
    >>> scores.weighted_columns(np.array([[0.5, 0.5]]))
    array([[6.75]])
    """

    left: Float[Array, "k d"]
    right: Float[Array, "l d"]
    enroll_axis: Axis
    test_axis: Axis
    left_offset: Float[Array, " k"]
    right_offset: Float[Array, " l"]

    def __init__(
        self,
        *,
        left: npt.ArrayLike,
        right: npt.ArrayLike,
        enroll_ids: IdsLike | Axis,
        test_ids: IdsLike | Axis,
        left_offset: npt.ArrayLike | None = None,
        right_offset: npt.ArrayLike | None = None,
    ) -> None:
        rows = frozen(as_scores(left, "left", ndim=2))
        columns = rows if right is left else frozen(as_scores(right, "right", ndim=2))  # one array stays one
        if rows.shape[1] != columns.shape[1]:
            raise InputError(
                f"enrolments have {rows.shape[1]} dimensions, but tests have {columns.shape[1]}; "
                "both must come from the same extractor"
            )
        enroll_axis = as_axis(enroll_ids, "enroll_ids", len(rows))
        test_axis = as_axis(test_ids, "test_ids", len(columns))
        check_vectors(rows, enroll_axis.ids)
        if columns is not rows:
            check_vectors(columns, test_axis.ids)
        for name, value in {
            "left": rows,
            "right": columns,
            "enroll_axis": enroll_axis,
            "test_axis": test_axis,
            "left_offset": _offset(left_offset, "left_offset", len(rows)),
            "right_offset": _offset(right_offset, "right_offset", len(columns)),
        }.items():
            object.__setattr__(self, name, value)

    @property
    def dim(self) -> int:
        """Number of components of the vectors."""
        return int(self.left.shape[1])

    @property
    def source(self) -> Products:  # type: ignore[override]
        """What makes tiles of scores."""
        return Products(self.without_ids)

    def take(self, rows: Any = None, columns: Any = None) -> Bilinear:
        """Return the scores of some enrolments and tests, at these positions; None takes all."""
        row, column = (slice(None) if at is None else at for at in (rows, columns))
        return Bilinear(
            left=self.left[row],
            right=self.right[column],
            enroll_ids=self.enroll_axis.take(row),
            test_ids=self.test_axis.take(column),
            left_offset=self.left_offset[row],
            right_offset=self.right_offset[column],
        )

    def block(self, rows: Places = slice(None), columns: Places = slice(None)) -> npt.NDArray[Any]:
        """Return the scores of some enrolments against some tests, given by slices or positions."""
        scores = product(self.left[rows], self.right[columns].T)
        if self.left_offset.any():
            scores += self.left_offset[rows].astype(scores.dtype)[:, None]
        if self.right_offset.any():
            scores += self.right_offset[columns].astype(scores.dtype)
        return scores

    def pairs(self, rows: npt.NDArray[np.integer], columns: npt.NDArray[np.integer]) -> npt.NDArray[Any]:
        """Return the scores of listed pairs of an enrolment and a test, given by positions."""
        left, right = self.left, self.right
        out = np.empty(len(rows), dtype=self.dtype)
        if few(len(rows), self.dim):
            out[...] = np.einsum("nd,nd->n", left[rows].astype(np.float64), right[columns].astype(np.float64))
            out += self.left_offset[rows] + self.right_offset[columns]
            return out
        from evenscore.sources.kernels import score_pairs

        left, right = (np.ascontiguousarray(side, dtype=self.dtype) for side in (left, right))
        offsets = np.ascontiguousarray(self.left_offset), np.ascontiguousarray(self.right_offset)
        places = rows.astype(np.int64, copy=False), columns.astype(np.int64, copy=False)
        pairs = (left, right, *offsets, *places)
        in_parallel(lambda start, stop: score_pairs(*pairs, start, stop, out), len(rows), self.dim)
        return out

    def weighted_rows(self, weights: Float[Array, "h l"]) -> Float[Array, "h k"]:
        """Return, for each enrolment, weighted sums of its scores: sum_j weights[h, j] s_ij.

        The tests fold into one vector per sum first, so the cost does not depend on the number of scores.
        """
        return _weighted(weights, self.right, self.right_offset, self.left, self.left_offset)

    def weighted_columns(self, weights: Float[Array, "h k"]) -> Float[Array, "h l"]:
        """Return, for each test, weighted sums of its scores: sum_i weights[h, i] s_ij."""
        return _weighted(weights, self.left, self.left_offset, self.right, self.right_offset)

    def numbers_identity(self) -> str:
        """Return a hash of vectors and offsets."""
        return hashed(self.left, self.right, self.left_offset, self.right_offset)

    def __repr__(self) -> str:
        return f"Bilinear({self.shape[0]} enrolments x {self.shape[1]} tests, d = {self.dim}, {self.dtype})"


@dataclass(frozen=True, eq=False)
class Products(ComputedTiles):
    """Tiles of bilinear scores, whose sums need no tiles."""

    scores: Bilinear

    def is_transposed(self, other: Products) -> bool:
        """Tell whether the rows of these scores are the columns of others."""
        one, two = self.scores, other.scores
        pairs = ((one.left, two.right), (one.right, two.left))
        offsets = ((one.left_offset, two.right_offset), (one.right_offset, two.left_offset))
        if self.own is not None or other.own is not None:
            return False
        return all(a is b or np.array_equal(a, b) for a, b in (*pairs, *offsets))


def _offset(values: npt.ArrayLike | None, what: str, length: int) -> npt.NDArray[np.float64]:
    if values is None:
        return frozen(np.broadcast_to(0.0, length))
    offset = as_scores(values, what, ndim=1).astype(np.float64)
    if len(offset) != length:
        raise InputError(f"{what} has {len(offset)} entries, but there are {length} vectors")
    if not usable(offset).all():
        raise InputError(f"{what} has an entry that {no_score(offset[int(np.argmin(usable(offset)))])}")
    return frozen(offset)


def _weighted(
    weights: Float[Array, "h l"],
    folded: Float[Array, "l d"],
    folded_offset: Float[Array, " l"],
    kept: Float[Array, "k d"],
    kept_offset: Float[Array, " k"],
) -> Float[Array, "h k"]:
    """Fold one side of the scores into a vector per row of weights, and multiply it with the other side."""
    weights = np.asarray(weights, dtype=np.float64)
    vectors = sum_of_chunks(folded, (len(weights), folded.shape[1]), lambda part, chunk: weights[:, part] @ chunk)
    sums = np.outer(weights.sum(axis=1), kept_offset) + (weights @ folded_offset)[:, None]

    def add(part: slice, chunk: npt.NDArray[np.float64]) -> None:
        sums[:, part] += vectors @ chunk.T

    each_chunk(kept, add)
    return sums
