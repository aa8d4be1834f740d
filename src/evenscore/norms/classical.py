"""The classical norms behind one prepared object: Z, T, ZT, TZ, S and the adaptive ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.norms import adaptive, chained
from evenscore.norms.block_sides import block_sides
from evenscore.norms.conditions import Conditions
from evenscore.norms.finish import finished
from evenscore.norms.options import NormOptions
from evenscore.norms.sides import NormSides, Side
from evenscore.norms.statistics import Statistics
from evenscore.norms.trial_scores import TrialScores
from evenscore.tables.axis import Axis, as_axis
from evenscore.tables.blocks import ScoreBlocks
from evenscore.tables.ids import IdsLike, shown
from evenscore.tables.labels import Labels
from evenscore.tables.score_matrix import ScoreMatrix
from evenscore.tables.trial_list import TrialList

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
_SECOND = {"zt": "test", "tz": "enroll"}  # the side whose cohort scores are normalized before they are summed up
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

    def normalize(self, blocks: ScoreBlocks) -> ScoreMatrix | TrialList:
        """Return the normalized trials, as a matrix or a list just as they came.

        Parameters
        ----------
        blocks
            The trials and what the method needs of their cohort scores. If the norm was prepared with a cohort, the
            blocks may leave it out.
        """
        blocks = self._with_cohort(blocks)
        for name in NEEDS[self.method]:
            if getattr(blocks, name) is None:
                raise InputError(f"the norm {self.method!r} needs the block `{name}`: the scores of {_MEANING[name]}")
        sides = block_sides(blocks, self.method, self.conditions)
        prepared = self.cohort is not None and blocks.cohort is not None and blocks.cohort.scores is self.cohort.scores
        ready = self._cohort_statistics if prepared else None
        table = TrialScores.of(blocks.trials)
        with np.errstate(over="ignore", invalid="ignore"):  # `finished` names what is not finite
            finite = self._chain(table, sides, ready) if self.method in _SECOND else self._sum(table, sides)
            return finished(table, finite, self.options.vanished)

    may_lack = True  #: what to do with NaN, the option ``vanished`` says

    @property
    def needs(self) -> tuple[str, ...]:
        """The blocks of cohort scores that the method reads."""
        return NEEDS[self.method]

    def parts(self, blocks: ScoreBlocks, how: Any) -> Any:
        """Return the norm by parts, see `classical_parts`."""
        from evenscore.norms.classical_parts import classical_parts

        return classical_parts(self, blocks, how)

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
        one, other = (as_axis([name], "ids") for name in ("enrolment", "test"))
        one = one if enroll_speaker is None else one.with_speakers([enroll_speaker])
        other = other if test_speaker is None else other.with_speakers([test_speaker])
        enroll = self._one_row(enroll_cohort_scores, "enroll", self.members[1])
        test = self._one_row(test_cohort_scores, "test", self.members[0])
        blocks = ScoreBlocks(
            ScoreMatrix([[score]], one, other),
            enroll=None if enroll is None else ScoreMatrix(enroll[0][None, :], one, enroll[1], missing="nan"),
            test=None if test is None else ScoreMatrix(test[0][:, None], test[1], other, missing="nan"),
            cohort=self.cohort,
            cohort_labels=self.cohort_labels,
        )
        normalized = self.normalize(blocks)
        assert normalized.scores is not None  # noqa: S101
        return float(normalized.scores[0, 0])

    def side_statistics(self, side: Side, ready: Statistics | None = None) -> Statistics:
        """Return what one side's cohort scores say about each of its elements, whatever the other side is.

        Parameters
        ----------
        side
            The enrolments, the tests, or the cohort against itself.
        ready
            Statistics of the cohort against itself, which the second side of ZT and TZ needs.
        """
        if side.name == _SECOND.get(self.method):
            assert ready is not None  # noqa: S101
            return chained.scaled_statistics(side, chained.affine(ready), self.method, self.options)
        return adaptive.side_statistics(side, self.method, self.options)

    def apply(self, table: TrialScores, enroll: Statistics | None, test: Statistics | None) -> bool:
        """Normalize trials by the statistics of their elements; tell whether all results are known to be finite."""
        if self.method in _SECOND:
            assert enroll is not None and test is not None  # noqa: S101, PT018
            return chained.chain(table, enroll, test, self.method == "zt")
        both = enroll is not None and test is not None
        return adaptive.sum_sides(table, enroll, test, self.factor if both else 1.0)

    @property
    def factor(self) -> float:
        """The weight of each side, where both are summed."""
        return 0.5 if self.options.combine == "mean" else float(np.sqrt(0.5))

    def _sum(self, table: TrialScores, sides: NormSides) -> bool:
        used = [side for side in (sides.enroll, sides.test) if side is not None and side.name in NEEDS[self.method]]
        factor = self.factor if len(used) == 2 else 1.0
        cross = self.options.select == "cross"
        if not cross and not sides.speakers_meet:
            found = {side.name: self.side_statistics(side) for side in used}
            return self.apply(table, found.get("enroll"), found.get("test"))
        for side in used:
            other = sides.test if side.name == "enroll" else sides.enroll
            if cross and other is not None:
                adaptive.add_cross_side(table, side, other, self.method, self.options, factor)
            elif cross:
                raise InputError(f"select='cross' needs both cohort blocks, but there is only `{side.name}`")
            else:
                others = sides.speaker_of_other(side)
                adaptive.add_own_side(table, side, others, self.method, self.options, factor)
        return False

    def _chain(self, table: TrialScores, sides: NormSides, ready: Statistics | None) -> bool:
        assert sides.enroll is not None  # noqa: S101
        assert sides.test is not None and sides.cohort is not None  # noqa: S101, PT018
        if sides.speakers_meet:
            first, second = (sides.enroll, sides.test) if self.method == "zt" else (sides.test, sides.enroll)
            chained.chain_without_own_speakers(table, first, second, sides.cohort, self.method, self.options)
            return False
        if ready is None:
            ready = self.side_statistics(sides.cohort)
        enroll, test = (self.side_statistics(side, ready) for side in (sides.enroll, sides.test))
        return self.apply(table, enroll, test)

    def _with_cohort(self, blocks: ScoreBlocks) -> ScoreBlocks:
        if blocks.cohort is not None or self.cohort is None or "cohort" not in NEEDS[self.method]:
            return blocks
        return blocks.replace(cohort=self.cohort, cohort_labels=self.cohort_labels)

    @staticmethod
    def _one_row(values: npt.ArrayLike | None, side: str, members: Axis | None) -> tuple[npt.NDArray[Any], Axis] | None:
        """Return the cohort scores of one side of a single trial, and their cohort members."""
        if values is None:
            return None
        row = np.asarray(values, dtype=np.float64)
        if row.ndim != 1:
            raise InputError(f"{side}_cohort_scores must be one row of scores, but has shape {row.shape}")
        members = as_axis(range(len(row)), "ids") if members is None else members
        if len(row) != len(members):
            raise InputError(f"{side}_cohort_scores has {len(row)} scores, but the cohort has {len(members)} members")
        return row, members

    @cached_property
    def _cohort_statistics(self) -> Statistics | None:
        """Statistics of the cohort against itself, for trials whose speakers are not in it."""
        if self.cohort is None or "cohort" not in NEEDS[self.method] or self.conditions is not None:
            return None
        one = ScoreMatrix([[0.0]], ["enrolment"], ["test"])
        blocks = ScoreBlocks(one, cohort=self.cohort, cohort_labels=self.cohort_labels)
        side = block_sides(blocks, self.method, None).cohort
        return None if side is None else adaptive.side_statistics(side, self.method, self.options)


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
