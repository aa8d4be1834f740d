"""The head on every trial of a matrix in one pass, compiled. Import this only when used."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["head_matrix"]

_REORDER = {"reassoc", "nsz", "contract"}


@njit(inline="always", cache=True)
def _log_sum(a: float, b: float) -> float:
    top = max(a, b)
    return top + np.log1p(np.exp(min(a, b) - top))


@njit(cache=True, nogil=True, fastmath=_REORDER)
def head_matrix(
    S: Any, pairs: Any, rows: Any, columns: Any, model: Any, slopes: Any, shares: Any, bend: float, bounds: Any,
    start: int, stop: int, out: Any,
) -> None:  # fmt: skip
    """Set out to (H2) and (H3), for the rows from start to stop.

    rows (m x 7) and columns (n x 7) hold for s_norm and as_norm the factor of the score and the term to subtract, what
    the side adds to z by itself, and its parts of the score model's two predicted scores. model holds the constants of
    the score model's log-likelihood ratio; where its first one is NaN, the third view is the score. slopes holds the
    slope of the third view, then the weights of the three; shares holds their shares in the average, and its constant.
    """
    log_e, log_1e, log_d, log_1d = bounds[0], bounds[1], bounds[2], bounds[3]
    half0, half1, constant = model[0], model[1], model[2]
    predicted = half0 == half0
    bounded = log_e > -np.inf or log_d > -np.inf
    for i in range(start, stop):
        a, b, c, d, plain = rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3], rows[i, 4]
        p0, p1 = rows[i, 5], rows[i, 6]
        for j in range(S.shape[1]):
            s = np.float64(S[i, j])
            first = s * (a + columns[j, 0]) - b - columns[j, 1]
            second = s * (c + columns[j, 2]) - d - columns[j, 3]
            other = s
            if predicted:
                d0, d1 = s - p0 - columns[j, 5], s - p1 - columns[j, 6]
                other = constant + half0 * d0 * d0 - half1 * d1 * d1
            other *= slopes[0]
            average = shares[0] * first + shares[1] * second + shares[2] * other + shares[3]
            z = slopes[1] * first + slopes[2] * second + slopes[3] * other + plain + columns[j, 4]
            z += bend * max(average, 0.0)
            if pairs.shape[1]:
                z += pairs[i, j]
            if bounded:
                z = _log_sum(log_1e + z, log_e) - _log_sum(log_1d, log_d + z)
            out[i, j] = z
