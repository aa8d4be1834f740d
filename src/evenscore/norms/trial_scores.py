"""Raw and normalized scores of a matrix or of a list of trials, reached through the rows of either side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.norms.sides import Codes, Rows
from evenscore.tables.score_table import ScoreTable

__all__ = ["TrialScores", "other_side"]

Array = npt.NDArray[Any]


def other_side(side: str) -> str:
    """Return the name of the other side of the trials."""
    return "test" if side == "enroll" else "enroll"


@dataclass(frozen=True, eq=False)
class TrialScores:
    """The scores that one part of a side's elements takes part in: read them, look up statistics, write results.

    Attributes
    ----------
    trials
        The trials whose scores are normalized.
    out
        Where results go, in the shape of the scores.
    """

    trials: Any  #: a `ScoreMatrix` or a `TrialList`
    out: npt.NDArray[Any]

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
        needed = np.zeros((self._size(rows), width), dtype=bool)
        needed[self._local(side, rows, at), columns[self._index(other_side(side))[at]]] = True
        return needed

    def expand(self, side: str, rows: Rows, table: npt.NDArray[Any], columns: Codes) -> npt.NDArray[Any]:
        """Look up for each trial the entry of its element and of its other element's column, in a table."""
        if not self.trials.listed:
            wide = table if table.shape[1] == 1 else table[:, columns]
            return wide if side == "enroll" else wide.T
        at = self.where(side, rows)
        entries: npt.NDArray[Any] = table[self._local(side, rows, at), columns[self._index(other_side(side))[at]]]
        return entries

    def raw(self, at: Any) -> npt.NDArray[Any]:
        """Return the raw scores of some trials in double precision."""
        scores: npt.NDArray[Any] = self.trials.scores[at].astype(np.float64)
        return scores

    def spread(self, enroll: Sequence[Array], test: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        """Return values of enrolments and of tests so that they meet the scores of their trials."""
        tile = self.trials.tile
        rows, columns = zip(*(tile.pair(*both) for both in zip(enroll, test, strict=True)), strict=True)
        return list(rows), list(columns)

    def _index(self, side: str) -> npt.NDArray[Any]:
        index: npt.NDArray[Any] = self.trials.enroll_index if side == "enroll" else self.trials.test_index
        return index

    def _local(self, side: str, rows: Rows, at: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Position within the piece of the element of each trial."""
        index = self._index(side)[at]
        return index - rows.start if isinstance(rows, slice) else np.searchsorted(rows, index)

    @staticmethod
    def _size(rows: Rows) -> int:
        return rows.stop - rows.start if isinstance(rows, slice) else len(rows)

    @cached_property
    def _by_element(self) -> dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        """For each side the trials in the order of its elements, and where those of each element begin."""
        found = {}
        for side, ids in (("enroll", self.trials.enroll_ids), ("test", self.trials.test_ids)):
            index = self._index(side)
            counts = np.bincount(index, minlength=len(ids))
            found[side] = (np.argsort(index, kind="stable"), np.concatenate([[0], np.cumsum(counts)]))
        return found
