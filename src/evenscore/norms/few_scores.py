"""Location and scale of few cohort scores, in NumPy: what the loops of `kernel_moments` and `kernel_ranks` compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["MAD_TO_STD", "MEAN", "MEDIAN", "TRIMMED", "Found", "best_members", "location_scale"]

Found = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]  #: count, location, scale

MEAN, TRIMMED, MEDIAN = 0, 1, 2  # options.Statistic
MAD_TO_STD = 1.4826022185056018  # 1 / the 3/4 quantile of the standard normal


def location_scale(
    X: npt.NDArray[Any], k: int, drop: int, statistic: int = MEAN, trim: float = 0.0, ddof: int = 0
) -> Found:
    """Return count, location and scale of the k highest scores of each row, after the ``drop`` very highest.

    NaN is a missing score. Without any, the location is NaN, and the scale 0.

    Examples
    --------
    >>> count, mean, std = location_scale(np.array([[1.0, 5.0, np.nan, 3.0]]), k=2, drop=0)
    >>> count, mean, std
    (array([2]), array([4.]), array([1.]))
    """
    X = X.astype(np.float64)
    if drop + k < X.shape[1]:
        X = -np.partition(-X, drop + k - 1, axis=1)[:, : drop + k]  # in any order, NaN last
    if statistic != MEAN or drop > 0:
        X = -np.sort(-X, axis=1)[:, drop:]
    count = np.count_nonzero(X == X, axis=1)
    if statistic == MEDIAN:
        middle = _median(X, count)
        return count, middle, MAD_TO_STD * _median(np.sort(np.abs(X - middle[:, None]), axis=1), count, empty=0.0)
    if statistic == TRIMMED:
        cut = (trim * count).astype(np.int64)[:, None]
        place = np.arange(X.shape[1])
        X = np.where((place >= cut) & (place < count[:, None] - cut), X, np.nan)
        return count, *_mean_std(X, np.count_nonzero(X == X, axis=1), ddof)
    return count, *_mean_std(X, count, ddof)


def _mean_std(X: npt.NDArray[np.float64], count: npt.NDArray[np.int64], ddof: int) -> tuple[Any, Any]:
    if not np.isnan(X).any() and X.shape[1]:
        # Deviations are taken from one of the values, so that equal values have a spread of exactly zero.
        deviation = X - X[:, :1]
        mean = deviation.mean(axis=1)
        deviation -= mean[:, None]
        squares, mean = np.einsum("ij,ij->i", deviation, deviation), X[:, 0] + mean
    else:
        there = ~np.isnan(X)
        first = X[np.arange(len(X)), there.argmax(axis=1)] if X.shape[1] else np.full(len(X), np.nan)
        deviation = np.where(there, X - first[:, None], 0.0)
        shift = deviation.sum(axis=1) / np.maximum(count, 1)
        squares, mean = (np.where(there, deviation - shift[:, None], 0.0) ** 2).sum(axis=1), first + shift
    return mean, np.where(count > ddof, np.sqrt(squares / np.maximum(count - ddof, 1)), 0.0)


def _median(ordered: npt.NDArray[np.float64], count: npt.NDArray[np.int64], empty: float = np.nan) -> Any:
    """Return the median of each row, whose ``count`` values stand first, in order."""
    if not ordered.shape[1]:
        return np.full(len(ordered), empty)
    at = np.arange(len(ordered))
    low, high = ordered[at, np.maximum(count - 1, 0) // 2], ordered[at, np.minimum(count // 2, ordered.shape[1] - 1)]
    return np.where(count > 0, (low + high) / 2, empty)


def best_members(X: npt.NDArray[Any], length: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Return the columns of the highest scores of each row, in falling order, and how many there are; equals in order.

    Examples
    --------
    >>> best_members(np.array([[1.0, 5.0, np.nan, 5.0]]), 2)
    (array([[1, 3]], dtype=int32), array([2]))
    """
    order = np.argsort(-X, axis=1, kind="stable")[:, :length]
    return order.astype(np.int32), np.minimum(np.count_nonzero(X == X, axis=1), length)
