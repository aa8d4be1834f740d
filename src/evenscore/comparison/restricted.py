"""A part of labelled blocks: the trials of some speakers, with some members of the cohort."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.tables import LabelledBlocks, ScoreBlocks
from evenscore.tables.ids import Ids

__all__ = ["cohort_members", "restricted"]

Chooser = Callable[[Ids, "Ids | None"], npt.NDArray[np.bool_]]  # from ids and speakers of members to who stays


def restricted(part: LabelledBlocks, speakers: Collection[str], stays: Chooser) -> LabelledBlocks | None:
    """Return the trials between these speakers, with the cohort members that stay; None if there are no such trials.

    Examples
    --------
    >>> from evenscore import Labels, ScoreMatrix
    >>> scores = ScoreMatrix(np.arange(9.0).reshape(3, 3), ["a1", "b1", "c1"], ["a2", "b2", "c2"])
    >>> dev = LabelledBlocks.own_cohort(scores, Labels.from_speakers(["a", "b", "c"], ["a", "b", "c"]))
    >>> small = restricted(dev, {"a", "b"}, lambda ids, speakers: speakers != "a")
    >>> small.blocks
    ScoreBlocks(trials 2 x 2, enroll 2 x 2, test 2 x 2, cohort 2 x 2, speakers of enroll, test, cohort_enroll,
    cohort_test)
    """
    blocks, trials = part.blocks, part.blocks.trials
    assert blocks.enroll_speakers is not None and blocks.test_speakers is not None  # noqa: S101, PT018
    rows, columns = (
        np.array([name in speakers for name in side], dtype=bool)
        for side in (blocks.enroll_speakers, blocks.test_speakers)
    )
    if trials.listed:
        kept = rows[trials.enroll_index] & columns[trials.test_index]
        if not kept.any():
            return None
        trials = trials.select(kept)
    else:
        if not rows.any() or not columns.any():
            return None
        trials = trials.take(np.flatnonzero(rows), np.flatnonzero(columns))
    return replace(part, blocks=blocks.replace(trials=trials, **_cohort(blocks, stays)))


def _cohort(blocks: ScoreBlocks, stays: Chooser) -> dict[str, Any]:
    """Return the blocks of cohort scores with the members that stay."""
    sides = (blocks.cohort_enroll_axis, blocks.cohort_test_axis)
    rows, columns = (None if axis is None else np.flatnonzero(stays(axis.ids, axis.speakers)) for axis in sides)
    return {
        "enroll": None if blocks.enroll is None else blocks.enroll.take(None, columns),
        "test": None if blocks.test is None else blocks.test.take(rows, None),
        "cohort": None if blocks.cohort is None else blocks.cohort.take(rows, columns),
    }


def cohort_members(blocks: ScoreBlocks) -> list[tuple[Ids, Ids | None]]:
    """Return ids and speakers of the cohort's enrolments and of its tests, as far as there are any."""
    sides = (blocks.cohort_enroll_axis, blocks.cohort_test_axis)
    return [(axis.ids, axis.speakers) for axis in sides if axis is not None]
