"""Norms of trials whose cohort depends on both sides, because their own speakers are left out of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.norms.options import NormOptions
from evenscore.norms.sides import NO_GROUP, Codes, Rows, Side, other_side
from evenscore.norms.statistics import (
    Affine,
    LeftOut,
    Statistics,
    Summary,
    scaled_tables,
    tables_without,
)
from evenscore.tables import ScoreBlocks, ScoreMatrix, ScoreTable, TrialList
from evenscore.tables.arrays import LARGEST, extremes, in_type, usable
from evenscore.tables.axis import Axis, as_axis
from evenscore.tables.ids import shown

__all__ = [
    "TrialScores",
    "chain_without_own_speakers",
    "finished",
    "one_trial",
    "row_of",
    "statistics_without_own",
]

Array = npt.NDArray[Any]
_ONE = {"enroll": "enrolment", "test": "test"}  # the ids of a single trial


@dataclass(frozen=True, eq=False)
class TrialScores:
    """The scores that some elements of a side take part in: read them, look up statistics, write results.

    Attributes
    ----------
    trials
        The trials whose scores are normalized, in memory.
    out
        Where results go, in the shape of the scores.
    """

    trials: Any
    out: Array

    @classmethod
    def of(cls, trials: ScoreTable) -> TrialScores:
        """Return the scores of trials in memory, with room for as many results."""
        scores = trials.tile.scores
        return cls(trials, np.zeros(scores.shape, dtype=np.float64 if trials.listed else scores.dtype))

    def where(self, side: str, rows: Rows) -> Any:
        """Return what picks the trials of these elements of one side out of ``raw`` and ``out``."""
        if not self.trials.listed:
            return (rows, slice(None)) if side == "enroll" else (slice(None), rows)
        order, start = self._by_element[side]
        if isinstance(rows, slice):
            return order[start[rows.start] : start[rows.stop]]
        return np.concatenate([order[start[row] : start[row + 1]] for row in rows] or [order[:0]])

    def needed(self, side: str, rows: Rows, columns: Codes, width: int) -> npt.NDArray[np.bool_] | None:
        """Return which entries of a table of statistics some trial looks up; None if it is all of them."""
        if not self.trials.listed:
            return None
        at = self.where(side, rows)
        needed = np.zeros((rows.stop - rows.start if isinstance(rows, slice) else len(rows), width), dtype=bool)
        needed[self._entries(side, rows, at, columns)] = True
        return needed

    def look_up(self, side: str, rows: Rows, columns: Codes, *tables: Array) -> tuple[Any, ...]:
        """Return the trials of these elements, and for each of them its entry of some tables.

        A table has a row for each of the elements; ``columns`` are those that the elements of the other side look up.
        """
        at = self.where(side, rows)
        if self.trials.listed:
            return at, *(table[self._entries(side, rows, at, columns)] for table in tables)
        wide = [table if table.shape[1] == 1 else table[:, columns] for table in tables]
        return at, *(table if side == "enroll" else table.T for table in wide)

    def raw(self, at: Any) -> Array:
        """Return the raw scores of some trials in double precision."""
        scores: Array = self.trials.scores[at].astype(np.float64)
        return scores

    def put(self, at: Any, values: Array) -> None:
        """Set the results of some trials."""
        self.out[at] = in_type(values, self.out.dtype)

    def add(self, at: Any, factor: float, mean: Array, std: Array) -> None:
        """Add the raw scores of some trials, less a location and by a scale, to their results."""
        self.put(at, self.out[at] + factor * ((self.raw(at) - mean) / std))

    def _entries(self, side: str, rows: Rows, at: Array, columns: Codes) -> tuple[Array, Array]:
        index = {"enroll": self.trials.enroll_index, "test": self.trials.test_index}
        own = index[side][at]
        place = own - rows.start if isinstance(rows, slice) else np.searchsorted(rows, own)
        return place, columns[index[other_side(side)][at]]

    @cached_property
    def _by_element(self) -> dict[str, tuple[Array, Array]]:
        """For each side the trials in the order of its elements, and where those of each element begin."""
        found = {}
        for side, index in (("enroll", self.trials.enroll_index), ("test", self.trials.test_index)):
            counts = np.bincount(index, minlength=self.trials.shape[side == "test"])
            found[side] = (np.argsort(index, kind="stable"), np.concatenate([[0], np.cumsum(counts)]))
        return found


def one_trial(
    score: float,
    cohort_scores: Mapping[str, npt.ArrayLike | None],
    members: Mapping[str, Axis | None],
    speakers: Mapping[str, str | None],
    **cohort: Any,
) -> ScoreBlocks:
    """Return the blocks of a single trial.

    Parameters
    ----------
    score
        Its raw score.
    cohort_scores, members, speakers
        By side (``"enroll"``, ``"test"``): a row of cohort scores, NaN where one is missing; the cohort members in its
        order, None if nobody is known; and the trial's speaker.
    **cohort
        The cohort against itself and its labels, as `ScoreBlocks` takes them.
    """
    own = {side: as_axis([name], "ids", speakers=[speakers[side]]) for side, name in _ONE.items()}
    blocks: dict[str, Any] = {}
    for side, values in cohort_scores.items():
        if values is None:
            continue
        row = row_of(values, side, members[side])
        axis = members[side] or _nobody(len(row))
        sides = (row[None, :], own[side], axis) if side == "enroll" else (row[:, None], axis, own[side])
        blocks[side] = ScoreMatrix(*sides, missing="nan")
    return ScoreBlocks(ScoreMatrix([[float(score)]], own["enroll"], own["test"]), **blocks, **cohort)


def row_of(values: npt.ArrayLike, side: str, members: Axis | None = None) -> npt.NDArray[np.float64]:
    """Return the cohort scores of one side of a single trial, one for each of these members, if they are known."""
    row = np.ascontiguousarray(values, dtype=np.float64)
    if row.ndim != 1:
        raise InputError(f"{side}_cohort_scores must be one row of scores, but has shape {row.shape}")
    if members is not None and len(row) != len(members):
        raise InputError(f"{side}_cohort_scores has {len(row)} scores, but the cohort has {len(members)} members")
    return row


@lru_cache(maxsize=4)
def _nobody(size: int) -> Axis:
    """Return so many members whose names nobody knows; made once, as thousands of texts take longer than a norm."""
    return as_axis(range(size), "ids")


def statistics_without_own(
    table: TrialScores, side: Side, other: Codes, summary: Summary, options: NormOptions | None = None
) -> Iterator[tuple[slice, Codes, Statistics]]:
    """Yield the statistics of some elements of a side, without each speaker whom the other side may bring.

    Column 0 of the statistics leaves out nobody; with them comes the column that each element of the other side looks
    up. ``other`` is the group of each of these; with ``options`` the statistics are settled.
    """
    groups = side.groups.present(other)
    column = np.zeros(side.groups.number + 1, dtype=np.int64)  # the last entry serves NO_GROUP
    column[groups] = 1 + np.arange(len(groups))
    column, left_out = column[other], LeftOut.one(groups)
    width = len(left_out.first)
    for rows in side.pieces(beside=25 * (width + len(other))):
        needed = table.needed(side.name, rows, column, width)
        found = tables_without(side.scores(rows), summary, side.groups, left_out, needed, size=side.size)
        yield rows, column, found if options is None else found.settled(options, side.ids[rows], side.what)


def finished(trials: Any, out: Array, sound: bool, vanished: str) -> ScoreMatrix | TrialList:
    """Return normalized trials: refuse what is no score, and settle what to do with trials whose cohort vanished.

    Parameters
    ----------
    trials, out
        Trials and results; NaN where the cohort vanished or the trial was missing.
    sound
        Whether all results are known to be scores, so that none needs to be looked at.
    vanished
        The policy for trials without a cohort, as in `NormOptions`.
    """
    out = in_type(out, trials.dtype)
    missing = 0 if trials.listed else trials.n_missing
    if sound:
        return trials.rescored(out, missing)
    found = extremes(out)
    if not found.are_scores:
        odd = _named(trials, ~(usable(out) | np.isnan(out)))
        raise InputError(f"the normalized score of {odd} is infinite, or beyond {LARGEST:g}; give a larger std_floor")
    if found.n_nan > missing:
        lost = np.isnan(out) if trials.listed else np.isnan(out) & ~trials.missing
        return _without_cohort(trials, out, lost, vanished)
    return trials.rescored(out, missing)


def _without_cohort(trials: Any, out: Array, lost: npt.NDArray[np.bool_], vanished: str) -> ScoreMatrix | TrialList:
    if vanished == "error":
        raise InputError(
            f"{np.count_nonzero(lost)} trials have no cohort left, once their own speakers and missing scores are "
            f"left out: {_named(trials, lost)}; give a larger cohort, or decide with vanished='raw' or 'missing'"
        )
    if vanished == "raw":
        out[lost] = np.asarray(trials.scores)[lost]
    if not trials.listed:
        return trials.rescored(out, int(np.count_nonzero(np.isnan(out))))
    return trials.rescored(out) if vanished == "raw" else trials.kept(~lost).rescored(out[~lost])


def _named(trials: ScoreTable, which: npt.NDArray[np.bool_]) -> str:
    """Return the first few of these trials for a message."""
    places, tile = np.flatnonzero(which), trials.tile
    pairs = [" ".join(trials.pair_at(tile, place)) for place in places[:3].tolist()]
    return shown(pairs) + (f" and {len(places) - 3} more" if len(places) > 3 else "")


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
        table.put(at, (table.raw(at) - mean) / std)
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
        table.put(at, (table.out[at] - mean) / std)
