"""The score model for trials whose own speakers are in the cohort: sums by the cohort's speakers are all it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.model.own_speakers import SpeakerSums, TrialSums, group_columns
from evenscore.model.parameters import ScoreModel
from evenscore.model.partial_cohorts import score_by_sums
from evenscore.model.patterns import SpeakerBlocks
from evenscore.norms.conditions import coded
from evenscore.norms.parts import Part, Pass, table_fits
from evenscore.tables import Place, ScoreBlocks, ScoreMatrix
from evenscore.tables.score_table import Source

__all__ = ["OwnScoreModelParts"]

_PIECE = 1 << 20  # scores that are worked on at once
_MOST_SPEAKERS = 5000  # in the cohort: the sums of pairs of them take 200 MB


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnScoreModelParts:
    """The score model; an element's numbers are its speaker's number in the cohort (-1: none), and its sums by speaker.

    It holds for a complete cohort whose targets are its same-speaker pairs.
    """

    model: ScoreModel
    cohort: SpeakerSums
    blocks: SpeakerBlocks  #: the cohort's speakers, numbered
    own: dict[str, npt.NDArray[np.intp]]  #: the number of each enrolment's and each test's speaker
    sides: tuple[bool, bool]  #: which cohort scores there are

    @classmethod
    def of(cls, model: ScoreModel, blocks: ScoreBlocks, how: Pass) -> OwnScoreModelParts | None:
        """Sum the cohort's scores by speaker; None if it is not such a cohort, or if tables would be too large."""
        found = _speaker_blocks(blocks)
        if found is None:
            return None
        cohort, names = found
        fits = cohort.n_speakers <= _MOST_SPEAKERS and table_fits(blocks, 1 + cohort.n_speakers)
        between = _between(blocks, cohort, float(model.mu[0]), how) if fits else np.full((1, 1), np.nan)
        if not np.isfinite(between).all():
            return None
        own = {}
        for side, axis in (("enroll", blocks.trials.enroll_axis), ("test", blocks.trials.test_axis)):
            own[side] = coded(axis.speakers, names, len(axis))
        return cls(
            model=model,
            cohort=SpeakerSums(between=between, shapes=cohort.shapes),
            blocks=cohort,
            own=own,
            sides=(blocks.enroll is not None, blocks.test is not None),
        )

    sides_alike = False

    @property
    def width(self) -> int:
        """How many numbers an element has."""
        return 1 + self.blocks.n_speakers

    def enroll_part(self, scores: npt.NDArray[Any], rows: slice) -> Part:
        """Return the numbers of some enrolments."""
        return self._part(scores, self.own["enroll"][rows], self.blocks.column_codes, self.sides[0])

    def test_part(self, scores: npt.NDArray[Any], columns: slice) -> Part:
        """Return the numbers of some tests."""
        return self._part(scores.T, self.own["test"][columns], self.blocks.row_codes, self.sides[1])

    def _part(
        self, scores: npt.NDArray[Any], own: npt.NDArray[np.intp], codes: npt.NDArray[np.intp], there: bool
    ) -> Part:
        part = np.zeros((len(own), self.width))
        part[:, 0] = own
        if there:
            part[:, 1:] = group_columns(scores, codes, self.blocks.n_speakers, float(self.model.mu[0]))
        return part

    def apply(self, trials: Any, enroll: Part, test: Part) -> Any:
        """Return the log-likelihood ratios of the trials."""
        sums = TrialSums(
            enroll=np.ascontiguousarray(enroll[:, 1:]) if self.sides[0] else None,
            test=np.ascontiguousarray(test[:, 1:]) if self.sides[1] else None,
            enroll_group=enroll[:, 0].astype(np.intp),
            test_group=test[:, 0].astype(np.intp),
        )
        if trials.listed:
            scores = np.asarray(trials.scores)
            pairs = trials.enroll_index, trials.test_index
            return trials.with_scores(score_by_sums(self.model, self.cohort, sums, *pairs, scores).astype(scores.dtype))
        trials = ScoreMatrix(trials.scores, trials.enroll_axis, trials.test_axis, missing="nan")
        out = np.empty_like(trials.scores)
        n_columns = trials.shape[1]
        step = max(1, _PIECE // max(n_columns, 1))
        for start in range(0, trials.shape[0], step):
            part = trials.scores[start : start + step]
            rows, columns = (
                np.repeat(np.arange(start, start + len(part)), n_columns),
                np.tile(np.arange(n_columns), len(part)),
            )
            found = score_by_sums(self.model, self.cohort, sums, rows, columns, part.reshape(-1))
            out[start : start + step] = found.reshape(part.shape)
        return trials.with_scores(out)  # which refuses what is not finite


def _speaker_blocks(blocks: ScoreBlocks) -> tuple[SpeakerBlocks, dict[str, int]] | None:
    """Return the cohort as blocks of speakers and the speakers' numbers, if its labels are those of its speakers."""
    labels = blocks.cohort_labels
    rows, columns = blocks.cohort_enroll_speakers, blocks.cohort_test_speakers
    if labels is None or rows is None or columns is None or not labels.by_speaker or labels.n_unknown:
        return None
    assert labels.enroll_speakers is not None and labels.test_speakers is not None  # noqa: S101, PT018
    if not (np.array_equal(labels.enroll_speakers, rows) and np.array_equal(labels.test_speakers, columns)):
        return None
    row_codes, column_codes, number = labels.speaker_codes
    names = {
        **dict(zip(rows.tolist(), row_codes.tolist(), strict=True)),
        **dict(zip(columns.tolist(), column_codes.tolist(), strict=True)),
    }
    return SpeakerBlocks(row_codes=row_codes, column_codes=column_codes, n_speakers=number), names


@dataclass(frozen=True, eq=False)
class _Cohort:
    source: Source
    column_codes: npt.NDArray[np.intp]
    number: int
    center: float


def _between(blocks: ScoreBlocks, cohort: SpeakerBlocks, center: float, how: Pass) -> npt.NDArray[np.float64]:
    """Return the sums of the cohort's scores by pairs of speakers, in one pass; NaN where a score is missing."""
    assert blocks.cohort is not None  # noqa: S101  (there are labels of it)
    between = np.zeros((cohort.n_speakers, cohort.n_speakers))
    task = _Cohort(blocks.cohort.source, cohort.column_codes, cohort.n_speakers, center)
    parts: dict[int, tuple[Place, npt.NDArray[np.float64]]] = {}
    awaited = 0
    places = blocks.cohort.layout.whole_rows()
    found = how.engine.map(_sum_rows, task, places, stage="cohort against itself", progress=how.progress)
    for place, part in found:
        parts[place.number] = (place, part)
        while awaited in parts:  # added in order, so that sums do not depend on who is quicker
            ready, sums = parts.pop(awaited)
            np.add.at(between, cohort.row_codes[ready.rows], sums)
            awaited += 1
    return between


def _sum_rows(task: _Cohort, place: Place) -> npt.NDArray[np.float64]:
    return group_columns(task.source.read(place).scores, task.column_codes, task.number, task.center)
