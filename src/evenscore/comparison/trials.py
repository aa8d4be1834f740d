"""The trials of all conditions, one after the other, with their labels and speakers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.target_speakers import speakers_by_targets
from evenscore.tables import TARGET, UNKNOWN, LabelledBlocks, ScoreMatrix, TrialList
from evenscore.tables.arrays import frozen
from evenscore.tables.ids import Ids

if TYPE_CHECKING:
    from jaxtyping import Int

__all__ = ["FROM_BLOCKS", "FROM_TARGETS", "ComparedTrials", "pooled_trials", "unique_names"]

FROM_BLOCKS = "the speaker maps"
FROM_TARGETS = "the target trials"

_NOBODY = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedTrials:
    """Labelled trials of several conditions, in the order of the conditions.

    Attributes
    ----------
    lists
        The raw trials of each condition, with labels.
    names
        Of the conditions.
    speakers
        The speakers, sorted.
    enroll_speaker, test_speaker
        For each trial the place of its two speakers in ``speakers``; -1 where one is not known, which happens only in
        trials of unknown class.
    speakers_from
        Where the speakers are known from.
    """

    lists: tuple[TrialList, ...]
    names: tuple[str, ...]
    speakers: tuple[str, ...]
    enroll_speaker: Int[np.ndarray, " n"]
    test_speaker: Int[np.ndarray, " n"]
    speakers_from: str

    def __len__(self) -> int:
        return len(self.enroll_speaker)

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
        known = self.labels != UNKNOWN
        codes = (self.enroll_speaker[known], self.test_speaker[known])
        enroll, test = (first + code.astype(np.int64) for code in codes)
        return {"enroll_speakers": enroll, "test_speakers": test}

    def known(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the values of the trials whose class is known."""
        return values[self.labels != UNKNOWN]

    def split(self, scores: npt.NDArray[Any]) -> list[TrialList]:
        """Return other scores of the trials as labelled lists, one per condition."""
        ends = np.cumsum([len(part) for part in self.lists])[:-1]
        parts = np.split(scores, ends)
        return [part.with_scores(values, allow_infinite=True) for part, values in zip(self.lists, parts, strict=True)]

    def pooled(self, scores: Sequence[ScoreMatrix | TrialList], blocks: Sequence[LabelledBlocks]) -> npt.NDArray[Any]:
        """Return other scores of the trials as one array; they must be of exactly the same trials."""
        parts = []
        for name, part, table, labelled in zip(self.names, self.lists, scores, blocks, strict=True):
            listed = labelled.labelled(table)
            if listed.scores is None or not _same_pairs(listed, part):
                where = f" of {name!r}" if name else ""
                raise InputError(
                    f"it gives scores to {len(listed)} of the {len(part)} trials{where}, but methods are compared on "
                    "the same trials"
                )
            parts.append(listed.scores)
        return frozen(np.concatenate(parts))


def _same_pairs(first: TrialList, second: TrialList) -> bool:
    arrays = ("enroll_index", "test_index", "enroll_ids", "test_ids")
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in arrays)


def pooled_trials(blocks: Sequence[LabelledBlocks]) -> ComparedTrials:
    """Return the trials of labelled blocks; who speaks, the blocks tell, or else the target trials.

    Raises
    ------
    InputError
        If a target trial has two different speakers.

    Examples
    --------
    >>> from evenscore import ScoreBlocks
    >>> trials = TrialList.from_pairs(["m1", "m1"], ["a", "b"], scores=[3.0, 0.0], labels=[1, 0])
    >>> found = pooled_trials([LabelledBlocks(ScoreBlocks(trials))])
    >>> found.speakers, found.speakers_from
    (('b', 'm1'), 'the target trials')
    """
    lists = tuple(part.trials for part in blocks)
    sides = [(part.blocks.enroll_speakers, part.blocks.test_speakers) for part in blocks]
    found = None if any(side is None for pair in sides for side in pair) else _coded(lists, sides)  # type: ignore[arg-type]
    origin = FROM_BLOCKS
    if found is None:
        speaker = speakers_by_targets(lists)
        by_target = [tuple(_looked_up(speaker, ids) for ids in (part.enroll_ids, part.test_ids)) for part in lists]
        found, origin = _coded(lists, by_target), FROM_TARGETS  # type: ignore[arg-type]
        assert found is not None  # noqa: S101
    names, enroll, test = found
    trials = ComparedTrials(
        lists=lists,
        names=unique_names([part.name for part in blocks]),
        speakers=tuple(names),
        enroll_speaker=frozen(enroll),
        test_speaker=frozen(test),
        speakers_from=origin,
    )
    _refuse_contradiction(trials)
    return trials


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


def _looked_up(speaker: dict[str, str], ids: Ids) -> Ids:
    return np.array([speaker[name] for name in ids.tolist()], dtype=object)


def _coded(
    lists: Sequence[TrialList], sides: Sequence[tuple[Ids, Ids]]
) -> tuple[list[str], npt.NDArray[np.int32], npt.NDArray[np.int32]] | None:
    """Return the speakers, and those of each trial as numbers; None if one is not known where the label is."""
    names = sorted({name for pair in sides for side in pair for name in side.tolist() if name is not None})
    place: dict[str | None, int] = {name: at for at, name in enumerate(names)}
    place[None] = _NOBODY
    columns = []
    for which, index in ((0, "enroll_index"), (1, "test_index")):
        codes = [np.array([place[name] for name in pair[which].tolist()], dtype=np.int32) for pair in sides]
        columns.append(np.concatenate([code[getattr(part, index)] for code, part in zip(codes, lists, strict=True)]))
    labels = np.concatenate([part.labels for part in lists])
    if ((labels != UNKNOWN) & ((columns[0] == _NOBODY) | (columns[1] == _NOBODY))).any():
        return None
    return names, columns[0], columns[1]


def _refuse_contradiction(trials: ComparedTrials) -> None:
    wrong = (trials.labels == TARGET) & (trials.enroll_speaker != trials.test_speaker)
    if not wrong.any():
        return
    at = int(np.argmax(wrong))
    part = int(trials.condition[at])
    pair = trials.lists[part].pair(at - int(np.argmax(trials.condition == part)))
    speakers = (trials.speakers[code[at]] for code in (trials.enroll_speaker, trials.test_speaker))
    raise InputError(
        f"the trial {pair} is a target trial, but its speakers are {' and '.join(map(repr, speakers))}; check the key"
    )
