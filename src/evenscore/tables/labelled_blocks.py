"""Score blocks whose trials have labels: what methods are trained on, and what they are judged by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.tables.blocks import ScoreBlocks
from evenscore.tables.labels import Labels
from evenscore.tables.score_matrix import ScoreMatrix
from evenscore.tables.trial_list import TrialList

__all__ = ["LabelledBlocks", "labelled_parts"]

Part = TypeVar("Part")


@dataclass(frozen=True, eq=False)
class LabelledBlocks:
    """Score blocks, the labels of their trials, and a name such as the phrase.

    Parameters
    ----------
    blocks
        Trials and their cohort scores. With speakers on the trials' and on the cohort's sides, every norm leaves a
        trial's own speakers out of its cohort.
    labels
        Of the trials, as a table of pairs; not needed if the trials are a list that has labels.
    name
        Of the phrase or condition.

    Examples
    --------
    >>> scores = ScoreMatrix([[5.0, 0.0, 1.0], [1.0, 6.0, 0.0]], ["e1", "e2"], ["t1", "t2", "t3"])
    >>> labels = Labels.from_speakers(["ann", "bob"], ["ann", "bob", "cat"], enroll_ids=["e1", "e2"],
    ...     test_ids=["t1", "t2", "t3"])
    >>> dev = LabelledBlocks.own_cohort(scores, labels, name="phrase 1")
    >>> dev.trials
    TrialList(6 trials of 2 enrolments and 3 tests, 2 target, 4 non-target, 0 unknown, scores 0 to 6)
    """

    blocks: ScoreBlocks
    labels: Labels | None = None
    name: str = ""

    def __post_init__(self) -> None:
        trials = self.blocks.trials
        if self.labels is not None:
            object.__setattr__(self, "labels", self.labels.align(trials.enroll_ids, trials.test_ids))
        elif not isinstance(trials, TrialList) or trials.labels is None:
            raise InputError("the trials of the blocks have no labels; give them as `labels`")

    @classmethod
    def own_cohort(cls, scores: ScoreMatrix, labels: Labels, *, name: str = "") -> LabelledBlocks:
        """Return a labelled matrix as trials and cohort at once: each trial's cohort is all but its own speakers.

        ``labels`` must be by speaker (`Labels.from_speakers`).
        """
        if not labels.by_speaker:
            raise InputError("a matrix is its own cohort only if speakers are known; make labels with from_speakers")
        labels = labels.align(scores.enroll_ids, scores.test_ids)
        blocks = ScoreBlocks(
            scores,
            enroll=scores,
            test=scores,
            cohort=scores,
            cohort_labels=labels,
            enroll_speakers=labels.enroll_speakers,
            test_speakers=labels.test_speakers,
            cohort_enroll_speakers=labels.enroll_speakers,
            cohort_test_speakers=labels.test_speakers,
        )
        return cls(blocks, labels, name)

    @property
    def trials(self) -> TrialList:
        """The trials with their labels, as a list; those without a score are left out."""
        return self.labelled(self.blocks.trials)

    def labelled(self, scores: ScoreMatrix | TrialList) -> TrialList:
        """Return other scores of the trials, such as normalized ones, as a list with labels."""
        if isinstance(scores, ScoreMatrix):
            return scores.to_trials(self.labels)
        if self.labels is None:
            return scores if scores.labels is not None else scores.with_labels(self._listed_labels(scores))
        return scores.with_labels(self.labels.matrix[scores.enroll_index, scores.test_index])

    def _listed_labels(self, scores: TrialList) -> npt.NDArray[np.int8]:
        assert isinstance(self.blocks.trials, TrialList)  # noqa: S101
        assert self.blocks.trials.labels is not None  # noqa: S101
        match = scores.match(self.blocks.trials)
        if (match < 0).any():
            raise InputError(f"the trial {scores.pair(int(np.argmax(match < 0)))} is not one of the blocks' trials")
        return self.blocks.trials.labels[match]


def labelled_parts(given: Part | Iterable[Part], side: str, *kinds: type) -> list[Part]:
    """Return labelled blocks, of which one alone may be given, as a list; ``side`` is their name in an error."""
    kinds = kinds or (LabelledBlocks,)
    parts = list(given) if isinstance(given, Iterable) else [given]
    for part in parts:
        if not isinstance(part, kinds):
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise InputError(f"{side} scores are given as a {type(part).__name__}, but must be {wanted}")
    if not parts:
        raise InputError(f"there are no {side} scores; give at least one LabelledBlocks")
    return parts
