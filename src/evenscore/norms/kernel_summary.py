"""Compiled loops shared by the others: location and scale of a handful of numbers. Import this only when used."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenscore.compiled import inner, reordering
from evenscore.norms.few_scores import MAD_TO_STD, MEAN, TRIMMED

__all__ = ["location_scale", "sort_falling", "summary", "take_largest"]


@inner
def take_largest(values: Any, size: int, k: int, best: Any, spare: Any) -> None:
    """Put the k largest of ``values[:size]`` into ``best[:k]``, in any order; ``values`` and ``spare`` are used up.

    Quickselect without branches: each pass writes every value to both parts and moves on in the right one, so that no
    comparison is ever guessed wrong. Values must not be NaN, and k at most ``size``.
    """
    done = 0
    while done < k:
        if size == k - done:
            for s in range(size):
                best[done + s] = values[s]
            return
        a, b, c = values[0], values[size >> 1], values[size - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        above, below = 0, 0
        for s in range(size):
            x = values[s]
            spare[above] = x
            values[below] = x
            above += x > pivot
            below += x <= pivot
        if above > k - done:
            values, spare, size = spare, values, above
            continue
        for s in range(above):
            best[done + s] = spare[s]
        done += above
        size = below
        if above == 0:  # the pivot is the largest value
            less = 0
            for s in range(size):
                x = values[s]
                values[less] = x
                less += x < pivot
            equal = min(size - less, k - done)
            for s in range(done, done + equal):
                best[s] = pivot
            done += equal
            size = less


@inner
def sort_falling(values: Any, places: Any, size: int) -> None:
    """Sort ``values[:size]`` in falling order, and their places along with them; equals by place.

    Heapsort: numba's own sorts take seconds to compile. Whoever has no places passes room for as many.
    """
    for root in range(size // 2 - 1, -1, -1):
        _sift(values, places, root, size)
    for last in range(size - 1, 0, -1):
        _swap(values, places, 0, last)
        _sift(values, places, 0, last)


@inner
def _sift(values: Any, places: Any, root: int, size: int) -> None:
    """Let the root of a heap sink, until whatever comes last in order is on top."""
    while 2 * root + 1 < size:
        child = 2 * root + 1
        if child + 1 < size and _behind(values, places, child + 1, child):
            child += 1
        if not _behind(values, places, child, root):
            return
        _swap(values, places, root, child)
        root = child


@inner
def _swap(values: Any, places: Any, one: int, other: int) -> None:
    values[one], values[other] = values[other], values[one]
    places[one], places[other] = places[other], places[one]


@inner
def _behind(values: Any, places: Any, one: int, other: int) -> bool:
    return values[one] < values[other] or (values[one] == values[other] and places[one] > places[other])


@reordering
def _mean_std(values: Any, start: int, stop: int, ddof: int) -> tuple[float, float]:
    size = stop - start
    first = np.float64(values[start])  # a reference value, so that equal values have a spread of exactly zero
    total = 0.0
    for i in range(start, stop):
        total += np.float64(values[i]) - first
    mean = first + total / size
    squares = 0.0
    for i in range(start, stop):
        d = np.float64(values[i]) - mean
        squares += d * d
    return mean, np.sqrt(squares / (size - ddof)) if size > ddof else 0.0


@inner
def _middle(ordered: Any, start: int, stop: int) -> float:
    half = (start + stop) >> 1
    if (stop - start) & 1:
        return np.float64(ordered[half])
    return (np.float64(ordered[half - 1]) + np.float64(ordered[half])) / 2


@inner
def location_scale(values: Any, start: int, stop: int, statistic: int, trim: float, ddof: int) -> tuple[float, float]:
    """Return location and scale of ``values[start:stop]``, which are in order unless the statistic is the mean."""
    if stop <= start:
        return np.nan, np.nan
    if statistic == MEAN:
        return _mean_std(values, start, stop, ddof)
    if statistic == TRIMMED:
        cut = int(trim * (stop - start))
        return _mean_std(values, start + cut, stop - cut, ddof)
    median = _middle(values, start, stop)
    distance = np.empty(stop - start)
    for i in range(start, stop):
        distance[i - start] = abs(np.float64(values[i]) - median)
    sort_falling(distance, np.zeros(distance.size, np.int64), distance.size)
    return median, MAD_TO_STD * _middle(distance, 0, distance.size)


@inner
def summary(
    values: Any, size: int, k: int, drop: int, statistic: int, trim: float, ddof: int
) -> tuple[int, float, float]:
    """Return count, location and scale of the k largest of ``values[:size]`` after the ``drop`` very largest."""
    stop = min(size, drop + k)
    if stop <= drop:
        return 0, np.nan, np.nan
    if statistic != MEAN or stop < size or drop > 0:
        sort_falling(values, np.zeros(size, np.int64), size)
    location, scale = location_scale(values, drop, stop, statistic, trim, ddof)
    return stop - drop, location, scale
