"""Pairs of ids as numbers: checking them, finding repeated pairs, and matching the pairs of two lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.tables.arrays import frozen
from evenscore.tables.labels import TARGET, UNKNOWN

__all__ = [
    "any_repeated_pair",
    "as_index",
    "as_trial_labels",
    "check_length",
    "connect",
    "first_repeated_pair",
    "match_pairs",
    "pair_codes",
    "slip_of_trial",
]

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


def check_length(length: int, needed: int, what: str) -> None:
    """Refuse what has not an entry for each trial."""
    if length != needed:
        raise InputError(f"{what} has {length} entries, but there are {needed} trials")


def as_index(values: npt.ArrayLike, size: int, side: str) -> npt.NDArray[np.int32]:
    """Return where the ids of one side of the trials stand, checked."""
    index = np.asarray(values)
    if index.size == 0:
        index = index.astype(np.int32)
    if index.ndim != 1 or index.dtype.kind not in "iu":
        raise InputError(f"{side}_index must be a list of whole numbers, but is {index.dtype} of shape {index.shape}")
    if index.size and (index.min() < 0 or index.max() >= size):
        raise InputError(
            f"{side}_index goes from {index.min()} to {index.max()}, but there are {size} ids (0 to {size - 1})"
        )
    return frozen(index.astype(np.int32, copy=False))


def as_trial_labels(values: npt.ArrayLike, size: int) -> npt.NDArray[np.int8]:
    """Return a label for each trial, checked."""
    labels = np.asarray(values)
    check_length(labels.size, size, "labels")
    known = labels.dtype.kind in "biu" and (labels.size == 0 or (labels.min() >= UNKNOWN and labels.max() <= TARGET))
    if labels.ndim != 1 or (labels.size and not known):
        raise InputError("labels must be a list of 1 (target), 0 (non-target) and -1 (unknown)")
    return frozen(labels.astype(np.int8, copy=False))


def connect(
    first: npt.NDArray[np.integer[Any]], second: npt.NDArray[np.integer[Any]], size: int
) -> npt.NDArray[np.intp]:
    """Return which connected component each of some nodes belongs to, from the two ends of each link.

    Components are numbered by their first nodes. Every node points at one that is not later, at last at the first of
    its component: links make the ends of two paths point at the earlier one, then all paths are cut short.

    Examples
    --------
    >>> connect(np.array([0, 3]), np.array([2, 4]), 5)
    array([0, 1, 0, 2, 2])
    """
    part = np.arange(size)
    while True:
        low = np.minimum(part[first], part[second])
        joined = part.copy()
        np.minimum.at(joined, part[first], low)
        np.minimum.at(joined, part[second], low)
        while not np.array_equal(joined, shorter := joined[joined]):
            joined = shorter
        if np.array_equal(joined, part):
            return np.unique(part, return_inverse=True)[1].reshape(-1)
        part = joined


def slip_of_trial(pair: tuple[str, str], key: Any) -> str:
    """Return what may have gone wrong with a trial that a key does not list, as the end of a sentence, if it shows."""
    enroll, test = (np.array([name], dtype=object) for name in pair)
    row, column = key.enroll_axis.find(test)[0], key.test_axis.find(enroll)[0]
    if row >= 0 and column >= 0 and ((key.enroll_index == row) & (key.test_index == column)).any():
        return "; it stands there the other way round: were enrolments and tests swapped?"
    for axis, name, other in ((key.enroll_axis, enroll, key.test_axis), (key.test_axis, test, key.enroll_axis)):
        if axis.find(name)[0] < 0:
            return str(axis.slip(name, other))
    return ""
