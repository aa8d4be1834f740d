"""Compiled loops for means and standard deviations of whole cohorts. Import this only when used."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenscore.compiled import inner, loop, reordering

__all__ = ["column_moments", "moments_without", "row_moments"]

# A tile of columns whose sums stay in the nearest cache, and that is wide enough to be read at the speed of memory.
_TILE = 512
# Taking a group out of the sums loses digits when it held nearly all of the spread; then the rest is summed anew.
_SPREAD_LEFT = 1e-6

# One pass suffices for mean and variance because deviations are taken from one of the values themselves: the square of
# its distance to the mean is at most n times the variance, so at most n units in the last place are lost.


@inner
def _finish(at: int, number: int, first: float, total: float, squares: float, ddof: int, found: Any) -> None:
    """Turn sums of deviations from ``first`` into count, mean and standard deviation."""
    count, mean, std = found
    count[at] = number
    mean[at] = first + total / number if number else np.nan
    std[at] = np.sqrt(max(squares - total * total / number, 0.0) / (number - ddof)) if number > ddof else 0.0


@loop("F2 D1 D1 int int int -> I1 D1 D1", reorder=True)
def row_moments(
    X: Any, shift: Any, weight: Any, ddof: int, start: int, stop: int, count: Any, mean: Any, std: Any
) -> None:
    """Count, mean and standard deviation of the rows of (X - shift) * weight by column; NaN is skipped."""
    for i in range(start, stop):
        first = 0.0
        for j in range(X.shape[1]):
            x = (np.float64(X[i, j]) - shift[j]) * weight[j]
            if x == x:
                first = x
                break
        number, total, squares = 0, 0.0, 0.0
        for j in range(X.shape[1]):
            d = (np.float64(X[i, j]) - shift[j]) * weight[j] - first
            there = d == d
            d = d if there else 0.0
            total += d
            squares += d * d
            number += there
        _finish(i, number, first, total, squares, ddof, (count, mean, std))


@loop("F2 D1 D1 int int int -> I1 D1 D1")
def column_moments(
    X: Any, shift: Any, weight: Any, ddof: int, start: int, stop: int, count: Any, mean: Any, std: Any
) -> None:
    """Do the same for the columns of X; shift and weight are by row. One pass, in tiles of columns."""
    first, number, total, squares = np.empty(_TILE), np.empty(_TILE), np.empty(_TILE), np.empty(_TILE)
    in_fours = X.shape[0] - X.shape[0] % 4
    for left in range(start, stop, _TILE):
        width = min(_TILE, stop - left)
        for j in range(width):
            number[j], total[j], squares[j], first[j] = 0.0, 0.0, 0.0, 0.0
            for i in range(X.shape[0]):
                x = (np.float64(X[i, left + j]) - shift[i]) * weight[i]
                if x == x:
                    first[j] = x
                    break
        for i in range(0, in_fours, 4):  # four rows at a time: the sums are loaded and stored less often
            s0, s1, s2, s3 = shift[i], shift[i + 1], shift[i + 2], shift[i + 3]
            w0, w1, w2, w3 = weight[i], weight[i + 1], weight[i + 2], weight[i + 3]
            for j in range(width):
                d0 = (np.float64(X[i, left + j]) - s0) * w0 - first[j]
                d1 = (np.float64(X[i + 1, left + j]) - s1) * w1 - first[j]
                d2 = (np.float64(X[i + 2, left + j]) - s2) * w2 - first[j]
                d3 = (np.float64(X[i + 3, left + j]) - s3) * w3 - first[j]
                n0, n1 = 1.0 if d0 == d0 else 0.0, 1.0 if d1 == d1 else 0.0
                n2, n3 = 1.0 if d2 == d2 else 0.0, 1.0 if d3 == d3 else 0.0
                d0, d1 = d0 if d0 == d0 else 0.0, d1 if d1 == d1 else 0.0
                d2, d3 = d2 if d2 == d2 else 0.0, d3 if d3 == d3 else 0.0
                number[j] += (n0 + n1) + (n2 + n3)
                total[j] += (d0 + d1) + (d2 + d3)
                squares[j] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)
        for i in range(in_fours, X.shape[0]):
            for j in range(width):
                d = (np.float64(X[i, left + j]) - shift[i]) * weight[i] - first[j]
                there = d == d
                d = d if there else 0.0
                number[j] += 1.0 if there else 0.0
                total[j] += d
                squares[j] += d * d
        for j in range(width):
            _finish(left + j, int(number[j]), first[j], total[j], squares[j], ddof, (count, mean, std))


@reordering
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


@inner
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


@loop("F2 I1 I1 I1 I1 I1 B2 int int int -> I2 D2 D2")
def moments_without(
    X: Any, code: Any, member_start: Any, member: Any, first: Any, second: Any, needed: Any, ddof: int, start: int,
    stop: int, count: Any, mean: Any, std: Any,
) -> None:  # fmt: skip
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
