"""The trials of all conditions, one after the other: how many of each class, and who speaks in them.

One pass over the labelled trials counts them, and finds what they say about who speaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.engine.engine import engine_for
from evenscore.errors import InputError
from evenscore.metrics.speakers import speakers_by_targets
from evenscore.progress import Progress, silent
from evenscore.tables import (
    NONTARGET,
    TARGET,
    UNKNOWN,
    Axis,
    LabelledBlocks,
    Place,
    ScoreBlocks,
    ScoreTable,
    Tile,
    TrialList,
    labels_for,
)
from evenscore.tables.arrays import frozen
from evenscore.tables.pair_values import MATCHING_REMEDY, UNLISTED, PairValues
from evenscore.tables.score_table import Source

if TYPE_CHECKING:
    from jaxtyping import Int

__all__ = ["FROM_BLOCKS", "FROM_TARGETS", "ComparedTrials", "SideSummary", "compared_trials"]

FROM_BLOCKS = "the speaker maps"
FROM_TARGETS = "the target trials"

_NOBODY = -1
_MISSING = UNLISTED - 1
_NOWHERE: npt.NDArray[np.intp] = np.empty(0, dtype=np.intp)

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class SideSummary:
    """How much there is in one condition, or in all of them."""

    name: str
    speakers: int
    enrolments: int
    tests: int
    trials: int
    targets: int
    nontargets: int
    unknown: int


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
    summaries
        How much there is in each condition.
    speakers_from
        Where the speakers are known from.
    """

    parts: tuple[LabelledBlocks, ...]
    names: tuple[str, ...]
    speakers: tuple[str, ...]
    codes: tuple[tuple[Int[np.ndarray, " k"], Int[np.ndarray, " l"]], ...]
    summaries: tuple[SideSummary, ...]
    speakers_from: str

    def __len__(self) -> int:
        return sum(one.trials for one in self.summaries)

    @property
    def summary(self) -> SideSummary:
        """How much there is in all conditions together."""
        tables = [part.blocks.trials for part in self.parts]
        kinds = ("trials", "targets", "nontargets", "unknown")
        return SideSummary(
            name="",
            speakers=len(self.speakers),
            enrolments=len({name for table in tables for name in table.enroll_ids}),
            tests=len({name for table in tables for name in table.test_ids}),
            **{kind: sum(getattr(one, kind) for one in self.summaries) for kind in kinds},
        )

    @property
    def is_in_memory(self) -> bool:
        """Whether all trials are in memory."""
        return all(part.is_in_memory for part in self.parts)

    @cached_property
    def lists(self) -> tuple[TrialList, ...]:
        """The raw trials of each condition, with labels, in memory."""
        return tuple(part.trials for part in self.parts)

    @cached_property
    def labels(self) -> Int[np.ndarray, " n"]:
        """The label of each trial: 1 (target), 0 (non-target), -1 (unknown; such trials are not measured)."""
        return frozen(np.concatenate([part.labels for part in self.lists]))

    @cached_property
    def sides(self) -> dict[str, Any]:
        """The speakers of each trial of known class, as `evenscore.bootstrap` takes them.

        They are numbers of equal length, which sort like the names: so the draws are those of the names.
        """
        first = np.int64(10 ** len(str(len(self.speakers))))
        pairs = list(zip(self.codes, self.lists, strict=True))
        enroll = np.concatenate([enroll[part.enroll_index] for (enroll, _), part in pairs])
        test = np.concatenate([test[part.test_index] for (_, test), part in pairs])
        return {"enroll_speakers": first + self.known(enroll), "test_speakers": first + self.known(test)}

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
    >>> found.speakers, found.speakers_from, found.summary.targets
    (('b', 'm1'), 'the target trials', 1)
    """
    axes = [(part.blocks.trials.enroll_axis, part.blocks.trials.test_axis) for part in blocks]
    sides = [side.speakers for pair in axes for side in pair]
    names = sorted({name for side in sides if side is not None for name in side.tolist()} - {None})
    codes = _coded(axes, names, lambda axis: [None] * len(axis) if axis.speakers is None else axis.speakers.tolist())
    guessed = any((side == _NOBODY).any() for pair in codes for side in pair)
    found = [
        _counted(part, *pair, with_targets=guessed, client=client, progress=progress)
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
    conditions = _unique([part.name for part in blocks])
    return ComparedTrials(
        parts=tuple(replace(part, blocks=ScoreBlocks(part.blocks.trials)) for part in blocks),
        names=conditions,
        speakers=tuple(names),
        codes=tuple(codes),
        summaries=tuple(
            part.summary(*pair) for pair, part in zip(zip(conditions, codes, strict=True), found, strict=True)
        ),
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


def _unique(names: Sequence[str]) -> tuple[str, ...]:
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


@dataclass(frozen=True, kw_only=True, eq=False)
class _Counted:
    """What one pass over some trials finds; it adds up.

    Attributes
    ----------
    targets, nontargets, unknown
        How many trials of each class.
    unlisted
        Of those of unknown class, how many are not in a key.
    voiceless
        Of those of known class, how many have a speaker that is not known.
    contradiction
        Where the first target trial of two speakers stands.
    target_pairs
        Where enrolments and tests of the target trials stand, if they were asked for.
    """

    targets: int = 0
    nontargets: int = 0
    unknown: int = 0
    unlisted: int = 0
    voiceless: int = 0
    contradiction: tuple[int, int] | None = None
    target_pairs: tuple[Int[np.ndarray, " t"], Int[np.ndarray, " t"]] = (_NOWHERE, _NOWHERE)

    def __add__(self, other: _Counted) -> _Counted:
        kinds = ("targets", "nontargets", "unknown", "unlisted", "voiceless")
        rows, columns = (np.concatenate(both) for both in zip(self.target_pairs, other.target_pairs, strict=True))
        return _Counted(
            **{kind: getattr(self, kind) + getattr(other, kind) for kind in kinds},
            contradiction=self.contradiction or other.contradiction,
            target_pairs=(rows, columns),
        )

    @property
    def trials(self) -> int:
        return self.targets + self.nontargets + self.unknown

    def summary(self, name: str, codes: tuple[Codes, Codes]) -> SideSummary:
        return SideSummary(
            name=name,
            speakers=len({*codes[0].tolist(), *codes[1].tolist()} - {_NOBODY}),
            enrolments=len(codes[0]),
            tests=len(codes[1]),
            trials=self.trials,
            targets=self.targets,
            nontargets=self.nontargets,
            unknown=self.unknown,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Task:
    source: Source
    labels: PairValues
    enroll: Codes
    test: Codes
    with_targets: bool


def _counted(
    part: LabelledBlocks, enroll: Codes, test: Codes, *, with_targets: bool, client: Any, progress: Progress
) -> _Counted:
    """Pass once over the trials of labelled blocks, which must match their key if that is asked for."""
    table = part.blocks.trials
    if not table.size:
        return _Counted()
    task = _Task(source=table.source, labels=part.values, enroll=enroll, test=test, with_targets=with_targets)
    engine = engine_for(None if part.is_in_memory else client)
    found: _Counted = engine.total(_count, task, table.places(), stage="counting trials", progress=progress)
    if part.unmatched == "error":
        scored, listed = found.trials, part.n_listed
        if found.unlisted:
            raise InputError(f"{found.unlisted} of the {scored} scored trials are not in the key; {MATCHING_REMEDY}")
        if listed is not None and scored < listed:
            raise InputError(f"{listed - scored} of the {listed} trials of the key have no score; {MATCHING_REMEDY}")
    return found


def _count(task: _Task, place: Place) -> _Counted:
    tile = task.source.read(place)
    labels = np.broadcast_to(task.labels.of(tile), tile.scores.shape)
    missing = 0
    if not tile.listed and tile.n_missing != 0:  # a list has no missing trials
        absent = np.isnan(tile.scores)
        missing = int(np.count_nonzero(absent))
        labels = np.where(absent, np.int8(_MISSING), labels) if missing else labels
    rows, columns = _places(tile, np.flatnonzero(labels == TARGET))
    targets, nontargets = len(rows), int(np.count_nonzero(labels == NONTARGET))
    wrong = task.enroll[rows] != task.test[columns]
    first = int(np.argmax(wrong)) if wrong.any() else None
    return _Counted(
        targets=targets,
        nontargets=nontargets,
        unknown=labels.size - missing - targets - nontargets,
        unlisted=int(np.count_nonzero(labels == UNLISTED)),
        voiceless=_voiceless(task, tile, labels),
        contradiction=None if first is None else (int(rows[first]), int(columns[first])),
        target_pairs=(rows, columns) if task.with_targets else (_NOWHERE, _NOWHERE),
    )


def _places(tile: Tile, at: npt.NDArray[np.intp]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return where enrolments and tests of some scores of a tile, counted row by row, stand on the axes."""
    if tile.listed:
        return tile.rows[at], tile.columns[at]
    row, column = np.divmod(at, max(tile.scores.shape[1], 1))
    return row + tile.rows.start, column + tile.columns.start


def _voiceless(task: _Task, tile: Tile, labels: npt.NDArray[Any]) -> int:
    nobody = task.enroll < 0, task.test < 0
    if not nobody[0].any() and not nobody[1].any():
        return 0
    enroll, test = tile.pair(*nobody)
    return int(np.count_nonzero((labels >= NONTARGET) & (enroll | test)))
