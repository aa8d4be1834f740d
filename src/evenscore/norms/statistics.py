"""Location and scale of cohort scores, for each row and for each speaker that must be left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.compiled import few
from evenscore.errors import InputError
from evenscore.norms.few_scores import Found, location_scale
from evenscore.norms.options import NormOptions
from evenscore.norms.sides import NO_GROUP, Codes, Groups
from evenscore.tables.ids import Ids, shown
from evenscore.threads import in_parallel

__all__ = ["LeftOut", "Statistics", "Summary", "column_statistics", "row_statistics"]

_STATISTIC = {"mean": 0, "trimmed": 1, "median": 2}  # few_scores.MEAN, TRIMMED, MEDIAN


@dataclass(frozen=True)
class Summary:
    """What to compute of a row: of its k highest scores after the ``drop`` very highest, which location and scale."""

    k: int
    drop: int
    whole: bool
    statistic: int
    trim: float
    ddof: int

    @classmethod
    def of(cls, options: NormOptions, method: str, size: int) -> Summary:
        """Return the summary that the options ask for in a cohort of this size."""
        k = options.count(method, size)
        return cls(
            k=k,
            drop=options.drop_top,
            whole=k == size,
            statistic=_STATISTIC[options.statistic],
            trim=float(options.trim),
            ddof=options.ddof,
        )

    @property
    def how(self) -> tuple[int, int, int, float, int]:
        """What the loops take, in their order."""
        return self.k, self.drop, self.statistic, self.trim, self.ddof

    @property
    def plain(self) -> bool:
        """Whether it is the mean and standard deviation of everything."""
        return self.whole and self.statistic == 0


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Pairs of groups, one pair for each column of a table of statistics; NO_GROUP leaves nothing out."""

    first: Codes
    second: Codes

    @property
    def nothing(self) -> bool:
        """Whether there is a single column, which leaves out nothing."""
        return len(self.first) == 1 and self.first[0] == self.second[0] == NO_GROUP

    @classmethod
    def one(cls, groups: Codes) -> LeftOut:
        """Leave out nothing in the first column, and one of these groups in each of the others."""
        first = np.concatenate([[NO_GROUP], groups]).astype(np.int64)
        return cls(first, np.full(len(first), NO_GROUP, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Statistics:
    """Count, location and scale of cohort scores; a table has a row for each element, a column for each `LeftOut`."""

    count: npt.NDArray[np.int64]
    mean: npt.NDArray[np.float64]
    std: npt.NDArray[np.float64]

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> Statistics:
        """Return statistics that leave a score as it is, to be filled."""
        return cls(np.ones(shape, dtype=np.int64), np.zeros(shape), np.ones(shape))

    def fill(self, at: Any, found: Found) -> None:
        """Set some entries."""
        self.count[at], self.mean[at], self.std[at] = found

    def take(self, rows: Codes) -> Statistics:
        """Return the statistics of some rows."""
        return Statistics(self.count[rows], self.mean[rows], self.std[rows])

    def settled(self, options: NormOptions, ids: Ids, what: str) -> Statistics:
        """Return them with the floor and the policy for zero; where no score is left, all is NaN."""
        std = self.std
        if options.std_floor > 0:
            std = np.maximum(std, options.std_floor)
            zero = np.zeros(std.shape, dtype=bool)
        else:
            with np.errstate(invalid="ignore"):  # NaN where nothing is left
                zero = (self.count > 0) & (std <= 1e-14 * np.abs(self.mean))
        if zero.any():
            if options.zero_std == "error":
                rows = np.flatnonzero(zero.reshape(len(ids), -1).any(axis=1))
                raise InputError(
                    f"the cohort scores of {what} {shown(ids[rows])} have a standard deviation of zero; "
                    "give a std_floor, zero_std='one', or a larger cohort"
                )
            std = np.where(zero, 1.0, std)
        if (self.count == 0).any():
            std = np.where(self.count == 0, np.nan, std)
        return Statistics(self.count, self.mean, std)


def row_statistics(
    X: npt.NDArray[Any],
    summary: Summary,
    groups: Groups | None = None,
    left_out: LeftOut | None = None,
    needed: npt.NDArray[np.bool_] | None = None,
    *,
    size: int | None = None,
) -> Statistics:
    """Return the statistics of each row of X; with ``left_out``, a table with a column for each of its pairs.

    ``needed`` tells which entries of the table to compute, ``size`` how many scores there are if X is only a piece.
    """
    size = X.size if size is None else size
    if left_out is None or groups is None or left_out.nothing:
        found = _simple_rows(X, summary, size)
        return found if left_out is None else Statistics(found.count[:, None], found.mean[:, None], found.std[:, None])
    table = Statistics.empty((X.shape[0], len(left_out.first)))
    if needed is None:
        needed = np.ones(table.count.shape, dtype=bool)
    if few(size, len(left_out.first)):
        for p, pair in enumerate(zip(left_out.first, left_out.second, strict=True)):
            rows = np.flatnonzero(needed[:, p])
            kept = np.where((groups.code != NO_GROUP) & np.isin(groups.code, pair), np.nan, X[rows])
            table.fill((rows, p), location_scale(kept, *summary.how))
        return table
    pairs = (left_out.first, left_out.second, needed)
    if summary.plain:
        from evenscore.norms.kernel_moments import moments_without

        in_parallel(
            lambda start, stop: moments_without(
                X, groups.code, groups.start, groups.member, *pairs, summary.ddof, start, stop, *_arrays(table)
            ),
            *X.shape,
        )
        return table
    sizes = np.append(groups.sizes, 0)  # the last entry serves NO_GROUP
    most = int((sizes[left_out.first] + sizes[left_out.second]).max())
    _ranked(X, summary, groups, pairs, most, table)
    return table


def column_statistics(
    X: npt.NDArray[Any],
    ddof: int,
    shift: npt.NDArray[np.float64] | None = None,
    weight: npt.NDArray[np.float64] | None = None,
) -> Statistics:
    """Return mean and standard deviation of each column of X, or of (X - shift) * weight by row."""
    if few(X.size):
        scaled = X if shift is None or weight is None else (X - shift[:, None]) * weight[:, None]
        return Statistics(*location_scale(scaled.T, len(X), 0, ddof=ddof))
    from evenscore.norms.kernel_moments import column_moments

    found = Statistics.empty((X.shape[1],))
    if shift is None or weight is None:
        shift, weight = _unchanged(len(X))
    in_parallel(
        lambda start, stop: column_moments(X, shift, weight, ddof, start, stop, *_arrays(found)),
        X.shape[1],
        X.shape[0],
    )
    return found


def scaled_row_statistics(
    X: npt.NDArray[Any], ddof: int, shift: npt.NDArray[np.float64], weight: npt.NDArray[np.float64], size: int
) -> Statistics:
    """Return mean and standard deviation of each row of (X - shift) * weight by column."""
    if few(size):
        return Statistics(*location_scale((X - shift) * weight, X.shape[1], 0, ddof=ddof))
    from evenscore.norms.kernel_moments import row_moments

    found = Statistics.empty((X.shape[0],))
    in_parallel(lambda start, stop: row_moments(X, shift, weight, ddof, start, stop, *_arrays(found)), *X.shape)
    return found


def scaled_row_tables(
    X: npt.NDArray[Any],
    summary: Summary,
    shift: npt.NDArray[np.float64],
    weight: npt.NDArray[np.float64],
    needed: npt.NDArray[np.bool_],
    size: int,
) -> Statistics:
    """Return the statistics of each row of (X - shift[p]) * weight[p] by column, for each p."""
    table = Statistics.empty((X.shape[0], len(shift)))
    if few(size, len(shift)):
        for p in range(len(shift)):
            rows = np.flatnonzero(needed[:, p])
            table.fill((rows, p), location_scale((X[rows] - shift[p]) * weight[p], *summary.how))
        return table
    from evenscore.norms.kernel_ranks import scaled_tables

    in_parallel(
        lambda start, stop: scaled_tables(X, shift, weight, needed, *summary.how, start, stop, *_arrays(table)),
        X.shape[0],
        X.shape[1] * len(shift),
    )
    return table


def cross_statistics(
    X: npt.NDArray[Any], members: tuple[npt.NDArray[Any], ...], summary: Summary, rows: int
) -> Statistics:
    """Return the statistics of each row over the columns that another side ranks highest: row i, the p-th ranking.

    ``members`` are the group of each column, the group of each row (its columns are passed over in the ranking), the
    rankings, their lengths, and which entries are needed; ``rows`` is the number of rows if X is only a piece.
    """
    code, own, picked, length, needed = members
    table = Statistics.empty(needed.shape)
    if few(rows, picked.size):
        for p in range(len(picked)):
            at, columns = np.flatnonzero(needed[:, p]), picked[p, : length[p]]
            ranked = (code[columns] == NO_GROUP) | (code[columns] != own[at, None])
            rank = np.cumsum(ranked, axis=1) - 1
            used = ranked & (rank >= summary.drop) & (rank < summary.drop + summary.k)
            values = np.where(used, X[np.ix_(at, columns)], np.nan)
            table.fill((at, p), location_scale(values, len(columns), 0, summary.statistic, summary.trim, summary.ddof))
        return table
    from evenscore.norms.kernel_ranks import cross_tables

    in_parallel(
        lambda start, stop: cross_tables(X, *members, *summary.how, start, stop, *_arrays(table)),
        len(X),
        len(picked) * summary.k,
    )
    return table


def _simple_rows(X: npt.NDArray[Any], summary: Summary, size: int) -> Statistics:
    if few(size):
        return Statistics(*location_scale(X, *summary.how))
    found = Statistics.empty((X.shape[0],))
    if summary.plain:
        from evenscore.norms.kernel_moments import row_moments

        unchanged = _unchanged(X.shape[1])
        in_parallel(
            lambda start, stop: row_moments(X, *unchanged, summary.ddof, start, stop, *_arrays(found)), *X.shape
        )
    elif summary.statistic == 0:
        from evenscore.norms.kernel_ranks import top_moments

        in_parallel(
            lambda start, stop: top_moments(X, summary.k, summary.drop, summary.ddof, start, stop, *_arrays(found)),
            *X.shape,
        )
    else:
        nothing = np.full(1, NO_GROUP, dtype=np.int64)
        table = Statistics(found.count[:, None], found.mean[:, None], found.std[:, None])
        pairs = (nothing, nothing, np.ones((len(X), 1), dtype=bool))
        _ranked(X, summary, Groups(np.full(X.shape[1], NO_GROUP, dtype=np.int64), 0), pairs, 0, table)
    return found


def _ranked(
    X: npt.NDArray[Any], summary: Summary, groups: Groups, pairs: tuple[Any, Any, Any], most: int, table: Statistics
) -> None:
    from evenscore.norms.kernel_ranks import ranked_tables

    length = min(X.shape[1], summary.k + summary.drop + most)
    in_parallel(
        lambda start, stop: ranked_tables(
            X, groups.code, groups.number, *pairs, length, *summary.how, start, stop, *_arrays(table)
        ),
        X.shape[0],
        8 * X.shape[1],
    )


def _unchanged(size: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return a shift and a weight that change nothing."""
    return np.zeros(size), np.ones(size)


def _arrays(found: Statistics) -> tuple[npt.NDArray[Any], ...]:
    return found.count, found.mean, found.std
