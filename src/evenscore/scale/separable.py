"""Norms in which a trial's two sides meet only at the very end.

What the cohort scores of an enrolment say about it does not depend on the test then, and the other way round. So a few
numbers per enrolment and per test are found first, in one pass over the cohort scores, and any tile of the trials, or
any part of a list of them, needs nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from evenscore.model.normalizer import ScoreModelNormalizer, apply_shifts
from evenscore.model.score_weights import ScoreWeights, enroll_shifts, test_shifts
from evenscore.norms.block_sides import block_sides
from evenscore.norms.classical import NEEDS, ClassicalNorm
from evenscore.norms.finish import finished
from evenscore.norms.sides import Side
from evenscore.norms.statistics import Statistics
from evenscore.norms.trial_scores import TrialScores
from evenscore.scale.blocks import ChunkedBlocks
from evenscore.tables import ScoreBlocks, ScoreMatrix, TrialList
from evenscore.tables.ids import Ids, positions

if TYPE_CHECKING:
    pass

__all__ = ["ClassicalParts", "Part", "ScoreModelParts", "Separable", "cohort_alone", "speakers_meet", "tile_matrix"]

Array = np.ndarray
Part = npt.NDArray[np.float64]  #: n x width, a row for each member


class Separable(Protocol):
    """A norm that knows a few numbers for each element of either side."""

    @property
    def width(self) -> int:
        """How many numbers: two, but for the cohort-evidence model (`EvidenceParts`)."""
        ...

    def enroll_part(self, scores: npt.NDArray[Any], rows: slice) -> Part:
        """Return the numbers of some enrolments, from all of their cohort scores; NaN if that cannot be."""
        ...

    def test_part(self, scores: npt.NDArray[Any], columns: slice) -> Part:
        """Return the numbers of some tests."""
        ...

    def apply(self, trials: ScoreMatrix | TrialList, enroll: Part, test: Part) -> ScoreMatrix | TrialList:
        """Return the trials normalized, from the numbers of their enrolments and tests."""
        ...


def speakers_meet(blocks: ChunkedBlocks, method: str) -> bool:
    """Tell whether a trial's cohort depends on both of its speakers, because they are in it."""

    def names(*sides: Any) -> set[str]:
        found = [side.values() if isinstance(side, Mapping) else side for side in sides if side is not None]
        return {name for side in found for name in side} - {None}

    needs = NEEDS.get(method, ("cohort",))
    enroll, test = names(blocks.enroll_speakers), names(blocks.test_speakers)
    cohort_enroll, cohort_test = names(blocks.cohort_enroll_speakers), names(blocks.cohort_test_speakers)
    if "cohort" in needs:
        return bool((enroll | test) & (cohort_enroll | cohort_test))
    return bool(("enroll" in needs and test & cohort_test) or ("test" in needs and enroll & cohort_enroll))


