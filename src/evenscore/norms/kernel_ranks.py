"""Compiled loops that pick the highest cohort scores. Import this only when used."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from evenscore.norms.kernel_summary import MEAN, largest_first, location_scale, summary

__all__ = ["cross_tables", "ranked_members", "ranked_tables", "scaled_tables", "top_moments"]

_SAMPLE = 256


@njit(cache=True, nogil=True)
def _candidates(X: Any, i: int, wanted: int, kept: Any, sample: Any) -> int:
    """Put at least the ``wanted`` largest values of row i into ``kept``, and return how many were put.

    A sample of the row tells a threshold that a little more than the wanted number exceed, most likely; one pass
    without branches collects these. If they are too few, all values of the row are collected.
    """
    size = X.shape[1]
    if wanted * 2 < size and size > 4 * _SAMPLE:
        step = size // _SAMPLE
        for s in range(_SAMPLE):
            x = X[i, s * step]
            sample[s] = x if x == x else -np.inf
        share = wanted * _SAMPLE / size
        rank = int(share + 2.5 * np.sqrt(share) + 3)
        if rank <= _SAMPLE:
            largest_first(sample, _SAMPLE, rank)
            threshold = sample[0]
            for s in range(1, rank):
                threshold = min(threshold, sample[s])
            found = 0
            for j in range(size):
                x = X[i, j]
                kept[found] = x
                found += x > threshold
            if found >= wanted:
                return found
    found = 0
    for j in range(size):
        x = X[i, j]
        kept[found] = x
        found += x == x
    return found


@njit(cache=True, nogil=True)
def top_moments(X: Any, k: int, drop: int, ddof: int, start: int, stop: int, count: Any, mean: Any, std: Any) -> None:
    """Count, mean and standard deviation of the k largest of each row, after the ``drop`` very largest."""
    kept = np.empty(X.shape[1] + 1, X.dtype)
    sample = np.empty(_SAMPLE, X.dtype)
    for i in range(start, stop):
        found = _candidates(X, i, k + drop, kept, sample)
        count[i], mean[i], std[i] = summary(kept, found, k, drop, MEAN, 0.0, ddof)


@njit(cache=True, nogil=True)
def _ranking(X: Any, i: int, length: int, kept: Any, sample: Any, picked: Any) -> int:
    """Put the columns of the ``length`` largest of row i into ``picked``, in falling order; equals in column order."""
    found = _candidates(X, i, length, kept, sample)
    taken = min(found, length)
    if taken == 0:
        return 0
    largest_first(kept, found, taken)
    threshold = kept[0]
    for s in range(1, taken):
        threshold = min(threshold, kept[s])
    above = 0
    for s in range(taken):
        above += kept[s] > threshold
    equals = taken - above
    at = 0
    for j in range(X.shape[1]):
        x = X[i, j]
        if x > threshold or (x == threshold and equals > 0):
            equals -= x == threshold
            picked[at] = j
            kept[at] = -x
            at += 1
    order = np.argsort(kept[:taken], kind="mergesort")
    picked[:taken] = picked[:taken][order]
    return taken


@njit(cache=True, nogil=True)
def ranked_members(X: Any, start: int, stop: int, picked: Any, length: Any) -> None:
    """Columns of the largest values of each row, in falling order; as many as ``picked`` is wide, NaN left out."""
    kept = np.empty(X.shape[1] + 1, X.dtype)
    sample = np.empty(_SAMPLE, X.dtype)
    row = np.empty(picked.shape[1], np.int64)
    for i in range(start, stop):
        taken = _ranking(X, i, picked.shape[1], kept, sample, row)
        length[i] = taken
        for s in range(taken):
            picked[i, s] = row[s]


@njit(cache=True, nogil=True)
def ranked_tables(
    X: Any,
    code: Any,
    n_groups: int,
    first: Any,
    second: Any,
    needed: Any,
    length: int,
    k: int,
    drop: int,
    statistic: int,
    trim: float,
    ddof: int,
    start: int,
    stop: int,
    count: Any,
    mean: Any,
    std: Any,
) -> None:
    """Statistics of the k largest of each row (after the ``drop`` very largest) without each pair of groups.

    ``length`` must be k + drop + the size of the largest pair of groups, or the width of X.
    """
    kept = np.empty(X.shape[1] + 1, X.dtype)
    sample = np.empty(_SAMPLE, X.dtype)
    picked = np.empty(length, np.int64)
    row = np.empty(length, X.dtype)
    last_seen = np.full(n_groups + 1, -1, np.int64)  # the last entry serves group -1, which nobody sees
    for i in range(start, stop):
        taken = _ranking(X, i, length, kept, sample, picked)
        for s in range(taken):
            last_seen[code[picked[s]]] = i
        last_seen[-1] = -1
        known = False
        base_count, base_mean, base_std = 0, np.nan, np.nan
        for p in range(first.size):
            if not needed[i, p]:
                continue
            touched = last_seen[first[p]] == i or last_seen[second[p]] == i
            if known and not touched:
                count[i, p], mean[i, p], std[i, p] = base_count, base_mean, base_std
                continue
            found = 0
            for s in range(taken):
                group = code[picked[s]]
                if group >= 0 and (group == first[p] or group == second[p]):
                    continue
                row[found] = X[i, picked[s]]
                found += 1
                if found == drop + k:
                    break
            count[i, p] = max(found - drop, 0)
            mean[i, p], std[i, p] = location_scale(row, drop, found, statistic, trim, ddof)
            if not touched:
                known = True
                base_count, base_mean, base_std = count[i, p], mean[i, p], std[i, p]


@njit(cache=True, nogil=True)
def scaled_tables(
    X: Any,
    shift: Any,
    weight: Any,
    needed: Any,
    k: int,
    drop: int,
    statistic: int,
    trim: float,
    ddof: int,
    start: int,
    stop: int,
    count: Any,
    mean: Any,
    std: Any,
) -> None:
    """Statistics of each row of (X - shift[p]) * weight[p], for each p where they are needed; NaN is skipped."""
    values = np.empty(X.shape[1] + 1)
    for i in range(start, stop):
        for p in range(shift.shape[0]):
            if not needed[i, p]:
                continue
            found = 0
            for j in range(X.shape[1]):
                x = (np.float64(X[i, j]) - shift[p, j]) * weight[p, j]
                values[found] = x
                found += x == x
            count[i, p], mean[i, p], std[i, p] = summary(values, found, k, drop, statistic, trim, ddof)


@njit(cache=True, nogil=True)
def cross_tables(
    X: Any,
    code: Any,
    own: Any,
    picked: Any,
    length: Any,
    needed: Any,
    k: int,
    drop: int,
    statistic: int,
    trim: float,
    ddof: int,
    start: int,
    stop: int,
    count: Any,
    mean: Any,
    std: Any,
) -> None:
    """Statistics of each row over the columns that another side ranks highest: row i, the p-th ranking.

    Columns whose group is ``own[i]`` are passed over in the ranking; those where X is NaN are ranked, but skipped.
    """
    values = np.empty(X.shape[1] + 1)
    for i in range(start, stop):
        for p in range(picked.shape[0]):
            if not needed[i, p]:
                continue
            rank, found = 0, 0
            for s in range(length[p]):
                j = picked[p, s]
                if code[j] >= 0 and code[j] == own[i]:
                    continue
                if rank >= drop:
                    x = np.float64(X[i, j])
                    values[found] = x
                    found += x == x
                rank += 1
                if rank == drop + k:
                    break
            count[i, p], mean[i, p], std[i, p] = summary(values, found, found, 0, statistic, trim, ddof)
