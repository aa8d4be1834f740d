"""The trials of all conditions, one after the other: how many of each class, and who speaks in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.comparison.trial_counts import TrialCounts, counted_trials
from evenscore.errors import InputError
from evenscore.metrics.target_speakers import speakers_by_targets
from evenscore.progress import Progress, silent
from evenscore.tables import TARGET, UNKNOWN, Axis, LabelledBlocks, ScoreBlocks, ScoreTable, TrialList, labels_for
from evenscore.tables.arrays import frozen
from evenscore.tables.pair_values import PairValues

if TYPE_CHECKING:
    from jaxtyping import Int

__all__ = ["FROM_BLOCKS", "FROM_TARGETS", "ComparedTrials", "compared_trials", "unique_names"]

FROM_BLOCKS = "the speaker maps"
FROM_TARGETS = "the target trials"

_NOBODY = -1

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedTrials:
    """Labelled trials of several conditions, in the order of the conditions.

    Where they are in memory, there are numbers for each of them; else they stay where they are.

    Attributes
    ----------
    parts
        The raw trials of each condition, with labels and without cohort scores.
    names
        Of the conditions.
    speakers
        The speakers, sorted.
    codes
        For each condition the speakers of its enrolments and of its tests, as places in ``speakers``; -1 where one is
        not known, which happens only in trials of unknown class.
    counts
        How many trials of each class a condition has.
    speakers_from
        Where the speakers are known from.
    """

    parts: tuple[LabelledBlocks, ...]
    names: tuple[str, ...]
    speakers: tuple[str, ...]
    codes: tuple[tuple[Int[np.ndarray, " k"], Int[np.ndarray, " l"]], ...]
    counts: tuple[TrialCounts, ...]
    speakers_from: str

    def __len__(self) -> int:
        return sum(count.trials for count in self.counts)

    @property
    def is_in_memory(self) -> bool:
        """Whether all trials are in memory."""
        return all(part.is_in_memory for part in self.parts)

    @cached_property
    def lists(self) -> tuple[TrialList, ...]:
        """The raw trials of each condition, with labels, in memory."""
        return tuple(part.trials for part in self.parts)

    @cached_property
    def enroll_speaker(self) -> Int[np.ndarray, " n"]:
        """For each trial the place of its enrolment's speaker in ``speakers``, or -1."""
        pairs = zip(self.codes, self.lists, strict=True)
        return frozen(np.concatenate([enroll[part.enroll_index] for (enroll, _), part in pairs]))

    @cached_property
    def test_speaker(self) -> Int[np.ndarray, " n"]:
        """For each trial the place of its test's speaker in ``speakers``, or -1."""
        pairs = zip(self.codes, self.lists, strict=True)
        return frozen(np.concatenate([test[part.test_index] for (_, test), part in pairs]))

    @cached_property
    def labels(self) -> Int[np.ndarray, " n"]:
        """The label of each trial: 1 (target), 0 (non-target), -1 (unknown; such trials are not measured)."""
        return frozen(np.concatenate([part.labels for part in self.lists]))

    @cached_property
    def condition(self) -> Int[np.ndarray, " n"]:
        """For each trial the place of its condition in ``names``."""
        return frozen(np.repeat(np.arange(len(self.lists)), [len(part) for part in self.lists]))

    @cached_property
    def sides(self) -> dict[str, Any]:
        """The speakers of each trial of known class, as `evenscore.bootstrap` takes them.

        They are numbers of equal length, which sort like the names: so the draws are those of the names.
        """
        first = 10 ** len(str(len(self.speakers)))
        codes = (self.known(self.enroll_speaker), self.known(self.test_speaker))
        enroll, test = (first + code.astype(np.int64) for code in codes)
        return {"enroll_speakers": enroll, "test_speakers": test}

    def known(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the values of the trials whose class is known."""
        return values[self.labels != UNKNOWN]

    def by_condition(self, values: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Return the values of the trials of each condition."""
        return np.split(values, np.cumsum([len(part) for part in self.lists])[:-1])

    def split(self, scores: npt.NDArray[Any]) -> list[TrialList]:
        """Return other scores of the trials as labelled lists, one per condition."""
        parts = self.by_condition(scores)
        return [part.with_scores(values, allow_infinite=True) for part, values in zip(self.lists, parts, strict=True)]

    def pooled(self, tables: Sequence[ScoreTable]) -> npt.NDArray[Any]:
        """Return other scores of the trials as one array; they must be of exactly the same trials."""
        found = [part.labelled(table) for part, table in zip(self.parts, tables, strict=True)]
        for place, (part, listed) in enumerate(zip(self.lists, found, strict=True)):
            if listed.scores is None or not _same_pairs(listed, part):
                raise self.incomplete(place, len(listed), len(part))
        return frozen(np.concatenate([listed.scores for listed in found]))

    def incomplete(self, place: int, found: int, wanted: int) -> InputError:
        """Return what is said about a method that leaves trials of a condition out."""
        where = f" of {self.names[place]!r}" if self.names[place] else ""
        return InputError(
            f"it gives scores to {found} of the {wanted} trials{where}, but methods are compared on the same trials"
        )

    def known_of(self, place: int, table: ScoreTable) -> tuple[PairValues, Codes, Codes]:
        """Return labels and speakers of a table of the same trials, whose ids may stand in another order."""
        part, (enroll, test) = self.parts[place], self.codes[place]
        own = part.blocks.trials
        if own.enroll_axis.same_ids(table.enroll_axis) and own.test_axis.same_ids(table.test_axis):
            return part.values, enroll, test
        rows, columns = own.enroll_axis.find(table.enroll_ids), own.test_axis.find(table.test_ids)
        return labels_for(table, part.labels, part.unmatched), enroll[rows], test[columns]


def _same_pairs(first: TrialList, second: TrialList) -> bool:
    arrays = ("enroll_index", "test_index", "enroll_ids", "test_ids")
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in arrays)


