"""Compiled loops for means and standard deviations of whole cohorts. Import this only when used."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from evenscore.norms.kernel_summary import FAST

__all__ = ["column_moments", "moments_without", "row_moments"]

# A tile of columns that stays in the nearest cache, and the rows that are summed up at a time.
_TILE, _ROWS = 256, 64
# Taking a group out of the sums loses digits when it held nearly all of the spread; then the rest is summed anew.
_SPREAD_LEFT = 1e-6


@njit(cache=True, nogil=True, fastmath=FAST)
def row_moments(
    X: Any, shift: Any, weight: Any, ddof: int, start: int, stop: int, count: Any, mean: Any, std: Any
) -> None:
    """Count, mean and standard deviation of the rows of X, or of (X - shift) * weight by column; NaN is skipped."""
    for i in range(start, stop):
        number, first = 0, 0.0
        for j in range(X.shape[1]):
            x = np.float64(X[i, j])
            if shift is not None:
                x = (x - shift[j]) * weight[j]
            if x == x:
                first = x
                break
        total = 0.0
        for j in range(X.shape[1]):
            x = np.float64(X[i, j])
            if shift is not None:
                x = (x - shift[j]) * weight[j]
            there = x == x
            total += x - first if there else 0.0
            number += there
        center = first + total / number if number else np.nan
        squares = 0.0
        for j in range(X.shape[1]):
            x = np.float64(X[i, j])
            if shift is not None:
                x = (x - shift[j]) * weight[j]
            d = x - center if x == x else 0.0
            squares += d * d
        count[i] = number
        mean[i] = center
        std[i] = np.sqrt(squares / (number - ddof)) if number > ddof else 0.0


@njit(cache=True, nogil=True, fastmath=FAST)
def column_moments(
    X: Any, shift: Any, weight: Any, ddof: int, start: int, stop: int, count: Any, mean: Any, std: Any
) -> None:
    """Do the same for the columns of X; shift and weight are by row. One pass, in tiles of columns."""
    number, center, squares = np.empty(_TILE), np.empty(_TILE), np.empty(_TILE)
    first, block_number, block_total, block_squares = np.empty(_TILE), np.empty(_TILE), np.empty(_TILE), np.empty(_TILE)
    for left in range(start, stop, _TILE):
        width = min(_TILE, stop - left)
        number[:], center[:], squares[:] = 0.0, 0.0, 0.0
        for j in range(width):
            x = np.float64(X[0, left + j]) if X.shape[0] else 0.0
            if shift is not None:
                x = (x - shift[0]) * weight[0]
            first[j] = x if x == x else 0.0
        for top in range(0, X.shape[0], _ROWS):
            bottom = min(top + _ROWS, X.shape[0])
            block_number[:], block_total[:], block_squares[:] = 0.0, 0.0, 0.0
            for i in range(top, bottom):
                for j in range(width):
                    x = np.float64(X[i, left + j])
                    if shift is not None:
                        x = (x - shift[i]) * weight[i]
                    there = x == x
                    block_total[j] += x - first[j] if there else 0.0
                    block_number[j] += 1.0 if there else 0.0
            for j in range(width):
                block_total[j] = first[j] + block_total[j] / max(block_number[j], 1.0)  # now the block's mean
            for i in range(top, bottom):
                for j in range(width):
                    x = np.float64(X[i, left + j])
                    if shift is not None:
                        x = (x - shift[i]) * weight[i]
                    d = x - block_total[j] if x == x else 0.0
                    block_squares[j] += d * d
            for j in range(width):  # join block and rows so far (Chan, Golub, LeVeque)
                both = number[j] + block_number[j]
                if block_number[j] > 0:
                    d = block_total[j] - center[j] if number[j] > 0 else 0.0
                    center[j] = center[j] + d * block_number[j] / both if number[j] > 0 else block_total[j]
                    squares[j] += block_squares[j] + d * d * number[j] * block_number[j] / both
                number[j] = both
        for j in range(width):
            count[left + j] = np.int64(number[j])
            mean[left + j] = center[j] if number[j] > 0 else np.nan
            std[left + j] = np.sqrt(squares[j] / (number[j] - ddof)) if number[j] > ddof else 0.0


@njit(cache=True, nogil=True, fastmath=FAST)
def _row_without(X: Any, i: int, code: Any, first: int, second: int) -> tuple[int, float, float]:
    """Count, mean and sum of squares of row i without two groups of columns (-1: none)."""
    number, total, reference, found = 0, 0.0, 0.0, False
    for j in range(X.shape[1]):
        x = np.float64(X[i, j])
        out = code[j] >= 0 and (code[j] == first or code[j] == second)
        if x == x and not out:
            if not found:
                reference, found = x, True
            total += x - reference
            number += 1
    mean = reference + total / number if number else np.nan
    squares = 0.0
    for j in range(X.shape[1]):
        x = np.float64(X[i, j])
        out = code[j] >= 0 and (code[j] == first or code[j] == second)
        if x == x and not out:
            squares += (x - mean) * (x - mean)
    return number, mean, squares


@njit(cache=True, nogil=True)
def _group_sums(X: Any, i: int, center: float, group: int, member_start: Any, member: Any) -> tuple[int, float, float]:
    number, total, squares = 0, 0.0, 0.0
    if group >= 0:
        for at in range(member_start[group], member_start[group + 1]):
            d = np.float64(X[i, member[at]]) - center
            if d == d:
                number += 1
                total += d
                squares += d * d
    return number, total, squares


@njit(cache=True, nogil=True)
def moments_without(
    X: Any,
    code: Any,
    member_start: Any,
    member: Any,
    first: Any,
    second: Any,
    needed: Any,
    ddof: int,
    start: int,
    stop: int,
    count: Any,
    mean: Any,
    std: Any,
) -> None:
    """Count, mean and standard deviation of each row without each pair of groups, where they are needed.

    ``code`` is the group of each column, ``member[member_start[g]:member_start[g + 1]]`` are the columns of group g,
    ``first[p]`` and ``second[p]`` the two groups that the p-th column of the result leaves out (-1: none).
    """
    for i in range(start, stop):
        number, center, squares = _row_without(X, i, code, -1, -1)
        for p in range(first.size):
            if not needed[i, p]:
                continue
            n1, s1, q1 = _group_sums(X, i, center, first[p], member_start, member)
            n2, s2, q2 = 0, 0.0, 0.0
            if second[p] != first[p]:
                n2, s2, q2 = _group_sums(X, i, center, second[p], member_start, member)
            left, middle, spread = number - n1 - n2, center, squares
            if left == 0:
                middle, spread = np.nan, 0.0
            elif n1 + n2 > 0:
                offset = -(s1 + s2)
                middle = center + offset / left
                spread = squares - q1 - q2 - offset * offset / left
                if spread < _SPREAD_LEFT * squares:
                    left, middle, spread = _row_without(X, i, code, first[p], second[p])
            count[i, p] = left
            mean[i, p] = middle
            std[i, p] = np.sqrt(spread / (left - ddof)) if left > ddof else 0.0
