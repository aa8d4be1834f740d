"""The passes over the scores, compiled: one read of the matrix gives every sum that training needs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

__all__ = ["add_targets", "sum_all", "sum_labelled"]

_TILE = 4096  # columns whose running sums stay in the cache
_REORDER = {"reassoc", "nsz", "contract"}  # sums may be reordered, but NaN and infinity keep their meaning


# Where one loop adds up and also writes, the compiler picks the order of the sum when it runs, by where the arrays lie
# in memory, and the last digit changes from run to run. So sums of rows and of columns have loops of their own; the
# second finds the scores in the cache.


@njit(parallel=True, fastmath=_REORDER, cache=True)
def sum_all(scores: Any, center: float, rows: Any, columns: Any) -> float:
    """Add (score - center) to the sums of rows (K) and of columns (parts x L); return the sum of squares."""
    n_rows, n_columns = scores.shape
    n_parts = columns.shape[0]
    squares = np.zeros(n_parts)
    for part in prange(n_parts):
        first, last = part * n_rows // n_parts, (part + 1) * n_rows // n_parts
        in_fours = last - (last - first) % 4
        for left in range(0, n_columns, _TILE):
            right = min(left + _TILE, n_columns)
            for i in range(first, in_fours, 4):  # four rows at a time: running sums are loaded and stored less often
                total0, total1, total2, total3, square = 0.0, 0.0, 0.0, 0.0, 0.0
                for j in range(left, right):
                    a, b = np.float64(scores[i, j]) - center, np.float64(scores[i + 1, j]) - center
                    c, d = np.float64(scores[i + 2, j]) - center, np.float64(scores[i + 3, j]) - center
                    total0 += a
                    total1 += b
                    total2 += c
                    total3 += d
                    square += (a * a + b * b) + (c * c + d * d)
                rows[i] += total0
                rows[i + 1] += total1
                rows[i + 2] += total2
                rows[i + 3] += total3
                squares[part] += square
                _add_four_rows(scores, i, left, right, center, columns, part)
            for i in range(in_fours, last):
                total, square = 0.0, 0.0
                for j in range(left, right):
                    value = np.float64(scores[i, j]) - center
                    total += value
                    square += value * value
                rows[i] += total
                squares[part] += square
                _add_row(scores, i, left, right, center, columns, part)
    return squares.sum()


# Nothing may be reordered in the next two, and they must say so, or they inherit it: from (a - center) + (b - center)
# the compiler would make a + b - 2 * center, which loses the digits that centring keeps.


@njit(fastmath=False, cache=True)
def _add_row(scores: Any, i: int, left: int, right: int, center: float, columns: Any, part: int) -> None:
    """Add (score - center) of a row to the sums of columns."""
    for j in range(left, right):
        columns[part, j] += np.float64(scores[i, j]) - center


@njit(fastmath=False, cache=True)
def _add_four_rows(scores: Any, i: int, left: int, right: int, center: float, columns: Any, part: int) -> None:
    """Add (score - center) of four rows to the sums of columns."""
    for j in range(left, right):
        a, b = np.float64(scores[i, j]) - center, np.float64(scores[i + 1, j]) - center
        c, d = np.float64(scores[i + 2, j]) - center, np.float64(scores[i + 3, j]) - center
        columns[part, j] += (a + b) + (c + d)


@njit(cache=True)
def add_targets(
    scores: Any,
    center: float,
    row_order: Any,
    row_bounds: Any,
    column_order: Any,
    column_bounds: Any,
    rows: Any,
    columns: Any,
) -> float:
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


@njit(cache=True)
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
