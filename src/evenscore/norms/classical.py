"""The classical norms: Z, T, ZT, TZ, S and the adaptive ones.

Each side of a trial has a location m and a scale s of cohort scores: of all of them, or, in the adaptive norms, of the
highest ones. With e for the enrolment and t for the test, the score s becomes

    S, AS   0.5 * ((s - me) / se + (s - mt) / st)
    Z, AZ   (s - me) / se
    T, AT   (s - mt) / st
    ZT      ((s - me) / se - mt) / st, where mt and st are of cohort scores that were Z-normalized themselves
    TZ      ((s - mt) / st - me) / se, likewise

`statistics` finds m and s, `sides` says which cohort scores a side has and which of them it leaves out. A trial's own
speakers are left out of its cohort: then an element has a location and a scale for each speaker whom it may meet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.norms.by_trial import (
    TrialScores,
    chain_without_own_speakers,
    finished,
    one_trial,
    row_of,
    statistics_without_own,
)
from evenscore.norms.classical_parts import ClassicalParts, cohort_statistics
from evenscore.norms.conditions import Conditions
from evenscore.norms.one_by_one import OneByOne, Row
from evenscore.norms.options import NormOptions
from evenscore.norms.parts import Pass, table_fits
from evenscore.norms.rankings import add_ranked_side, ranked_one, ranking_of
from evenscore.norms.sides import Side, Sides, other_side
from evenscore.norms.statistics import Affine, Statistics, Summary, side_statistics
from evenscore.tables import Labels, ScoreBlocks, ScoreMatrix, TrialList
from evenscore.tables.axis import Axis, as_axis
from evenscore.tables.ids import IdsLike, shown

__all__ = ["ClassicalNorm", "prepare_classical"]

#: Which cohort scores each method needs.
NEEDS = {
    "z": ("enroll",),
    "az": ("enroll",),
    "t": ("test",),
    "at": ("test",),
    "s": ("enroll", "test"),
    "as": ("enroll", "test"),
    "zt": ("enroll", "test", "cohort"),
    "tz": ("enroll", "test", "cohort"),
}
_NOTHING = np.empty(0)
_MEANING = {
    "enroll": "the enrolments against the cohort",
    "test": "the cohort against the tests",
    "cohort": "the cohort against itself",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassicalNorm:
    """A classical norm, ready to normalize; made by `prepare_norm`.

    Attributes
    ----------
    method
        ``"z"``, ``"t"``, ``"zt"``, ``"tz"``, ``"s"``, ``"as"``, ``"at"`` or ``"az"``.
    options
        The checked options.
    cohort, cohort_labels
        The cohort that the norm was prepared with, for blocks that have none of their own.
    members
        The enrolment cohort and the test cohort, as far as they are known.
    conditions
        Conditions that restrict the cohort.
    """

    method: str
    options: NormOptions
    cohort: ScoreMatrix | None = None
    cohort_labels: Labels | None = None
    members: tuple[Axis | None, Axis | None] = (None, None)
    conditions: Conditions | None = None
    _singles: dict[tuple[int, ...], OneByOne] = field(default_factory=dict, init=False, repr=False)  # by sizes

    def normalize(self, blocks: ScoreBlocks) -> ScoreMatrix | TrialList:
        """Return the normalized trials, as a matrix or a list just as they came.

        Parameters
        ----------
        blocks
            The trials and what the method needs of their cohort scores. If the norm was prepared with a cohort, the
            blocks may leave it out.
        """
        blocks = self.with_cohort(blocks)
        sides, trials = Sides.of(blocks, self.conditions), blocks.trials
        if self.options.select == "own" and not sides.meet(self.needs):
            parts = ClassicalParts(norm=self, sides=sides, ready=self._ready(blocks, sides))
            scores = [np.empty((0, 0)) if block is None else block.scores for block in (blocks.enroll, blocks.test)]
            at = [slice(0, size) for size in trials.shape]
            return parts.apply(trials, parts.enroll_part(scores[0], at[0]), parts.test_part(scores[1], at[1]))
        table = TrialScores.of(trials)
        self._by_trial(table, blocks, sides)
        return finished(trials, table.out, False, self.options.vanished)

    may_lack = True  #: what to do with NaN, the option ``vanished`` says

    @property
    def needs(self) -> tuple[str, ...]:
        """The blocks of cohort scores whose location and scale the method takes."""
        return NEEDS[self.method]

    @property
    def reads(self) -> tuple[str, ...]:
        """The blocks of cohort scores that must be there: those, and those that rank the cohort."""
        ranking = {"own": (), "cross": ("enroll", "test"), "profile": ("enroll", "test", "cohort")}
        return tuple(dict.fromkeys((*self.needs, *ranking[self.options.select])))

    @property
    def second(self) -> str | None:
        """The side of ZT and TZ whose cohort scores are normalized before they are summed up."""
        return {"zt": "test", "tz": "enroll"}.get(self.method)

    @property
    def factor(self) -> float:
        """The weight of each side."""
        if self.needs != ("enroll", "test"):
            return 1.0
        return 0.5 if self.options.combine == "mean" else float(np.sqrt(0.5))

    def parts(self, blocks: ScoreBlocks, how: Pass) -> ClassicalParts | None:
        """Return the norm by parts; None where each tile needs the cohort scores of its rows and columns."""
        sides = Sides.of(blocks, self.conditions)
        own = sides.meet(self.needs)
        if self.options.select != "own" or (own and "cohort" in self.needs):
            return None
        ready = cohort_statistics(self, sides, blocks, how) if "cohort" in self.needs else None
        parts = ClassicalParts(norm=self, sides=sides, ready=ready, endless=how.endless)
        return parts if not own or table_fits(blocks, parts.width) else None

    def summary(self, side: Side) -> Summary:
        """Return what is computed of a row of a side."""
        return Summary.of(self.options, self.method, side.shape[1])

    def statistics(self, side: Side, affine: Affine | None = None) -> Statistics:
        """Return location and scale of each element of a side, whatever the other side is."""
        return side_statistics(side, self.summary(side), affine).settled(self.options, side.ids, side.what)

    def _by_trial(self, table: TrialScores, blocks: ScoreBlocks, sides: Sides) -> None:
        """Normalize trials whose cohort depends on both sides: on their own speakers, or on whom the other ranks."""
        given = {"enroll": blocks.enroll, "test": blocks.test}
        both = [None if block is None else sides.side(name, block.scores) for name, block in given.items()]
        if "cohort" in self.needs:
            cohort = sides.cohort(blocks.cohort.scores, blocks.cohort_labels, self.method)  # type: ignore[arg-type]
            first, second = both if self.method == "zt" else both[::-1]
            assert first is not None and second is not None  # noqa: S101, PT018  (the method needs them)
            chain_without_own_speakers(table, first, second, cohort, self.method, self.options)
            return
        for side, other in (both, both[::-1]):
            if side is None or side.name not in self.needs:
                continue
            if self.options.select != "own":
                assert other is not None  # noqa: S101  (`with_cohort` has seen to it)
                ranking = ranking_of(self.options.select, side, other, sides, blocks)
                add_ranked_side(table, side, ranking, self.summary(side), self.options, self.factor)
                continue
            speakers = sides.speaker[other_side(side.name)]
            for rows, column, found in statistics_without_own(table, side, speakers, self.summary(side), self.options):
                at, mean, std = table.look_up(side.name, rows, column, found.mean, found.std)
                table.add(at, self.factor, mean, std)

    def normalize_one(
        self,
        score: float,
        enroll_cohort_scores: npt.ArrayLike | None = None,
        test_cohort_scores: npt.ArrayLike | None = None,
        *,
        enroll_speaker: str | None = None,
        test_speaker: str | None = None,
    ) -> float:
        """Return one trial's normalized score.

        Parameters
        ----------
        score
            The raw score.
        enroll_cohort_scores, test_cohort_scores
            Scores of the enrolment against the test cohort, and of the enrolment cohort against the test, in the order
            of the cohort that the norm was prepared with; NaN where one is missing. Give what the method needs.
        enroll_speaker, test_speaker
            The trial's speakers, to be left out of the cohort; for this the norm must know the cohort's speakers.

        Returns
        -------
        float
            NaN if nothing is left of the cohort and ``vanished="missing"``.
        """
        members = {"enroll": self.members[1], "test": self.members[0]}
        given = {"enroll": enroll_cohort_scores, "test": test_cohort_scores}
        speakers = {"enroll": enroll_speaker, "test": test_speaker}
        rows = {side: None if row is None else row_of(row, side, members[side]) for side, row in given.items()}
        found = self._directly(float(score), rows, [name for name in speakers.values() if name is not None])
        if math.isfinite(found):
            return found
        blocks = one_trial(score, rows, members, speakers, cohort=self.cohort, cohort_labels=self.cohort_labels)
        return float(self.normalize(blocks).tile.scores[0, 0])

    def _directly(self, score: float, rows: dict[str, Any], speakers: list[str]) -> float:
        """Return one trial's normalized score without tables; NaN where that cannot be, or where something is odd."""
        if self.conditions is not None or (speakers and "cohort" in self.reads):  # whose own scores they leave out, too
            return math.nan
        if speakers:
            rows = {side: self._without(side, row, speakers) for side, row in rows.items()}
        if self.options.select == "own":
            singles = self._one_by_one(tuple(-1 if row is None else len(row) for row in rows.values()))
            enroll, test = (_NOTHING if row is None else row for row in rows.values())
            return singles.meet(score, singles.enroll(enroll), singles.test(test))
        if self.options.select == "cross" and self._same_members(rows["enroll"], rows["test"]):
            return self._ranked_by_each_other(score, rows)
        return math.nan

    def _ranked_by_each_other(self, score: float, rows: dict[str, Row]) -> float:
        total = 0.0
        for side in self.needs:
            summary = Summary.of(self.options, self.method, len(rows[side]))
            count, mean, std = ranked_one(rows[side], rows[other_side(side)], summary)
            total += self.factor * ((score - mean) / self.options.settled(count, mean, std))
        return total

    def _same_members(self, enroll: Row | None, test: Row | None) -> bool:
        """Tell whether the cohort scores of both sides are of the same members, in the same order."""
        if enroll is None or test is None or np.isinf(enroll).any() or np.isinf(test).any():
            return False
        return len(enroll) == len(test) if self.members == (None, None) else self._same_axes

    @cached_property
    def _same_axes(self) -> bool:
        rows, columns = self.members
        return rows is not None and columns is not None and rows.same_ids(columns)

    def _without(self, side: str, row: Row | None, speakers: list[str]) -> Row | None:
        """Return a row of cohort scores without those of some speakers."""
        places = [self._members_of[side].get(name) for name in speakers]
        if row is None or all(at is None for at in places):
            return row
        row = row.copy()
        for at in places:
            row[[] if at is None else at] = np.nan
        return row

    @cached_property
    def _members_of(self) -> dict[str, dict[str, list[int]]]:
        """Where each speaker's members stand in the cohort scores of a side."""
        found: dict[str, dict[str, list[int]]] = {"enroll": {}, "test": {}}
        for side, axis in zip(("test", "enroll"), self.members, strict=True):
            if axis is not None and axis.speakers is not None:
                for at, name in enumerate(axis.speakers.tolist()):
                    found[side].setdefault(name, []).append(at)
        return found

    def _one_by_one(self, sizes: tuple[int, ...]) -> OneByOne:
        """Return this norm for single trials with so many cohort scores on both sides, -1 for none."""
        if sizes not in self._singles:
            rows = {side: None if n < 0 else np.zeros(n) for side, n in zip(("enroll", "test"), sizes, strict=True)}
            members, nobody = {"enroll": self.members[1], "test": self.members[0]}, {"enroll": None, "test": None}
            cohort = {"cohort": self.cohort, "cohort_labels": self.cohort_labels} if "cohort" in self.reads else {}
            self._singles[sizes] = OneByOne.of(self, one_trial(0.0, rows, members, nobody, **cohort))
        return self._singles[sizes]

    def with_cohort(self, blocks: ScoreBlocks) -> ScoreBlocks:
        """Return blocks that have all that the method reads, if need be with the cohort it was prepared with."""
        if blocks.cohort is None and self.cohort is not None and "cohort" in self.reads:
            blocks = blocks.replace(cohort=self.cohort, cohort_labels=self.cohort_labels)
        for name in self.reads:
            if getattr(blocks, name) is None:
                select = "" if name in self.needs else f" with select={self.options.select!r}"
                meaning = f"the scores of {_MEANING[name]}"
                raise InputError(f"the norm {self.method!r}{select} needs the block `{name}`: {meaning}")
        return blocks

    def _ready(self, blocks: ScoreBlocks, sides: Sides) -> Statistics | None:
        """Return statistics of the cohort against itself, where the method needs them; of its own cohort once."""
        if "cohort" not in self.needs:
            return None
        own = self.cohort is not None and blocks.cohort.scores is self.cohort.scores and self.conditions is None
        return self._own_cohort if own else cohort_statistics(self, sides, blocks, Pass())

    @cached_property
    def _own_cohort(self) -> Statistics:
        nobody = ScoreMatrix([[0.0]], ["enrolment"], ["test"])
        blocks = ScoreBlocks(nobody, cohort=self.cohort, cohort_labels=self.cohort_labels)
        return cohort_statistics(self, Sides.of(blocks), blocks, Pass())


