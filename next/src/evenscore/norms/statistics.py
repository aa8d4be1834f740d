"""Mean and standard deviation of cohort scores, row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.large import map_rows
from evenscore.norms.options import NormOptions

__all__ = ["CohortError", "Statistics", "location_scale", "nonzero_std", "row_statistics"]

Array = npt.NDArray[Any]
Statistics = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]  #: mean and standard deviation of each row

_MAD_TO_STD = 1.4826022185056018  # 1 / the 0.75 quantile of the normal distribution
_EQUAL = 1e-14  # relative to the mean: a smaller standard deviation is rounding


class CohortError(InputError):
    """Cohort scores that do not determine a normalized score."""

    def __init__(self, side: str, row: int, problem: str) -> None:
        self.side, self.row, self.problem = side, row, problem
        super().__init__(f"{side} {row}: {problem}")

    def with_id(self, name: str) -> InputError:
        """Return the same error with the id of the enrolment or test in place of its position."""
        return InputError(f"{self.side} {name!r}: {self.problem}")


def row_statistics(
    scores: Any, options: NormOptions, k: int | None, side: str, transform: Callable[[Array], Array] | None = None
) -> Statistics:
    """Return mean and standard deviation of each row of cohort scores.

    Parameters
    ----------
    scores
        Rows of cohort scores: anything that `map_rows` takes; NaN where a score is missing.
    options
        How they are computed.
    k
        How many of the highest scores to take; None takes all.
    side
        What the rows are, for messages: ``"enrolment"`` or ``"test"``.
    transform
        Applied to the rows first, as Z-norm in ZT-norm.

    Returns
    -------
    tuple of arrays
        Both NaN for rows without scores.

    Examples
    --------
    >>> row_statistics(np.array([[0.0, 1.0, 3.0, np.nan]]), NormOptions(), 2, "test")
    (array([2.]), array([1.]))
    """

    def block(rows: Array) -> Array:
        rows = rows if transform is None else transform(rows)
        return np.stack(location_scale(rows, options, k), axis=1)

    mean, std = map_rows(block, scores, 2).T
    return mean, nonzero_std(mean, std, options, side)


def nonzero_std(mean: Array, std: Array, options: NormOptions, side: str) -> npt.NDArray[np.float64]:
    """Return what scores are divided by: standard deviations that are zero are raised, or an error."""
    if options.std_floor > 0:
        return np.maximum(std, options.std_floor)
    zero = std <= np.maximum(_EQUAL * np.abs(mean), 1e-30)
    if zero.any() and options.zero_std == "error":
        problem = "its cohort scores are all equal; take a larger cohort, or set std_floor, or zero_std=one"
        raise CohortError(side, int(np.argwhere(zero)[0][0]), problem)
    return np.where(zero, 1.0, std)


def location_scale(rows: Array, options: NormOptions, k: int | None = None) -> Statistics:
    """Return location and scale of the k highest scores of each row, or of all; the rows are overwritten.

    Examples
    --------
    >>> location_scale(np.array([[0.0, 1.0, 5.0]]), NormOptions(statistic="median"))
    (array([1.]), array([1.48260222]))
    """
    missing = np.isnan(rows)
    has_missing = bool(missing.any())
    if has_missing:
        rows[missing] = -np.inf
    rows = _highest(rows, k, options.drop_top)
    if options.statistic != "mean":
        return _robust(rows, options)
    if has_missing:
        return _mean_std_of_present(rows, options.ddof)
    count, ones = rows.shape[1], np.ones(rows.shape[1], rows.dtype)
    if count == 0:
        return np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    rough = rows @ ones / count
    centered = rows - rough[:, None]
    rest = (centered @ ones).astype(np.float64) / count
    squares = np.vecdot(centered, centered).astype(np.float64) - count * rest**2
    return rough + rest, np.sqrt(np.maximum(squares, 0.0) / max(count - options.ddof, 1))


def _highest(rows: Array, k: int | None, drop: int) -> Array:
    """Return the k highest scores of each row, in any order, after the ``drop`` very highest."""
    size = rows.shape[1]
    first = 0 if k is None else max(size - drop - k, 0)
    cuts = [cut for cut in (first, size - drop) if 0 < cut < size]
    if cuts:
        rows.partition(cuts, axis=1)
    return rows[:, first : size - drop]


def _mean_std_of_present(rows: Array, ddof: int) -> Statistics:
    """Return mean and standard deviation of the scores of each row that are not missing (-inf)."""
    present = rows > -np.inf
    count = present.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(present, rows, 0).sum(axis=1, dtype=np.float64) / count
        centered = np.where(present, rows - mean[:, None], 0)
        std = np.sqrt(np.vecdot(centered, centered) / np.maximum(count - ddof, 1))
    return np.where(count > 0, mean, np.nan), np.where(count > 0, std, np.nan)


def _robust(rows: Array, options: NormOptions) -> Statistics:
    mean, std = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    for at, row in enumerate(np.sort(rows, axis=1).astype(np.float64)):
        row = row[row > -np.inf]
        if options.statistic == "trimmed":
            cut = int(options.trim * len(row))
            row = row[cut : len(row) - cut]
        if not len(row):
            continue
        if options.statistic == "median":
            mean[at] = np.median(row)
            std[at] = _MAD_TO_STD * np.median(np.abs(row - mean[at]))
        else:
            mean[at] = row.mean()
            std[at] = np.sqrt(((row - mean[at]) ** 2).sum() / max(len(row) - options.ddof, 1))
    return mean, std