def tile_matrix(scores: npt.NDArray[Any], enroll_ids: Ids, test_ids: Ids) -> ScoreMatrix:
    """Return a tile as a matrix that nobody has looked through for missing and infinite scores."""
    matrix = object.__new__(ScoreMatrix)
    for name, value in {"scores": scores, "enroll_ids": enroll_ids, "test_ids": test_ids, "n_missing": 0}.items():
        object.__setattr__(matrix, name, value)
    return matrix


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassicalParts:
    """A classical norm; the numbers are location and scale of the cohort scores, NaN where no cohort is left."""

    width = 2

    norm: ClassicalNorm
    enroll_ids: Ids | None = None
    test_ids: Ids | None = None
    cohort_enroll_ids: Ids | None = None
    cohort_test_ids: Ids | None = None
    speakers: Mapping[str, Any] = field(default_factory=dict)
    ready: Statistics | None = None  #: of the cohort against itself, for ZT and TZ

    @classmethod
    def of(cls, norm: ClassicalNorm, blocks: ChunkedBlocks, ready: Statistics | None = None) -> ClassicalParts:
        """Prepare a norm for blocks; ZT and TZ need statistics of the cohort against itself (`cohort_statistics`)."""
        return cls(
            norm=norm,
            enroll_ids=blocks.enroll_ids,
            test_ids=blocks.test_ids,
            cohort_enroll_ids=None if blocks.test is None else blocks.test.enroll_ids,
            cohort_test_ids=None if blocks.enroll is None else blocks.enroll.test_ids,
            speakers=blocks.speakers,
            ready=ready,
        )

    def enroll_part(self, scores: npt.NDArray[Any], rows: slice) -> Part:
        """Return location and scale of the cohort scores of some enrolments."""
        assert self.enroll_ids is not None  # noqa: S101
        ids = self.enroll_ids[rows]
        blocks = ScoreBlocks(
            ScoreMatrix(np.empty((len(ids), 0)), ids, []),
            enroll=ScoreMatrix(scores, ids, self.cohort_test_ids, missing="nan"),  # type: ignore[arg-type]
            enroll_speakers=self._own("enroll_speakers", ids, rows),
            cohort_test_speakers=self.speakers["cohort_test_speakers"],
        )
        return self._part(block_sides(blocks, "s", self.norm.conditions).enroll)

    def test_part(self, scores: npt.NDArray[Any], columns: slice) -> Part:
        """Return location and scale of the cohort scores of some tests."""
        assert self.test_ids is not None  # noqa: S101
        ids = self.test_ids[columns]
        blocks = ScoreBlocks(
            ScoreMatrix(np.empty((0, len(ids))), [], ids),
            test=ScoreMatrix(scores, self.cohort_enroll_ids, ids, missing="nan"),  # type: ignore[arg-type]
            test_speakers=self._own("test_speakers", ids, columns),
            cohort_enroll_speakers=self.speakers["cohort_enroll_speakers"],
        )
        return self._part(block_sides(blocks, "s", self.norm.conditions).test)

    def _own(self, name: str, ids: Ids, at: slice) -> Any:
        known = self.speakers[name]
        if isinstance(known, Mapping):
            return [known.get(name) for name in ids]
        return None if known is None else known[at]

    def _part(self, side: Side | None) -> Part:
        assert side is not None  # noqa: S101
        found = self.norm.side_statistics(side, ready=self.ready)
        return np.stack([found.mean, found.std], axis=1)

    def apply(self, trials: ScoreMatrix | TrialList, enroll: Part, test: Part) -> ScoreMatrix | TrialList:
        """Return the trials normalized."""
        needs = NEEDS[self.norm.method]
        sides = [_statistics(part) if name in needs else None for name, part in (("enroll", enroll), ("test", test))]
        scores = np.asarray(trials.scores)
        table = TrialScores(trials, np.empty_like(scores, dtype=None if scores.ndim == 2 else np.float64, order="C"))
        with np.errstate(over="ignore", invalid="ignore"):  # `finished` names what is not finite
            if not self.norm.apply(table, *sides) and isinstance(trials, ScoreMatrix):
                trials = ScoreMatrix(trials.scores, trials.enroll_ids, trials.test_ids, missing="nan")
                return finished(TrialScores(trials, table.out), False, self.norm.options.vanished)
            return finished(table, isinstance(trials, ScoreMatrix), self.norm.options.vanished)


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreModelParts:
    """The score model; the numbers are each side's part of the predicted score of either class."""

    width = 2

    weights: ScoreWeights

    @classmethod
    def of_prepared(cls, normalizer: ScoreModelNormalizer, blocks: ChunkedBlocks) -> ScoreModelParts:
        """Take the weights of a cohort that is in memory, in the order of the blocks' cohort scores."""
        weights = normalizer.weights(enroll=blocks.enroll is not None, test=blocks.test is not None)
        changed = {}
        for side, block, ids in (("enroll", blocks.enroll, "test_ids"), ("test", blocks.test, "enroll_ids")):
            if block is not None:
                known = getattr(normalizer, f"cohort_{ids}")
                at = positions(known, getattr(block, ids), "cohort member", "the cohort of this normalizer")
                changed[side] = getattr(weights, side)[:, at]
        return cls(weights=replace(weights, **changed))

    def enroll_part(self, scores: npt.NDArray[Any], rows: slice) -> Part:
        """Return the enrolments' part of the predicted scores."""
        return _nan_where_missing(enroll_shifts(self.weights, scores), scores, axis=1)

    def test_part(self, scores: npt.NDArray[Any], columns: slice) -> Part:
        """Return the tests' part of the predicted scores."""
        return _nan_where_missing(test_shifts(self.weights, scores), scores, axis=0)

    def apply(self, trials: ScoreMatrix | TrialList, enroll: Part, test: Part) -> ScoreMatrix | TrialList:
        """Return the log-likelihood ratios of the trials."""
        if isinstance(trials, ScoreMatrix) and not np.isfinite(trials.scores.sum()):
            trials = ScoreMatrix(trials.scores, trials.enroll_ids, trials.test_ids, missing="nan")
        return apply_shifts(self.weights, trials, enroll, test)


def _statistics(part: Part) -> Statistics:
    return Statistics(np.ones(len(part), dtype=np.int64), part[:, 0], part[:, 1])


def _nan_where_missing(part: Part, scores: npt.NDArray[Any], axis: int) -> Part:
    if np.isfinite(scores.sum()):
        return part
    return np.where(np.isfinite(scores).all(axis=axis)[:, None], part, np.nan)


def cohort_alone(blocks: ChunkedBlocks) -> ScoreBlocks:
    """Return the cohort of blocks in memory, with its labels and speakers, and no trials."""
    rows = None if blocks.test is None else blocks.test.enroll_ids
    columns = None if blocks.enroll is None else blocks.enroll.test_ids
    sides: dict[str, Any] = {}
    if columns is not None:
        sides["enroll"] = ScoreMatrix(np.empty((0, len(columns))), [], columns)
    if rows is not None:
        sides["test"] = ScoreMatrix(np.empty((len(rows), 0)), rows, [])
    speakers = {name: value for name, value in blocks.speakers.items() if name.startswith("cohort")}
    return ScoreBlocks(
        ScoreMatrix(np.empty((0, 0)), [], []),
        cohort=None if blocks.cohort is None else blocks.cohort.matrix(),
        cohort_labels=blocks.cohort_labels,
        **sides,
        **speakers,
    )
