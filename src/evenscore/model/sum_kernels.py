"""The passes over the scores, compiled: one read of the matrix gives every sum that training needs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

__all__ = ["add_targets", "sum_all", "sum_labelled"]

_TILE = 8192  # columns whose running sums stay in the cache
_REORDER = {"reassoc", "nsz", "contract"}  # sums may be reordered, but NaN and infinity keep their meaning


@njit(parallel=True, fastmath=_REORDER, cache=True)
def sum_all(scores: Any, center: float, rows: Any, columns: Any) -> float:
    """Add (score - center) to the sums of rows (K) and of columns (parts x L); return the sum of squares."""
    n_rows, n_columns = scores.shape
    n_parts = columns.shape[0]
    squares = np.zeros(n_parts)
    for part in prange(n_parts):
        first, last = part * n_rows // n_parts, (part + 1) * n_rows // n_parts
        for left in range(0, n_columns, _TILE):
            right = min(left + _TILE, n_columns)
            running = np.zeros(right - left)
            for i in range(first, last):
                total = 0.0
                square = 0.0
                for j in range(right - left):
                    value = np.float64(scores[i, left + j]) - center
                    total += value
                    square += value * value
                    running[j] += value
                rows[i] += total
                squares[part] += square
            columns[part, left:right] += running
    return squares.sum()


@njit(fastmath=_REORDER, cache=True)
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
