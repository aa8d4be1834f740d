"""Scores of embeddings, computed where they are needed: the pairs of a list, or a side of a norm."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.norms.sides import Codes, Rows
from evenscore.sources.bilinear import Bilinear
from evenscore.tables.rescore import rescored
from evenscore.tables.score_matrix import ScoreMatrix
from evenscore.tables.trial_list import TrialList

__all__ = ["Vectors", "raw_scores", "score_reader"]


@dataclass(frozen=True, eq=False)
class Vectors:
    """One side of bilinear scores: s = vector . other vector + offset + other offset."""

    vectors: npt.NDArray[Any]
    offset: npt.NDArray[np.float64]

    @classmethod
    def left(cls, scores: Bilinear) -> Vectors:
        """Return the enrolments' side."""
        return cls(scores.left, scores.left_offset)

    @classmethod
    def right(cls, scores: Bilinear) -> Vectors:
        """Return the tests' side."""
        return cls(scores.right, scores.right_offset)

    def same(self, other: Vectors) -> bool:
        """Tell whether both are the same numbers."""
        return np.array_equal(self.vectors, other.vectors) and np.array_equal(self.offset, other.offset)


def raw_scores(scores: Bilinear, trials: TrialList | None, row: Codes, column: Codes) -> ScoreMatrix | TrialList:
    """Return the scores of every pair, or of the listed pairs only, without the matrix of all of them.

    ``row`` and ``column`` tell where the enrolments and tests of the list stand.
    """
    if trials is None:
        return scores.matrix()
    out = scores.pairs(row[trials.enroll_index], column[trials.test_index])
    return rescored(trials, out) if np.isfinite(out).all() else trials.with_scores(out)


def score_reader(
    elements: Vectors, cohort: Vectors, rows: Codes, tell: Callable[[int], None] | None = None
) -> Callable[[Rows], npt.NDArray[Any]]:
    """Return a reader of cohort scores: a row for each of these elements, a column for each cohort member.

    It tells how many rows it has made, each time.

    What it gives is overwritten by the next call of the same thread: a new array each time would cost as much as the
    product.
    """
    kind = np.result_type(elements.vectors, cohort.vectors)
    has_offset = bool(elements.offset.any() or cohort.offset.any())
    in_order = np.array_equal(rows, np.arange(len(elements.vectors)))
    kept = threading.local()

    def read(which: Rows) -> npt.NDArray[Any]:
        at = which if in_order else rows[which]
        vectors = elements.vectors[at]
        size = len(vectors) * len(cohort.vectors)
        if getattr(kept, "buffer", None) is None or kept.buffer.size < size:
            kept.buffer = np.empty(size, dtype=kind)
        X = kept.buffer[:size].reshape(len(vectors), len(cohort.vectors))
        np.matmul(vectors, cohort.vectors.T, out=X)
        if has_offset:
            X += elements.offset[at].astype(kind)[:, None]
            X += cohort.offset.astype(kind)
        if tell is not None:
            tell(len(vectors))
        return X

    return read