def compared_trials(
    blocks: Sequence[LabelledBlocks], *, client: Any = None, progress: Progress = silent
) -> ComparedTrials:
    """Count the trials of labelled blocks in one pass; who speaks, the blocks tell, or else the target trials.

    Raises
    ------
    InputError
        If a target trial has two different speakers.

    Examples
    --------
    >>> trials = TrialList.from_pairs(["m1", "m1"], ["a", "b"], scores=[3.0, 0.0], labels=[1, 0])
    >>> found = compared_trials([LabelledBlocks(ScoreBlocks(trials))])
    >>> found.speakers, found.speakers_from, found.counts[0].targets
    (('b', 'm1'), 'the target trials', 1)
    """
    axes = [(part.blocks.trials.enroll_axis, part.blocks.trials.test_axis) for part in blocks]
    sides = [side.speakers for pair in axes for side in pair]
    names = sorted({name for side in sides if side is not None for name in side.tolist()} - {None})
    codes = _coded(axes, names, lambda axis: [None] * len(axis) if axis.speakers is None else axis.speakers.tolist())
    guessed = any((side == _NOBODY).any() for pair in codes for side in pair)
    found = [
        counted_trials(part, *pair, with_targets=guessed, client=client, progress=progress)
        for part, pair in zip(blocks, codes, strict=True)
    ]
    origin = FROM_BLOCKS
    if any(side is None for side in sides) or any(part.voiceless for part in found):
        speaker = speakers_by_targets(
            [_targets(*pair, *part.target_pairs) for pair, part in zip(axes, found, strict=True)]
        )
        names = sorted({speaker[name] for pair in axes for axis in pair for name in axis.ids.tolist()})
        codes = _coded(axes, names, lambda axis: [speaker[name] for name in axis.ids.tolist()])
        origin = FROM_TARGETS
    else:
        _refuse_contradiction(axes, [part.contradiction for part in found])
    return ComparedTrials(
        parts=tuple(replace(part, blocks=ScoreBlocks(part.blocks.trials)) for part in blocks),
        names=unique_names([part.name for part in blocks]),
        speakers=tuple(names),
        codes=tuple(codes),
        counts=tuple(part.counts for part in found),
        speakers_from=origin,
    )


_Axes = Sequence[tuple[Axis, Axis]]


def _coded(axes: _Axes, names: Sequence[str], who: Any) -> list[tuple[Codes, Codes]]:
    """Return the speakers of all enrolments and tests as places among the names."""
    place: Mapping[str | None, int] = {None: _NOBODY} | {name: at for at, name in enumerate(names)}

    def codes(axis: Axis) -> Codes:
        return frozen(np.array([place[name] for name in who(axis)], dtype=np.int32))

    return [(codes(enroll), codes(test)) for enroll, test in axes]


def _targets(enroll: Axis, test: Axis, rows: npt.NDArray[Any], columns: npt.NDArray[Any]) -> TrialList:
    """Return target trials with all ids: one without target trials is a speaker of its own."""
    return TrialList(enroll, test, rows, columns, labels=np.full(len(rows), TARGET, dtype=np.int8))


def _refuse_contradiction(axes: _Axes, found: Iterable[tuple[int, int] | None]) -> None:
    """Refuse a target trial of two speakers."""
    for (enroll, test), place in zip(axes, found, strict=True):
        if place is not None:
            row, column = place
            assert enroll.speakers is not None and test.speakers is not None  # noqa: S101, PT018
            raise InputError(
                f"the trial {(enroll.ids[row], test.ids[column])} is a target trial, but its speakers are "
                f"{enroll.speakers[row]!r} and {test.speakers[column]!r}; check the key"
            )


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the conditions; where one is absent or stands twice, its number tells it apart."""
    if len(names) == 1:
        return (names[0],)
    taken = [name for name in names if name and names.count(name) == 1]
    unique = []
    for place, name in enumerate(names, 1):
        new = name if name in taken else f"{name} {place}".strip()
        while new != name and (new in taken or new in unique):
            new += "'"
        unique.append(new)
    return tuple(unique)
