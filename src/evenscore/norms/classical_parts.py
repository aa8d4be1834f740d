"""Classical norms by parts: location and scale of the cohort scores of each enrolment and of each test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.norms.block_sides import block_sides
from evenscore.norms.classical import NEEDS, ClassicalNorm
from evenscore.norms.finish import finished
from evenscore.norms.own_parts import OwnSpeakerParts
from evenscore.norms.parts import Part, Parts, Pass, Piece, speakers_meet
from evenscore.norms.sides import Side
from evenscore.norms.statistics import Statistics
from evenscore.norms.trial_scores import TrialScores
from evenscore.tables import Axis, Labels, Place, ScoreBlocks, ScoreMatrix
from evenscore.tables.score_table import Source

__all__ = ["ClassicalParts", "classical_parts", "cohort_statistics"]


def classical_parts(norm: ClassicalNorm, blocks: ScoreBlocks, how: Pass) -> Parts | None:
    """Return a classical norm by parts; None where each tile needs the cohort scores of its rows and columns."""
    needs = NEEDS[norm.method]
    if norm.options.select == "cross":
        return None
    if speakers_meet(blocks, needs):
        return OwnSpeakerParts.of(norm, blocks)
    return ClassicalParts.of(norm, blocks, cohort_statistics(norm, blocks, how) if "cohort" in needs else None)


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassicalParts:
    """A classical norm; the numbers are location and scale of the cohort scores, NaN where no cohort is left."""

    width = 2

    @property
    def sides_alike(self) -> bool:
        """True for the norms that treat both sides alike."""
        return self.norm.method in ("s", "as")

    norm: ClassicalNorm
    enroll: Axis
    test: Axis
    cohort_enroll: Axis | None
    cohort_test: Axis | None
    ready: Statistics | None = None  #: of the cohort against itself, for ZT and TZ

    @classmethod
    def of(cls, norm: ClassicalNorm, blocks: ScoreBlocks, ready: Statistics | None = None) -> ClassicalParts:
        """Prepare a norm for blocks; ZT and TZ need statistics of the cohort against itself (`cohort_statistics`)."""
        return cls(
            norm=norm,
            enroll=blocks.trials.enroll_axis,
            test=blocks.trials.test_axis,
            cohort_enroll=blocks.cohort_enroll_axis,
            cohort_test=blocks.cohort_test_axis,
            ready=ready,
        )

    def enroll_part(self, scores: npt.NDArray[Any], rows: slice) -> Part:
        """Return location and scale of the cohort scores of some enrolments."""
        if self.cohort_test is None or "enroll" not in NEEDS[self.norm.method]:
            return _nothing(len(scores))
        axis = self.enroll.take(rows)
        block = ScoreMatrix(scores, axis, self.cohort_test, missing="nan")
        trials = ScoreMatrix(np.empty((len(axis), 0)), axis, [])
        return self._part(block_sides(ScoreBlocks(trials, enroll=block), "s", self.norm.conditions).enroll)

    def test_part(self, scores: npt.NDArray[Any], columns: slice) -> Part:
        """Return location and scale of the cohort scores of some tests."""
        if self.cohort_enroll is None or "test" not in NEEDS[self.norm.method]:
            return _nothing(scores.shape[1])
        axis = self.test.take(columns)
        block = ScoreMatrix(scores, self.cohort_enroll, axis, missing="nan")
        trials = ScoreMatrix(np.empty((0, len(axis))), [], axis)
        return self._part(block_sides(ScoreBlocks(trials, test=block), "s", self.norm.conditions).test)

    def _part(self, side: Side | None) -> Part:
        assert side is not None  # noqa: S101
        found = self.norm.side_statistics(side, ready=self.ready)
        return np.stack([found.mean, found.std], axis=1)

    def apply(self, trials: Any, enroll: Part, test: Part) -> Any:
        """Return the trials normalized."""
        needs = NEEDS[self.norm.method]
        sides = [_statistics(part) if name in needs else None for name, part in (("enroll", enroll), ("test", test))]
        scores = np.asarray(trials.scores)
        table = TrialScores(trials, np.empty_like(scores, dtype=None if scores.ndim == 2 else np.float64, order="C"))
        with np.errstate(over="ignore", invalid="ignore"):  # `finished` names what is not finite
            if not self.norm.apply(table, *sides) and not trials.listed:
                trials = ScoreMatrix(trials.scores, trials.enroll_axis, trials.test_axis, missing="nan")
                return finished(TrialScores(trials, table.out), False, self.norm.options.vanished)
            return finished(table, not trials.listed, self.norm.options.vanished)


def _nothing(size: int) -> Part:
    """Return what leaves scores as they are."""
    return np.tile([0.0, 1.0], (size, 1))


def _statistics(part: Part) -> Statistics:
    return Statistics(np.ones(len(part), dtype=np.int64), part[:, 0], part[:, 1])


@dataclass(frozen=True, eq=False)
class _CohortTask:
    norm: ClassicalNorm
    source: Source
    labels: Labels
    enroll: Axis
    test: Axis


def cohort_statistics(norm: ClassicalNorm, blocks: ScoreBlocks, how: Pass) -> Statistics:
    """Return location and scale of the cohort members by which ZT and TZ normalize the second side's scores."""
    cohort, labels = blocks.cohort, blocks.cohort_labels
    assert labels is not None  # noqa: S101
    by_row = norm.method == "zt"
    places = cohort.layout.whole_rows() if by_row else cohort.layout.whole_columns()
    out = np.empty((cohort.shape[0 if by_row else 1], 2))
    if labels.by_speaker:
        _ = labels.speaker_codes  # so that it is made once, not in every task
    how.fill(
        {"cohort": out},
        [Piece("cohort", place.rows if by_row else place.columns, place) for place in places],
        _members,
        _CohortTask(norm, cohort.source, labels, Axis(cohort.enroll_ids), Axis(cohort.test_ids)),
        "cohort against itself",
    )
    return Statistics(np.ones(len(out), dtype=np.int64), out[:, 0], out[:, 1])


def _members(task: _CohortTask, place: Place) -> npt.NDArray[np.float64]:
    rows, columns = task.enroll.take(place.rows), task.test.take(place.columns)
    places = np.arange(place.rows.start, place.rows.stop), np.arange(place.columns.start, place.columns.stop)
    blocks = ScoreBlocks(
        ScoreMatrix(np.empty((0, 0)), [], []),
        cohort=ScoreMatrix(task.source.read(place).scores, rows, columns, missing="nan"),
        cohort_labels=task.labels.take(*places),
    )
    side = block_sides(blocks, task.norm.method, task.norm.conditions).cohort
    assert side is not None  # noqa: S101  (the method is ZT or TZ)
    found = task.norm.side_statistics(side)
    return np.stack([found.mean, found.std], axis=1)
