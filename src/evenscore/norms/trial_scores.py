"""Trials whose statistics differ from trial to trial: each looks up its own; and the last step of every norm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.norms.options import NormOptions
from evenscore.norms.sides import Codes, Rows, Side, other_side
from evenscore.norms.statistics import LeftOut, Statistics, Summary, tables_without
from evenscore.tables import ScoreMatrix, ScoreTable, TrialList
from evenscore.tables.ids import shown
from evenscore.tables.rescore import rescored

__all__ = ["TrialScores", "finished", "statistics_without_own"]

Array = npt.NDArray[Any]


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


def finished(trials: Any, out: Array, finite: bool, vanished: str) -> ScoreMatrix | TrialList:
    """Return normalized trials: refuse what is infinite, and settle what to do with trials whose cohort vanished.

    Parameters
    ----------
    trials, out
        Trials and results; NaN where the cohort vanished or the trial was missing.
    finite
        Whether all results are known to be finite, so that none needs to be looked at.
    vanished
        The policy for trials without a cohort, as in `NormOptions`.
    """
    out = out.astype(np.asarray(trials.scores).dtype, copy=False)
    missing = 0 if trials.listed else trials.n_missing
    if not finite:
        infinite = np.isinf(out)
        if infinite.any():
            raise InputError(f"the normalized score of {_named(trials, infinite)} is infinite; give a larger std_floor")
        lost = np.isnan(out)
        if missing:
            lost &= ~trials.missing
        if lost.any():
            return _without_cohort(trials, out, lost, vanished)
    return rescored(trials, out, missing)


def _without_cohort(trials: Any, out: Array, lost: npt.NDArray[np.bool_], vanished: str) -> ScoreMatrix | TrialList:
    if vanished == "error":
        raise InputError(
            f"{np.count_nonzero(lost)} trials have no cohort left, once their own speakers and missing scores are "
            f"left out: {_named(trials, lost)}; give a larger cohort, or decide with vanished='raw' or 'missing'"
        )
    if vanished == "raw":
        out[lost] = np.asarray(trials.scores)[lost]
    if not trials.listed:
        return rescored(trials, out, int(np.count_nonzero(np.isnan(out))))
    return rescored(trials, out) if vanished == "raw" else rescored(trials.kept(~lost), out[~lost])


def _named(trials: ScoreTable, which: npt.NDArray[np.bool_]) -> str:
    """Return the first few of these trials for a message."""
    places, tile = np.flatnonzero(which), trials.tile
    pairs = [" ".join(trials.pair_at(tile, place)) for place in places[:3].tolist()]
    return shown(pairs) + (f" and {len(places) - 3} more" if len(places) > 3 else "")
