"""Normalizing tile by tile: by a few numbers for each side, or with the cohort scores of the tile.

In many norms a trial's two sides meet only at the very end. What the cohort scores of an enrolment say about it does
not depend on the test then, and the other way round. So a few numbers per enrolment and per test are found first, in
one pass over the cohort scores, and any tile of the trials needs nothing else (`ByParts`). Other norms get the cohort
scores of the rows and columns of each tile (`ByBlocks`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evenscore.engine.engine import Engine, engine_for
from evenscore.norms.sides import Sides
from evenscore.progress import Progress, silent
from evenscore.sources.bilinear import Products
from evenscore.tables import Axis, ScoreBlocks, ScoreMatrix, ScoreTable, Tile, TrialList
from evenscore.tables.score_table import Source
from evenscore.tables.tile import Place

__all__ = [
    "ByBlocks",
    "ByParts",
    "Keep",
    "Part",
    "Parts",
    "Pass",
    "mirrored",
    "side_parts",
    "speakers_meet",
    "table_fits",
]

Part = npt.NDArray[np.float64]  #: n x width, a row for each member
_MOST_TABLE = 1 << 29  # bytes of the tables of both sides
_STAGES = {
    "enroll": "cohort scores of enrolments",
    "test": "cohort scores of tests",
    "cohort": "cohort against itself",
}


def table_fits(blocks: ScoreBlocks, width: int) -> bool:
    """Tell whether tables of this many numbers for each enrolment and test may be kept."""
    return 8 * width * sum(blocks.trials.shape) <= _MOST_TABLE


class Parts(Protocol):
    """A norm that knows a few numbers for each element of either side.

    It may have a method ``from_vectors(side, table)``, too, that finds the numbers of a whole side of scores from
    embeddings without forming the scores, or returns None; and ``meet(score, enroll, test)``, which normalizes a single
    score with the numbers of its two sides, without a table.
    """

    @property
    def sides_alike(self) -> bool:
        """Whether a row of cohort scores says the same about an enrolment and about a test."""
        ...

    @property
    def width(self) -> int:
        """How many numbers."""
        ...

    def enroll_part(self, scores: npt.NDArray[Any], rows: slice) -> Part:
        """Return the numbers of some enrolments, from all of their cohort scores; NaN if that cannot be."""
        ...

    def test_part(self, scores: npt.NDArray[Any], columns: slice) -> Part:
        """Return the numbers of some tests."""
        ...

    def apply(self, trials: Any, enroll: Part, test: Part) -> Any:
        """Return trials in memory, a matrix or a list, normalized from the numbers of their enrolments and tests."""
        ...


class Keep(Protocol):
    """Keeps what was computed already, for a run that is continued."""

    def begin(self, identity: Mapping[str, str]) -> None:
        """Refuse to go on with a run of other inputs or options; named texts stand for them."""

    def get(self, name: str) -> npt.NDArray[Any] | None:
        """Return what was kept under a name, None if nothing was."""

    def put(self, name: str, values: npt.NDArray[Any]) -> None:
        """Keep values under a name."""


@dataclass(frozen=True, eq=False)
class Pass:
    """How passes over cohort scores are made: where, who is told about it, and where what is found is kept."""

    client: Any = None
    progress: Progress = silent
    keep: Keep | None = None
    endless: bool = (
        False  #: whether trials come one by one, and nobody knows how many: so compiled loops pay even for one
    )

    @property
    def engine(self) -> Engine:
        """Here, or the workers of a cluster."""
        return engine_for(self.client)

    def along(
        self, name: str, table: ScoreTable, by_row: bool, width: int, task: tuple[Callable[[Any, Place], Part], Any]
    ) -> Part:
        """Return a few numbers for each row of a table (or for each column), from whole rows that are read together.

        ``task`` is a function and what it shares: ``function(shared, place)`` gives the numbers of a place. Those that
        were kept under this name by a run that is continued are not computed again.
        """
        places = table.layout.whole_rows() if by_row else table.layout.whole_columns()  # type: ignore[union-attr]
        out, wanted, (function, shared) = np.empty((table.shape[0 if by_row else 1], width)), [], task

        def span(place: Place) -> tuple[slice, str]:
            at: slice = place.rows if by_row else place.columns
            return at, f"{name}-{at.start}-{at.stop}"

        for place in places:
            at, kept_as = span(place)
            kept = None if self.keep is None else self.keep.get(kept_as)
            if kept is None:
                wanted.append(place)
            else:
                out[at] = kept
        for place, part in self.engine.map(function, shared, wanted, stage=_STAGES[name], progress=self.progress):
            at, kept_as = span(place)
            out[at] = part
            if self.keep is not None:
                self.keep.put(kept_as, part)
        return out


def speakers_meet(blocks: ScoreBlocks, needs: Sequence[str]) -> bool:
    """Tell whether a trial's cohort depends on both of its speakers, because they are in it."""
    return Sides.of(blocks).meet(tuple(needs))


