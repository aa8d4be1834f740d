"""The trials of all conditions where they are not in memory: how many, and who speaks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from evenscore.comparison.trials import FROM_BLOCKS, FROM_TARGETS, ComparedTrials, unique_names
from evenscore.engine.engine import engine_for
from evenscore.errors import InputError
from evenscore.metrics.target_speakers import speakers_by_targets
from evenscore.progress import Progress
from evenscore.scale.chunked_scores import ChunkedScores
from evenscore.scale.chunked_trials import ChunkedTrials, TrialChunk
from evenscore.scale.labelled_chunks import LabelledChunks
from evenscore.scale.pair_values import UNLISTED, ListedValues, PairValues, TableLabels
from evenscore.tables import NONTARGET, TARGET, Labels, TrialList

if TYPE_CHECKING:
    from jaxtyping import Int

__all__ = ["AnyTrials", "ChunkedCompared", "PartSize", "Speakers", "counted_trials"]

_NOBODY = -1


@dataclass(frozen=True, kw_only=True)
class PartSize:
    """How many trials of each class one condition has, and of which ids."""

    enroll_ids: Collection[str]
    test_ids: Collection[str]
    nontargets: int
    targets: int
    unknown: int

    @property
    def trials(self) -> int:
        """All of them."""
        return self.nontargets + self.targets + self.unknown


@dataclass(frozen=True, eq=False)
class Speakers:
    """Numbers of the speakers of one condition: by row and column of a matrix, or by id of listed trials."""

    enroll: Int[np.ndarray, " k"] | Mapping[str, int]
    test: Int[np.ndarray, " l"] | Mapping[str, int]

    def of_tile(self, place: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return those of the rows and columns of a tile."""
        assert isinstance(self.enroll, np.ndarray) and isinstance(self.test, np.ndarray)  # noqa: S101, PT018
        return self.enroll[place.rows], self.test[place.columns]

    def of_list(self, trials: TrialList) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return those of each listed trial."""
        sides = []
        for side, ids, index in (
            (self.enroll, trials.enroll_ids, trials.enroll_index),
            (self.test, trials.test_ids, trials.test_index),
        ):
            assert isinstance(side, Mapping)  # noqa: S101
            sides.append(np.array([side.get(name, _NOBODY) for name in ids.tolist()], dtype=np.intp)[index])
        return sides[0], sides[1]

    @property
    def number(self) -> int:
        """How many different ones are known."""
        found: set[int] = set()
        for side in (self.enroll, self.test):
            found |= set(side.values() if isinstance(side, Mapping) else side.tolist())
        return len(found - {_NOBODY})


@dataclass(frozen=True, kw_only=True, eq=False)
class ChunkedCompared:
    """Labelled trials of several conditions that stay where they are: like `ComparedTrials`, but without the trials.

    Attributes
    ----------
    parts
        The blocks of each condition.
    names
        Of the conditions.
    speakers
        The speakers, sorted.
    by_part
        The speakers of each condition, as places in ``speakers``.
    sizes
        How many trials each condition has.
    speakers_from
        Where the speakers are known from.
    """

    parts: tuple[LabelledChunks, ...]
    names: tuple[str, ...]
    speakers: tuple[str, ...]
    by_part: tuple[Speakers, ...]
    sizes: tuple[PartSize, ...]
    speakers_from: str

    def __len__(self) -> int:
        return sum(size.trials for size in self.sizes)


AnyTrials: TypeAlias = ComparedTrials | ChunkedCompared


def counted_trials(parts: Sequence[LabelledChunks], *, client: Any, progress: Progress) -> ChunkedCompared:
    """Count the trials of chunked blocks in one pass, and find out who speaks: the blocks tell, or the target trials.

    Examples
    --------
    >>> from evenscore import Labels, ScoreMatrix
    >>> from evenscore.scale import ChunkedBlocks
    >>> from evenscore.progress import silent
    >>> blocks = ChunkedBlocks(ScoreMatrix([[3.0, 0.0]], ["e"], ["t", "u"]))
    >>> part = LabelledChunks(blocks, Labels.from_key([[1, 0]]))
    >>> found = counted_trials([part], client=None, progress=silent)
    >>> found.speakers, found.sizes[0].targets
    (('e', 'u'), 1)
    """
    counts = [_counted(part, client, progress) for part in parts]
    both = list(zip(parts, counts, strict=True))
    known = [_known_speakers(part, count) for part, count in both]
    origin = FROM_BLOCKS
    if any(sides is None for sides in known):
        speaker = speakers_by_targets([_targets(part, count) for part, count in both])
        known = [
            ({name: speaker[name] for name in rows}, {name: speaker[name] for name in columns})
            for rows, columns in (count.ids for count in counts)
        ]
        origin = FROM_TARGETS
    sides = [pair for pair in known if pair is not None]
    names = sorted({name for pair in sides for side in pair for name in side.values() if name is not None})
    code: dict[str | None, int] = {name: at for at, name in enumerate(names)}
    code[None] = _NOBODY
    return ChunkedCompared(
        parts=tuple(parts),
        names=unique_names([part.name for part in parts]),
        speakers=tuple(names),
        by_part=tuple(_coded(part, pair, code) for part, pair in zip(parts, sides, strict=True)),
        sizes=tuple(count.size for count in counts),
        speakers_from=origin,
    )


@dataclass(frozen=True, eq=False)
class _Count:
    """What one pass over the trials finds; it adds up. Ids and targets are those of listed trials."""

    classes: npt.NDArray[np.int64]  #: non-targets, targets, trials of unknown class
    unlisted: int  #: of the latter, those that are not in a key
    enroll_ids: frozenset[str] = frozenset()
    test_ids: frozenset[str] = frozenset()
    targets: frozenset[tuple[str, str]] = frozenset()

    def __add__(self, other: _Count) -> _Count:
        names = ("enroll_ids", "test_ids", "targets")
        both = (getattr(self, name) | getattr(other, name) for name in names)
        return _Count(self.classes + other.classes, self.unlisted + other.unlisted, *both)

    @property
    def ids(self) -> tuple[list[str], list[str]]:
        return sorted(self.enroll_ids), sorted(self.test_ids)

    @property
    def size(self) -> PartSize:
        nontargets, targets, unknown = self.classes.tolist()
        ids = {"enroll_ids": self.enroll_ids, "test_ids": self.test_ids}
        return PartSize(**ids, nontargets=nontargets, targets=targets, unknown=unknown)


@dataclass(frozen=True, eq=False)
class _Task:
    reader: Any
    values: PairValues
    targets: bool  #: whether listed target trials are wanted, because nothing else tells who speaks


def _counted(part: LabelledChunks, client: Any, progress: Progress) -> _Count:
    trials = part.blocks.trials
    listed = isinstance(trials, ChunkedTrials)
    places: list[Any] = trials.chunks() if isinstance(trials, ChunkedTrials) else trials.tiles()
    speakers = (part.blocks.enroll_speakers, part.blocks.test_speakers)
    task = _Task(trials.reader, part.values, listed and any(side is None for side in speakers))
    count: _Count = engine_for(client).total(_count, task, places, stage="counting trials", progress=progress)
    if part.unmatched == "error":
        _refuse_unmatched(count, part.n_listed)
    if isinstance(trials, ChunkedScores):
        ids = frozenset(trials.enroll_ids.tolist()), frozenset(trials.test_ids.tolist())
        return replace(count, enroll_ids=ids[0], test_ids=ids[1])
    return count


def _refuse_unmatched(count: _Count, listed: int | None) -> None:
    remedy = "make the two files agree, or leave out what does not match (--unmatched drop)"
    scored = int(count.classes.sum())
    if count.unlisted:
        raise InputError(f"{count.unlisted} of the {scored} scored trials are not in the key; {remedy}")
    if listed is not None and scored < listed:
        raise InputError(f"{listed - scored} of the {listed} trials of the key have no score; {remedy}")


def _count(task: _Task, place: Any) -> _Count:
    if not isinstance(place, TrialChunk):
        there = ~np.isnan(task.reader.read(place.rows, place.columns))
        return _Count(*_classes(task.values.of_tile(place)[there]))
    trials = task.reader.read(place.trials)
    labels = task.values.of_trials(trials)
    targets: frozenset[tuple[str, str]] = frozenset()
    if task.targets:
        hits = trials.select(labels == TARGET)
        targets = frozenset(zip(hits.enroll.tolist(), hits.test.tolist(), strict=True))
    ids = frozenset(trials.enroll_ids.tolist()), frozenset(trials.test_ids.tolist())
    return _Count(*_classes(labels), *ids, targets)


def _classes(labels: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], int]:
    """Return how many are of each class, and how many of those of unknown class are not listed at all."""
    targets, nontargets = np.count_nonzero(labels == TARGET), np.count_nonzero(labels == NONTARGET)
    classes = np.array([nontargets, targets, labels.size - targets - nontargets])
    return classes, int(np.count_nonzero(labels == UNLISTED))


_Maps = tuple[dict[str, str | None], dict[str, str | None]]  # from id to speaker, of both sides


def _known_speakers(part: LabelledChunks, count: _Count) -> _Maps | None:
    """Return who speaks, if the blocks or the labels say so of everybody; labels by speaker may leave some unknown."""
    blocks, labels = part.blocks, part.labels
    by_label = isinstance(labels, Labels) and labels.by_speaker
    maps = []
    for side, ids in zip(("enroll", "test"), (count.enroll_ids, count.test_ids), strict=True):
        who: Any = getattr(blocks, f"{side}_speakers")
        if who is None and by_label:
            who = getattr(labels, f"{side}_speakers")
        if who is None:
            return None
        if not isinstance(who, Mapping):
            who = dict(zip(getattr(blocks, f"{side}_ids").tolist(), who.tolist(), strict=True))
        found = {name: who.get(name) for name in ids}
        if not by_label and None in found.values():
            return None
        maps.append(found)
    return maps[0], maps[1]


def _targets(part: LabelledChunks, count: _Count) -> TrialList:
    """Return the target trials, with all ids: one without target trials is a speaker of its own."""
    rows, columns = count.ids
    trials, labels = part.blocks.trials, part.values
    if isinstance(trials, ChunkedTrials):
        pairs = sorted(count.targets)
    else:
        if isinstance(labels, ListedValues):
            at = np.stack(np.divmod(labels.codes[labels.values == TARGET], len(labels.test_ids)), axis=1)
        else:
            assert isinstance(labels, TableLabels)  # noqa: S101
            at = np.argwhere(labels.labels.matrix == TARGET)
        pairs = list(zip(trials.enroll_ids[at[:, 0]].tolist(), trials.test_ids[at[:, 1]].tolist(), strict=True))
    enroll_at, test_at = ({name: at for at, name in enumerate(names)} for names in (rows, columns))
    first, second = [enroll_at[one] for one, _ in pairs], [test_at[other] for _, other in pairs]
    return TrialList(rows, columns, first, second, labels=np.full(len(pairs), TARGET, dtype=np.int8))


def _coded(part: LabelledChunks, maps: _Maps, code: Mapping[str | None, int]) -> Speakers:
    trials = part.blocks.trials
    if isinstance(trials, ChunkedTrials):
        return Speakers(*({name: code[who] for name, who in side.items()} for side in maps))
    ids = (trials.enroll_ids, trials.test_ids)
    sides = (
        np.array([code[side[name]] for name in names], dtype=np.intp) for names, side in zip(ids, maps, strict=True)
    )
    return Speakers(*sides)
