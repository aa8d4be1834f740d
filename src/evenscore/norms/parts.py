"""Norms in which a trial's two sides meet only at the very end.

What the cohort scores of an enrolment say about it does not depend on the test then, and the other way round. So a few
numbers per enrolment and per test are found first, in one pass over the cohort scores, and any tile of the trials needs
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evenscore.engine.engine import Engine, engine_for
from evenscore.progress import Progress, silent
from evenscore.sources.bilinear import Products
from evenscore.tables import Axis, ScoreBlocks, ScoreTable, Tile
from evenscore.tables.rescore import table_of_tile, tile_of_table
from evenscore.tables.score_table import Source
from evenscore.tables.tile import Place

__all__ = ["ByParts", "Keep", "Part", "Parts", "Pass", "Piece", "mirrored", "side_parts", "speakers_meet", "table_fits"]

Part = npt.NDArray[np.float64]  #: n x width, a row for each member
_MOST_TABLE = 1 << 29  # bytes of the tables of both sides


def table_fits(blocks: ScoreBlocks, width: int) -> bool:
    """Tell whether tables of this many numbers for each enrolment and test may be kept."""
    return 8 * width * sum(blocks.trials.shape) <= _MOST_TABLE


class Parts(Protocol):
    """A norm that knows a few numbers for each element of either side.

    It may have a method ``from_vectors(side, table)``, too, that finds the numbers of a whole side of scores from
    embeddings without forming the scores, or returns None.
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
class Piece:
    """Some elements of a side, and where what they need is found."""

    side: str
    span: slice
    place: Any

    @property
    def name(self) -> str:
        """By which the numbers of these elements are kept."""
        return f"{self.side}-{self.span.start}-{self.span.stop}"


@dataclass(frozen=True, eq=False)
class Pass:
    """How passes over cohort scores are made: where, who is told about it, and where what is found is kept."""

    client: Any = None
    progress: Progress = silent
    keep: Keep | None = None

    @property
    def engine(self) -> Engine:
        """Here, or the workers of a cluster."""
        return engine_for(self.client)

    def fill(
        self,
        found: Mapping[str, npt.NDArray[np.float64]],
        pieces: Sequence[Piece],
        function: Callable[[Any, Any], Any],
        shared: Any,
        stage: str,
    ) -> None:
        """Fill in the numbers of each piece, ``function(shared, place)``, but those kept of a run that is continued."""
        wanted = []
        for piece in pieces:
            kept = None if self.keep is None else self.keep.get(piece.name)
            if kept is None:
                wanted.append(piece)
            else:
                found[piece.side][piece.span] = kept
        for piece, part in self.engine.map(_part, (function, shared), wanted, stage=stage, progress=self.progress):
            found[piece.side][piece.span] = part
            if self.keep is not None:
                self.keep.put(piece.name, part)


def _part(how: tuple[Callable[[Any, Any], Any], Any], piece: Piece) -> Any:
    function, shared = how
    return function(shared, piece.place)


def speakers_meet(blocks: ScoreBlocks, needs: Sequence[str]) -> bool:
    """Tell whether a trial's cohort depends on both of its speakers, because they are in it."""

    def names(*axes: Axis | None) -> set[str]:
        known = [axis.speakers for axis in axes if axis is not None and axis.speakers is not None]
        return {name for side in known for name in side} - {None}

    enroll, test = names(blocks.trials.enroll_axis), names(blocks.trials.test_axis)
    cohort_enroll, cohort_test = names(blocks.cohort_enroll_axis), names(blocks.cohort_test_axis)
    if "cohort" in needs:
        return bool((enroll | test) & (cohort_enroll | cohort_test))
    return bool(("enroll" in needs and test & cohort_test) or ("test" in needs and enroll & cohort_enroll))


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
    by_row, layout = name == "enroll", (block.in_tiles() if block.is_in_memory else block).layout
    if not block.shape[1 if by_row else 0]:  # a cohort of nobody has no tiles
        return _without_cohort(parts, name, max(block.shape))
    places = layout.whole_rows() if by_row else layout.whole_columns()  # type: ignore[union-attr]
    out = np.empty((block.shape[0 if by_row else 1], parts.width))
    how.fill(
        {name: out},
        [Piece(name, place.rows if by_row else place.columns, place) for place in places],
        _side_part,
        _SideTask(parts, block.source, name),
        "cohort scores of enrolments" if by_row else "cohort scores of tests",
    )
    return out


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
        trials = table_of_tile(tile, enroll_axis, test_axis)
        sides = (self.enroll, self.test) if tile.listed else (self.enroll[tile.rows], self.test[tile.columns])
        return tile_of_table(self.parts.apply(trials, *sides), tile)
