"""Compiled loops over whole matrices: normalize in a single pass, transpose. Import this only when used."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenscore.compiled import loop
from evenscore.tables.arrays import LARGEST

__all__ = ["add_by_column", "add_by_row", "chain_matrix", "sum_list", "sum_matrix", "transpose"]

_SQUARE = 16


@loop("F2 D1 D1 D1 D1 int int -> F2 B1")
def sum_matrix(
    S: Any, row_mean: Any, row_weight: Any, column_mean: Any, column_weight: Any, start: int, stop: int, out: Any,
    sound: Any,
) -> None:  # fmt: skip
    """(s - row mean) * row weight + (s - column mean) * column weight, and whether all of a row are scores."""
    for i in range(start, stop):
        m, w = row_mean[i], row_weight[i]
        good = 0
        for j in range(S.shape[1]):
            s = np.float64(S[i, j])
            out[i, j] = (s - m) * w + (s - column_mean[j]) * column_weight[j]
            good += abs(out[i, j]) <= LARGEST
        sound[i] = good == S.shape[1]


@loop("F1 J1 J1 D1 D1 D1 D1 int int -> D1")
def sum_list(
    scores: Any, row: Any, column: Any, row_mean: Any, row_weight: Any, column_mean: Any, column_weight: Any,
    start: int, stop: int, out: Any,
) -> None:  # fmt: skip
    """Do the same for listed pairs of rows and columns."""
    for p in range(start, stop):
        i, j, s = row[p], column[p], np.float64(scores[p])
        out[p] = (s - row_mean[i]) * row_weight[i] + (s - column_mean[j]) * column_weight[j]


@loop("F2 D1 D1 D1 D1 bool int int -> F2 B1")
def chain_matrix(
    S: Any, row_mean: Any, row_weight: Any, column_mean: Any, column_weight: Any, rows_first: bool, start: int,
    stop: int, out: Any, sound: Any,
) -> None:  # fmt: skip
    """((s - row mean) * row weight - column mean) * column weight, or with columns first and then rows."""
    for i in range(start, stop):
        m, w = row_mean[i], row_weight[i]
        good = 0
        if rows_first:
            for j in range(S.shape[1]):
                out[i, j] = ((np.float64(S[i, j]) - m) * w - column_mean[j]) * column_weight[j]
                good += abs(out[i, j]) <= LARGEST
        else:
            for j in range(S.shape[1]):
                out[i, j] = ((np.float64(S[i, j]) - column_mean[j]) * column_weight[j] - m) * w
                good += abs(out[i, j]) <= LARGEST
        sound[i] = good == S.shape[1]


@loop("F2 int int int -> F2")
def transpose(X: Any, first: int, start: int, stop: int, out: Any) -> None:
    """Write the columns of X from ``first + start`` to ``first + stop`` as rows, in squares that are read in order."""
    square = np.empty((_SQUARE, _SQUARE), X.dtype)
    for top in range(0, X.shape[0], _SQUARE):
        bottom = min(top + _SQUARE, X.shape[0])
        for left in range(first + start, first + stop, _SQUARE):
            right = min(left + _SQUARE, first + stop)
            for i in range(top, bottom):
                for j in range(left, right):
                    square[j - left, i - top] = X[i, j]
            for j in range(left, right):
                row = out[j - first]
                for i in range(top, bottom):
                    row[i] = square[j - left, i - top]


@loop("F2 D2 D2 I1 float int int -> F2")
def add_by_row(scores: Any, mean: Any, std: Any, column: Any, factor: float, start: int, stop: int, out: Any) -> None:
    """Add the normalized scores of some rows; row i and column j look up entry (i, column[j])."""
    for i in range(start, stop):
        for j in range(scores.shape[1]):
            at = column[j]
            out[i, j] += factor * ((scores[i, j] - mean[i, at]) / std[i, at])


@loop("F2 D2 D2 I1 float int int -> F2")
def add_by_column(
    scores: Any, mean: Any, std: Any, column: Any, factor: float, start: int, stop: int, out: Any
) -> None:
    """Add the normalized scores of some rows; row i and column j look up entry (column[i], j)."""
    for i in range(start, stop):
        at = column[i]
        for j in range(scores.shape[1]):
            out[i, j] += factor * ((scores[i, j] - mean[at, j]) / std[at, j])
