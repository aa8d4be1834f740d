"""The data of both sides, in the form in which it is worked on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from evenscore.comparison.trials import ComparedTrials, compared_trials
from evenscore.progress import Progress
from evenscore.tables import LabelledBlocks

__all__ = ["Sides", "in_memory", "shared_blocks"]

_TRAINING = 0.25  # of the memory, for training scores
_MEANING = {
    "enroll": "cohort scores of the enrolments",
    "test": "cohort scores of the tests",
    "cohort": "scores of the cohort against itself",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Sides:
    """The data of both sides, and the Dask client that works on what is not in memory."""

    training: Sequence[LabelledBlocks]
    evaluation: Sequence[LabelledBlocks]
    training_trials: ComparedTrials
    trials: ComparedTrials
    client: Any = None

    @classmethod
    def of(
        cls,
        training: Sequence[LabelledBlocks],
        evaluation: Sequence[LabelledBlocks],
        *,
        client: Any,
        memory: float | None,
        progress: Progress,
    ) -> tuple[Sides, list[str]]:
        """Return the data, and what the user should know about it."""
        training, evaluation, warnings = shared_blocks(training, evaluation)
        training = in_memory(training, memory)
        sides = cls(
            training=training,
            evaluation=evaluation,
            training_trials=compared_trials(training, client=client, progress=progress),
            trials=compared_trials(evaluation, client=client, progress=progress),
            client=client,
        )
        if not sides.training_trials.is_in_memory:
            warnings.append(
                "the training side does not fit into memory: methods are calibrated from summaries of its scores, and "
                "have no cross-validated figures of it"
            )
        return sides, warnings


def in_memory(training: Sequence[LabelledBlocks], memory: float | None = None) -> list[LabelledBlocks]:
    """Bring the training side into memory if it fits into so many bytes, by default a quarter of what there is."""
    from evenscore.files.streams import memory_size

    outside = [part for part in training if not part.blocks.is_in_memory]
    fits = sum(part.nbytes for part in outside) <= (_TRAINING * memory_size() if memory is None else memory)
    return [part.in_memory() if fits and not part.blocks.is_in_memory else part for part in training]


def shared_blocks(
    training: Sequence[LabelledBlocks], evaluation: Sequence[LabelledBlocks]
) -> tuple[list[LabelledBlocks], list[LabelledBlocks], list[str]]:
    """Return both sides without the blocks that one of them lacks, and a warning for each such block.

    So a norm is calibrated with the same kinds of cohort scores that it meets later.

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
