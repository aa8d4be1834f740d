"""Training statistics of a matrix that is read tile by tile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.model.patterns import Exceptions, SpeakerBlocks, pattern_of_key
from evenscore.model.statistics import LabelledSums, without_empty
from evenscore.model.sums import ClassSums, pilot, sum_blocks, sum_by_key
from evenscore.progress import Progress, silent
from evenscore.scale.engine import engine_for
from evenscore.scale.tiles import Tile
from evenscore.tables import NONTARGET, TARGET, UNKNOWN, Labels

if TYPE_CHECKING:
    from evenscore.scale.chunked_scores import ChunkedScores, TileReader

__all__ = ["TileSums", "key_of_tile", "label_tiles", "sum_cohort"]

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

    reader: TileReader
    labels: Labels
    center: float


def label_tiles(
    scores: ChunkedScores, labels: Labels | None, *, client: Any = None, progress: Progress = silent
) -> LabelledSums:
    """Pass once over the tiles of a matrix; rows and columns without any score are left out."""
    if labels is None:
        raise InputError("a score matrix has no labels of its own; make them with Labels.from_speakers")
    if not scores.tiles():
        raise InputError("the score matrix is empty; there is nothing to train on")
    labels = labels.align(scores.enroll_ids, scores.test_ids)
    total = _total(scores, labels, "summing scores", client, progress)
    kept = [counts.sum(axis=0) > 0 for counts in (total.sums.row_counts, total.sums.column_counts)]
    return LabelledSums(sums=without_empty(total.sums), pattern=_pattern(total, labels, kept))


def sum_cohort(
    cohort: ChunkedScores, labels: Labels, *, client: Any = None, progress: Progress = silent
) -> LabelledSums:
    """Pass once over the scores of a cohort against itself; all of its members stay."""
    labels = labels.align(cohort.enroll_ids, cohort.test_ids)
    total = _total(cohort, labels, "cohort against itself", client, progress)
    return LabelledSums(
        sums=total.sums, pattern=_pattern(total, labels, [np.ones(n, dtype=bool) for n in cohort.shape])
    )


def _total(scores: ChunkedScores, labels: Labels, stage: str, client: Any, progress: Progress) -> TileSums:
    if labels.by_speaker:
        _ = labels.speaker_codes  # so that it is made once, not in every task
    first = scores.block(slice(0, 1), slice(0, min(scores.shape[1], 4096)))
    shared = _Labelled(reader=scores.reader, labels=labels, center=pilot(first))
    total: TileSums = engine_for(client).total(_sum_tile, shared, scores.tiles(), stage=stage, progress=progress)
    return total


def _sum_tile(shared: _Labelled, tile: Tile) -> TileSums:
    scores = shared.reader.read(tile.rows, tile.columns)
    place = {"row_start": tile.rows.start, "column_start": tile.columns.start}
    labels = shared.labels
    if labels.by_speaker and not labels.n_unknown:
        row_codes, column_codes, number = labels.speaker_codes
        sums = sum_blocks(scores, row_codes[tile.rows], column_codes[tile.columns], number, shared.center, **place)
        if np.isfinite(sums.squares).all():
            return TileSums(sums=sums, rows=_NOWHERE, columns=_NOWHERE)
    infinite = np.isinf(scores)
    if infinite.any():
        i, j = np.argwhere(infinite)[0]
        raise InputError(
            f"the score in row {tile.rows.start + i} and column {tile.columns.start + j} is infinite, but scores must "
            "be finite; drop it"
        )
    key = key_of_tile(labels, tile)
    rows, columns = np.nonzero(np.isnan(scores) | (key == UNKNOWN))
    return TileSums(
        sums=sum_by_key(scores, key, shared.center, place),
        rows=rows + tile.rows.start,
        columns=columns + tile.columns.start,
    )


def key_of_tile(labels: Labels, tile: Tile) -> npt.NDArray[np.int8]:
    """Return the labels of the pairs of a tile."""
    if not labels.by_speaker:
        return labels.matrix[tile.rows, tile.columns]
    rows, columns, _ = labels.speaker_codes
    row, column = rows[tile.rows], columns[tile.columns]
    key = np.equal.outer(row, column).view(np.int8)
    key[row < 0] = UNKNOWN
    key[:, column < 0] = UNKNOWN
    return key


def _pattern(total: TileSums, labels: Labels, kept: list[npt.NDArray[np.bool_]]) -> SpeakerBlocks | Exceptions:
    """Return the pattern of labels and missing pairs of the rows and columns that are kept."""
    place = [np.cumsum(which) - 1 for which in kept]
    size = [int(np.count_nonzero(which)) for which in kept]
    inside = kept[0][total.rows] & kept[1][total.columns]
    if labels.by_speaker and not inside.any():
        row_codes, column_codes, number = labels.speaker_codes
        return SpeakerBlocks(row_codes=row_codes[kept[0]], column_codes=column_codes[kept[1]], n_speakers=number)
    absent_rows, absent_columns = place[0][total.rows[inside]], place[1][total.columns[inside]]
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
