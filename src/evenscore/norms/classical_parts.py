"""Classical norms by parts: location and scale of the cohort scores of each enrolment and of each test."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.compiled import few
from evenscore.errors import InputError
from evenscore.norms.by_trial import TrialScores, finished
from evenscore.norms.conditions import Conditions
from evenscore.norms.parts import Part, Pass
from evenscore.norms.sides import NO_GROUP, Codes, Sides, other_side
from evenscore.norms.statistics import Affine, LeftOut, Statistics, Summary, one_row_statistics, tables_without
from evenscore.tables import Labels, Place, ScoreBlocks
from evenscore.tables.ids import Ids
from evenscore.tables.score_table import Source
from evenscore.threads import in_parallel

if TYPE_CHECKING:
    from evenscore.norms.classical import ClassicalNorm

__all__ = ["ClassicalParts", "cohort_statistics"]

_WHAT = {"enroll": "enrolment", "test": "test"}  # for messages
_SHARE = 4  # of the memory, for a piece; a few are at work at a time


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassicalParts:
    """A classical norm by parts: the numbers of an element are locations and scales of its cohort scores.

    There is one of both for the whole cohort, and one without each speaker of the other side who is in it. Before them
    stands which of the other side's an element looks up. NaN: no cohort is left.
    """

    norm: ClassicalNorm
    sides: Sides
    ready: Statistics | None = None  #: of the cohort against itself, for ZT and TZ
    endless: bool = False  #: see `Pass`

    @cached_property
    def _others(self) -> dict[str, Codes]:
        """Speakers of the other side whom a side leaves out."""
        none = np.empty(0, dtype=np.int64)
        return {name: self.sides.others(name) if name in self.norm.needs else none for name in ("enroll", "test")}

    @property
    def _columns(self) -> int:
        return 1 + max(len(codes) for codes in self._others.values())

    @property
    def width(self) -> int:
        """How many numbers an element has: its column in the other side's table, and its row of its own."""
        return 1 + 2 * self._columns

    @property
    def sides_alike(self) -> bool:
        """True for the norms that treat both sides alike."""
        return self.norm.method in ("s", "as") and self._columns == 1

    def enroll_part(self, scores: npt.NDArray[Any], rows: slice) -> Part:
        """Return the numbers of some enrolments."""
        return self._part("enroll", scores, rows)

    def test_part(self, scores: npt.NDArray[Any], columns: slice) -> Part:
        """Return the numbers of some tests."""
        return self._part("test", scores, columns)

    def _part(self, name: str, scores: npt.NDArray[Any], at: slice) -> Part:
        if self.endless and self._nobody_left_out and name in self.norm.needs:
            single = self._single(name, scores.reshape(-1))
            if single is not None:
                return single
        part = np.zeros((at.stop - at.start, self.width))
        own, known = self.sides.speaker[name][at], self._others[other_side(name)]
        if len(known):
            place = np.searchsorted(known, own)
            part[:, 0] = np.where(np.isin(own, known), 1 + place, 0)
        if name not in self.norm.needs:
            return part
        if self._columns == 1:
            found = self._alone(name, scores, at)
            part[:, 1], part[:, 2] = found.mean, found.std
            return part
        side, left_out = self.sides.side(name, scores, at), LeftOut.one(self._others[name])
        here, last = len(left_out.first), 1 + self._columns
        for rows in side.pieces(beside=25 * here, share=_SHARE):
            found = tables_without(side.scores(rows), self.norm.summary(side), side.groups, left_out)
            part[rows, 1 : 1 + here] = found.mean
            part[rows, last : last + here] = np.where(found.count > 0, found.std, np.nan)
        return part

    def _alone(self, name: str, scores: npt.NDArray[Any], at: slice) -> Statistics:
        """Return location and scale of each element of a side, whoever is on the other one."""
        affine = self._affine if name == self.norm.second else None
        return self.norm.statistics(self.sides.side(name, scores, at), affine)

    def _single(self, name: str, row: npt.NDArray[Any]) -> Part | None:
        """Return the numbers of a single element in microseconds; None where the usual way must tell what is odd."""
        if name == self.norm.second:
            row = (row - self._affine[0]) * self._affine[1]
        count, mean, std = one_row_statistics(row, self._summaries[name])
        if count < 0:
            raise InputError(
                f"a cohort score of the {_WHAT[name]} is infinite, but scores must be finite; drop the trial"
            )
        std = self.norm.options.settled(count, mean, std)
        return np.array([[0.0, mean, std]]) if std > 0 else None

    @cached_property
    def _summaries(self) -> dict[str, Summary]:
        """What is computed of a row of each side."""
        sizes = {"enroll": self.sides.axes["cohort_test"], "test": self.sides.axes["cohort_enroll"]}
        norm = self.norm
        return {
            name: Summary.of(norm.options, norm.method, len(axis)) for name, axis in sizes.items() if axis is not None
        }

    @cached_property
    def _affine(self) -> Affine:
        """How the cohort's members normalize the second side of ZT and TZ."""
        assert self.ready is not None  # noqa: S101
        return np.ascontiguousarray(self.ready.mean), 1.0 / self.ready.std

    @cached_property
    def _nobody_left_out(self) -> bool:
        """Whether no cohort score is left out for its speaker or its condition."""
        return self.sides.conditions == Conditions() and all(
            (who == NO_GROUP).all() for who in self.sides.speaker.values()
        )

    def meet(self, score: float, enroll: Part, test: Part) -> float:
        """Return the normalized score of a single trial, from the numbers of its two sides; nobody is left out."""
        (_, m_e, s_e), (_, m_t, s_t) = enroll.tolist(), test.tolist()
        if self.norm.second == "test":
            return ((score - m_e) / s_e - m_t) / s_t
        if self.norm.second == "enroll":
            return ((score - m_t) / s_t - m_e) / s_e
        sides = {"enroll": (m_e, s_e), "test": (m_t, s_t)}
        return sum(self.norm.factor * ((score - m) / s) for m, s in (sides[name] for name in self.norm.needs))

    def apply(self, trials: Any, enroll: Part, test: Part) -> Any:
        """Return the trials normalized."""
        if self._columns == 1:
            table = TrialScores.of(trials)
            sound = self._meet(table, enroll, test)
        else:
            table, sound = self._without_own(trials, {"enroll": enroll, "test": test}), False
        return finished(trials, table.out, sound, self.norm.options.vanished)

    def _meet(self, table: TrialScores, enroll: Part, test: Part) -> bool:
        """Normalize trials in one pass; tell whether all results are known to be scores."""
        chain, enroll_first = self.norm.second is not None, self.norm.second == "test"
        # What to subtract, and what to multiply with; a side that the method does not use adds nothing.
        row, column = (
            (part[:, 1], self.norm.factor / part[:, 2] if name in self.norm.needs else part[:, 2])
            for name, part in (("enroll", enroll), ("test", test))
        )
        trials, out = table.trials, table.out
        scores, tile = np.ascontiguousarray(trials.scores), trials.tile
        if few(scores.size) or (chain and trials.listed):
            (m_e, w_e), (m_t, w_t) = zip(*(tile.pair(*sides) for sides in zip(row, column, strict=True)), strict=True)
            if not chain:  # 0.5 * ((s - me) / se + (s - mt) / st)
                table.put(..., (scores - m_e) * w_e + (scores - m_t) * w_t)
            elif enroll_first:
                table.put(..., ((scores - m_e) * w_e - m_t) * w_t)
            else:
                table.put(..., ((scores - m_t) * w_t - m_e) * w_e)
            return False
        from evenscore.norms.kernel_apply import chain_matrix, sum_list, sum_matrix

        row, column = (tuple(map(np.ascontiguousarray, side)) for side in (row, column))  # type: ignore[assignment]
        if trials.listed:
            pairs = (scores, trials.enroll_index, trials.test_index, *row, *column)
            in_parallel(lambda start, stop: sum_list(*pairs, start, stop, out), len(out))
            return False
        sound = np.ones(len(scores), dtype=bool)
        loop, how = (chain_matrix, (enroll_first,)) if chain else (sum_matrix, ())
        whole = (scores, *row, *column, *how)
        in_parallel(lambda start, stop: loop(*whole, start, stop, out, sound), *scores.shape)
        return bool(sound.all())

    def _without_own(self, trials: Any, parts: dict[str, Part]) -> TrialScores:
        """Normalize trials each of which looks up its location and scale on both sides."""
        table = TrialScores.of(trials)
        for name in self.norm.needs:
            part, column = parts[name], parts[other_side(name)][:, 0].astype(np.intp)
            if trials.listed:
                index = {"enroll": trials.enroll_index, "test": trials.test_index}
                row, place = index[name], column[index[other_side(name)]]
                found = self._settled(part, row, place, name, getattr(trials, name))
                table.add(slice(None), self.norm.factor, found.mean, found.std)
                continue
            used, which = np.unique(column, return_inverse=True)
            found = self._settled(part, slice(None), used, name, getattr(trials, f"{name}_ids"))
            self._add(table, name, found, which.reshape(-1))
        return table

    def _settled(self, part: Part, row: Any, column: npt.NDArray[np.intp], name: str, ids: Ids) -> Statistics:
        mean, std = part[row, 1 + column], part[row, 1 + self._columns + column]
        return Statistics((~np.isnan(std)).astype(np.int64), mean, std).settled(self.norm.options, ids, _WHAT[name])

    def _add(self, table: TrialScores, name: str, found: Statistics, which: npt.NDArray[np.intp]) -> None:
        """Add one side's normalized scores to a matrix, where the elements of the other side look up these columns."""
        by_row, factor = name == "enroll", self.norm.factor
        if few(table.out.size):
            _, mean, std = table.look_up(name, slice(None), which, found.mean, found.std)
            table.add(slice(None), factor, mean, std)
            return
        from evenscore.norms.kernel_apply import add_by_column, add_by_row

        mean, std = (np.ascontiguousarray(x if by_row else x.T) for x in (found.mean, found.std))
        add = add_by_row if by_row else add_by_column
        how = (np.ascontiguousarray(table.trials.scores), mean, std, which, factor)
        in_parallel(lambda start, stop: add(*how, start, stop, table.out), *table.out.shape)


