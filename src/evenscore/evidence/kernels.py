"""The head on every trial of a matrix or a list in one pass, compiled. Import this only when used."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenscore.compiled import inner, loop

__all__ = ["head_list", "head_matrix"]


@inner
def _log_sum(a: float, b: float) -> float:
    top = max(a, b)
    return top + np.log1p(np.exp(min(a, b) - top))


@inner
def _z(
    s: float, pair: float, a: float, b: float, c: float, d: float, plain: float, p0: float, p1: float, half0: float,
    half1: float, constant: float, predicted: bool, slope: float, w0: float, w1: float, w2: float, v0: float, v1: float,
    v2: float, v: float, bend: float,
) -> float:  # fmt: skip
    """Return z of (H2), from the score, what b and w add, and the sums of the numbers of both sides."""
    first = s * a - b
    second = s * c - d
    other = s
    if predicted:
        d0, d1 = s - p0, s - p1
        other = constant + half0 * d0 * d0 - half1 * d1 * d1
    other *= slope
    average = v0 * first + v1 * second + v2 * other + v
    return w0 * first + w1 * second + w2 * other + plain + pair + bend * max(average, 0.0)


@inner
def _saturated(z: float, bounds: Any) -> float:
    return _log_sum(bounds[1] + z, bounds[0]) - _log_sum(bounds[3], bounds[2] + z)


@loop("F2 F2 D2 D2 D1 D1 D1 float D1 int int -> F2")
def head_matrix(
    S: Any, pairs: Any, rows: Any, columns: Any, model: Any, slopes: Any, shares: Any, bend: float, bounds: Any,
    start: int, stop: int, out: Any,
) -> None:  # fmt: skip
    """Set out to (H2) and (H3), for the rows from start to stop.

    rows (7 x m) and columns (7 x n) are the numbers of `EvidenceParts`. model holds the constants of the score model's
    log-likelihood ratio; where its first one is NaN, the third view is the score. slopes holds the slope of the third
    view, then the weights of the three; shares holds their shares in the average, and its constant.
    """
    bounded = bounds[0] > -np.inf or bounds[2] > -np.inf
    paired = pairs.shape[1] > 0
    half0, half1, constant = model[0], model[1], model[2]
    predicted = half0 == half0
    slope, w0, w1, w2 = slopes[0], slopes[1], slopes[2], slopes[3]
    v0, v1, v2, v = shares[0], shares[1], shares[2], shares[3]
    for i in range(start, stop):
        a, b, c, d, e, f, g = rows[0, i], rows[1, i], rows[2, i], rows[3, i], rows[4, i], rows[5, i], rows[6, i]
        for j in range(S.shape[1]):
            out[i, j] = _z(
                np.float64(S[i, j]), np.float64(pairs[i, j]) if paired else 0.0, a + columns[0, j], b + columns[1, j],
                c + columns[2, j], d + columns[3, j], e + columns[4, j], f + columns[5, j], g + columns[6, j], half0,
                half1, constant, predicted, slope, w0, w1, w2, v0, v1, v2, v, bend,
            )  # fmt: skip
        if bounded:
            for j in range(S.shape[1]):
                out[i, j] = _saturated(np.float64(out[i, j]), bounds)


@loop("F1 J1 J1 F2 F2 D2 D2 D1 D1 D1 float D1 int int -> F1")
def head_list(
    S: Any, enroll: Any, test: Any, x: Any, y: Any, rows: Any, columns: Any, model: Any, slopes: Any, shares: Any,
    bend: float, bounds: Any, start: int, stop: int, out: Any,
) -> None:  # fmt: skip
    """Do the same for listed trials; rows and columns are m x 7 and n x 7, x and y the coordinates of both sides."""
    bounded = bounds[0] > -np.inf or bounds[2] > -np.inf
    for t in range(start, stop):
        i, j = enroll[t], test[t]
        pair = 0.0
        for r in range(x.shape[1]):
            pair += np.float64(x[i, r]) * np.float64(y[j, r])
        z = _z(
            np.float64(S[t]), pair, rows[i, 0] + columns[j, 0], rows[i, 1] + columns[j, 1],
            rows[i, 2] + columns[j, 2], rows[i, 3] + columns[j, 3], rows[i, 4] + columns[j, 4],
            rows[i, 5] + columns[j, 5], rows[i, 6] + columns[j, 6], model[0], model[1], model[2], model[0] == model[0],
            slopes[0], slopes[1], slopes[2], slopes[3], shares[0], shares[1], shares[2], shares[3], bend,
        )  # fmt: skip
        out[t] = _saturated(z, bounds) if bounded else z
