"""The way to normalize that is right for every norm: each tile with the cohort scores of its rows and columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

from evenscore.scale.blocks import ChunkedBlocks
from evenscore.scale.chunked_scores import ChunkedScores
from evenscore.tables import ScoreBlocks, ScoreMatrix, TrialList

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
    """Normalizes a tile or a list with all cohort scores of its enrolments and tests: right for every norm."""

    norm: Any
    blocks: ChunkedBlocks
    last: _LastRows = field(default_factory=lambda: _LastRows())

    def tile(self, trials: ScoreMatrix, rows: slice, columns: slice) -> ScoreMatrix | TrialList:
        """Return a tile of raw scores normalized."""
        trials = ScoreMatrix(trials.scores, trials.enroll_ids, trials.test_ids, missing="nan")
        own = {}
        for name, at in (("enroll_speakers", rows), ("test_speakers", columns)):
            known = getattr(self.blocks, name)
            own[name] = None if known is None else known[at]
        # Tiles come row by row, so those of a row share the cohort scores of its enrolments.
        enroll = self.last.get((rows.start, rows.stop), lambda: self._part("enroll", rows=rows))
        return self._normalized(trials, enroll, self._part("test", columns=columns), own)

    def listed(self, trials: TrialList) -> ScoreMatrix | TrialList:
        """Return listed trials normalized."""
        enroll, test = self.blocks.enroll, self.blocks.test
        if enroll is not None:
            enroll = enroll.align(trials.enroll_ids, enroll.test_ids)
        if test is not None:
            test = test.align(test.enroll_ids, trials.test_ids)
        own = {name: getattr(self.blocks, name) for name in ("enroll_speakers", "test_speakers")}
        sides = [None if block is None else block.matrix() for block in (enroll, test)]
        return self._normalized(trials, sides[0], sides[1], own)

    def _normalized(
        self, trials: ScoreMatrix | TrialList, enroll: ScoreMatrix | None, test: ScoreMatrix | None, own: dict[str, Any]
    ) -> ScoreMatrix | TrialList:
        cohort = {name: value for name, value in self.blocks.speakers.items() if name.startswith("cohort")}
        normalized: ScoreMatrix | TrialList = self.norm.normalize(
            ScoreBlocks(
                trials,
                enroll=enroll,
                test=test,
                cohort=self._cohort,
                cohort_labels=self.blocks.cohort_labels,
                **own,
                **cohort,
            )
        )
        return normalized

    def _part(self, name: str, rows: slice | None = None, columns: slice | None = None) -> ScoreMatrix | None:
        block: ChunkedScores | None = getattr(self.blocks, name)
        if block is None:
            return None
        rows = slice(0, block.shape[0]) if rows is None else rows
        columns = slice(0, block.shape[1]) if columns is None else columns
        scores = block.block(rows, columns)
        return ScoreMatrix(scores, block.enroll_ids[rows], block.test_ids[columns], missing="nan")

    @cached_property
    def _cohort(self) -> ScoreMatrix | None:
        return None if self.blocks.cohort is None else self.blocks.cohort.matrix()
