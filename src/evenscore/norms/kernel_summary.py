"""Compiled loops shared by the others: location and scale of a handful of numbers. Import this only when used."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["FAST", "MEAN", "MEDIAN", "TRIMMED", "largest_first", "location_scale", "summary"]

# Sums may be reordered (so that they vectorize), but NaN must stay NaN: it marks what is missing.
FAST = {"reassoc", "nsz", "contract", "arcp"}

MEAN, TRIMMED, MEDIAN = 0, 1, 2  # options.Statistic
_MAD_TO_STD = 1.4826022185056018  # 1 / the 3/4 quantile of the standard normal


@njit(cache=True, nogil=True)
def largest_first(values: Any, size: int, k: int) -> None:
    """Rearrange ``values[:size]`` so that the k largest come first, in any order (Hoare's selection)."""
    low, high = 0, size - 1
    while low < high:
        a, b, c = values[low], values[(low + high) >> 1], values[high]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            return


@njit(cache=True, nogil=True, fastmath=FAST)
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


@njit(cache=True, nogil=True)
def _middle(ordered: Any, start: int, stop: int) -> float:
    half = (start + stop) >> 1
    if (stop - start) & 1:
        return np.float64(ordered[half])
    return (np.float64(ordered[half - 1]) + np.float64(ordered[half])) / 2


@njit(cache=True, nogil=True)
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
    distance.sort()
    return median, _MAD_TO_STD * _middle(distance, 0, distance.size)


@njit(cache=True, nogil=True)
def summary(
    values: Any, size: int, k: int, drop: int, statistic: int, trim: float, ddof: int
) -> tuple[int, float, float]:
    """Return count, location and scale of the k largest of ``values[:size]`` after the ``drop`` very largest."""
    stop = min(size, drop + k)
    if stop <= drop:
        return 0, np.nan, np.nan
    if statistic != MEAN:
        values[:size] = -np.sort(-values[:size])
    elif stop < size or drop > 0:
        largest_first(values, size, stop)
        if drop > 0:
            largest_first(values, stop, drop)
    location, scale = location_scale(values, drop, stop, statistic, trim, ddof)
    return stop - drop, location, scale
