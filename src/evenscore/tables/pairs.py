"""Pairs of ids as numbers: finding repeated pairs, and matching the pairs of two lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["any_repeated_pair", "first_repeated_pair", "match_pairs", "pair_codes"]

# A table of all possible pairs is quicker than sorting as long as it stays small.
_TABLE_LIMIT = 1 << 28
_PAIRS_AT_ONCE = 1 << 16


def pair_codes(rows: npt.NDArray[Any], columns: npt.NDArray[Any], n_columns: int) -> npt.NDArray[np.int64]:
    """Return one number for each pair."""
    codes = rows.astype(np.int64)
    codes *= n_columns
    codes += columns
    return codes


def any_repeated_pair(rows: npt.NDArray[np.int32], columns: npt.NDArray[np.int32], n_rows: int, n_columns: int) -> bool:
    """Tell whether a pair occurs twice; works block by block where it can, without another array of that length."""
    if n_rows * n_columns > max(_TABLE_LIMIT, rows.size):
        ordered = pair_codes(rows, columns, n_columns)
        ordered.sort()
        return bool((ordered[1:] == ordered[:-1]).any())
    seen = np.zeros(n_rows * n_columns, dtype=np.bool_)
    for start in range(0, rows.size, _PAIRS_AT_ONCE):
        at = slice(start, start + _PAIRS_AT_ONCE)
        seen[pair_codes(rows[at], columns[at], n_columns)] = True
    return int(np.count_nonzero(seen)) != rows.size


def first_repeated_pair(codes: npt.NDArray[np.int64]) -> tuple[int, int] | None:
    """Return the positions of the first pair that is there already, and of its earlier twin; None if all differ."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    repeats = order[1:][ordered[1:] == ordered[:-1]]
    if not repeats.size:
        return None
    later = int(repeats.min())
    return int(np.flatnonzero(codes == codes[later])[0]), later


def match_pairs(codes: npt.NDArray[np.int64], among: npt.NDArray[np.int64], n_possible: int) -> npt.NDArray[Any]:
    """Return for each code its position in ``among`` (where codes are unique), or -1; negative codes match nothing."""
    if n_possible <= _TABLE_LIMIT // 4:
        table = np.full(n_possible + 1, -1, dtype=np.int32)  # the last entry serves the negative codes
        table[among] = np.arange(among.size, dtype=np.int32)
        table[-1] = -1
        return table[np.maximum(codes, -1)]
    order = np.argsort(among)
    if among.size == 0:
        return np.full(codes.shape, -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(among, codes, sorter=order), among.size - 1)
    found = order[place]
    return np.where(among[found] == codes, found, -1)
