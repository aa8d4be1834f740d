"""Compiled dot products of listed pairs of vectors. Import this only when used."""

from __future__ import annotations

from typing import Any

from numba import njit

__all__ = ["pair_products"]


@njit(cache=True, nogil=True, fastmath={"reassoc", "nsz", "contract"})
def pair_products(left: Any, right: Any, row: Any, column: Any, start: int, stop: int, out: Any) -> None:
    """Dot product of row ``row[p]`` of ``left`` with row ``column[p]`` of ``right``, for each pair p."""
    for p in range(start, stop):
        i, j = row[p], column[p]
        total = left[i, 0] * right[j, 0]
        for d in range(1, left.shape[1]):
            total += left[i, d] * right[j, d]
        out[p] = total
