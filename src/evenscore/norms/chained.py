"""ZT- and TZ-norm of trials whose own speakers are in the cohort: they cannot be taken apart."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenscore.norms.options import NormOptions
from evenscore.norms.sides import NO_GROUP, Codes, Side
from evenscore.norms.statistics import Affine, LeftOut, Summary, scaled_tables, tables_without
from evenscore.norms.trial_scores import TrialScores, statistics_without_own

__all__ = ["chain_without_own_speakers"]


def chain_without_own_speakers(
    table: TrialScores, first: Side, second: Side, cohort: Side, method: str, options: NormOptions
) -> None:
    """Normalize trials by one side and then the other, each trial without its own speakers in all cohorts.

    A trial of first-side speaker h and second-side speaker g leaves out the columns of h and g of the cohort scores,
    and the members h and g of the second side's cohort. So the cohort is normalized once for each pair (h, g) of
    speakers that stand in a cohort, never for a trial.
    """
    summary = Summary.of(options, method, first.shape[1])
    for rows, columns, found in statistics_without_own(table, first, second.speaker, summary, options):
        at, mean, std = table.look_up(first.name, rows, columns, found.mean, found.std)
        table.out[at] = (table.raw(at) - mean) / std
    spoken = [side.groups.present(first.speaker) for side in (cohort, second)]
    h = np.concatenate([[NO_GROUP], np.union1d(*spoken)]).astype(np.int64)
    column = np.zeros(cohort.groups.number + 1, dtype=np.int64)
    column[h[1:]] = np.arange(1, len(h))
    column = column[first.speaker]
    cohort_scores = cohort.scores(slice(0, cohort.shape[0]))
    for g in np.unique(second.speaker):
        left_out = LeftOut(h, np.full(len(h), g, dtype=np.int64))
        members = np.flatnonzero(second.speaker == g)
        needed = table.needed(second.name, members, column, len(h))
        used = np.isin(np.arange(len(h)), column) if needed is None else np.asarray(needed.any(axis=0))
        affine = _cohort_by_pair(cohort_scores, cohort, second, left_out, used, method, options)
        _second_stage(table, second, members, affine, column, method, options)


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
    found = tables_without(X, summary, cohort.groups, left_out, needed).settled(options, cohort.ids, cohort.what)
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
    step = max(1, int(64e6 // (side.shape[1] * side.block.itemsize * 2 + 25 * (width + len(column)) + 1)))
    for start in range(0, len(members), step):
        rows = members[start : start + step]
        needed = table.needed(side.name, rows, column, width)
        if needed is None:
            needed = np.broadcast_to(np.isin(np.arange(width), column), (len(rows), width)).copy()
        found = scaled_tables(side.scores(rows), summary, cohort, needed, len(members) * side.shape[1])
        found = found.settled(options, side.ids[rows], side.what)
        at, mean, std = table.look_up(side.name, rows, column, found.mean, found.std)
        table.out[at] = (table.out[at] - mean) / std