@dataclass(frozen=True, eq=False)
class _CohortTask:
    norm: ClassicalNorm
    sides: Sides
    source: Source
    labels: Labels


def cohort_statistics(norm: ClassicalNorm, sides: Sides, blocks: ScoreBlocks, how: Pass) -> Statistics:
    """Return location and scale of the cohort members by which ZT and TZ normalize the second side's scores."""
    cohort, labels = blocks.cohort, blocks.cohort_labels
    assert labels is not None  # noqa: S101
    if labels.by_speaker:
        _ = labels.speaker_codes  # so that it is made once, not in every task
    task = _members, _CohortTask(norm, sides, cohort.source, labels)
    out = how.along("cohort", cohort, norm.method == "zt", 2, task)
    return Statistics(np.ones(len(out), dtype=np.int64), out[:, 0], out[:, 1])


def _members(task: _CohortTask, place: Place) -> npt.NDArray[np.float64]:
    labels = task.labels
    if place.shape != labels.shape:  # else a table of all pairs would be copied
        labels = labels.take(*(np.arange(span.start, span.stop) for span in (place.rows, place.columns)))
    side = task.sides.cohort(task.source.read(place).scores, labels, task.norm.method, place.rows, place.columns)
    found = task.norm.statistics(side)
    return np.stack([found.mean, found.std], axis=1)