def prepare_classical(
    method: str,
    *,
    cohort: ScoreMatrix | None = None,
    cohort_labels: Labels | None = None,
    cohort_enroll_speakers: IdsLike | None = None,
    cohort_test_speakers: IdsLike | None = None,
    conditions: Conditions | None = None,
    convention: str | None = None,
    options: NormOptions | None = None,
    **given: Any,
) -> ClassicalNorm:
    """Return a classical norm with checked options; see `prepare_norm`."""
    if options is None:
        options = NormOptions.of(convention=convention, **given)
    elif convention is not None or given:
        odd = [*(["convention"] if convention is not None else []), *given]
        raise InputError(f"give either `options` or single options, but not both: {shown(odd)}")
    speakers = {"enroll": cohort_enroll_speakers, "test": cohort_test_speakers}
    if cohort is not None:
        cohort = cohort.with_speakers(*speakers.values())
        members: Any = (cohort.enroll_axis, cohort.test_axis)
    else:
        members = tuple(
            None if who is None else as_axis(range(len(list(who))), "ids", speakers=who) for who in speakers.values()
        )
    return ClassicalNorm(
        method=method,
        options=options.checked_for(method),
        cohort=cohort,
        cohort_labels=cohort_labels,
        members=members,
        conditions=conditions,
    )
