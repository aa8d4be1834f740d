"""The passes of scoring, compiled: weighted sums of cohort scores, and the log-likelihood ratio of every trial."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

__all__ = ["llr_list", "llr_matrix", "llr_one", "weigh_columns", "weigh_rows"]

# Only where a loop adds up may the compiler reorder. Elsewhere it would choose anew whenever it compiles: a process
# that compiles and one that loads what was compiled would differ in the last digit.
_REORDER = {"reassoc", "nsz", "contract"}
_TILE = 2048  # columns whose running sums stay in the cache


@njit(inline="always", cache=True)
def _or_zero(score: Any, center: float) -> float:
    value = np.float64(score) - center
    return value if value == value else 0.0  # NaN is a missing score


@njit(parallel=True, fastmath=_REORDER, cache=True)
def weigh_rows(scores: Any, center: float, weights: Any, out: Any) -> None:
    """Set out (m x 2) to the weighted sums of each row's (score - center); missing scores count nothing."""
    for i in prange(scores.shape[0]):
        first = 0.0
        second = 0.0
        for j in range(scores.shape[1]):
            value = np.float64(scores[i, j]) - center
            if value == value:  # not NaN
                first += weights[0, j] * value
                second += weights[1, j] * value
        out[i, 0] = first
        out[i, 1] = second


@njit(parallel=True, cache=True)
def weigh_columns(scores: Any, center: float, weights: Any, out: Any) -> None:
    """Set out (n x 2) to the weighted sums of each column's (score - center); missing scores count nothing."""
    n_rows, n_columns = scores.shape
    whole = n_rows - n_rows % 4
    for tile in prange((n_columns + _TILE - 1) // _TILE):
        left, right = tile * _TILE, min((tile + 1) * _TILE, n_columns)
        first, second = np.zeros(right - left), np.zeros(right - left)
        for i in range(0, whole, 4):  # four rows at a time: the sums are loaded and stored a quarter as often
            for j in range(left, right):
                a, b = _or_zero(scores[i, j], center), _or_zero(scores[i + 1, j], center)
                c, d = _or_zero(scores[i + 2, j], center), _or_zero(scores[i + 3, j], center)
                w, v = weights[0], weights[1]
                first[j - left] += w[i] * a + w[i + 1] * b + w[i + 2] * c + w[i + 3] * d
                second[j - left] += v[i] * a + v[i + 1] * b + v[i + 2] * c + v[i + 3] * d
        for i in range(whole, n_rows):
            for j in range(left, right):
                a = _or_zero(scores[i, j], center)
                first[j - left] += weights[0, i] * a
                second[j - left] += weights[1, i] * a
        out[left:right, 0] = first
        out[left:right, 1] = second


@njit(parallel=True, cache=True)
def llr_matrix(scores: Any, enroll: Any, test: Any, half: Any, constant: float, out: Any) -> None:
    """Set out to constant + half_0 (s - p_0)^2 - half_1 (s - p_1)^2 with p_h = enroll[i, h] + test[h, j]."""
    n_columns = scores.shape[1]
    half0, half1 = half[0], half[1]
    for i in prange(scores.shape[0]):
        e0, e1 = enroll[i, 0], enroll[i, 1]
        for j in range(n_columns):
            value = np.float64(scores[i, j])
            d0 = value - e0 - test[0, j]
            d1 = value - e1 - test[1, j]
            out[i, j] = constant + half0 * d0 * d0 - half1 * d1 * d1


@njit(parallel=True, cache=True)
def llr_list(
    scores: Any, enroll: Any, test: Any, rows: Any, columns: Any, half: Any, constant: float, out: Any
) -> None:
    """Do the same for listed trials."""
    half0, half1 = half[0], half[1]
    for n in prange(len(scores)):
        i, j = rows[n], columns[n]
        value = np.float64(scores[n])
        d0 = value - enroll[i, 0] - test[0, j]
        d1 = value - enroll[i, 1] - test[1, j]
        out[n] = constant + half0 * d0 * d0 - half1 * d1 * d1


@njit(fastmath=_REORDER, cache=True)
def llr_one(
    score: float, center: float, enroll: Any, test: Any, enroll_weights: Any, test_weights: Any, offset: Any, half: Any,
    constant: float,
) -> float:  # fmt: skip
    """Do the same for one trial, with its cohort scores; NaN if one of them is missing."""
    p0, p1 = offset[0], offset[1]
    for j in range(len(enroll)):
        value = np.float64(enroll[j]) - center
        p0 += enroll_weights[0, j] * value
        p1 += enroll_weights[1, j] * value
    for i in range(len(test)):
        value = np.float64(test[i]) - center
        p0 += test_weights[0, i] * value
        p1 += test_weights[1, i] * value
    return constant + half[0] * (score - p0) ** 2 - half[1] * (score - p1) ** 2