def side_parts(
    parts: Parts, blocks: ScoreBlocks, how: Pass, needs: Sequence[str] = ("enroll", "test")
) -> tuple[Part, Part]:
    """Pass over the cohort scores of both sides: the numbers of every enrolment, and of every test."""
    found: list[Part] = []
    for name, axis in (("enroll", blocks.trials.enroll_axis), ("test", blocks.trials.test_axis)):
        block: ScoreTable | None = getattr(blocks, name)
        if block is None or name not in needs:
            found.append(_without_cohort(parts, name, len(axis)))
        elif name == "test" and "enroll" in needs and parts.sides_alike and mirrored(blocks):
            found.append(found[0])
        else:
            found.append(_side(parts, name, block, how))
    return found[0], found[1]


def mirrored(blocks: ScoreBlocks) -> bool:
    """Tell whether the cohort scores of tests are those of enrolments: the same embeddings on both sides."""
    enroll, test = blocks.enroll, blocks.test
    if not isinstance(enroll.source, Products) or not isinstance(test.source, Products):
        return False
    return enroll.source.is_transposed(test.source) and enroll.enroll_axis.same(test.test_axis)


def _side(parts: Parts, name: str, block: ScoreTable, how: Pass) -> Part:
    """Pass over the cohort scores of one side."""
    whole = parts.from_vectors(name, block) if hasattr(parts, "from_vectors") else None
    if whole is not None:
        return whole
    by_row = name == "enroll"
    if not block.shape[1 if by_row else 0]:  # a cohort of nobody has no tiles
        return _without_cohort(parts, name, max(block.shape))
    tiles = block.in_tiles() if block.is_in_memory else block
    return how.along(name, tiles, by_row, parts.width, (_side_part, _SideTask(parts, block.source, name)))


@dataclass(frozen=True, eq=False)
class _SideTask:
    parts: Parts
    source: Source
    side: str


def _side_part(task: _SideTask, place: Place) -> Part:
    scores = task.source.read(place).scores
    if task.side == "enroll":
        return task.parts.enroll_part(scores, place.rows)
    return task.parts.test_part(scores, place.columns)


def _without_cohort(parts: Parts, side: str, size: int) -> Part:
    """Return the numbers of elements without cohort scores."""
    empty = (size, 0) if side == "enroll" else (0, size)
    part = parts.enroll_part if side == "enroll" else parts.test_part
    return part(np.empty(empty), slice(0, size))


@dataclass(frozen=True, eq=False)
class ByParts:
    """Normalizes a tile with a few numbers per element."""

    parts: Parts
    enroll: Part
    test: Part

    def tile(self, tile: Tile, enroll_axis: Axis, test_axis: Axis) -> Tile:
        """Return a tile of raw scores normalized."""
        trials = _table_of(tile, enroll_axis, test_axis)
        sides = (self.enroll, self.test) if tile.listed else (self.enroll[tile.rows], self.test[tile.columns])
        return self.parts.apply(trials, *sides).as_tile(tile)


