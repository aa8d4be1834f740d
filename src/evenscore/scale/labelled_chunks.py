"""Score blocks that are not in memory, with labels: what methods are judged by where there are too many trials."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from evenscore.errors import InputError
from evenscore.scale.blocks import ChunkedBlocks
from evenscore.scale.chunked_scores import ChunkedScores
from evenscore.scale.chunked_trials import ChunkedTrials
from evenscore.scale.counting import refuse_unknown_choice
from evenscore.scale.pair_values import UNLISTED, ListedValues, OwnLabels, PairValues, TableLabels
from evenscore.scale.tiles import Tile
from evenscore.tables import UNKNOWN, LabelledBlocks, Labels, ScoreBlocks, ScoreMatrix, TrialList

__all__ = ["LabelledChunks"]

_BLOCKS = ("enroll", "test", "cohort")


@dataclass(frozen=True, eq=False)
class LabelledChunks:
    """Chunked score blocks, the labels of their trials, and a name: like `LabelledBlocks`, but not in memory.

    Parameters
    ----------
    blocks
        Trials and their cohort scores.
    labels
        Of the trials: `Labels` of a matrix, or a key, that is a list of labelled trials, which takes 9 bytes for each.
        Trials of a list may have labels of their own.
    name
        Of the phrase or condition.
    unmatched
        What to do with trials that stand only in the scores or only in a key: ``"drop"`` leaves them out, ``"error"``
        refuses them when the trials are counted.

    Examples
    --------
    >>> from evenscore.scale import as_chunked
    >>> trials = as_chunked(ScoreMatrix([[5.0, 0.0], [1.0, 6.0]], ["e1", "e2"], ["t1", "t2"]))
    >>> part = LabelledChunks(ChunkedBlocks(trials), Labels.from_speakers(["ann", "bob"], ["ann", "bob"]))
    >>> part.in_memory().trials
    TrialList(4 trials of 2 enrolments and 2 tests, 2 target, 2 non-target, 0 unknown, scores 0 to 6)
    """

    blocks: ChunkedBlocks
    labels: Labels | TrialList | PairValues | None = None
    name: str = ""
    unmatched: Literal["error", "drop"] = "drop"

    def __post_init__(self) -> None:
        if not isinstance(self.blocks, ChunkedBlocks):
            raise InputError(
                f"blocks are a {type(self.blocks).__name__}, but must be ChunkedBlocks; make them, or take labelled "
                "blocks with LabelledChunks.of"
            )
        if not isinstance(self.labels, Labels | TrialList | PairValues | None):
            raise InputError(f"labels are a {type(self.labels).__name__}, but must be Labels, or a key")
        refuse_unknown_choice(self.unmatched)
        trials = self.blocks.trials
        if isinstance(trials, ChunkedTrials):
            if isinstance(self.labels, Labels):
                raise InputError("labels of a table do not fit a list of trials; give a key, or trials with labels")
        elif self.labels is None:
            raise InputError("the trials of the blocks have no labels; give them as `labels`")
        elif isinstance(self.labels, Labels):
            object.__setattr__(self, "labels", self.labels.align(trials.enroll_ids, trials.test_ids))

    @classmethod
    def of(cls, part: LabelledBlocks) -> LabelledChunks:
        """Take blocks that are in memory."""
        old = part.blocks
        sides: dict[str, Any] = {name: getattr(old, name) for name in (*_BLOCKS, "cohort_labels")}
        sides |= {f"cohort_{side}_speakers": getattr(old, f"cohort_{side}_speakers") for side in ("enroll", "test")}
        listed = isinstance(old.trials, TrialList)
        for side in ("enroll", "test"):
            who = getattr(old, f"{side}_speakers")
            if listed and who is not None:
                who = dict(zip(getattr(old.trials, f"{side}_ids").tolist(), who.tolist(), strict=True))
            sides[f"{side}_speakers"] = who
        if listed:
            return cls(ChunkedBlocks(part.trials, **sides), None, part.name)
        return cls(ChunkedBlocks(old.trials, **sides), part.labels, part.name)

    @cached_property
    def values(self) -> PairValues:
        """The labels in the form in which they travel to workers."""
        labels, trials = self.labels, self.blocks.trials
        if labels is None:
            return OwnLabels()
        if isinstance(labels, Labels):
            if labels.by_speaker:
                _ = labels.speaker_codes  # so that it is made once, not in every task
            return TableLabels(labels)
        values = ListedValues.of_key(labels) if isinstance(labels, TrialList) else labels
        if isinstance(values, ListedValues) and isinstance(trials, ChunkedScores):
            return values.align(trials.enroll_ids, trials.test_ids)
        return values

    @property
    def n_listed(self) -> int | None:
        """How many trials the key has; None if there is none."""
        return len(self.labels) if isinstance(self.labels, TrialList | ListedValues) else None

    def table(self) -> Labels | None:
        """Return the labels of all pairs of a matrix, one byte for each if they come from a key; None for a list."""
        trials = self.blocks.trials
        if isinstance(self.labels, Labels) or isinstance(trials, ChunkedTrials):
            return self.labels if isinstance(self.labels, Labels) else None
        whole = Tile(0, slice(0, trials.shape[0]), slice(0, trials.shape[1]))
        key = np.maximum(self.values.of_tile(whole), UNKNOWN)
        return Labels.from_key(key, enroll_ids=trials.enroll_ids, test_ids=trials.test_ids)

    @property
    def nbytes(self) -> int:
        """Bytes that all scores would take in memory; a matrix that stands in several places counts once."""
        trials = self.blocks.trials
        tables = [getattr(self.blocks, name) for name in _BLOCKS]
        found = {id(table.reader): table.nbytes for table in (trials, *tables) if isinstance(table, ChunkedScores)}
        return sum(found.values()) + (24 * len(trials) if isinstance(trials, ChunkedTrials) else 0)

    def in_memory(self) -> LabelledBlocks:
        """Read all scores; a matrix that stands in several places is read once."""
        read: dict[int, ScoreMatrix] = {}

        def matrix(table: ChunkedScores | None) -> ScoreMatrix | None:
            if table is None:
                return None
            if id(table.reader) not in read:
                read[id(table.reader)] = table.matrix()
            return read[id(table.reader)]

        trials = self.blocks.trials
        table: Any = matrix(trials) if isinstance(trials, ChunkedScores) else self._listed(trials.gather())
        sides: dict[str, Any] = {name: matrix(getattr(self.blocks, name)) for name in _BLOCKS}
        blocks = ScoreBlocks(
            table,
            **sides,
            cohort_labels=self.blocks.cohort_labels,
            **self.blocks.speakers,
        )
        return LabelledBlocks(blocks, self.table(), self.name)

    def _listed(self, trials: TrialList) -> TrialList:
        """Return listed trials with their labels, but those that are not in the key."""
        labels = self.values.of_trials(trials)
        listed = trials.with_labels(np.maximum(labels, UNKNOWN))
        return listed if labels.min(initial=UNKNOWN) >= UNKNOWN else listed.select(labels != UNLISTED)
