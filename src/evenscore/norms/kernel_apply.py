"""Compiled loops that turn a matrix of raw scores into normalized ones in a single pass. Import this only when used."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from evenscore.norms.kernel_summary import FAST

__all__ = ["chain_sides", "sum_sides"]


@njit(cache=True, nogil=True, fastmath=FAST)
def sum_sides(
    S: Any, row_mean: Any, row_weight: Any, column_mean: Any, column_weight: Any, start: int, stop: int, out: Any
) -> None:
    """(s - row mean) * row weight + (s - column mean) * column weight."""
    for i in range(start, stop):
        m, w = row_mean[i], row_weight[i]
        for j in range(S.shape[1]):
            s = np.float64(S[i, j])
            out[i, j] = (s - m) * w + (s - column_mean[j]) * column_weight[j]


@njit(cache=True, nogil=True, fastmath=FAST)
def chain_sides(
    S: Any,
    row_mean: Any,
    row_weight: Any,
    column_mean: Any,
    column_weight: Any,
    rows_first: bool,
    start: int,
    stop: int,
    out: Any,
) -> None:
    """((s - row mean) * row weight - column mean) * column weight, or with columns first and then rows."""
    for i in range(start, stop):
        m, w = row_mean[i], row_weight[i]
        if rows_first:
            for j in range(S.shape[1]):
                out[i, j] = ((np.float64(S[i, j]) - m) * w - column_mean[j]) * column_weight[j]
        else:
            for j in range(S.shape[1]):
                out[i, j] = ((np.float64(S[i, j]) - column_mean[j]) * column_weight[j] - m) * w
