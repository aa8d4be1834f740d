"""The passes over the scores, compiled: one read of the matrix gives every sum that training needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenscore.compiled import inner, loop

__all__ = ["add_targets", "sum_labelled", "sum_rows"]

_TILE = 4096  # columns whose running sums stay in the cache


# The last digit must not change from run to run, nor between the process that compiles and one that loads what was
# compiled. Where one loop adds up and also writes, the compiler picks the order of the sum when it runs, by where the
# arrays lie in memory; and numba's own parallel loops are optimized twice, the second time for the cache only. So sums
# of rows and of columns have loops of their own (the second finds the scores in the cache), and threads are ours.


@loop("F2 float int int -> D1 D1", reorder=True)
def sum_rows(scores: Any, center: float, first: int, last: int, rows: Any, columns: Any) -> float:
    """Add (score - center) of the rows from first to last to the sums of rows (K) and of columns (L).

    Returns the sum of squares.
    """
    squares = 0.0
    for left in range(0, scores.shape[1], _TILE):
        right = min(left + _TILE, scores.shape[1])
        for top in range(first, last, 8):
            bottom = min(top + 8, last)
            if bottom == top + 8:
                _add_eight_rows(scores, top, left, right, center, columns)
            for i in range(top, bottom):
                total, square = 0.0, 0.0
                for j in range(left, right):
                    value = np.float64(scores[i, j]) - center
                    total += value
                    square += value * value
                rows[i] += total
                squares += square
                if bottom < top + 8:
                    _add_row(scores, i, left, right, center, columns)
    return squares


# Nothing may be reordered in the next two, and `inner` says so, or they inherit it: of (a - center) + (b - center)
# the compiler would make a + b - 2 * center, which loses the digits that centring keeps.


@inner
def _add_row(scores: Any, i: int, left: int, right: int, center: float, columns: Any) -> None:
    """Add (score - center) of a row to the sums of columns."""
    for j in range(left, right):
        columns[j] += np.float64(scores[i, j]) - center


@inner
def _add_eight_rows(scores: Any, i: int, left: int, right: int, center: float, columns: Any) -> None:
    """Add (score - center) of eight rows to the sums of columns, which are so loaded and stored less often."""
    for j in range(left, right):
        a, b = np.float64(scores[i, j]) - center, np.float64(scores[i + 1, j]) - center
        c, d = np.float64(scores[i + 2, j]) - center, np.float64(scores[i + 3, j]) - center
        e, f = np.float64(scores[i + 4, j]) - center, np.float64(scores[i + 5, j]) - center
        g, h = np.float64(scores[i + 6, j]) - center, np.float64(scores[i + 7, j]) - center
        columns[j] += ((a + b) + (c + d)) + ((e + f) + (g + h))


@loop("F2 float I1 I1 I1 I1 -> D1 D1")
def add_targets(
    scores: Any, center: float, row_order: Any, row_bounds: Any, column_order: Any, column_bounds: Any, rows: Any,
    columns: Any,
) -> float:  # fmt: skip
    """Add (score - center) of same-speaker pairs to sums of rows (K) and columns (L); return the sum of squares.

    The rows of speaker g are row_order[row_bounds[g]:row_bounds[g + 1]], its columns likewise.
    """
    squares = 0.0
    for g in range(len(row_bounds) - 1):
        for a in range(row_bounds[g], row_bounds[g + 1]):
            i = row_order[a]
            for b in range(column_bounds[g], column_bounds[g + 1]):
                j = column_order[b]
                value = np.float64(scores[i, j]) - center
                rows[i] += value
                columns[j] += value
                squares += value * value
    return squares


@loop("F2 K2 float -> D2 D2 D1 D2 D2")
def sum_labelled(
    scores: Any, key: Any, center: float, rows: Any, columns: Any, squares: Any, row_counts: Any, column_counts: Any
) -> None:
    """Add up each class (2 x K, 2 x L, 2) by an explicit key; NaN and labels below 0 are skipped."""
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            h = key[i, j]
            value = np.float64(scores[i, j]) - center
            if h >= 0 and value == value:  # not NaN
                rows[h, i] += value
                columns[h, j] += value
                squares[h] += value * value
                row_counts[h, i] += 1
                column_counts[h, j] += 1