def _table_of(tile: Tile, enroll_axis: Axis, test_axis: Axis) -> Any:
    """Return a tile as a table in memory.

    A list keeps all ids of the axes, so that its trials stand where they stood.
    """
    if tile.listed:
        return TrialList.trusted(enroll_axis, test_axis, tile)
    axes = enroll_axis.take(tile.rows), test_axis.take(tile.columns)
    missing = int(np.count_nonzero(np.isnan(tile.scores))) if tile.n_missing is None else tile.n_missing
    return ScoreMatrix.trusted(tile.scores, *axes, missing)


class _LastRows:
    """Cohort scores of the rows that were read last; they stay behind when tasks travel."""

    def __init__(self) -> None:
        self._lock, self._key, self._found = Lock(), (-1, -1), None

    def get(self, key: tuple[int, int], read: Callable[[], Any]) -> Any:
        """Return what was read for these rows, or read it."""
        with self._lock:
            if key != self._key:
                self._found, self._key = read(), key
            return self._found

    def __reduce__(self) -> tuple[Any, ...]:
        return _LastRows, ()


@dataclass(frozen=True, eq=False)
class ByBlocks:
    """Normalizes a tile with all cohort scores of its enrolments and tests: right for every norm."""

    norm: Any
    blocks: ScoreBlocks
    last: _LastRows = field(default_factory=lambda: _LastRows())

    def tile(self, tile: Tile, enroll_axis: Axis, test_axis: Axis) -> Tile:
        """Return a tile of raw scores normalized."""
        if not tile.listed:
            axes = enroll_axis.take(tile.rows), test_axis.take(tile.columns)
            trials: Any = ScoreMatrix(tile.scores, *axes, missing="nan")
            # Tiles come row by row, so those of a row share the cohort scores of its enrolments.
            rows = tile.rows
            enroll = self.last.get((rows.start, rows.stop), lambda: self._part("enroll", rows, None))
            normalized = self._normalized(trials, enroll, self._part("test", None, tile.columns))
            return normalized.as_tile(tile)
        listed = TrialList.trusted(enroll_axis, test_axis, tile)
        row, column = np.unique(listed.enroll_index), np.unique(listed.test_index)
        trials = listed.select(np.arange(len(listed)))
        normalized = self._normalized(trials, self._part("enroll", row, None), self._part("test", None, column))
        # The normalized list has the ids that it uses only; its trials go back to their places on the axes.
        return Tile(
            normalized.scores,
            enroll_axis.find(normalized.enroll_ids)[normalized.enroll_index],
            test_axis.find(normalized.test_ids)[normalized.test_index],
            normalized.labels,
            measures=normalized.measures,
        )

    def _normalized(self, trials: Any, enroll: ScoreMatrix | None, test: ScoreMatrix | None) -> Any:
        return self.norm.normalize(self.blocks.replace(trials=trials, enroll=enroll, test=test, cohort=self._cohort))

    def _part(self, name: str, rows: Any, columns: Any) -> ScoreMatrix | None:
        block: ScoreTable | None = getattr(self.blocks, name)
        if block is None:
            return None
        every = [slice(0, size) for size in block.shape]
        at = [whole if some is None else some for some, whole in zip((rows, columns), every, strict=True)]
        if not all(isinstance(some, slice) for some in at):
            return block.take(rows, columns).in_memory()
        axes = block.enroll_axis.take(at[0]), block.test_axis.take(at[1])
        return ScoreMatrix(block.block(at[0], at[1]), *axes, missing="nan")

    @cached_property
    def _cohort(self) -> ScoreMatrix | None:
        if self.blocks.cohort is None or "cohort" not in getattr(self.norm, "reads", ("cohort",)):
            return None
        return self.blocks.cohort.in_memory()
