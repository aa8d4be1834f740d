"""Score blocks whose trials have labels: what methods are trained on, and what they are judged by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.tables.arrays import hashed
from evenscore.tables.axis import as_axis
from evenscore.tables.blocks import ScoreBlocks
from evenscore.tables.labels import UNKNOWN, Labels
from evenscore.tables.pair_values import (
    UNLISTED,
    ListedValues,
    OwnLabels,
    PairValues,
    Unmatched,
    labels_for,
    table_of_labels,
)
from evenscore.tables.score_matrix import ScoreMatrix
from evenscore.tables.score_table import ScoreTable, Source
from evenscore.tables.tile import Place, Tile
from evenscore.tables.trial_list import TrialList

__all__ = ["LabelledBlocks", "apart_by_phrase", "labelled_parts", "with_labels"]

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
        Of the trials: `Labels`, or a key, that is a list of labelled trials; not needed if the trials are a list that
        has labels.
    name
        Of the phrase or condition.
    unmatched
        What to do with trials that stand only in the scores or only in a key: ``"drop"`` leaves them out, ``"error"``
        refuses them when the trials are counted.

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
    labels: Any = None
    name: str = ""
    unmatched: Unmatched = "drop"

    def __post_init__(self) -> None:
        if not isinstance(self.blocks, ScoreBlocks):
            raise InputError(f"blocks are a {type(self.blocks).__name__}, but must be ScoreBlocks; make them")
        trials = self.blocks.trials
        if isinstance(self.labels, Labels) and (trials.is_in_memory or not trials.listed):
            object.__setattr__(self, "labels", self.labels.align(trials.enroll_ids, trials.test_ids))
        elif self.labels is None and not trials.own_labels and not (trials.listed and trials.size == 0):
            raise InputError("the trials of the blocks have no labels; give them as `labels`")
        _ = self.values  # which refuses what are no labels

    @classmethod
    def own_cohort(cls, scores: ScoreTable, labels: Labels | None = None, *, name: str = "") -> LabelledBlocks:
        """Return a labelled matrix as trials and cohort at once: each trial's cohort is all but its own speakers.

        ``labels`` must be by speaker (`Labels.from_speakers`); None takes the speakers that the scores know.
        """
        if labels is None:
            labels = Labels.of_axes(scores.enroll_axis, scores.test_axis)
        if not labels.by_speaker or labels.enroll_speakers is None or labels.test_speakers is None:
            raise InputError("a matrix is its own cohort only if speakers are known; make labels with from_speakers")
        labels = labels.align(scores.enroll_ids, scores.test_ids)
        assert labels.enroll_speakers is not None and labels.test_speakers is not None  # noqa: S101, PT018
        known = scores.with_speakers(labels.enroll_speakers, labels.test_speakers)
        return cls(ScoreBlocks(known, enroll=known, test=known, cohort=known, cohort_labels=labels), labels, name)

    @cached_property
    def values(self) -> PairValues:
        """The labels in the form in which they travel to workers."""
        return labels_for(self.blocks.trials, self.labels, self.unmatched)

    @property
    def n_listed(self) -> int | None:
        """How many trials the key has; None if there is none."""
        return len(self.values) if isinstance(self.values, ListedValues) else None

    def table(self) -> Labels | None:
        """Return the labels of all pairs of a matrix, one byte for each if they come from a key; None for a list."""
        return None if self.blocks.trials.listed else table_of_labels(self.blocks.trials, self.values)

    @property
    def n_scores(self) -> int:
        """Number of all scores; a matrix that stands in several places counts once."""
        tables = [self.blocks.trials, self.blocks.enroll, self.blocks.test, self.blocks.cohort]
        found = [table for table in tables if table is not None]
        return sum({id(table.numbers): table.size for table in found}.values())

    @property
    def is_in_memory(self) -> bool:
        """Whether the trials are in memory."""
        return bool(self.blocks.trials.is_in_memory)

    def in_memory(self) -> LabelledBlocks:
        """Read all scores; a matrix that stands in several places is read once."""
        read: dict[int, Any] = {}

        def table(block: ScoreTable | None) -> Any:
            if block is None or block.is_in_memory:
                return block
            key = id(block.numbers)
            if key not in read:
                read[key] = block.in_memory()
            return read[key].with_axes(block.enroll_axis, block.test_axis)

        blocks = self.blocks
        names = ("enroll", "test", "cohort")
        others = {name: table(getattr(blocks, name)) for name in names}
        trials = self._listed(blocks.trials) if blocks.trials.listed else table(blocks.trials)
        return LabelledBlocks(blocks.replace(trials=trials, **others), self.table(), self.name)

    def _listed(self, trials: ScoreTable) -> TrialList:
        """Return listed trials with their labels, but those that are not in the key."""
        tiles = []
        for place in trials.places():
            tile = trials.read(place)
            labels = self.values.of(tile)
            tile = replace(tile, labels=np.maximum(labels, UNKNOWN).astype(np.int8))
            tiles.append(tile if labels.min(initial=UNKNOWN) >= UNKNOWN else tile.select(labels != UNLISTED))
        found = TrialList.of_tiles(trials.enroll_axis, trials.test_axis, tiles, trials.dtype)
        return found.select(np.arange(len(found)))

    @property
    def trials(self) -> TrialList:
        """The trials with their labels, as a list in memory; those without a score are left out."""
        return self.labelled(self.blocks.trials)

    def labelled(self, scores: ScoreTable) -> TrialList:
        """Return other scores of the trials, such as normalized ones, as a list with labels."""
        table = scores.in_memory()
        if isinstance(table, ScoreMatrix):
            return table.to_trials(self.table())
        if self.labels is None:
            return table if table.labels is not None else table.with_labels(self._listed_labels(table))
        labels = labels_for(table, self.labels, self.unmatched).of(table.read(*table.places()))
        return table.with_labels(np.maximum(labels, UNKNOWN))

    def _listed_labels(self, scores: TrialList) -> npt.NDArray[np.int8]:
        trials = self.blocks.trials.in_memory()
        match = scores.match(trials)
        if (match < 0).any():
            raise InputError(f"the trial {scores.pair(int(np.argmax(match < 0)))} is not one of the blocks' trials")
        labels: npt.NDArray[np.int8] = trials.labels[match]
        return labels


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


def with_labels(trials: ScoreTable, labels: PairValues) -> ScoreTable:
    """Return a list with these labels, but the trials that they do not know; labelled when it is read.

    Examples
    --------
    >>> from evenscore.tables import labels_for
    >>> key = TrialList.from_pairs(["e1", "e2"], ["t1", "t1"], labels=[1, 0])
    >>> trials = TrialList.from_pairs(["e2", "e1", "e3"], ["t1", "t1", "t1"], scores=[-1.0, 2.0, 3.0])
    >>> with_labels(trials, labels_for(trials, key)).labels
    array([0, 1], dtype=int8)
    """
    if isinstance(labels, OwnLabels):
        return trials
    table = trials.with_source(_Labelled(trials.source, labels))
    if not isinstance(trials, TrialList):
        return table
    found: TrialList = table.in_memory()
    return found if len(found) == len(trials) else found.select(np.arange(len(found)))


def apart_by_phrase(trials: ScoreTable, phrases: Mapping[str, str]) -> ScoreTable:
    r"""Return a list in which each phrase has enrolments of its own, so that training takes it as a matrix of its own.

    Parameters
    ----------
    trials
        The list.
    phrases
        The phrase of each test.

    Examples
    --------
    >>> trials = TrialList.from_pairs(["e", "e"], ["p1-a", "p2-a"], scores=[-1.0, 2.0])
    >>> apart_by_phrase(trials, {"p1-a": "p1", "p2-a": "p2"}).in_memory().enroll
    array(['e\tp1', 'e\tp2'], dtype=object)
    """
    names = {name: code for code, name in enumerate(dict.fromkeys(phrases[test] for test in trials.test_ids))}
    codes = np.array([names[phrases[test]] for test in trials.test_ids], dtype=np.int32)
    both = [f"{enrolment}\t{phrase}" for enrolment in trials.enroll_ids for phrase in names]
    return trials.with_source(_Phrased(trials.source, codes, len(names)), enroll_axis=as_axis(both, "enroll_ids"))


@dataclass(frozen=True, eq=False)
class _Labelled:
    source: Source
    labels: PairValues

    def read(self, place: Place) -> Tile:
        tile = self.source.read(place)
        labels = self.labels.of(tile)
        found = replace(tile, labels=np.maximum(labels, UNKNOWN).astype(np.int8, copy=False))
        return found if labels.min(initial=UNKNOWN) >= UNKNOWN else found.select(labels != UNLISTED)

    def identity(self) -> str:
        return hashed(self.source.identity(), self.labels.identity())


@dataclass(frozen=True, eq=False)
class _Phrased:
    source: Source
    codes: npt.NDArray[np.int32]  #: of the phrase of each test
    n_phrases: int

    def read(self, place: Place) -> Tile:
        tile = self.source.read(place)
        return replace(tile, rows=tile.rows * np.int32(self.n_phrases) + self.codes[tile.columns])

    def identity(self) -> str:
        return hashed(self.source.identity(), self.codes)
