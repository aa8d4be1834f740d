"""Norms that use one side or the sum of both: Z, T, S and their adaptive forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.compiled import few
from evenscore.errors import InputError
from evenscore.norms.few_scores import best_members
from evenscore.norms.options import NormOptions
from evenscore.norms.sides import Codes, Side
from evenscore.norms.statistics import LeftOut, Statistics, Summary, column_statistics, cross_statistics, row_statistics
from evenscore.norms.trial_scores import TrialScores
from evenscore.tables.ids import Ids, shown
from evenscore.threads import in_parallel, one_thread_per_product, thread_count

__all__ = ["add_cross_side", "add_own_side", "by_pieces", "exclusion", "side_statistics", "sum_sides"]

WHAT = {"enroll": "enrolment", "test": "test", "cohort": "cohort member"}


def exclusion(side: Side, other: Codes) -> tuple[LeftOut, Codes]:
    """Return which groups a side leaves out because of the other side's speakers, and each other element's column.

    Column 0 of a table of statistics leaves out nothing, each further column one of the groups.
    """
    groups = side.groups.present(other)
    column = np.zeros(side.groups.number + 1, dtype=np.int64)  # the last entry serves NO_GROUP
    column[groups] = 1 + np.arange(len(groups))
    return LeftOut.one(groups), column[other]


def side_statistics(side: Side, method: str, options: NormOptions) -> Statistics:
    """Return the statistics of each element of a side that do not depend on the other side."""
    summary = Summary.of(options, method, side.shape[1])
    if side.columns is not None and summary.plain and not side.masks:
        found = column_statistics(side.columns, summary.ddof)
    else:
        size = side.shape[0] * side.shape[1]
        found = by_pieces(side, lambda X: row_statistics(X, summary, size=size))
    return found.settled(options, side.ids, WHAT[side.name])


def by_pieces(side: Side, statistics: Callable[[npt.NDArray[Any]], Statistics]) -> Statistics:
    """Return the statistics of each row of a side; all cores read pieces of it and sum them up at the same time."""
    found = Statistics.empty((side.shape[0],))

    def work(start: int, stop: int) -> None:
        for rows in side.pieces(within=(start, stop), share=thread_count()):
            part = statistics(side.scores(rows))
            found.count[rows], found.mean[rows], found.std[rows] = part.count, part.mean, part.std

    with one_thread_per_product():
        in_parallel(work, side.shape[0], side.shape[1])
    return found


def sum_sides(table: TrialScores, enroll: Statistics | None, test: Statistics | None, factor: float) -> bool:
    """Write the sum of both sides' normalized scores (or one side's), times a factor, in one pass.

    Returns whether all results are known to be finite.
    """
    trials, out = table.trials, table.out
    rows, columns = len(trials.enroll_ids), len(trials.test_ids)
    row = (np.zeros(rows), np.zeros(rows)) if enroll is None else (enroll.mean, factor / enroll.std)
    column = (np.zeros(columns), np.zeros(columns)) if test is None else (test.mean, factor / test.std)
    scores = np.ascontiguousarray(trials.scores)
    if few(scores.size):
        (row_mean, row_weight), (column_mean, column_weight) = table.spread(row, column)
        with np.errstate(over="ignore", invalid="ignore"):  # infinite results are refused in the end
            out[...] = (scores - row_mean) * row_weight + (scores - column_mean) * column_weight
        return bool(np.isfinite(out).all())
    if not trials.listed:
        from evenscore.norms.kernel_apply import sum_matrix

        finite = np.ones(rows, dtype=bool)
        in_parallel(lambda start, stop: sum_matrix(scores, *row, *column, start, stop, out, finite), rows, columns)
        return bool(finite.all())
    from evenscore.norms.kernel_apply import sum_list

    pairs = (scores, trials.enroll_index, trials.test_index)
    in_parallel(lambda start, stop: sum_list(*pairs, *row, *column, start, stop, out), len(out))
    return False


def add_own_side(
    table: TrialScores, side: Side, other: Codes, method: str, options: NormOptions, factor: float
) -> None:
    """Add one side's normalized scores, times a factor, where each element ranks its own cohort."""
    summary = Summary.of(options, method, side.shape[1])
    left_out, column = exclusion(side, other)
    width = len(left_out.first)
    for rows in side.pieces(beside=25 * (width + len(other))):
        needed = table.needed(side.name, rows, column, width)
        size = side.shape[0] * side.shape[1]
        found = row_statistics(side.scores(rows), summary, side.groups, left_out, needed, size=size)
        _add(table, side, rows, found.settled(options, side.ids[rows], WHAT[side.name]), column, factor)


def add_cross_side(
    table: TrialScores, side: Side, other: Side, method: str, options: NormOptions, factor: float
) -> None:
    """Add one side's normalized scores, times a factor, where the other side's elements rank the cohort."""
    place = _shared_cohort(side, other)
    summary = Summary.of(options, method, side.shape[1])
    most = int(side.groups.sizes[side.groups.present(side.speaker)].max(initial=0))
    length = min(side.shape[1], summary.k + summary.drop + most)
    picked, taken = _ranked_members(other, length)
    picked = place[picked]
    column = np.arange(other.shape[0])
    for rows in side.pieces(beside=42 * other.shape[0]):
        X = side.scores(rows)
        own = side.speaker[rows]
        needed = table.needed(side.name, rows, column, other.shape[0])
        needed = np.ones((len(X), other.shape[0]), dtype=bool) if needed is None else needed
        found = cross_statistics(X, (side.groups.code, own, picked, taken, needed), summary, side.shape[0])
        _add(table, side, rows, found.settled(options, side.ids[rows], WHAT[side.name]), column, factor)


def _ranked_members(side: Side, length: int) -> tuple[npt.NDArray[np.int32], Codes]:
    """Return the cohort members that score highest with each element of a side, best first, and how many there are."""
    picked = np.zeros((side.shape[0], length), dtype=np.int32)
    taken = np.zeros(side.shape[0], dtype=np.int64)
    for rows in side.pieces():
        X = side.scores(rows)
        if few(*side.shape):
            picked[rows], taken[rows] = best_members(X, length)
            continue
        from evenscore.norms.kernel_ranks import ranked_members

        ranks, lengths = picked[rows], taken[rows]
        in_parallel(lambda start, stop: ranked_members(X, start, stop, ranks, lengths), *X.shape)  # noqa: B023
    return picked, taken


def _add(table: TrialScores, side: Side, rows: slice, found: Statistics, column: Codes, factor: float) -> None:
    at = table.where(side.name, rows)
    mean, std = (table.expand(side.name, rows, values, column) for values in (found.mean, found.std))
    table.out[at] += factor * ((table.raw(at) - mean) / std)


def _shared_cohort(side: Side, other: Side) -> npt.NDArray[np.int32]:
    """Return where each cohort member of the other side stands in this side's cohort."""
    odd = set(side.cohort_ids) ^ set(other.cohort_ids)
    if odd:
        raise InputError(
            "select='cross' needs the same cohort on both sides, but "
            f"{shown(sorted(odd))} {'is' if len(odd) == 1 else 'are'} only in one of them; use select='own'"
        )
    return _positions(side.cohort_ids, other.cohort_ids)


def _positions(ids: Ids, wanted: Ids) -> npt.NDArray[np.int32]:
    place = {name: at for at, name in enumerate(ids.tolist())}
    return np.fromiter((place[name] for name in wanted.tolist()), dtype=np.int32, count=len(wanted))
