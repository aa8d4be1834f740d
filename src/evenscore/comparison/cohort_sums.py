"""Sums of cohort scores by pairs of groups of speakers: all that is needed to leave out one group after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import add
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from evenscore.comparison.data import Sides
from evenscore.comparison.trials import ComparedTrials
from evenscore.engine.engine import engine_for
from evenscore.metrics.speaker_groups import speaker_groups
from evenscore.progress import Progress, silent
from evenscore.tables import Axis, LabelledBlocks, Place
from evenscore.tables.score_table import Source
from evenscore.tables.tile import spans

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["CohortSums", "Side", "Speakers", "Unit", "cohort_sums"]

Side = Literal[
    "enroll", "test"
]  # whose cohort scores: enrolments against the cohort's tests, or tests against enrolments
_SLAB = 1 << 20  # scores that are summed at a time


@dataclass(frozen=True)
class Unit:
    """What the scores of one condition are measured in."""

    mean: float
    std: float
    high: float  #: in these units


@dataclass(frozen=True, eq=False)
class CohortSums:
    """Sums of cohort scores without those of one speaker; they add up.

    Attributes
    ----------
    pairs
        For each group of speakers of the trials and each group of the cohort's: number, sum, sum of squares, and number
        of high scores.
    rows
        For each group: number of enrolments (tests), sum of their mean scores, and of the squares of these.
    """

    pairs: Float[np.ndarray, "g g 4"]
    rows: Float[np.ndarray, "g 3"]

    def __add__(self, other: CohortSums) -> CohortSums:
        return CohortSums(self.pairs + other.pairs, self.rows + other.rows)

    def total(self) -> tuple[Float[np.ndarray, " 4"], Float[np.ndarray, " 3"]]:
        """Return the sums of all."""
        return self.pairs.sum(axis=(0, 1)), self.rows.sum(axis=0)

    def without_each(self) -> tuple[Float[np.ndarray, "g 4"], Float[np.ndarray, "g 3"]]:
        """Return the sums of all but one group, on both sides of the scores, for each group."""
        pairs, rows = self.total()
        own = np.einsum("ggk->gk", self.pairs)
        return pairs - self.pairs.sum(axis=1) - self.pairs.sum(axis=0) + own, rows - self.rows


@dataclass(frozen=True, eq=False)
class Speakers:
    """All who speak in the cohort scores of one side of the trials, and their groups.

    Attributes
    ----------
    number
        Of each speaker.
    group
        Of each number.
    populations
        The groups of the training speakers, of the evaluation speakers, and of others in the cohort.
    known
        Who speaks in the ids of the training side, for a cohort that does not know it itself.
    """

    number: Mapping[str, int]
    group: Int[np.ndarray, " s"]
    populations: tuple[range, ...]
    known: Mapping[str, str]

    @classmethod
    def of(cls, sides: Sides, side: Side) -> Speakers:
        """Find all speakers of both sides."""
        trials = (sides.training_trials, sides.trials)
        other: Side = "test" if side == "enroll" else "enroll"  # a cohort's tests stand against enrolments
        pairs = ((_axis(part, other), names) for part, names in _spoken(sides.training_trials, other))
        known = {name: who for axis, names in pairs for name, who in zip(axis.ids.tolist(), names, strict=True)}
        cohorts = [_members(_cohort_axis(part, side), known) for part in (*sides.training, *sides.evaluation)]
        spoken = [chain.from_iterable(names for _, names in _spoken(one, side)) for one in trials]
        number: dict[str, int] = {}
        groups: list[npt.NDArray[Any]] = []
        populations: list[range] = []
        for names in (*spoken, chain.from_iterable(cohorts)):
            new = sorted(set(names) - number.keys())
            number |= {name: len(number) + at for at, name in enumerate(new)}
            first = populations[-1].stop if populations else 0
            groups.append(first + speaker_groups(len(new), seed=0))
            populations.append(range(first, int(groups[-1].max(initial=first - 1)) + 1))
        return cls(number, np.concatenate(groups), tuple(populations), known)

    def numbers(self, names: Iterable[str]) -> Int[np.ndarray, " n"]:
        """Return the numbers of speakers."""
        return np.array([self.number[name] for name in names], dtype=np.int64)


def _spoken(trials: ComparedTrials, side: Side) -> list[tuple[LabelledBlocks, list[str]]]:
    """Return who speaks in the enrolments (tests) of each condition; an id of nobody speaks for itself."""
    found = []
    for part, codes in zip(trials.parts, trials.codes, strict=True):
        pairs = zip(_axis(part, side).ids.tolist(), codes[side == "test"].tolist(), strict=True)
        found.append((part, [name if code < 0 else trials.speakers[code] for name, code in pairs]))
    return found


def _axis(part: LabelledBlocks, side: Side) -> Axis:
    axis: Axis = getattr(part.blocks.trials, f"{side}_axis")
    return axis


def _cohort_axis(part: LabelledBlocks, side: Side) -> Axis:
    axis: Axis = part.blocks.enroll.test_axis if side == "enroll" else part.blocks.test.enroll_axis
    return axis


def _members(axis: Axis, known: Mapping[str, str]) -> list[str]:
    speakers = [None] * len(axis) if axis.speakers is None else axis.speakers.tolist()
    pairs = zip(axis.ids.tolist(), speakers, strict=True)
    return [known.get(name, name) if who is None else who for name, who in pairs]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Task:
    source: Source
    by_column: bool  #: the trials' ids stand in the columns
    unit: Unit
    rows: npt.NDArray[Any]  #: who speaks in the trials' ids
    members: npt.NDArray[Any]  #: and in the cohort
    group: npt.NDArray[Any]
    n_groups: int


def cohort_sums(
    parts: Sequence[LabelledBlocks],
    trials: ComparedTrials,
    side: Side,
    speakers: Speakers,
    units: Sequence[Unit],
    *,
    client: Any = None,
    progress: Progress = silent,
) -> CohortSums:
    """Sum up the cohort scores of the enrolments (tests) of all conditions, each in its unit, in one pass."""
    found = []
    for part, unit, (_, names) in zip(parts, units, _spoken(trials, side), strict=True):
        block = getattr(part.blocks, side)
        task = _Task(
            source=block.source,
            by_column=side == "test",
            unit=unit,
            rows=speakers.numbers(names),
            members=speakers.numbers(_members(_cohort_axis(part, side), speakers.known)),
            group=speakers.group,
            n_groups=speakers.populations[-1].stop,
        )
        places = block.layout.whole_columns() if task.by_column else block.layout.whole_rows()
        engine = engine_for(None if block.is_in_memory else client)
        found.append(engine.total(_sums, task, places, stage="comparing the two sides", progress=progress))
    return reduce(add, found)


def _sums(task: _Task, place: Place) -> CohortSums:
    """Sum up whole rows."""
    tile = task.source.read(place)
    scores, rows = (tile.scores.T, task.rows[tile.columns]) if task.by_column else (tile.scores, task.rows[tile.rows])
    order = np.argsort(task.group[task.members], kind="stable")  # so that a group's members stand side by side
    members = task.members[order]
    groups, starts = np.unique(task.group[members], return_index=True)
    pairs, totals = np.zeros((task.n_groups, task.n_groups, 4)), np.zeros((task.n_groups, 3))
    for at in spans(len(scores), max(_SLAB // max(len(members), 1), 1)):
        values = (scores[at][:, order].astype(np.float64) - task.unit.mean) / task.unit.std
        there = ~np.isnan(values) & (rows[at, None] != members)
        values = np.where(there, values, 0.0)
        kinds = (there, values, np.square(values), there & (values > task.unit.high))
        cells = np.stack([np.add.reduceat(kind, starts, axis=1, dtype=np.float64) for kind in kinds], axis=-1)
        own = task.group[rows[at]]
        np.add.at(pairs, (own[:, None], groups), cells)
        count, total = cells.sum(axis=1)[:, :2].T
        some = count > 0
        mean = total[some] / count[some]
        np.add.at(totals, own[some], np.stack([np.ones_like(mean), mean, np.square(mean)], axis=-1))
    return CohortSums(pairs, totals)
