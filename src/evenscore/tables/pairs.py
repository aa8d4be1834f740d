"""Pairs of ids as numbers: finding repeated pairs, and matching the pairs of two lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["first_repeated_pair", "match_pairs", "pair_codes"]

# A table of all possible pairs is quicker than sorting as long as it stays small.
_TABLE_LIMIT = 1 << 28


def pair_codes(rows: npt.NDArray[np.int32], columns: npt.NDArray[np.int32], n_columns: int) -> npt.NDArray[np.int64]:
    """Return one number for each pair."""
    codes = rows.astype(np.int64)
    codes *= n_columns
    codes += columns
    return codes


def first_repeated_pair(codes: npt.NDArray[np.int64], n_possible: int) -> tuple[int, int] | None:
    """Return the positions of the first pair that is there already, and of its earlier twin; None if all differ."""
    if n_possible <= max(_TABLE_LIMIT, codes.size):
        seen = np.zeros(n_possible, dtype=np.bool_)
        seen[codes] = True
        if np.count_nonzero(seen) == codes.size:
            return None
    else:
        ordered = np.sort(codes)
        if not (ordered[1:] == ordered[:-1]).any():
            return None
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    later = int(order[1:][ordered[1:] == ordered[:-1]].min())
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
