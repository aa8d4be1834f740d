"""Norms of trials whose own speakers are in the cohort, where a trial's sides still meet only at the very end.

An element's numbers are then not for one cohort but for many: without each of the speakers that the other side may
bring. They make a table, found in one pass over the cohort scores, and the first number of each element tells which
column of the other side's table it looks up. Tables that would be too large are not made: then each tile reads the
cohort scores of its rows and columns again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.compiled import few
from evenscore.norms.adaptive import WHAT, exclusion
from evenscore.norms.block_sides import block_sides
from evenscore.norms.classical import NEEDS, ClassicalNorm
from evenscore.norms.finish import finished
from evenscore.norms.parts import Part
from evenscore.norms.statistics import Statistics, Summary, row_statistics
from evenscore.norms.trial_scores import TrialScores, other_side
from evenscore.tables import Axis, ScoreBlocks, ScoreMatrix, TrialList
from evenscore.tables.axis import as_axis
from evenscore.tables.ids import Ids
from evenscore.threads import in_parallel

__all__ = ["OwnSpeakerParts", "speakers_of", "table_fits"]

_MOST_TABLE = 1 << 29  # bytes of the tables of both sides
_SHARE = 4  # of the memory, for a piece; a few are at work at a time


def table_fits(blocks: ScoreBlocks, width: int) -> bool:
    """Tell whether tables of this many numbers for each enrolment and test may be kept."""
    return 8 * width * sum(blocks.trials.shape) <= _MOST_TABLE


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnSpeakerParts:
    """A classical norm whose elements rank their own cohorts; the numbers are a table of locations and scales.

    Attributes
    ----------
    norm
        The norm: Z, T, S or an adaptive one.
    axes
        The enrolments (``"enroll"``) and the tests (``"test"``).
    cohort
        The cohort members that each side is compared with.
    others
        For each side the speakers of the other side who are among its cohort members.
    """

    norm: ClassicalNorm
    axes: Mapping[str, Axis]
    cohort: Mapping[str, Axis | None]
    others: Mapping[str, list[str]]

    @classmethod
    def of(cls, norm: ClassicalNorm, blocks: ScoreBlocks) -> OwnSpeakerParts | None:
        """Prepare a norm for blocks; None if there is no such table, or if it would be too large."""
        if "cohort" in NEEDS[norm.method] or norm.options.select == "cross":
            return None
        axes = {"enroll": blocks.trials.enroll_axis, "test": blocks.trials.test_axis}
        cohort = {"enroll": blocks.cohort_test_axis, "test": blocks.cohort_enroll_axis}
        others = {name: _both(axes[other_side(name)], cohort[name]) for name in axes}
        parts = cls(norm=norm, axes=axes, cohort=cohort, others=others)
        return parts if table_fits(blocks, parts.width) else None

    sides_alike = False

    @property
    def width(self) -> int:
        """How many numbers an element has: its column in the other side's table, and its row of its own."""
        return 1 + 2 * self._columns

    @property
    def _columns(self) -> int:
        return 1 + max(len(self.others[name]) for name in NEEDS[self.norm.method])

    def enroll_part(self, scores: npt.NDArray[Any], rows: slice) -> Part:
        """Return the numbers of some enrolments."""
        return self._part("enroll", scores, rows)

    def test_part(self, scores: npt.NDArray[Any], columns: slice) -> Part:
        """Return the numbers of some tests."""
        return self._part("test", scores, columns)

    def _part(self, name: str, scores: npt.NDArray[Any], at: slice) -> Part:
        axis, other = self.axes[name].take(at), other_side(name)
        part = np.zeros((len(axis), self.width))
        column = {speaker: 1 + place for place, speaker in enumerate(self.others[other])}
        part[:, 0] = [column.get(speaker, 0) for speaker in speakers_of(axis)]
        if name not in NEEDS[self.norm.method]:
            return part
        if not scores.size:
            part[:, 1:] = np.nan
            return part
        members, others = self.cohort[name], as_axis(self.others[name], "ids", speakers=self.others[name])
        assert members is not None  # noqa: S101  (the norm has found its blocks)
        by_row = name == "enroll"
        block = ScoreMatrix(scores, *((axis, members) if by_row else (members, axis)), missing="nan")
        given: dict[str, Any] = {name: block}
        rows, columns = (axis, others) if by_row else (others, axis)
        nothing = TrialList(rows, columns, [], [], scores=[])
        sides = block_sides(ScoreBlocks(nothing, **given), "s", self.norm.conditions)
        side, codes = (sides.enroll, sides.test_speaker) if by_row else (sides.test, sides.enroll_speaker)
        assert side is not None  # noqa: S101
        left_out, place = exclusion(side, codes)
        summary = Summary.of(self.norm.options, self.norm.method, side.shape[1])
        where = np.concatenate([[0], place])
        for some in side.pieces(beside=25 * len(where), share=_SHARE):
            found = row_statistics(side.scores(some), summary, side.groups, left_out)
            part[some, 1 : 1 + len(where)] = found.mean[:, where]
            scale = np.where(found.count > 0, found.std, np.nan)
            part[some, 1 + self._columns : 1 + self._columns + len(where)] = scale[:, where]
        return part

    def apply(self, trials: Any, enroll: Part, test: Part) -> Any:
        """Return the trials normalized."""
        if not trials.listed:
            trials = ScoreMatrix(trials.scores, trials.enroll_axis, trials.test_axis, missing="nan")
        table, needs = TrialScores.of(trials), NEEDS[self.norm.method]
        factor = self.norm.factor if len(needs) == 2 else 1.0
        parts = {"enroll": enroll, "test": test}
        with np.errstate(over="ignore", invalid="ignore"):  # `finished` names what is not finite
            for name in needs:
                column = parts[other_side(name)][:, 0].astype(np.intp)
                if not trials.listed:
                    self._add_to_matrix(table, name, parts[name], column, factor)
                else:
                    self._add_to_list(table, name, parts[name], column, factor)
        return finished(table, False, self.norm.options.vanished)

    def _add_to_matrix(
        self, table: TrialScores, name: str, part: Part, column: npt.NDArray[np.intp], factor: float
    ) -> None:
        used, which = np.unique(column, return_inverse=True)
        which = which.reshape(-1)
        ids = getattr(table.trials, f"{name}_ids")
        found = self._settled(part[:, 1 + used], part[:, 1 + self._columns + used], name, ids)
        by_row = name == "enroll"
        if few(table.out.size):
            mean, std = (x[:, which] if by_row else x[:, which].T for x in (found.mean, found.std))
            table.out[...] += factor * ((table.raw(slice(None)) - mean) / std)
            return
        from evenscore.norms.kernel_own import add_by_column, add_by_row

        mean, std = (np.ascontiguousarray(x if by_row else x.T) for x in (found.mean, found.std))
        add = add_by_row if by_row else add_by_column
        how = (np.ascontiguousarray(table.trials.scores), mean, std, which, factor)
        in_parallel(lambda start, stop: add(*how, start, stop, table.out), *table.out.shape)

    def _add_to_list(
        self, table: TrialScores, name: str, part: Part, column: npt.NDArray[np.intp], factor: float
    ) -> None:
        trials = table.trials
        index = {"enroll": trials.enroll_index, "test": trials.test_index}
        row, place = index[name], column[index[other_side(name)]]
        mean, std = part[row, 1 + place], part[row, 1 + self._columns + place]
        found = self._settled(mean, std, name, getattr(trials, name))
        table.out[:] += factor * ((table.raw(slice(None)) - found.mean) / found.std)

    def _settled(self, mean: npt.NDArray[Any], std: npt.NDArray[Any], name: str, ids: Ids) -> Statistics:
        there = (~np.isnan(std)).astype(np.int64)
        return Statistics(there, mean, std).settled(self.norm.options, ids, WHAT[name])


def speakers_of(axis: Axis) -> npt.NDArray[Any]:
    """Return the speaker of each id, None where it is not known."""
    return np.full(len(axis), None, dtype=object) if axis.speakers is None else axis.speakers


def _both(axis: Axis, members: Axis | None) -> list[str]:
    """Return the speakers who are members of a cohort, too."""
    known = set() if members is None else set(speakers_of(members).tolist())
    return sorted((set(speakers_of(axis).tolist()) & known) - {None})
