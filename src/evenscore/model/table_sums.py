"""Training statistics of scores, read tile by tile: one pass, or two for lists that are no matrices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.engine.engine import engine_for
from evenscore.errors import InputError
from evenscore.model.list_sums import ListedPairs, ListSums, independent_parts, pairs_of_list, sum_list
from evenscore.model.patterns import Exceptions, LabelledSums, SpeakerBlocks, pattern_of_key
from evenscore.model.sums import ClassSums, pilot, sum_tile, without_empty
from evenscore.progress import Progress, silent
from evenscore.tables.axis import Axis
from evenscore.tables.labels import NONTARGET, TARGET, UNKNOWN, Labels
from evenscore.tables.pair_values import UNLISTED, PairValues, labels_for, table_of_labels
from evenscore.tables.score_table import ScoreTable, Source
from evenscore.tables.tile import Place
from evenscore.tables.trial_list import TrialList

__all__ = ["TileSums", "pattern_of_labels", "sum_cohort", "sum_table"]

Index = npt.NDArray[np.intp]
_NOWHERE: Index = np.empty(0, dtype=np.intp)
_MOST_EXCEPTIONS = 2**28  # pairs that are kept in memory, 17 bytes each


@dataclass(frozen=True, kw_only=True, eq=False)
class TileSums:
    """Sums of some tiles, and which of their pairs are not scored or have no known label. They add up."""

    sums: ClassSums
    rows: Index
    columns: Index

    def __add__(self, other: TileSums) -> TileSums:
        if len(self.rows) + len(other.rows) > _MOST_EXCEPTIONS:
            raise InputError("too many pairs of the matrix are missing; give the scored pairs as a list of trials")
        return TileSums(
            sums=self.sums + other.sums,
            rows=np.concatenate([self.rows, other.rows]),
            columns=np.concatenate([self.columns, other.columns]),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Labelled:
    """What every tile needs: scores, labels, and a value near the scores."""

    source: Source
    labels: Labels
    center: float


def sum_table(
    scores: ScoreTable, labels: Any = None, *, client: Any = None, progress: Progress = silent
) -> list[LabelledSums]:
    """Return the sums that training needs, by independent parts.

    A matrix is passed over once. Of a list, a part that is a complete matrix of speakers takes nothing per trial;
    others are read a second time, and take 9 bytes for each trial, or a byte for each pair where more than half of
    them are listed.

    Parameters
    ----------
    scores
        The scores.
    labels
        As in `labels_for`.
    client
        A `distributed.Client` whose workers do it; None does it here.
    progress
        Called with ``"summing scores"`` or ``"listing pairs"`` and the fraction done.
    """
    if not scores.size:
        raise InputError(
            f"the {'list of trials' if scores.listed else 'score matrix'} is empty; there is nothing to train on"
        )
    values = labels_for(scores, labels, "error")
    if scores.listed:
        return _sum_list(scores, values, client, progress)
    return [_sum_matrix(scores, table_of_labels(scores, values), client, progress)]


def _sum_matrix(scores: ScoreTable, labels: Labels, client: Any, progress: Progress) -> LabelledSums:
    """Pass once over the tiles of a matrix; rows and columns without any score are left out."""
    total = _total(scores, labels, "summing scores", client, progress)
    kept = [counts.sum(axis=0) > 0 for counts in (total.sums.row_counts, total.sums.column_counts)]
    pattern = pattern_of_labels(labels, total.rows, total.columns, kept)
    return LabelledSums(sums=without_empty(total.sums), pattern=pattern)


def sum_cohort(cohort: ScoreTable, labels: Labels, *, client: Any = None, progress: Progress = silent) -> LabelledSums:
    """Pass once over the scores of a cohort against itself; all of its members stay."""
    labels = labels.align(cohort.enroll_ids, cohort.test_ids)
    total = _total(cohort, labels, "cohort against itself", client, progress)
    return LabelledSums(sums=total.sums, pattern=pattern_of_labels(labels, total.rows, total.columns))


def _total(scores: ScoreTable, labels: Labels, stage: str, client: Any, progress: Progress) -> TileSums:
    if labels.by_speaker:
        _ = labels.speaker_codes  # so that it is made once, not in every task
    first = scores.block(slice(0, 64), slice(0, 4096))
    shared = _Labelled(source=scores.source, labels=labels, center=pilot(first))
    total: TileSums = engine_for(client).total(_sum_tile, shared, scores.places(), stage=stage, progress=progress)
    return total


def _sum_tile(shared: _Labelled, place: Place) -> TileSums:
    tile = shared.source.read(place)
    scores = tile.scores
    sums = sum_tile(tile, shared.labels, shared.center)
    if sums.count.sum() == scores.size:
        return TileSums(sums=sums, rows=_NOWHERE, columns=_NOWHERE)
    rows, columns = np.nonzero(np.isnan(scores) | (shared.labels.of(tile) == UNKNOWN))
    return TileSums(sums=sums, rows=rows + tile.rows.start, columns=columns + tile.columns.start)


def pattern_of_labels(
    labels: Labels, rows: Index, columns: Index, kept: list[npt.NDArray[np.bool_]] | None = None
) -> SpeakerBlocks | Exceptions:
    """Return the pattern of labels where some pairs are missing, of the rows and columns that are kept."""
    kept = [np.ones(size, dtype=bool) for size in labels.shape] if kept is None else kept
    place = [np.cumsum(which) - 1 for which in kept]
    size = [int(np.count_nonzero(which)) for which in kept]
    inside = kept[0][rows] & kept[1][columns]
    if labels.by_speaker and not inside.any():
        row_codes, column_codes, number = labels.speaker_codes
        return SpeakerBlocks(row_codes=row_codes[kept[0]], column_codes=column_codes[kept[1]], n_speakers=number)
    absent_rows, absent_columns = place[0][rows[inside]], place[1][columns[inside]]
    rows, columns = _targets(labels)
    inside = kept[0][rows] & kept[1][columns]
    rows, columns = place[0][rows[inside]], place[1][columns[inside]]
    seen = ~np.isin(size[1] * rows + columns, size[1] * absent_rows + absent_columns)
    rows, columns = rows[seen], columns[seen]
    if not labels.by_speaker or 2 * len(absent_rows) > size[0] * size[1]:
        key = np.full(size, NONTARGET, dtype=np.int8)
        key[rows, columns] = TARGET
        key[absent_rows, absent_columns] = UNKNOWN
        return pattern_of_key(key)
    return Exceptions(
        n_rows=size[0],
        n_columns=size[1],
        background=True,
        rows=np.concatenate([rows, absent_rows]),
        columns=np.concatenate([columns, absent_columns]),
        labels=np.repeat(np.array([TARGET, UNKNOWN], dtype=np.int8), [len(rows), len(absent_rows)]),
    )


def _targets(labels: Labels) -> tuple[Index, Index]:
    """Return rows and columns of all target pairs."""
    if not labels.by_speaker:
        rows, columns = np.nonzero(labels.matrix == TARGET)
        return rows, columns
    row_codes, column_codes, number = labels.speaker_codes
    if labels.n_target > _MOST_EXCEPTIONS:
        raise InputError("there are too many target pairs beside missing ones; give a list of trials")
    order = np.argsort(column_codes, kind="stable")
    start = np.searchsorted(column_codes[order], np.arange(number + 1))
    row = np.flatnonzero(row_codes >= 0)
    first, count = start[row_codes[row]], np.diff(start)[row_codes[row]]
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return np.repeat(row, count), order[np.repeat(first, count) + within]


@dataclass(frozen=True, kw_only=True, eq=False)
class _LabelledList:
    """What every run of listed trials needs, and a value near the scores."""

    source: Source
    labels: PairValues
    enroll: Axis
    test: Axis
    center: float

    def read(self, place: Place) -> TrialList:
        """Return the trials of a place with their labels, and no other ids."""
        tile = self.source.read(place)
        labels = self.labels.of(tile)
        trials = replace(tile, labels=np.maximum(labels, UNKNOWN).astype(np.int8)).select(labels != UNLISTED)
        return TrialList.of_tiles(self.enroll, self.test, [trials]).select(np.arange(len(trials.scores)))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Wanted:
    """Which trials to list: those of some enrolments, by their numbers among all ids."""

    trials: _LabelledList
    rows: Axis
    columns: Axis
    wanted: npt.NDArray[np.bool_]


def _sum_list(table: ScoreTable, labels: PairValues, client: Any, progress: Progress) -> list[LabelledSums]:
    """Pass over a list once, or twice if some part of it is not a complete matrix of speaker blocks."""
    first = table.source.read(Place(0, slice(0, 1))).scores
    task = _LabelledList(
        source=table.source,
        labels=labels,
        enroll=table.enroll_axis,
        test=table.test_axis,
        center=float(first[0]) if first.size else 0.0,
    )
    engine, places = engine_for(client), table.places()
    total: ListSums = engine.total(_sum_run, task, places, stage="summing scores", progress=progress)

    def pairs(wanted: npt.NDArray[np.bool_]) -> Iterator[ListedPairs]:
        shared = _Wanted(trials=task, rows=Axis(total.enroll.ids), columns=Axis(total.test.ids), wanted=wanted)
        found = engine.map(_list_run, shared, places, stage="listing pairs", progress=progress)
        early: dict[int, ListedPairs] = {}
        awaited = 0
        for place, some in found:  # handed on in order, so that results do not depend on who is quicker
            early[place.number] = some
            while awaited in early:
                yield early.pop(awaited)
                awaited += 1

    return independent_parts(total, pairs)


def _sum_run(task: _LabelledList, place: Place) -> ListSums:
    return sum_list(task.read(place), task.center)


def _list_run(shared: _Wanted, place: Place) -> ListedPairs:
    trials = shared.trials.read(place)
    return pairs_of_list(
        trials, shared.rows.find(trials.enroll_ids), shared.columns.find(trials.test_ids), shared.wanted
    )
