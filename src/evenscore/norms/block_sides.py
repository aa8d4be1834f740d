"""The sides of a norm, read from the blocks of scores that a user gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.compiled import few
from evenscore.norms.conditions import Conditions
from evenscore.norms.sides import NO_GROUP, Codes, Groups, NormSides, Rows, Side, coded, speaker_codes
from evenscore.tables.blocks import ScoreBlocks
from evenscore.tables.ids import Ids
from evenscore.tables.labels import NONTARGET
from evenscore.threads import in_parallel

__all__ = ["block_sides"]


def block_sides(blocks: ScoreBlocks, method: str, conditions: Conditions | None) -> NormSides:
    """Return what a classical norm reads of these blocks."""
    maker = _Maker(blocks, conditions or Conditions(), _codes(blocks))
    cohort = None
    if method == "zt":
        cohort = maker.cohort_rows()
    elif method == "tz":
        cohort = maker.cohort_columns()
    trials, codes = blocks.trials, maker.codes
    return NormSides(
        enroll=maker.enroll(),
        test=maker.test(),
        cohort=cohort,
        enroll_speaker=coded(blocks.enroll_speakers, codes, len(trials.enroll_ids)),
        test_speaker=coded(blocks.test_speakers, codes, len(trials.test_ids)),
    )


def _codes(blocks: ScoreBlocks) -> dict[str, int]:
    return speaker_codes(
        [blocks.cohort_enroll_speakers, blocks.cohort_test_speakers], [blocks.enroll_speakers, blocks.test_speakers]
    )


@dataclass(frozen=True, eq=False)
class _Maker:
    blocks: ScoreBlocks
    conditions: Conditions
    codes: dict[str, int]

    def enroll(self) -> Side | None:
        if self.blocks.enroll is None:
            return None
        scores = np.ascontiguousarray(self.blocks.enroll.scores)
        return self._side("enroll", scores, self.blocks.enroll.enroll_ids, self.blocks.enroll.test_ids)

    def test(self) -> Side | None:
        if self.blocks.test is None:
            return None
        scores = np.ascontiguousarray(self.blocks.test.scores)
        return self._side("test", scores.T, self.blocks.test.test_ids, self.blocks.test.enroll_ids)

    def cohort_rows(self) -> Side:
        """Return the enrolment cohort against the test cohort, for ZT."""
        assert self.blocks.cohort is not None  # noqa: S101
        return self._cohort(self._impostors(), "cohort_enroll", "cohort_test")

    def cohort_columns(self) -> Side:
        """Return the test cohort against the enrolment cohort, for TZ."""
        return self._cohort(self._impostors().T, "cohort_test", "cohort_enroll")

    def _impostors(self) -> npt.NDArray[Any]:
        """Return the cohort scores, NaN where a pair is not known to be a non-target."""
        cohort, labels = self.blocks.cohort, self.blocks.cohort_labels
        assert cohort is not None and labels is not None  # noqa: S101, PT018
        if labels.n_nontarget == cohort.scores.size:
            return np.ascontiguousarray(cohort.scores)
        kept = labels.matrix == NONTARGET
        return np.where(kept, cohort.scores, np.array(np.nan, dtype=cohort.scores.dtype))

    def _side(self, name: str, scores: npt.NDArray[Any], ids: Ids, cohort_ids: Ids) -> Side:
        cohort = "cohort_test" if name == "enroll" else "cohort_enroll"
        return self._made(name, scores, ids, cohort_ids, self._speaker(name, len(ids)), (name, cohort))

    def _cohort(self, scores: npt.NDArray[Any], row_name: str, column_name: str) -> Side:
        rows, columns = (getattr(self.blocks, f"{name}_ids") for name in (row_name, column_name))
        # The labels have left out what is of one speaker; here the conditions of the two cohorts must agree.
        nobody = np.full(len(rows), NO_GROUP, dtype=np.int64)
        return self._made("cohort", scores, rows, columns, nobody, (row_name, column_name))

    def _made(
        self,
        name: str,
        scores: npt.NDArray[Any],
        ids: Ids,
        cohort_ids: Ids,
        speaker: Codes,
        names: tuple[str, str],
    ) -> Side:
        condition, cohort_condition = self.conditions.codes(names[0], ids, names[1], cohort_ids)
        by_column = not scores.flags.c_contiguous

        def read(rows: Rows) -> npt.NDArray[Any]:
            return _transposed(scores.T, rows) if by_column else np.ascontiguousarray(scores[rows])

        return Side(
            name=name,
            ids=ids,
            cohort_ids=cohort_ids,
            read=read,
            fresh=by_column,
            speaker=speaker,
            groups=Groups(self._speaker(names[1], len(cohort_ids)), len(self.codes)),
            condition=condition,
            cohort_condition=cohort_condition,
            columns=scores.T if by_column else None,
            itemsize=scores.dtype.itemsize,
        )

    def _speaker(self, name: str, size: int) -> Codes:
        return coded(getattr(self.blocks, f"{name}_speakers"), self.codes, size)


def _transposed(block: npt.NDArray[Any], columns: Rows) -> npt.NDArray[Any]:
    if few(block.size):
        return np.ascontiguousarray(block[:, columns].T)
    from evenscore.norms.kernel_apply import transpose

    if isinstance(columns, slice):
        first, end, _ = columns.indices(block.shape[1])
    else:
        block, first, end = block[:, columns], 0, len(columns)
    block = np.ascontiguousarray(block)
    out = np.empty((end - first, len(block)), dtype=block.dtype)
    in_parallel(lambda start, stop: transpose(block, first, start, stop, out), *out.shape)
    return out
