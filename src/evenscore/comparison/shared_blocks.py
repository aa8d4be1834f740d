"""Cohort scores that both sides have: a norm is calibrated with the same kinds of cohort scores that it meets later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evenscore.tables import LabelledBlocks

__all__ = ["shared_blocks"]

_MEANING = {
    "enroll": "cohort scores of the enrolments",
    "test": "cohort scores of the tests",
    "cohort": "scores of the cohort against itself",
}


def shared_blocks(
    training: Sequence[LabelledBlocks], evaluation: Sequence[LabelledBlocks]
) -> tuple[list[LabelledBlocks], list[LabelledBlocks], list[str]]:
    """Return both sides without the blocks that one of them lacks, and a warning for each such block.

    Examples
    --------
    >>> from evenscore import ScoreBlocks, ScoreMatrix, TrialList
    >>> trials = TrialList.from_pairs(["e"], ["t"], scores=[1.0], labels=[1])
    >>> bare = LabelledBlocks(ScoreBlocks(trials))
    >>> full = LabelledBlocks(ScoreBlocks(trials, enroll=ScoreMatrix([[0.0]], ["e"], ["c"])))
    >>> _, [part], [warning] = shared_blocks([bare], [full])
    >>> part.blocks
    ScoreBlocks(1 listed trials)
    >>> warning
    'the cohort scores of the enrolments (enroll) are not on the training side, so nobody uses them'
    """
    dropped, warnings = [], []
    for name, meaning in _MEANING.items():
        lacking = [
            side
            for side, parts in (("training", training), ("evaluation", evaluation))
            if any(getattr(part.blocks, name) is None for part in parts)
        ]
        anywhere = any(getattr(part.blocks, name) is not None for part in (*training, *evaluation))
        if lacking and anywhere:
            dropped.append(name)
            sides = "on either side of all conditions" if len(lacking) == 2 else f"on the {lacking[0]} side"
            warnings.append(f"the {meaning} ({name}) are not {sides}, so nobody uses them")
    if not dropped:
        return list(training), list(evaluation), []
    return [_without(part, dropped) for part in training], [_without(part, dropped) for part in evaluation], warnings


def _without(part: LabelledBlocks, dropped: Sequence[str]) -> LabelledBlocks:
    return replace(part, blocks=part.blocks.replace(**dict.fromkeys(dropped)))
