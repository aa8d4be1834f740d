"""Compiled loops that look up statistics in tables, by the speakers of both sides. Import this only when used."""

from __future__ import annotations

from typing import Any

from evenscore.compiled import loop

__all__ = ["add_by_column", "add_by_row"]


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
