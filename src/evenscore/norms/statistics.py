"""Location and scale of cohort scores, for each row and for each speaker that must be left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.compiled import few
from evenscore.errors import InputError
from evenscore.norms.few_scores import MEAN, Found, location_scale
from evenscore.norms.options import NormOptions
from evenscore.norms.sides import NO_GROUP, Codes, Groups, Side
from evenscore.tables.arrays import LARGEST
from evenscore.tables.ids import Ids, shown
from evenscore.threads import in_parallel, product, thread_count

__all__ = [
    "Affine",
    "LeftOut",
    "Statistics",
    "Summary",
    "cross_statistics",
    "one_row_statistics",
    "row_statistics",
    "scaled_tables",
    "side_statistics",
    "tables_without",
]

Affine = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]  #: what to subtract from scores, then to multiply with

_PRODUCTS = 8  # numbers that a matrix product adds up in the time in which one is looked up
_COLUMNS = 1024  # of a matrix product at a time
_LOST = 1e-4  # share of the squares that may be left as variance; below it, digits are lost
_SORTED = 1000  # so many numbers the compiled loop sorts before NumPy does
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

    def take(self, at: Any) -> Statistics:
        """Return some of the statistics."""
        return Statistics(self.count[at], self.mean[at], self.std[at])

    def settled(self, options: NormOptions, ids: Ids, what: str) -> Statistics:
        """Return them with the floor and the policy for zero; where no score is left, all is NaN."""
        std = self.std
        if options.std_floor > 0:
            std = np.maximum(std, options.std_floor)
            zero = np.zeros(std.shape, dtype=bool)
        else:
            zero = (self.count > 0) & (std <= np.maximum(1e-14 * np.abs(self.mean), 1 / LARGEST))
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


def side_statistics(side: Side, summary: Summary, affine: Affine | None = None) -> Statistics:
    """Return the statistics of each row of a side, or of (scores - shift) * weight by cohort member.

    All cores read pieces of it and sum them up at the same time.
    """
    if side.by_column and summary.plain and not side.masks:
        return _column_statistics(side.block, summary.ddof, affine)
    found = Statistics.empty((side.shape[0],))

    def work(start: int, stop: int) -> None:
        for rows in side.pieces(within=(start, stop), share=thread_count()):
            part = row_statistics(side.scores(rows), summary, affine, size=side.size)
            found.fill(rows, (part.count, part.mean, part.std))

    in_parallel(work, *side.shape)
    return found


def one_row_statistics(row: npt.NDArray[np.float64], summary: Summary) -> tuple[int, float, float]:
    """Return count, location and scale of a single row, as of trials that come one by one; -1 if one is infinite."""
    if summary.statistic != MEAN and summary.k > _SORTED:
        if np.isinf(row).any():
            return -1, np.nan, np.nan
        count, mean, std = location_scale(row[None], *summary.how)
        return int(count[0]), float(mean[0]), float(std[0])
    from evenscore.norms.kernel_ranks import one_row

    found: tuple[int, float, float] = one_row(row, *summary.how)
    return found


def row_statistics(
    X: npt.NDArray[Any], summary: Summary, affine: Affine | None = None, *, size: int | None = None
) -> Statistics:
    """Return the statistics of each row of X, or of (X - shift) * weight by column.

    ``size`` is how many scores there are if X is only a piece.
    """
    size = X.size if size is None else size
    if few(size):
        return Statistics(*location_scale(X if affine is None else (X - affine[0]) * affine[1], *summary.how))
    if summary.plain:
        from evenscore.norms.kernel_moments import row_moments

        return _looped(row_moments, X, (*(affine or _unchanged(X.shape[1])), summary.ddof))
    every = np.ones((len(X), 1), dtype=bool)
    if affine is not None:
        return scaled_tables(X, summary, (affine[0][None], affine[1][None]), every, size).take((slice(None), 0))
    if summary.statistic == MEAN:
        from evenscore.norms.kernel_ranks import top_moments

        return _looped(top_moments, X, (summary.k, summary.drop, summary.ddof))
    nobody = Groups(np.full(X.shape[1], NO_GROUP, dtype=np.int64), 0)
    return _ranked(X, summary, nobody, LeftOut.one(nobody.code[:0]), every).take((slice(None), 0))


def _column_statistics(X: npt.NDArray[Any], ddof: int, affine: Affine | None) -> Statistics:
    """Return mean and standard deviation of each column of X, or of (X - shift) * weight by row."""
    if few(X.size):
        scaled = X if affine is None else (X - affine[0][:, None]) * affine[1][:, None]
        return Statistics(*location_scale(scaled.T, len(X), 0, ddof=ddof))
    from evenscore.norms.kernel_moments import column_moments

    return _looped(column_moments, X, (*(affine or _unchanged(len(X))), ddof), sizes=X.shape[::-1])


def tables_without(
    X: npt.NDArray[Any],
    summary: Summary,
    groups: Groups,
    left_out: LeftOut,
    needed: npt.NDArray[np.bool_] | None = None,
    *,
    size: int | None = None,
) -> Statistics:
    """Return the statistics of each row of X without each pair of groups: a table with a column for each pair.

    ``needed`` tells which entries of the table to compute, ``size`` how many scores there are if X is only a piece.
    """
    size, width = X.size if size is None else size, len(left_out.first)
    if width == 1 and left_out.first[0] == left_out.second[0] == NO_GROUP:
        return row_statistics(X, summary, size=size).take((slice(None), None))
    needed = np.ones((len(X), width), dtype=bool) if needed is None else needed
    if few(size, width):
        table = Statistics.empty(needed.shape)
        for p, pair in enumerate(zip(left_out.first, left_out.second, strict=True)):
            rows = np.flatnonzero(needed[:, p])
            kept = np.where((groups.code != NO_GROUP) & np.isin(groups.code, pair), np.nan, X[rows])
            table.fill((rows, p), location_scale(kept, *summary.how))
        return table
    if not summary.plain:
        return _ranked(X, summary, groups, left_out, needed)
    from evenscore.norms.kernel_moments import moments_without

    members = (groups.code, groups.start, groups.member, left_out.first, left_out.second, needed, summary.ddof)
    return _looped(moments_without, X, members, needed.shape)


def _ranked(
    X: npt.NDArray[Any], summary: Summary, groups: Groups, left_out: LeftOut, needed: npt.NDArray[np.bool_]
) -> Statistics:
    from evenscore.norms.kernel_ranks import ranked_tables

    sizes = np.append(groups.sizes, 0)  # the last entry serves NO_GROUP
    most = int((sizes[left_out.first] + sizes[left_out.second]).max())
    length = min(X.shape[1], summary.k + summary.drop + most)
    how = (groups.code, groups.number, left_out.first, left_out.second, needed, length, *summary.how)
    return _looped(ranked_tables, X, how, needed.shape, (X.shape[0], 8 * X.shape[1]))


def scaled_tables(
    X: npt.NDArray[Any], summary: Summary, affine: Affine, needed: npt.NDArray[np.bool_], size: int
) -> Statistics:
    """Return the statistics of each row of (X - shift[p]) * weight[p] by column, for each p."""
    shift, weight = affine
    if few(size, len(shift)):
        table = Statistics.empty(needed.shape)
        for p in range(len(shift)):
            rows = np.flatnonzero(needed[:, p])
            table.fill((rows, p), location_scale((X[rows] - shift[p]) * weight[p], *summary.how))
        return table
    from evenscore.norms.kernel_ranks import scaled_tables as loop

    return _looped(loop, X, (shift, weight, needed, *summary.how), needed.shape, (X.shape[0], X.shape[1] * len(shift)))


def cross_statistics(
    X: npt.NDArray[Any], members: tuple[npt.NDArray[Any], ...], summary: Summary, rows: int
) -> Statistics:
    """Return the statistics of each row over the columns that another side ranks highest: row i, the p-th ranking.

    ``members`` are the group of each column, the group of each row (its columns are passed over in the ranking), the
    rankings, their lengths, and which entries are needed; ``rows`` is the number of rows if X is only a piece.
    """
    code, own, picked, length, needed = members
    if summary.statistic == MEAN and (own == NO_GROUP).all() and _products_pay(X.shape[1], summary.k, needed):
        return _cross_products(X, members, summary)
    if few(rows, picked.size):
        table = Statistics.empty(needed.shape)
        for p in range(len(picked)):
            at, columns = np.flatnonzero(needed[:, p]), picked[p, : length[p]]
            ranked = (code[columns] == NO_GROUP) | (code[columns] != own[at, None])
            rank = np.cumsum(ranked, axis=1) - 1
            used = ranked & (rank >= summary.drop) & (rank < summary.drop + summary.k)
            values = np.where(used, X[np.ix_(at, columns)], np.nan)
            table.fill((at, p), location_scale(values, len(columns), 0, summary.statistic, summary.trim, summary.ddof))
        return table
    from evenscore.norms.kernel_ranks import cross_tables

    return _looped(cross_tables, X, (*members, *summary.how), needed.shape, (len(X), len(picked) * summary.k))


def _products_pay(members: int, k: int, needed: npt.NDArray[np.bool_]) -> bool:
    """Tell whether matrix products with all members are quicker than looking up k of them for each entry."""
    return bool(np.count_nonzero(needed) * k * _PRODUCTS > needed.size * members)


def _cross_products(X: npt.NDArray[Any], members: tuple[npt.NDArray[Any], ...], summary: Summary) -> Statistics:
    """Find `cross_statistics` of rows that pass over nobody by matrix products with who is picked.

    With d = x - (the row's mean), sum d and sum d^2 over those that are picked tell mean and variance. Where these are
    differences of nearly equal numbers, or where something is missing, the loop looks at the scores themselves.
    """
    code, own, picked, length, needed = members
    table, first, last = Statistics.empty(needed.shape), summary.drop, summary.drop + summary.k
    D = X.astype(np.float64)
    whole = ~np.isnan(D.sum(axis=1))
    center = np.where(whole, D.mean(axis=1), 0.0)
    D = np.where(whole[:, None], D - center[:, None], 0.0)
    squares, again = D * D, needed & ~whole[:, None]
    for start in range(0, len(picked), _COLUMNS):
        at = slice(start, start + _COLUMNS)
        chosen = np.zeros((len(length[at]), X.shape[1]))
        rank = np.arange(first, min(last, picked.shape[1]))
        p, s = np.nonzero(rank < length[at, None])
        chosen[p, picked[at][p, rank[s]]] = 1.0
        count = np.maximum(chosen.sum(axis=1), 1.0)
        total, square = product(D, chosen.T), product(squares, chosen.T)
        mean = total / count
        left = square - total * mean
        again[:, at] |= needed[:, at] & (left <= _LOST * square)
        std = np.sqrt(np.maximum(left, 0.0) / np.maximum(count - summary.ddof, 1.0))
        table.fill(
            (slice(None), at), (np.maximum(np.minimum(length[at], last) - first, 0), center[:, None] + mean, std)
        )
    rows = np.flatnonzero(again.any(axis=1))
    if len(rows):
        from evenscore.norms.kernel_ranks import cross_tables

        some = (code, own[rows], picked, length, again[rows])
        few_left = _looped(cross_tables, np.ascontiguousarray(X[rows]), (*some, *summary.how), some[4].shape)
        entries = np.nonzero(again[rows])
        table.fill(
            (rows[entries[0]], entries[1]), (few_left.count[entries], few_left.mean[entries], few_left.std[entries])
        )
    return table


def _looped(
    loop: Any,
    X: npt.NDArray[Any],
    arguments: tuple[Any, ...],
    shape: tuple[int, ...] | None = None,
    sizes: tuple[int, ...] | None = None,
) -> Statistics:
    """Let a compiled loop find statistics of this shape; ``sizes``: how many items it has, and the work of each."""
    sizes = X.shape if sizes is None else sizes
    found = Statistics.empty(sizes[:1] if shape is None else shape)
    arrays = (found.count, found.mean, found.std)
    in_parallel(lambda start, stop: loop(X, *arguments, start, stop, *arrays), *sizes)
    return found


def _unchanged(size: int) -> Affine:
    """Return a shift and a weight that change nothing."""
    return np.zeros(size), np.ones(size)
