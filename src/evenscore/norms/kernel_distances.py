"""Compiled loop for the distances of rows. Import this only when used."""

from __future__ import annotations

from typing import Any

from evenscore.compiled import loop

__all__ = ["distance_sums"]


@loop("D2 D2 int int -> D2 I2", reorder=True)
def distance_sums(X: Any, C: Any, start: int, stop: int, total: Any, count: Any) -> None:
    """Sum of |x - c| over the columns where neither is NaN, and how many these are, for each pair of rows."""
    for i in range(start, stop):
        for c in range(C.shape[0]):
            distance, known = 0.0, 0
            for j in range(C.shape[1]):
                d = abs(X[i, j] - C[c, j])
                there = d == d
                distance += d if there else 0.0
                known += there
            total[i, c] = distance
            count[i, c] = known
