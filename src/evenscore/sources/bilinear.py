"""Scores that are a bilinear form of embeddings: a matrix of scores that need not exist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.compiled import few
from evenscore.errors import InputError
from evenscore.model.sums import ClassSums
from evenscore.tables import Labels, ScoreMatrix, TrialList
from evenscore.tables.arrays import as_scores, frozen
from evenscore.tables.ids import Ids, IdsLike, as_ids, positions
from evenscore.threads import in_parallel

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Bilinear", "Places"]

Array = np.ndarray
Places = slice | npt.NDArray[np.intp]  #: some rows or columns


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Bilinear:
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
        Ids of the K enrolments and of the L tests.
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
    >>> scores.matrix().scores
    array([[ 1. ],
           [12.5]])
    >>> scores.weighted_columns(np.array([[0.5, 0.5]]))
    array([[6.75]])
    """

    left: Float[Array, "k d"]
    right: Float[Array, "l d"]
    enroll_ids: Ids
    test_ids: Ids
    left_offset: Float[Array, " k"]
    right_offset: Float[Array, " l"]

    def __init__(
        self,
        *,
        left: npt.ArrayLike,
        right: npt.ArrayLike,
        enroll_ids: IdsLike,
        test_ids: IdsLike,
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
        for name, value in {
            "left": rows,
            "right": columns,
            "enroll_ids": as_ids(enroll_ids, "enroll_ids", len(rows)),
            "test_ids": as_ids(test_ids, "test_ids", len(columns)),
            "left_offset": _offset(left_offset, "left_offset", len(rows)),
            "right_offset": _offset(right_offset, "right_offset", len(columns)),
        }.items():
            object.__setattr__(self, name, value)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of enrolments and of tests."""
        return len(self.left), len(self.right)

    @property
    def dim(self) -> int:
        """Number of components of the vectors."""
        return int(self.left.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the scores: float32 if both sides are, else float64."""
        return np.result_type(self.left, self.right)

    def block(self, rows: Places = slice(None), columns: Places = slice(None)) -> npt.NDArray[Any]:
        """Return the scores of some enrolments against some tests, given by slices or positions."""
        scores: npt.NDArray[Any] = self.left[rows] @ self.right[columns].T
        if self.left_offset.any():
            scores += self.left_offset[rows].astype(scores.dtype)[:, None]
        if self.right_offset.any():
            scores += self.right_offset[columns].astype(scores.dtype)
        return scores

    def matrix(self) -> ScoreMatrix:
        """Return all scores."""
        return ScoreMatrix(self.block(), self.enroll_ids, self.test_ids)

    def score_trials(self, trials: TrialList) -> TrialList:
        """Return the trials with their scores; enrolments and tests are found by id."""
        rows = positions(self.enroll_ids, trials.enroll_ids, "enrolment", "the embeddings")[trials.enroll_index]
        columns = positions(self.test_ids, trials.test_ids, "test", "the embeddings")[trials.test_index]
        return trials.with_scores(self.pairs(rows, columns))

    def pairs(self, rows: npt.NDArray[np.integer], columns: npt.NDArray[np.integer]) -> npt.NDArray[Any]:
        """Return the scores of listed pairs of an enrolment and a test, given by positions."""
        left, right = self.left, self.right
        out = np.empty(len(rows), dtype=self.dtype)
        if few(len(rows), self.dim):
            out[...] = np.einsum("nd,nd->n", left[rows].astype(np.float64), right[columns].astype(np.float64))
            out += self.left_offset[rows] + self.right_offset[columns]
            return out
        from evenscore.sources.pair_kernels import score_pairs

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

    def class_sums(self, labels: Labels) -> ClassSums:
        """Return the sums that training needs, per class, row and column, in O((K + L) d^2) operations.

        Labels must follow from speakers, all of them known.
        """
        from evenscore.sources.class_sums import class_sums

        return class_sums(self, labels)

    def __repr__(self) -> str:
        return f"Bilinear({self.shape[0]} enrolments x {self.shape[1]} tests, d = {self.dim}, {self.dtype})"


def _offset(values: npt.ArrayLike | None, what: str, length: int) -> npt.NDArray[np.float64]:
    if values is None:
        return frozen(np.broadcast_to(0.0, length))
    offset = as_scores(values, what, ndim=1).astype(np.float64)
    if len(offset) != length:
        raise InputError(f"{what} has {len(offset)} entries, but there are {length} vectors")
    return frozen(offset)


def _weighted(
    weights: Float[Array, "h l"],
    folded: Float[Array, "l d"],
    folded_offset: Float[Array, " l"],
    kept: Float[Array, "k d"],
    kept_offset: Float[Array, " k"],
) -> Float[Array, "h k"]:
    """Fold one side of the scores into a vector per row of weights, and multiply it with the other side."""
    from evenscore.sources.chunks import float64_chunks

    weights = np.asarray(weights, dtype=np.float64)
    vectors = np.zeros((len(weights), folded.shape[1]))
    for part, chunk in float64_chunks(folded):
        vectors += weights[:, part] @ chunk
    sums = np.outer(weights.sum(axis=1), kept_offset) + (weights @ folded_offset)[:, None]
    for part, chunk in float64_chunks(kept):
        sums[:, part] += vectors @ chunk.T
    return sums
