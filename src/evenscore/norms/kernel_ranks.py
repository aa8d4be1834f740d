"""Compiled loops that pick the highest cohort scores. Import this only when used."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenscore.compiled import inner, loop, reordering
from evenscore.norms.few_scores import MEAN
from evenscore.norms.kernel_summary import location_scale, sort_falling, summary, take_largest

__all__ = ["cross_tables", "one_row", "ranked_members", "ranked_tables", "scaled_tables", "top_moments"]

_SAMPLE = 256


@inner
def _smallest(values: Any, size: int) -> float:
    smallest = values[0]
    for s in range(1, size):
        smallest = min(smallest, values[s])
    return smallest


@inner
def _candidates(X: Any, i: int, wanted: int, kept: Any, best: Any, spare: Any) -> int:
    """Put at least the ``wanted`` largest values of row i into ``kept``, and return how many were put.

    A sample of the row tells a threshold that a little more than the wanted number exceed, most likely; one pass
    without branches collects these. If they are too few, all values of the row are collected.
    """
    size = X.shape[1]
    if wanted * 2 < size and size > 4 * _SAMPLE:
        step = size // _SAMPLE
        for s in range(_SAMPLE):
            x = X[i, s * step]
            kept[s] = x if x == x else -np.inf
        share = wanted * _SAMPLE / size
        rank = int(share + 2 * np.sqrt(share) + 3)
        if rank <= _SAMPLE:
            take_largest(kept, _SAMPLE, rank, best, spare)
            threshold = _smallest(best, rank)
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


@reordering
def _rough_mean_std(X: Any, i: int) -> tuple[float, float]:
    """Mean and standard deviation of row i, in the precision of X: good enough to guess with; NaN if any is missing."""
    total = X[i, 0] * 0
    squares = X[i, 0] * 0
    for j in range(X.shape[1]):
        total += X[i, j]
        squares += X[i, j] * X[i, j]
    mean = np.float64(total) / X.shape[1]
    return mean, np.sqrt(max(np.float64(squares) / X.shape[1] - mean * mean, 0.0))


@loop("F2 int int int int int -> I1 D1 D1")
def top_moments(X: Any, k: int, drop: int, ddof: int, start: int, stop: int, count: Any, mean: Any, std: Any) -> None:
    """Count, mean and standard deviation of the k largest of each row, after the ``drop`` very largest.

    Rows tend to have their k-th largest value at about the same number of standard deviations above their mean. So
    the rows before tell where to look in the next one: a pass without branches collects what exceeds that guess, and
    only if this is too little the row is looked at anew.
    """
    kept, best, spare = _scratch(X)
    candidates = np.empty(kept.size, X.dtype)
    usual, spread = np.nan, 0.1  # where the k-th largest stands, in standard deviations, and how far it varies
    for i in range(start, stop):
        center, scale = _rough_mean_std(X, i) if X.shape[1] else (np.nan, np.nan)
        threshold = kept.dtype.type(center + (usual - 4 * spread) * scale)
        found = 0
        for j in range(X.shape[1]):
            x = X[i, j]
            kept[found] = x
            found += x > threshold
        if found < k + drop:
            found = _candidates(X, i, k + drop, kept, best, spare)
        taken = min(found, k + drop)
        for s in range(found):
            candidates[s] = kept[s]
        take_largest(kept, found, taken, best, spare)
        smallest = _smallest(best, taken)
        _in_order(candidates, found, smallest, taken, best)
        if taken > 0 and scale > 0:
            place = (smallest - center) / scale
            if usual == usual:
                spread += 0.1 * (abs(place - usual) - spread)
                usual += 0.2 * (place - usual)
            else:
                usual = place
        _largest_first(best, drop, taken)
        count[i] = max(taken - drop, 0)
        mean[i], std[i] = location_scale(best, drop, taken, MEAN, 0.0, ddof)


@inner
def _in_order(values: Any, size: int, smallest: float, taken: int, best: Any) -> None:
    """Put the largest of the values in the order in which they stand; ``smallest`` is the smallest of those taken.

    Otherwise their order, and so the last digit of their sum, would depend on what the rows before have suggested, and
    so on where threads begin.
    """
    above = 0
    for s in range(size):
        best[above] = values[s]
        above += values[s] > smallest
    for s in range(above, taken):
        best[s] = smallest


@inner
def _largest_first(values: Any, drop: int, size: int) -> None:
    """Put the ``drop`` very largest first, so that they can be passed over."""
    for s in range(min(drop, size)):
        for other in range(s + 1, size):
            if values[other] > values[s]:
                values[s], values[other] = values[other], values[s]


@loop("D1 int int int float int")
def one_row(row: Any, k: int, drop: int, statistic: int, trim: float, ddof: int) -> tuple[int, float, float]:
    """Return count, location and scale of a single row; if a value is infinite, the count is -1."""
    X = row.reshape((1, row.size))
    infinite = 0
    for j in range(row.size):
        infinite += abs(row[j]) == np.inf
    if infinite:
        return -1, np.nan, np.nan
    kept, best, spare = _scratch(X)
    found = _candidates(X, 0, k + drop, kept, best, spare)
    taken = min(found, k + drop)
    if taken < found:
        take_largest(kept, found, taken, best, spare)
        kept = best
    if statistic == MEAN:
        _largest_first(kept, drop, taken)
    else:
        sort_falling(kept, np.zeros(taken, np.int64), taken)
    location, scale = location_scale(kept, drop, taken, statistic, trim, ddof)
    return max(taken - drop, 0), location, scale


@inner
def _scratch(X: Any) -> tuple[Any, Any, Any]:
    size = max(X.shape[1], _SAMPLE) + 1
    return np.empty(size, X.dtype), np.empty(size, X.dtype), np.empty(size, X.dtype)


@inner
def _ranking(X: Any, i: int, length: int, ordered: bool, kept: Any, best: Any, spare: Any, picked: Any) -> int:
    """Put the columns of the ``length`` largest of row i into ``picked``, in falling order or any; equals by column."""
    found = _candidates(X, i, length, kept, best, spare)
    taken = min(found, length)
    if taken == 0:
        return 0
    take_largest(kept, found, taken, best, spare)
    threshold = _smallest(best, taken)
    equals = taken
    for s in range(taken):
        equals -= best[s] > threshold
    at = 0
    for j in range(X.shape[1]):
        x = X[i, j]
        if x > threshold or (x == threshold and equals > 0):
            equals -= x == threshold
            picked[at] = j
            kept[at] = x
            at += 1
    if ordered:
        sort_falling(kept, picked, taken)
    return taken


@loop("F2 bool int int -> J2 I1")
def ranked_members(X: Any, ordered: bool, start: int, stop: int, picked: Any, length: Any) -> None:
    """Columns of the largest values of each row, in falling order or any; as many as ``picked`` is wide, no NaN."""
    kept, best, spare = _scratch(X)
    row = np.empty(picked.shape[1], np.int64)
    for i in range(start, stop):
        taken = _ranking(X, i, picked.shape[1], ordered, kept, best, spare, row)
        length[i] = taken
        for s in range(taken):
            picked[i, s] = row[s]


@loop("F2 I1 int I1 I1 B2 int int int int float int int int -> I2 D2 D2")
def ranked_tables(
    X: Any, code: Any, n_groups: int, first: Any, second: Any, needed: Any, length: int, k: int, drop: int,
    statistic: int, trim: float, ddof: int, start: int, stop: int, count: Any, mean: Any, std: Any,
) -> None:  # fmt: skip
    """Statistics of the k largest of each row (after the ``drop`` very largest) without each pair of groups.

    ``length`` must be k + drop + the size of the largest pair of groups, or the width of X.
    """
    kept, best, spare = _scratch(X)
    picked = np.empty(length, np.int64)
    row = np.empty(length, X.dtype)
    last_seen = np.full(n_groups + 1, -1, np.int64)  # the last entry serves group -1, which nobody sees
    for i in range(start, stop):
        taken = _ranking(X, i, length, True, kept, best, spare, picked)
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


@loop("F2 D2 D2 B2 int int int float int int int -> I2 D2 D2")
def scaled_tables(
    X: Any, shift: Any, weight: Any, needed: Any, k: int, drop: int, statistic: int, trim: float, ddof: int,
    start: int, stop: int, count: Any, mean: Any, std: Any,
) -> None:  # fmt: skip
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


@loop("F2 I1 I1 J2 I1 B2 int int int float int int int -> I2 D2 D2")
def cross_tables(
    X: Any, code: Any, own: Any, picked: Any, length: Any, needed: Any, k: int, drop: int, statistic: int, trim: float,
    ddof: int, start: int, stop: int, count: Any, mean: Any, std: Any,
) -> None:  # fmt: skip
    """Statistics of each row over the columns that another side ranks highest: row i, the p-th ranking.

    Columns whose group is ``own[i]`` are passed over in the ranking; those where X is NaN are ranked, but skipped.
    """
    values = np.empty(X.shape[1] + 1)
    for i in range(start, stop):
        for p in range(picked.shape[0]):
            if not needed[i, p]:
                continue
            rank, found = 0, 0
            if own[i] < 0:  # nobody is passed over
                for s in range(drop, min(length[p], drop + k)):
                    x = np.float64(X[i, picked[p, s]])
                    values[found] = x
                    found += x == x
                count[i, p], mean[i, p], std[i, p] = summary(values, found, found, 0, statistic, trim, ddof)
                continue
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
