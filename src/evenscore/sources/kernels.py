"""Passes over many vectors, compiled, in float64: lengths, scores of listed pairs, scores of equal speakers."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenscore.compiled import loop

__all__ = ["add_same_speaker_pairs", "normalize_into", "score_pairs"]


@loop("F2 F2 D1 D1 I1 I1 I1 I1 I1 int int -> D1 D1 D1", reorder=True)
def add_same_speaker_pairs(
    left: Any,
    right: Any,
    left_offset: Any,
    right_offset: Any,
    row_order: Any,
    row_bounds: Any,
    column_order: Any,
    column_bounds: Any,
    speakers: Any,
    start: int,
    stop: int,
    rows: Any,
    columns: Any,
    squares: Any,
) -> None:
    """Add the scores of the pairs of these speakers to the sums of rows, of columns, and of squares by speaker.

    The rows of speaker g are row_order[row_bounds[g]:row_bounds[g + 1]], its columns likewise. No two speakers share
    a row or a column, so threads do not meet.
    """
    for n in range(start, stop):
        g = speakers[n]
        for a in range(row_bounds[g], row_bounds[g + 1]):
            i = row_order[a]
            for b in range(column_bounds[g], column_bounds[g + 1]):
                j = column_order[b]
                score = 0.0
                for k in range(left.shape[1]):
                    score += np.float64(left[i, k]) * np.float64(right[j, k])
                score += left_offset[i] + right_offset[j]
                rows[i] += score
                columns[j] += score
                squares[n] += score * score


@loop("F2 F2 D1 D1 I1 I1 int int -> F1", reorder=True)
def score_pairs(
    left: Any, right: Any, left_offset: Any, right_offset: Any, rows: Any, columns: Any, start: int, stop: int, out: Any
) -> None:
    """Set out to the scores of the listed pairs."""
    for n in range(start, stop):
        i, j = rows[n], columns[n]
        score = left_offset[i] + right_offset[j]
        for k in range(left.shape[1]):
            score += np.float64(left[i, k]) * np.float64(right[j, k])
        out[n] = score


@loop("F2 int int -> D1 F2", reorder=True)
def normalize_into(vectors: Any, start: int, stop: int, lengths: Any, out: Any) -> None:
    """Set lengths to those of the vectors, and out to the vectors at length 1; a vector of zeros stays."""
    for i in range(start, stop):
        square = 0.0
        for k in range(vectors.shape[1]):
            square += np.float64(vectors[i, k]) * np.float64(vectors[i, k])
        lengths[i] = np.sqrt(square)
        scale = 1 / lengths[i] if square > 0 else 0.0
        for k in range(vectors.shape[1]):
            out[i, k] = vectors[i, k] * scale
