"""A cohort as the score model sees it: its scores and labels, and who is in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.model.patterns import SpeakerBlocks
from evenscore.tables import UNKNOWN, Axis, Labels, ScoreBlocks, ScoreMatrix
from evenscore.tables.ids import Ids
from evenscore.tables.known_scores import KnownScores

__all__ = ["Cohort"]

_NOBODY: Ids = np.empty(0, dtype=object)


@dataclass(frozen=True, kw_only=True, eq=False)
class Cohort:
    """N enrolments against M tests; `key` is -1 where a score is missing or its label unknown."""

    enroll_ids: Ids
    test_ids: Ids
    scores: npt.NDArray[Any]
    key: npt.NDArray[np.int8]
    enroll_speakers: Ids | None = None
    test_speakers: Ids | None = None

    @classmethod
    def of(cls, blocks: ScoreBlocks | None) -> Cohort:
        """Take the cohort out of blocks; without S_I its scores are all missing."""
        rows = blocks.cohort_enroll_ids if blocks is not None else None
        columns = blocks.cohort_test_ids if blocks is not None else None
        rows, columns = _NOBODY if rows is None else rows, _NOBODY if columns is None else columns
        if blocks is None or blocks.cohort is None or blocks.cohort_labels is None:
            scores: npt.NDArray[Any] = np.full((len(rows), len(columns)), np.nan)
            key = np.full(scores.shape, UNKNOWN, dtype=np.int8)
        else:
            scores, key = blocks.cohort.scores, blocks.cohort_labels.matrix
            if blocks.cohort.n_missing:
                key = np.where(blocks.cohort.missing, np.int8(UNKNOWN), key)
        return cls(
            enroll_ids=rows,
            test_ids=columns,
            scores=scores,
            key=key,
            enroll_speakers=None if blocks is None else blocks.cohort_enroll_speakers,
            test_speakers=None if blocks is None else blocks.cohort_test_speakers,
        )

    @cached_property
    def blocks(self) -> SpeakerBlocks | None:
        """The cohort as blocks of speakers, numbered as in `speakers`, if it is complete and labelled so."""
        if self.enroll_speakers is None or self.test_speakers is None or (self.key == UNKNOWN).any():
            return None
        labels = Labels.from_speakers(self.enroll_speakers, self.test_speakers)
        if labels.n_unknown or not np.array_equal(labels.matrix, self.key):
            return None
        return SpeakerBlocks.of(labels)

    @cached_property
    def speakers(self) -> dict[str, int]:
        """A number for every known speaker, in order of first appearance."""
        numbers: dict[str, int] = {}
        for side in (self.enroll_speakers, self.test_speakers):
            for name in () if side is None else side:
                if name is not None:
                    numbers.setdefault(name, len(numbers))
        return numbers

    def numbers_of(self, names: Ids | None, size: int) -> npt.NDArray[np.intp]:
        """Return the numbers of speakers who are in the cohort, -1 for the others."""
        if names is None:
            return np.full(size, -1, dtype=np.intp)
        return np.fromiter((self.speakers.get(name, -1) for name in names), dtype=np.intp, count=size)

    def members(self, without: set[str]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return the positions of the enrolments and tests that do not belong to some speakers."""
        return _others(self.enroll_speakers, without, len(self.enroll_ids)), _others(
            self.test_speakers, without, len(self.test_ids)
        )

    def take(self, rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp]) -> Cohort:
        """Return a part of the cohort, without its speakers."""
        at = np.ix_(rows, columns)
        return Cohort(
            enroll_ids=self.enroll_ids[rows], test_ids=self.test_ids[columns], scores=self.scores[at], key=self.key[at]
        )

    def align(self, blocks: ScoreBlocks) -> tuple[ScoreMatrix | None, ScoreMatrix | None]:
        """Return S_e and S_t of the blocks with their cohort members in the order of this cohort."""
        enroll, test = blocks.enroll, blocks.test
        if blocks.cohort is not None and blocks.cohort.scores is not self.scores:
            same_ids = np.array_equal(blocks.cohort.enroll_ids, self.enroll_ids)
            if not (same_ids and np.array_equal(blocks.cohort.scores, self.scores, equal_nan=True)):
                raise InputError("the cohort scores of the blocks are not those the normalizer was prepared for")
        for block, side, ids in ((enroll, "test_ids", self.test_ids), (test, "enroll_ids", self.enroll_ids)):
            if block is not None and len(getattr(block, side)) != len(ids):
                found = len(getattr(block, side))
                raise InputError(
                    f"the blocks have {found} cohort members where the normalizer was prepared for {len(ids)}"
                )
        try:
            return (
                None if enroll is None else enroll.align(enroll.enroll_ids, self.test_ids),
                None if test is None else test.align(self.enroll_ids, test.test_ids),
            )
        except InputError as error:
            raise InputError(f"the blocks do not fit the cohort of this normalizer: {error}") from None

    def known(self, blocks: ScoreBlocks) -> tuple[KnownScores | None, KnownScores | None]:
        """Return the known scores of the blocks, with their members in the order of this cohort."""
        enroll, test, trials = blocks.enroll_known, blocks.test_known, blocks.trials
        return (
            None if enroll is None else enroll.align(trials.enroll_axis, Axis(self.test_ids)),
            None if test is None else test.align(trials.test_axis, Axis(self.enroll_ids)),
        )


def _others(speakers: Ids | None, without: set[str], size: int) -> npt.NDArray[np.intp]:
    if speakers is None:
        return np.arange(size)
    return np.flatnonzero([name not in without for name in speakers])
