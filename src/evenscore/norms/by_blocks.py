"""The way to normalize that is right for every norm: each tile with the cohort scores of its rows and columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np

from evenscore.tables import Axis, ScoreBlocks, ScoreMatrix, ScoreTable, Tile, TrialList
from evenscore.tables.rescore import tile_of_table

__all__ = ["ByBlocks"]


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
            return tile_of_table(normalized, tile)
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
        return None if self.blocks.cohort is None else self.blocks.cohort.in_memory()
