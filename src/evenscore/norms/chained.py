"""ZT- and TZ-norm: one side normalizes the scores and the other side's cohort scores, then the other side follows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenscore.compiled import few
from evenscore.norms.adaptive import WHAT, by_pieces, exclusion
from evenscore.norms.options import NormOptions
from evenscore.norms.sides import NO_GROUP, Codes, Side
from evenscore.norms.statistics import (
    LeftOut,
    Statistics,
    Summary,
    column_statistics,
    row_statistics,
    scaled_row_statistics,
    scaled_row_tables,
)
from evenscore.norms.trial_scores import TrialScores
from evenscore.threads import in_parallel

__all__ = ["affine", "chain", "chain_without_own_speakers", "scaled_statistics"]

Affine = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]


def affine(found: Statistics) -> Affine:
    """Return what to subtract from and to multiply with a member's scores; NaN drops the member."""
    return np.ascontiguousarray(found.mean), 1.0 / found.std


def scaled_statistics(side: Side, cohort: Affine, method: str, options: NormOptions) -> Statistics:
    """Return the second side's statistics, of cohort scores that the first side has normalized."""
    shift, weight = cohort
    summary = Summary.of(options, method, side.shape[1])
    if side.columns is not None and summary.plain and not side.masks:
        return column_statistics(side.columns, summary.ddof, shift, weight).settled(options, side.ids, WHAT[side.name])

    size = side.shape[0] * side.shape[1]

    def statistics(X: npt.NDArray[np.floating]) -> Statistics:
        if summary.plain:
            return scaled_row_statistics(X, summary.ddof, shift, weight, size)
        table = scaled_row_tables(X, summary, shift[None], weight[None], np.ones((len(X), 1), dtype=bool), size)
        return Statistics(table.count[:, 0], table.mean[:, 0], table.std[:, 0])

    return by_pieces(side, statistics).settled(options, side.ids, WHAT[side.name])


def chain(table: TrialScores, enroll: Statistics, test: Statistics, enroll_first: bool) -> bool:
    """Normalize all trials by one side and then the other, in one pass; tell if all results are surely finite."""
    sides = (enroll.mean, 1.0 / enroll.std, test.mean, 1.0 / test.std)
    trials, out = table.trials, table.out
    if not trials.listed and not few(out.size):
        from evenscore.norms.kernel_apply import chain_matrix

        scores = np.ascontiguousarray(trials.scores)
        finite = np.ones(trials.shape[0], dtype=bool)
        how = (*sides, enroll_first)
        in_parallel(lambda start, stop: chain_matrix(scores, *how, start, stop, out, finite), *trials.shape)
        return bool(finite.all())
    row, column = table.spread(sides[:2], sides[2:])
    (mean, weight), (next_mean, next_weight) = (row, column) if enroll_first else (column, row)
    with np.errstate(over="ignore", invalid="ignore"):  # infinite results are refused in the end
        out[...] = ((table.raw(slice(None)) - mean) * weight - next_mean) * next_weight
    return bool(np.isfinite(out).all())


def chain_without_own_speakers(
    table: TrialScores, first: Side, second: Side, cohort: Side, method: str, options: NormOptions
) -> None:
    """Normalize trials by one side and then the other, each trial without its own speakers in all cohorts.

    A trial of first-side speaker h and second-side speaker g leaves out the columns of h and g of the cohort scores,
    and the members h and g of the second side's cohort. So the cohort is normalized once for each pair (h, g) of
    speakers that stand in a cohort, never for a trial.
    """
    _first_stage(table, first, second.speaker, method, options)
    spoken = [side.groups.present(first.speaker) for side in (cohort, second)]
    h = np.concatenate([[NO_GROUP], np.union1d(*spoken)]).astype(np.int64)
    column = np.zeros(cohort.groups.number + 1, dtype=np.int64)
    column[h[1:]] = np.arange(1, len(h))
    column = column[first.speaker]
    cohort_scores = cohort.scores(slice(0, cohort.shape[0]))
    for g in np.unique(second.speaker):
        left_out = LeftOut(h, np.full(len(h), g, dtype=np.int64))
        members = np.flatnonzero(second.speaker == g)
        used = _used(table, second, members, column, len(h))
        shift, weight = _cohort_by_pair(cohort_scores, cohort, second, left_out, used, method, options)
        _second_stage(table, second, members, (shift, weight), column, method, options)


def _first_stage(table: TrialScores, side: Side, other: Codes, method: str, options: NormOptions) -> None:
    summary = Summary.of(options, method, side.shape[1])
    left_out, column = exclusion(side, other)
    for rows in side.pieces(beside=25 * (len(left_out.first) + len(other))):
        needed = table.needed(side.name, rows, column, len(left_out.first))
        size = side.shape[0] * side.shape[1]
        found = row_statistics(side.scores(rows), summary, side.groups, left_out, needed, size=size)
        found = found.settled(options, side.ids[rows], WHAT[side.name])
        at = table.where(side.name, rows)
        mean, std = (table.expand(side.name, rows, values, column) for values in (found.mean, found.std))
        table.out[at] = (table.raw(at) - mean) / std


def _used(
    table: TrialScores, side: Side, rows: npt.NDArray[np.intp], column: Codes, width: int
) -> npt.NDArray[np.bool_]:
    needed = table.needed(side.name, rows, column, width)
    if needed is not None:
        return np.asarray(needed.any(axis=0))
    return np.isin(np.arange(width), column)


def _cohort_by_pair(
    X: npt.NDArray[np.floating],
    cohort: Side,
    second: Side,
    left_out: LeftOut,
    used: npt.NDArray[np.bool_],
    method: str,
    options: NormOptions,
) -> Affine:
    """Return for each pair of speakers how the cohort's scores are normalized; NaN drops a member."""
    summary = Summary.of(options, method, cohort.shape[1])
    needed = np.broadcast_to(used, (len(X), len(used))).copy()
    for p in np.flatnonzero(used):
        for group in {left_out.first[p], left_out.second[p]} - {NO_GROUP}:
            needed[second.groups.of(group), p] = False
    found = row_statistics(X, summary, cohort.groups, left_out, needed).settled(options, cohort.ids, WHAT["cohort"])
    shift = np.where(needed, found.mean, np.nan).T
    return np.ascontiguousarray(shift), np.ascontiguousarray(1.0 / found.std.T)


def _second_stage(
    table: TrialScores,
    side: Side,
    members: npt.NDArray[np.intp],
    cohort: Affine,
    column: Codes,
    method: str,
    options: NormOptions,
) -> None:
    summary = Summary.of(options, method, side.shape[1])
    width = len(cohort[0])
    step = max(1, int(64e6 // (side.shape[1] * side.itemsize * 2 + 25 * (width + len(column)) + 1)))
    for start in range(0, len(members), step):
        rows = members[start : start + step]
        needed = table.needed(side.name, rows, column, width)
        if needed is None:
            needed = np.broadcast_to(np.isin(np.arange(width), column), (len(rows), width)).copy()
        found = scaled_row_tables(side.scores(rows), summary, *cohort, needed, len(members) * side.shape[1])
        found = found.settled(options, side.ids[rows], WHAT[side.name])
        at = table.where(side.name, rows)
        mean, std = (table.expand(side.name, rows, values, column) for values in (found.mean, found.std))
        table.out[at] = (table.out[at] - mean) / std
