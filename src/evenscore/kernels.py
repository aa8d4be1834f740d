"""Every compiled loop. Imported only where data are large: loading numba takes as long as many a job."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np

__all__ = ["column_moments", "compiled_formula", "row_moments", "sum_draws", "sum_scores", "top_moments"]


@cache
def compiled_formula(formula: Callable[..., Any], n_enroll: int, n_test: int) -> Callable[..., None]:
    """Compile ``loop(scores, enroll, test, constants, out)``, which applies a formula to every pair of a matrix.

    A pass is as fast as copying the scores; NumPy, with a temporary for every operation, takes five times as long.
    """
    function = numba.njit(formula, error_model="numpy")

    def by_enroll(scores, enroll, test, constants, out):  # type: ignore[no-untyped-def]
        for i in range(scores.shape[0]):
            a, b = enroll[0][i], enroll[1][i]
            for j in range(scores.shape[1]):
                out[i, j] = function(scores[i, j], a, b, *constants)

    def by_test(scores, enroll, test, constants, out):  # type: ignore[no-untyped-def]
        for i in range(scores.shape[0]):
            for j in range(scores.shape[1]):
                out[i, j] = function(scores[i, j], test[0][j], test[1][j], *constants)

    def by_both(scores, enroll, test, constants, out):  # type: ignore[no-untyped-def]
        for i in range(scores.shape[0]):
            a, b = enroll[0][i], enroll[1][i]
            for j in range(scores.shape[1]):
                out[i, j] = function(scores[i, j], a, b, test[0][j], test[1][j], *constants)

    loop = {(2, 0): by_enroll, (0, 2): by_test, (2, 2): by_both}[n_enroll, n_test]
    compiled: Callable[..., None] = numba.njit(loop, nogil=True, error_model="numpy")
    return compiled


# Mean and standard deviation in one pass: deviations are taken from one of the values themselves, whose distance from
# the mean is at most the root of n standard deviations, so that few digits are lost. NaN is a missing score.


@numba.njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def row_moments(scores, shift, scale, ddof, mean, std):  # type: ignore[no-untyped-def]
    """Mean and standard deviation of the rows of (scores - shift) * scale; shift and scale are by column."""
    for i in range(scores.shape[0]):
        first, number, total, squares = np.nan, 0, 0.0, 0.0
        for j in range(scores.shape[1]):
            first = (np.float64(scores[i, j]) - shift[j]) * scale[j]
            if first == first:
                break
        for j in range(scores.shape[1]):
            d = (np.float64(scores[i, j]) - shift[j]) * scale[j] - first
            present = d == d
            d = d if present else 0.0
            number += present
            total += d
            squares += d * d
        mean[i] = first + total / number
        std[i] = np.sqrt(max(squares - total * total / number, 0.0) / max(number - ddof, 1)) if number else np.nan


@numba.njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract", "nsz"})
def column_moments(scores, shift, scale, ddof, mean, std):  # type: ignore[no-untyped-def]
    """Mean and standard deviation of the columns of (scores - shift) * scale; NaN for a column with a missing score."""
    n_rows, n_cols = scores.shape
    first, total, squares = np.empty(n_cols), np.zeros(n_cols), np.zeros(n_cols)
    for j in range(n_cols):
        first[j] = (np.float64(scores[0, j]) - shift[0]) * scale[0]
    for i in range(n_rows % 4):
        for j in range(n_cols):
            a = (np.float64(scores[i, j]) - shift[i]) * scale[i] - first[j]
            total[j] += a
            squares[j] += a * a
    for i in range(n_rows % 4, n_rows, 4):  # four rows at a time: the sums are loaded and stored less often
        for j in range(n_cols):
            a = (np.float64(scores[i, j]) - shift[i]) * scale[i] - first[j]
            b = (np.float64(scores[i + 1, j]) - shift[i + 1]) * scale[i + 1] - first[j]
            c = (np.float64(scores[i + 2, j]) - shift[i + 2]) * scale[i + 2] - first[j]
            d = (np.float64(scores[i + 3, j]) - shift[i + 3]) * scale[i + 3] - first[j]
            total[j] += (a + b) + (c + d)
            squares[j] += (a * a + b * b) + (c * c + d * d)
    for j in range(n_cols):
        mean[j] = first[j] + total[j] / n_rows
        spread = squares[j] - total[j] * total[j] / n_rows  # max would hide NaN
        std[j] = np.sqrt((0.0 if spread < 0.0 else spread) / max(n_rows - ddof, 1))


@numba.njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def _rough_moments(row):  # type: ignore[no-untyped-def]
    """Mean and standard deviation of a row in its own precision; NaN if a score is missing."""
    total, squares = row[0] * 0, row[0] * 0
    for j in range(row.shape[0]):
        total += row[j]
        squares += row[j] * row[j]
    mean = np.float64(total) / row.shape[0]
    return mean, np.sqrt(max(np.float64(squares) / row.shape[0] - mean * mean, 0.0))


@numba.njit(nogil=True, cache=True, error_model="numpy")
def top_moments(scores, k, ddof, mean, std):  # type: ignore[no-untyped-def]
    """Mean and standard deviation of the k highest scores of each row.

    Rows have their k-th highest score at about the same number of standard deviations above their mean, so the rows
    before tell where to look. A row with fewer than k scores there is searched whole: any guess gives the same result.
    """
    width = scores.shape[1]
    values, spare, best = np.empty(width, scores.dtype), np.empty(width, scores.dtype), np.empty(k, scores.dtype)
    place, spread = np.nan, 0.1  # of the k-th highest score, in standard deviations, and how much that varies
    for i in range(scores.shape[0]):
        center, scale = _rough_moments(scores[i])
        threshold = values.dtype.type(center + (place - 4 * spread) * scale)
        size = 0
        for j in range(width):  # every score is written, and kept if it is high enough: there is no branch to guess
            values[size] = scores[i, j]
            size += scores[i, j] >= threshold
        if size < k:
            size = 0
            for j in range(width):
                values[size] = scores[i, j]
                size += scores[i, j] == scores[i, j]
        count = min(k, size)
        _largest(values, spare, size, count, best)
        total, squares, lowest = 0.0, 0.0, np.inf
        for s in range(count):
            total += np.float64(best[s]) - np.float64(best[0])
            lowest = min(lowest, np.float64(best[s]))
        middle = np.float64(best[0]) + total / count if count else np.nan
        for s in range(count):
            squares += (np.float64(best[s]) - middle) ** 2
        mean[i] = middle
        std[i] = np.sqrt(squares / max(count - ddof, 1)) if count else np.nan
        if scale > 0 and count == k:
            found = (lowest - center) / scale
            spread += 0.1 * (abs(found - place) - spread) if place == place else 0.0
            place = place + 0.2 * (found - place) if place == place else found


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _largest(values, spare, size, k, best):  # type: ignore[no-untyped-def]
    """Put the k largest of ``values[:size]`` into ``best``, in any order; ``values`` and ``spare`` are used up."""
    done = 0
    while done < k:
        a, b, c = values[0], values[size >> 1], values[size - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        above, below = 0, 0
        for s in range(size):
            x = values[s]
            spare[above] = x
            values[below] = x
            above += x > pivot
            below += x < pivot
        if above >= k - done:
            values, spare, size = spare, values, above
            if size == k - done:
                best[done:k] = values[:size]
                return
            continue
        best[done : done + above] = spare[:above]
        equal = min(size - above - below, k - done - above)
        best[done + above : done + above + equal] = pivot
        done += above + equal
        size = below


@numba.njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def sum_scores(scores, center, rows, cols, squares, missing):  # type: ignore[no-untyped-def]
    """Return sums of (scores - center), of their squares by row and by column, and how many scores a row misses."""
    for i in range(scores.shape[0]):
        total, square, absent = 0.0, 0.0, 0
        for j in range(scores.shape[1]):
            s = np.float64(scores[i, j]) - center
            present = s == s
            s = s if present else 0.0
            absent += not present
            total += s
            square += s * s
            cols[j] += s
        rows[i], squares[i], missing[i] = total, square, absent


@numba.njit(nogil=True, cache=True, error_model="numpy")
def sum_draws(times, enroll, test, loss, starts, sums, losses):  # type: ignore[no-untyped-def]
    """Add up the weights of the trials of each run, and their weighted losses, in several draws of speakers at once."""
    for run in range(sums.shape[0]):
        for at in range(starts[run], starts[run + 1]):
            one, other = times[enroll[at]], times[test[at]]
            for draw in range(times.shape[1]):
                weight = one[draw] * other[draw]
                sums[run, draw] += weight
                losses[draw] += weight * loss[at]
