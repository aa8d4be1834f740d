"""Mean and standard deviation of cohort scores, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.large import COMPILED, in_row_order, map_rows
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
    scores: Any, options: NormOptions, k: int | None, side: str, standardize: Statistics | None = None
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
    standardize
        Mean and standard deviation by which each column is normalized first, as by Z-norm in ZT-norm.

    Returns
    -------
    tuple of arrays
        Both NaN for rows without scores.

    Examples
    --------
    >>> row_statistics(np.array([[0.0, 1.0, 3.0, np.nan]]), NormOptions(), 2, "test")
    (array([2.]), array([1.]))
    """
    n_scores = scores.shape[0] * scores.shape[1]
    compiled = n_scores >= COMPILED and options.statistic == "mean" and options.drop_top == 0

    def block(rows: Array) -> Array:
        if compiled:
            return _compiled_statistics(rows, k, options.ddof, standardize)
        rows = in_row_order(rows) if standardize is None else (rows - standardize[0]) / standardize[1]
        return np.stack(location_scale(rows, options, k), axis=1)

    mean, std = np.ascontiguousarray(map_rows(block, scores, 2).T)  # loops over these vectorize
    return mean, nonzero_std(mean, std, options, side)


def _compiled_statistics(rows: Array, k: int | None, ddof: int, standardize: Statistics | None) -> Array:
    """Return mean and standard deviation of some rows, or of the columns that are their transpose."""
    from evenscore.kernels import column_moments, row_moments, top_moments

    (mean, std), by_row = np.empty((2, len(rows))), rows.strides[1] == rows.itemsize
    if k is not None and k < rows.shape[1]:
        rows = rows if by_row else in_row_order(rows)
        top_moments(rows, k, ddof, mean, std)
    else:
        shift, scale = (np.zeros(rows.shape[1]), np.ones(rows.shape[1])) if standardize is None else standardize
        if not by_row:
            column_moments(rows.T, shift, 1 / scale, ddof, mean, std)
        if by_row or np.isnan(mean).any():  # some scores are missing
            row_moments(rows if by_row else in_row_order(rows), shift, 1 / scale, ddof, mean, std)
    return np.stack([mean, std], axis=1)


def nonzero_std(
    mean: Array, std: Array, options: NormOptions, side: str, rows: Array | None = None
) -> npt.NDArray[np.float64]:
    """Return what scores are divided by: standard deviations that are zero are raised, or an error.

    ``rows`` are the positions that an error names, if they are not those of the numbers.
    """
    if options.std_floor > 0:
        return np.maximum(std, options.std_floor)
    zero = std <= np.maximum(_EQUAL * np.abs(mean), 1e-30)
    if not zero.any():
        return std
    if options.zero_std == "error":
        problem = "its cohort scores are all equal; take a larger cohort, or set std_floor, or zero_std=one"
        at = int(np.argwhere(zero)[0][0])
        raise CohortError(side, at if rows is None else int(rows[at]), problem)
    return np.where(zero, 1.0, std)


def location_scale(rows: Array, options: NormOptions, k: int | None = None) -> Statistics:
    """Return location and scale of the k highest scores of each row, or of all; the rows are overwritten.

    Examples
    --------
    >>> location_scale(np.array([[0.0, 1.0, 5.0]]), NormOptions(statistic="median"))
    (array([1.]), array([1.48260222]))
    """
    size = rows.shape[1]
    first, stop = 0 if k is None else max(size - options.drop_top - k, 0), max(size - options.drop_top, 0)
    cuts = np.array([cut for cut in (first, stop) if 0 < cut < size], np.intp)
    rows.partition(cuts, axis=1)
    has_missing = bool(np.isnan(rows[:, first:] @ np.ones(size - first, rows.dtype)).any())  # NaN is sorted to the end
    if has_missing:
        rows[np.isnan(rows)] = -np.inf
        rows.partition(cuts, axis=1)
    rows = rows[:, first:stop]
    if options.statistic != "mean":
        return _robust(rows, options)
    if has_missing or rows.shape[1] == 0:
        return _mean_std_of_present(rows, options.ddof)
    mean, std = _mean_std(rows, options.ddof)
    if rows.dtype == np.float32:  # scores that are almost equal, or whose squares float32 cannot hold
        doubtful = ~((std > 1e-4 * np.abs(mean)) & (std < np.inf))
        if doubtful.any():
            mean[doubtful], std[doubtful] = _mean_std(rows[doubtful].astype(np.float64), options.ddof)
    return mean, std


def _mean_std(rows: Array, ddof: int) -> Statistics:
    """Return mean and standard deviation of rows without missing scores."""
    count, ones = rows.shape[1], np.ones(rows.shape[1], rows.dtype)
    rough = rows @ ones / count
    centered = rows - rough[:, None]
    rest = (centered @ ones).astype(np.float64) / count
    with np.errstate(over="ignore"):
        squares = np.vecdot(centered, centered).astype(np.float64) - count * rest**2
    return rough + rest, np.sqrt(np.maximum(squares, 0.0) / max(count - ddof, 1))


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
