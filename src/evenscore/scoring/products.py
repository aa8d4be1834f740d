"""Scores of embeddings, computed where they are needed: a matrix, the pairs of a list, or a side of a norm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.norms.sides import Rows
from evenscore.norms.threads import in_parallel
from evenscore.sources.bilinear import Bilinear
from evenscore.tables.ids import positions
from evenscore.tables.score_matrix import ScoreMatrix
from evenscore.tables.trial_list import TrialList

__all__ = ["cohort_reader", "raw_scores", "same_scores"]


def raw_scores(scores: Bilinear, trials: TrialList | None) -> ScoreMatrix | TrialList:
    """Return the scores of every pair, or of the listed pairs only, without the matrix of all of them."""
    if trials is None:
        return scores.matrix()
    from evenscore.scoring.pair_kernel import pair_products

    row = positions(scores.enroll_ids, trials.enroll_ids, "enrolment", "the embeddings")[trials.enroll_index]
    column = positions(scores.test_ids, trials.test_ids, "test", "the embeddings")[trials.test_index]
    left, right = (np.ascontiguousarray(side, dtype=scores.dtype) for side in (scores.left, scores.right))
    out = np.zeros(len(trials), dtype=scores.dtype)
    if scores.dim:
        in_parallel(
            lambda start, stop: pair_products(left, right, row, column, start, stop, out), len(trials), scores.dim
        )
    out += (scores.left_offset[row] + scores.right_offset[column]).astype(out.dtype)
    return trials.with_scores(out)


def cohort_reader(scores: Bilinear, *, of: str) -> Callable[[Rows], npt.NDArray[Any]]:
    """Return a reader of cohort scores: a row for each enrolment (or test), a column for each cohort member.

    What it gives is overwritten by its next call: a new array each time would cost as much as the product.
    """
    if of == "enroll":
        left, right = (scores.left, scores.left_offset), (scores.right, scores.right_offset)
    else:
        left, right = (scores.right, scores.right_offset), (scores.left, scores.left_offset)
    rows_of, row_offset = left
    columns_of, column_offset = right
    kind = scores.dtype
    has_offset = bool(row_offset.any() or column_offset.any())
    buffer = np.empty(0, dtype=kind)

    def read(rows: Rows) -> npt.NDArray[Any]:
        nonlocal buffer
        vectors = rows_of[rows]
        size = len(vectors) * len(columns_of)
        if buffer.size < size:
            buffer = np.empty(size, dtype=kind)
        X = buffer[:size].reshape(len(vectors), len(columns_of))
        np.matmul(vectors, columns_of.T, out=X)
        if has_offset:
            X += row_offset[rows].astype(kind)[:, None]
            X += column_offset.astype(kind)
        return X

    return read


def same_scores(enroll: Bilinear, test: Bilinear) -> bool:
    """Tell whether enrolments against the cohort and the cohort against the tests are the same numbers, transposed."""
    pairs = (
        (enroll.left, test.right),
        (enroll.right, test.left),
        (enroll.left_offset, test.right_offset),
        (enroll.right_offset, test.left_offset),
    )
    return all(a is b or (a.shape == b.shape and np.array_equal(a, b)) for a, b in pairs)
