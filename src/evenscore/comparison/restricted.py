"""A part of labelled blocks: the trials of some speakers, with some members of the cohort."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.tables import LabelledBlocks, ScoreBlocks, TrialList
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
    labels = part.labels
    if isinstance(trials, TrialList):
        kept = rows[trials.enroll_index] & columns[trials.test_index]
        if not kept.any():
            return None
        trials = trials.select(kept)
        labels = None if labels is None else labels.align(trials.enroll_ids, trials.test_ids)
    else:
        if not rows.any() or not columns.any():
            return None
        at = np.flatnonzero(rows), np.flatnonzero(columns)
        trials, labels = trials.take(*at), None if labels is None else labels.take(*at)
    sides: dict[str, Any] = {
        "enroll_speakers": dict(zip(blocks.trials.enroll_ids, blocks.enroll_speakers, strict=True)),
        "test_speakers": dict(zip(blocks.trials.test_ids, blocks.test_speakers, strict=True)),
    }
    return LabelledBlocks(ScoreBlocks(trials, **_cohort(blocks, stays), **sides), labels, part.name)


def _cohort(blocks: ScoreBlocks, stays: Chooser) -> dict[str, Any]:
    """Return the blocks of cohort scores with the members that stay."""
    kept = {}
    for side in ("enroll", "test"):
        ids, who = getattr(blocks, f"cohort_{side}_ids"), getattr(blocks, f"cohort_{side}_speakers")
        at = None if ids is None else np.flatnonzero(stays(ids, who))
        kept[side] = at
    rows, columns = kept["enroll"], kept["test"]
    found: dict[str, Any] = {
        "enroll": None if blocks.enroll is None else blocks.enroll.take(None, columns),
        "test": None if blocks.test is None else blocks.test.take(rows, None),
        "cohort": None if blocks.cohort is None else blocks.cohort.take(rows, columns),
    }
    if blocks.cohort is not None and blocks.cohort_labels is not None:
        found["cohort_labels"] = blocks.cohort_labels.take(rows, columns)  # type: ignore[arg-type]
    for side, at in kept.items():
        who = getattr(blocks, f"cohort_{side}_speakers")
        if who is not None:
            found[f"cohort_{side}_speakers"] = who[at]
    return found


def cohort_members(blocks: ScoreBlocks) -> list[tuple[Ids, Ids | None]]:
    """Return ids and speakers of the cohort's enrolments and of its tests, as far as there are any."""
    sides = (
        (blocks.cohort_enroll_ids, blocks.cohort_enroll_speakers),
        (blocks.cohort_test_ids, blocks.cohort_test_speakers),
    )
    return [(ids, who) for ids, who in sides if ids is not None]
