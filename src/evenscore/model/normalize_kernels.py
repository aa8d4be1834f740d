"""The passes of scoring, compiled: weighted sums of cohort scores, and the log-likelihood ratio of every trial."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenscore.compiled import inner, loop
from evenscore.tables.arrays import LARGEST

__all__ = ["llr_list", "llr_matrix", "llr_one", "weigh_columns", "weigh_rows"]

_TILE = 2048  # columns whose running sums stay in the cache


@inner
def _or_zero(score: Any, center: float) -> float:
    value = np.float64(score) - center
    return value if value == value else 0.0  # NaN is a missing score


@loop("F2 float D2 int int -> D2", reorder=True)
def weigh_rows(scores: Any, center: float, weights: Any, start: int, stop: int, out: Any) -> None:
    """Set out (m x 2) to the weighted sums of each row's (score - center); missing scores count nothing."""
    for i in range(start, stop):
        first = 0.0
        second = 0.0
        for j in range(scores.shape[1]):
            value = np.float64(scores[i, j]) - center
            if value == value:  # not NaN
                first += weights[0, j] * value
                second += weights[1, j] * value
        out[i, 0] = first
        out[i, 1] = second


@loop("F2 float D2 int int -> D2")
def weigh_columns(scores: Any, center: float, weights: Any, start: int, stop: int, out: Any) -> None:
    """Set out (n x 2) to the weighted sums of each column's (score - center); missing scores count nothing."""
    n_rows = scores.shape[0]
    whole = n_rows - n_rows % 4
    for left in range(start, stop, _TILE):
        right = min(left + _TILE, stop)
        first, second = np.zeros(right - left), np.zeros(right - left)
        for i in range(0, whole, 4):  # four rows at a time: the sums are loaded and stored a quarter as often
            w0, w1, w2, w3 = weights[0, i], weights[0, i + 1], weights[0, i + 2], weights[0, i + 3]
            v0, v1, v2, v3 = weights[1, i], weights[1, i + 1], weights[1, i + 2], weights[1, i + 3]
            for j in range(left, right):
                a, b = _or_zero(scores[i, j], center), _or_zero(scores[i + 1, j], center)
                c, d = _or_zero(scores[i + 2, j], center), _or_zero(scores[i + 3, j], center)
                first[j - left] += w0 * a + w1 * b + w2 * c + w3 * d
                second[j - left] += v0 * a + v1 * b + v2 * c + v3 * d
        for i in range(whole, n_rows):
            for j in range(left, right):
                a = _or_zero(scores[i, j], center)
                first[j - left] += weights[0, i] * a
                second[j - left] += weights[1, i] * a
        for j in range(left, right):
            out[j, 0] = first[j - left]
            out[j, 1] = second[j - left]


@loop("F2 D2 D2 D1 float int int -> F2 B1")
def llr_matrix(
    scores: Any, enroll: Any, test: Any, half: Any, constant: float, start: int, stop: int, out: Any, sound: Any
) -> None:
    """Set out to constant + half_0 (s - p_0)^2 - half_1 (s - p_1)^2 with p_h = enroll[i, h] + test[h, j].

    ``sound`` tells whether all results of a row are scores.
    """
    half0, half1 = half[0], half[1]
    for i in range(start, stop):
        e0, e1 = enroll[i, 0], enroll[i, 1]
        good = 0
        for j in range(scores.shape[1]):
            value = np.float64(scores[i, j])
            d0 = value - e0 - test[0, j]
            d1 = value - e1 - test[1, j]
            out[i, j] = constant + half0 * d0 * d0 - half1 * d1 * d1
            good += abs(out[i, j]) <= LARGEST
        sound[i] = good == scores.shape[1]


@loop("F1 D2 D2 J1 J1 D1 float int int -> F1")
def llr_list(
    scores: Any, enroll: Any, test: Any, rows: Any, columns: Any, half: Any, constant: float, start: int, stop: int,
    out: Any,
) -> None:  # fmt: skip
    """Do the same for listed trials."""
    half0, half1 = half[0], half[1]
    for n in range(start, stop):
        i, j = rows[n], columns[n]
        value = np.float64(scores[n])
        d0 = value - enroll[i, 0] - test[0, j]
        d1 = value - enroll[i, 1] - test[1, j]
        out[n] = constant + half0 * d0 * d0 - half1 * d1 * d1


@loop("float float D1 D1 D2 D2 D1 D1 float", reorder=True)
def llr_one(
    score: float, center: float, enroll: Any, test: Any, enroll_weights: Any, test_weights: Any, offset: Any, half: Any,
    constant: float,
) -> float:  # fmt: skip
    """Return the same for one trial, with its cohort scores; NaN if one of them is missing."""
    p0, p1 = offset[0], offset[1]
    for j in range(enroll.size):
        value = enroll[j] - center
        p0 += enroll_weights[0, j] * value
        p1 += enroll_weights[1, j] * value
    for i in range(test.size):
        value = test[i] - center
        p0 += test_weights[0, i] * value
        p1 += test_weights[1, i] * value
    return constant + half[0] * (score - p0) ** 2 - half[1] * (score - p1) ** 2
