"""What a norm needs of a cohort's scores against itself: statistics of its members, or sums; read tile by tile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.model.parameters import ScoreModel
from evenscore.model.patterns import Exceptions, LabelledSums, SpeakerBlocks
from evenscore.model.prediction import predict_from_exceptions, predict_from_sums
from evenscore.model.score_weights import ScoreWeights
from evenscore.model.sums import ClassSums
from evenscore.norms.block_sides import block_sides
from evenscore.norms.classical import ClassicalNorm
from evenscore.norms.statistics import Statistics
from evenscore.progress import Progress, silent
from evenscore.scale.chunked_scores import ChunkedScores, TileReader
from evenscore.scale.engine import Engine
from evenscore.scale.tile_sums import sum_cohort
from evenscore.scale.tiles import Tile
from evenscore.tables import Labels, ScoreBlocks, ScoreMatrix
from evenscore.tables.ids import Ids

if TYPE_CHECKING:
    from evenscore.scale.blocks import ChunkedBlocks
    from evenscore.scale.normalize import Keep

__all__ = ["Piece", "cohort_statistics", "cohort_weights", "fill_parts"]


@dataclass(frozen=True, eq=False)
class Piece:
    """Some elements of a side, and where what they need is found."""

    side: str
    span: slice
    place: Any

    @property
    def name(self) -> str:
        """By which the numbers of these elements are kept."""
        return f"{self.side}-{self.span.start}-{self.span.stop}"


def fill_parts(
    found: Mapping[str, npt.NDArray[np.float64]],
    pieces: Sequence[Piece],
    function: Callable[[Any, Any], Any],
    shared: Any,
    *,
    engine: Engine,
    stage: str,
    progress: Progress = silent,
    keep: Keep | None = None,
) -> None:
    """Fill in the numbers of each piece, ``function(shared, place)``, but those kept of a run that is continued."""
    wanted = []
    for piece in pieces:
        kept = None if keep is None else keep.get(piece.name)
        if kept is None:
            wanted.append(piece)
        else:
            found[piece.side][piece.span] = kept
    for piece, part in engine.map(_part, (function, shared), wanted, stage=stage, progress=progress):
        found[piece.side][piece.span] = part
        if keep is not None:
            keep.put(piece.name, part)


def _part(how: tuple[Callable[[Any, Any], Any], Any], piece: Piece) -> Any:
    function, shared = how
    return function(shared, piece.place)


@dataclass(frozen=True, eq=False)
class _CohortTask:
    norm: ClassicalNorm
    reader: TileReader
    labels: Labels
    enroll_ids: Ids
    test_ids: Ids


def cohort_statistics(
    norm: ClassicalNorm,
    cohort: ChunkedScores,
    labels: Labels,
    *,
    engine: Engine,
    progress: Progress = silent,
    keep: Keep | None = None,
) -> Statistics:
    """Return location and scale of the cohort members by which ZT and TZ normalize the second side's scores."""
    by_row = norm.method == "zt"
    tiles = cohort.whole_rows() if by_row else cohort.whole_columns()
    out = np.empty((cohort.shape[0 if by_row else 1], 2))
    if labels.by_speaker:
        _ = labels.speaker_codes  # so that it is made once, not in every task
    fill_parts(
        {"cohort": out},
        [Piece("cohort", tile.rows if by_row else tile.columns, tile) for tile in tiles],
        _members,
        _CohortTask(norm, cohort.reader, labels, cohort.enroll_ids, cohort.test_ids),
        engine=engine,
        stage="cohort against itself",
        progress=progress,
        keep=keep,
    )
    return Statistics(np.ones(len(out), dtype=np.int64), out[:, 0], out[:, 1])


def _members(task: _CohortTask, tile: Tile) -> npt.NDArray[np.float64]:
    rows, columns = task.enroll_ids[tile.rows], task.test_ids[tile.columns]
    places = np.arange(tile.rows.start, tile.rows.stop), np.arange(tile.columns.start, tile.columns.stop)
    blocks = ScoreBlocks(
        ScoreMatrix(np.empty((0, 0)), [], []),
        cohort=ScoreMatrix(task.reader.read(tile.rows, tile.columns), rows, columns, missing="nan"),
        cohort_labels=task.labels.take(*places),
    )
    side = block_sides(blocks, task.norm.method, task.norm.conditions).cohort
    assert side is not None  # noqa: S101  (the method is ZT or TZ)
    found = task.norm.side_statistics(side)
    return np.stack([found.mean, found.std], axis=1)


def cohort_weights(
    model: ScoreModel, blocks: ChunkedBlocks, *, client: Any = None, progress: Progress = silent
) -> ScoreWeights:
    """Condition a score model on the cohort of blocks, from sums of its scores."""
    sides = blocks.enroll is not None, blocks.test is not None
    found = _cohort_sums(blocks, client, progress)
    if isinstance(found.pattern, SpeakerBlocks):
        return ScoreWeights.of(model, predict_from_sums(model, found.sums, found.pattern, sides))
    return ScoreWeights.of(model, predict_from_exceptions(model, found.sums, found.pattern, sides))


def _cohort_sums(blocks: ChunkedBlocks, client: Any, progress: Progress) -> LabelledSums:
    labels = blocks.labels_of_cohort
    if blocks.cohort is not None and labels is not None and min(blocks.cohort.shape):
        return sum_cohort(blocks.cohort, labels, client=client, progress=progress)
    sizes = [0 if ids is None else len(ids) for ids in (blocks.cohort_enroll_ids, blocks.cohort_test_ids)]
    nothing = np.empty(0, dtype=np.intp)
    row, column = (np.zeros((2, size)) for size in sizes)
    sums = ClassSums(center=0.0, rows=row, columns=column, squares=np.zeros(2), row_counts=row, column_counts=column)
    if not min(sizes):  # one of the cohorts, or both, has no members, so no pair is missing
        codes = [np.arange(size) for size in sizes]
        blocks_of = SpeakerBlocks(row_codes=codes[0], column_codes=codes[1], n_speakers=max(sizes))
        return LabelledSums(sums=sums, pattern=blocks_of)
    pattern = Exceptions(
        n_rows=sizes[0],
        n_columns=sizes[1],
        background=False,
        rows=nothing,
        columns=nothing,
        labels=np.empty(0, dtype=np.int8),
    )
    return LabelledSums(sums=sums, pattern=pattern)
