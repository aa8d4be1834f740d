"""Scores with their labels, in memory or not: from a key, from speaker maps, or from the score file itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from evenscore.cli.inputs import TRIALS, kind_of
from evenscore.errors import InputError
from evenscore.files import read_speakers, read_trials
from evenscore.metrics.speakers import speakers_by_targets
from evenscore.progress import Progress, silent
from evenscore.tables import UNKNOWN, Axis, Labels, ScoreMatrix, ScoreTable, TrialList, labels_for
from evenscore.tables.ids import shown
from evenscore.tables.labelled_blocks import with_labels
from evenscore.tables.pair_values import MATCHING_REMEDY, UNLISTED, PairValues, Unmatched, table_of_labels
from evenscore.tables.pairs import slip_of_trial

if TYPE_CHECKING:
    from evenscore.metrics.counting import TableCounts

__all__ = [
    "LabelSources",
    "LabelledScores",
    "SpeakerMap",
    "as_matrix",
    "contradictions",
    "labelled_scores",
    "labels_in",
    "named",
    "refuse_contradiction",
    "refuse_mismatch",
    "speakers_of",
    "with_key",
    "with_known_speakers",
    "with_map",
    "with_maps",
]

Side = TypeVar("Side", bound=Axis)
Scores = TypeVar("Scores", bound=ScoreTable)
SpeakerMap: TypeAlias = tuple[str, Mapping[str, str]]  #: name of the file, and the speaker of each id
_STRANGERS = "the key has none of these trials; do the two files belong together?"


@dataclass(frozen=True, kw_only=True)
class LabelSources:
    """Where labels and phrases come from: names of files."""

    keys: Sequence[str] = ()
    enroll_speakers: str | None = None
    test_speakers: str | None = None
    unmatched: Unmatched = "error"
    phrase_from: str | None = None
    options: tuple[str, str] = ("--key", "--enroll-speakers")  #: that give a key and a map, for messages

    @property
    def by_speaker(self) -> bool:
        """Whether there is a speaker map."""
        return self.enroll_speakers is not None or self.test_speakers is not None

    def read_keys(self) -> list[TrialList]:
        """Read the keys."""
        keys = [read_trials(path, infinite="accept") for path in self.keys]
        for path, key in zip(self.keys, keys, strict=True):
            if key.labels is None:
                raise InputError(f"the key {path} has no labels; give a list of trials with labels")
        return keys

    def read_speaker_maps(self) -> tuple[SpeakerMap, SpeakerMap]:
        """Read the maps of both sides, with their names; one that is given alone serves both."""
        enroll, test = self.enroll_speakers or self.test_speakers, self.test_speakers or self.enroll_speakers
        assert enroll is not None and test is not None  # noqa: S101, PT018
        first = read_speakers(enroll)
        return (enroll, first), (test, first if test == enroll else read_speakers(test))


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledScores:
    """Scores of one file, in memory or not, and their labels."""

    path: str  #: how the scores are called in messages
    scores: ScoreTable
    given: Labels | TrialList | PairValues | None = None  #: as `labels_for` takes it; None: a list has labels itself
    unmatched: Unmatched = "error"  #: what to do with trials that stand only in the scores or only in a key
    listed: TrialList | None = None  #: the target trials, as far as they are known without reading the scores
    key_path: str = ""  #: how the key is called in messages, if there is one

    @property
    def called(self) -> str:
        """How scores and key are called in messages."""
        return f"{self.path} with {self.key_path}" if self.key_path else self.path

    @cached_property
    def labels(self) -> PairValues:
        """The labels of any tile."""
        return labels_for(self.scores, self.given, self.unmatched)

    def count(
        self, groupings: Sequence[PairValues] = (), *, client: Any = None, progress: Progress = silent, **how: Any
    ) -> TableCounts:
        """Pass over the scores, which must match the key; ``how`` is as in `count_table`."""
        from evenscore.metrics.counting import count_table

        how |= {"unmatched": self.unmatched, "client": client, "progress": progress}
        with named(self.called):
            return count_table(self.scores, self.labels, groupings, **how)

    def trials(self) -> TrialList:
        """Return the trials as a list in memory, with their labels; they must match the key."""
        trials = self.scores.in_memory().to_trials()
        with named(self.called):
            if isinstance(self.given, TrialList):
                trials = with_key(trials, self.given, self.unmatched)
                if not len(trials):
                    raise InputError(_STRANGERS)
            elif self.given is not None:
                labels = labels_for(trials, self.given).of(trials.read(*trials.places()))
                trials = trials.with_labels(labels)
        return trials

    def settled(self) -> LabelledScores:
        """Return scores that match their key as some that need no key: the labels are with them."""
        if self.scores.listed:
            return replace(self, scores=with_labels(self.scores, self.labels), given=None)
        known = table_of_labels(self.scores, self.labels) if self.scores.is_in_memory else self.given
        return replace(self, given=known, unmatched="drop")

    def to_train_on(self) -> ScoreTable | tuple[ScoreTable, Labels]:
        """Return a list that has labels, or a matrix and its labels; a key takes a byte for each pair of a matrix."""
        if self.scores.listed:
            return with_labels(self.scores, self.labels)
        return self.scores, table_of_labels(self.scores, self.labels)


def labelled_scores(
    names: Sequence[str], tables: Sequence[ScoreTable], sources: LabelSources, *, maps_first: bool = False
) -> list[LabelledScores]:
    """Return scores with labels: of their key if there is one, else their own, else by the speaker maps.

    One key serves all scores, or there is one for each. With ``maps_first``, speaker maps come before labels that a
    list has itself.
    """
    if len(sources.keys) > 1 and len(sources.keys) != len(tables):
        raise InputError(
            f"there are {len(tables)} score files and {len(sources.keys)} keys; give one key, or one for each"
        )
    keys = sources.read_keys()
    maps = sources.read_speaker_maps() if not keys and sources.by_speaker else None
    found = []
    for place, (name, table) in enumerate(zip(names, tables, strict=True)):
        one = LabelledScores(path=str(name), scores=table, unmatched=sources.unmatched)
        if keys:
            key = keys[place if len(keys) > 1 else 0]
            path = f"{sources.keys[place if len(keys) > 1 else 0]} ({sources.options[0]})"
            found.append(replace(one, given=key, listed=key, key_path=path))
        elif table.own_labels and not (maps_first and maps is not None):
            found.append(replace(one, listed=table if isinstance(table, TrialList) else None))
        elif maps is not None:
            with named(one.path):
                known = with_maps(table, *maps)
            found.append(replace(one, scores=known, given=Labels.of_axes(known.enroll_axis, known.test_axis)))
        else:
            key_option, map_option = sources.options
            raise InputError(f"{name}: the scores have no labels; give {key_option}, or {map_option}")
    return found


@contextmanager
def named(path: str) -> Iterator[None]:
    """Say of an error in which file it is."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def with_maps(table: Scores, enroll: SpeakerMap, test: SpeakerMap) -> Scores:
    """Return scores that know the speakers of maps."""
    return table.with_axes(with_map(table.enroll_axis, enroll, "enrolment"), with_map(table.test_axis, test, "test"))


def with_map(axis: Side, known: SpeakerMap, side: str) -> Side:
    """Return ids with the speakers of a map; the side is for the message."""
    path, speakers = known
    absent = [name for name in axis.ids if name not in speakers]
    if absent:
        raise InputError(f"{path} has no speaker for {side} {shown(absent)}; add it to the map")
    return axis.with_speakers(speakers)  # type: ignore[return-value]


def with_known_speakers(table: Scores, sources: LabelSources, targets: TrialList) -> tuple[Scores, str]:
    """Return scores with their speakers, by the maps that are given, else by target trials; and which of the two.

    Without maps, two ids are of one speaker if they are equal, or if a chain of target trials leads from one to the
    other; an id without target trials is a speaker of its own. Of ids that the list lacks nothing is known.
    """
    if sources.by_speaker:
        return with_maps(table, *sources.read_speaker_maps()), "the speaker maps"
    known, axes = speakers_by_targets([targets]), []
    for axis, ids in ((table.enroll_axis, targets.enroll_ids), (table.test_axis, targets.test_ids)):
        here = set(ids.tolist())
        axes.append(axis.with_speakers([known[name] if name in here else None for name in axis.ids]))
    return table.with_axes(*axes), "the target trials"


def speakers_of(trials: TrialList) -> dict[str, Any]:
    """Return the speakers of both sides, as the functions of the library take them."""
    return {"enroll_speakers": trials.enroll_axis.speakers, "test_speakers": trials.test_axis.speakers}


@dataclass(frozen=True)
class _Matched:
    """How many scores there are, how many of them a key has, and the first one that it lacks."""

    n_scored: int
    n_listed: int
    first: tuple[int, int] | None

    def __add__(self, other: _Matched) -> _Matched:
        first = other.first if self.first is None else self.first
        return _Matched(self.n_scored + other.n_scored, self.n_listed + other.n_listed, first)


def refuse_mismatch(files: Sequence[LabelledScores], *, client: Any = None) -> None:
    """Refuse trials that stand only in the scores or only in the key that these files share.

    To see them, the scores are read: which of them are missing, nothing else tells. If such trials are left out, only
    a key that shares no ids with the scores is refused.
    """
    from evenscore.engine import engine_for

    key = files[0].given
    if not isinstance(key, TrialList):
        return
    together, strict = 0, files[0].unmatched == "error"
    for file in files:
        if not strict and not file.scores.is_in_memory:
            together += int(_of_ids(key, file.scores).any())
            continue
        found: _Matched = engine_for(client).total(_matched, (file.scores.source, file.labels), file.scores.places())
        together += found.n_listed
        if strict and found.first is not None:
            pair = file.scores.enroll_ids[found.first[0]], file.scores.test_ids[found.first[1]]
            raise InputError(
                f"{file.called}: {found.n_scored - found.n_listed} of the {found.n_scored} scored trials are not in "
                f"the key, first {pair}{slip_of_trial(pair, key) or f'; {MATCHING_REMEDY}'}"
            )
    if not together:
        raise InputError(f"{files[0].called}: {_STRANGERS}")
    if strict and together < len(key):
        raise InputError(
            f"{files[0].called}: {len(key) - together} of the {len(key)} trials of the key have no "
            f"score{_example(key, files)}; {MATCHING_REMEDY}"
        )


def _matched(task: tuple[Any, PairValues], place: Any) -> _Matched:
    source, labels = task
    tile = source.read(place)
    scored = ~np.isnan(tile.scores)
    listed = scored & (labels.of(tile) != UNLISTED)
    n_scored, n_listed = int(np.count_nonzero(scored)), int(np.count_nonzero(listed))
    first = None if n_scored == n_listed else tile.position(int(np.argmax(scored & ~listed)))
    return _Matched(n_scored, n_listed, first)


def _example(key: TrialList, files: Sequence[LabelledScores]) -> str:
    """Name the first trial of a key whose ids no scores have, if there is one."""
    here: npt.NDArray[np.bool_] = np.zeros(len(key), dtype=bool)
    for file in files:
        here |= _of_ids(key, file.scores)
    return "" if here.all() else f", first {key.pair(int(np.argmin(here)))}"


def _of_ids(key: TrialList, scores: ScoreTable) -> npt.NDArray[np.bool_]:
    """Tell which trials of a key are of enrolments and tests that scores have."""
    rows = scores.enroll_axis.find(key.enroll_ids)[key.enroll_index]
    columns = scores.test_axis.find(key.test_ids)[key.test_index]
    return (rows >= 0) & (columns >= 0)


def as_matrix(table: Any) -> ScoreMatrix:
    """Return scores as a matrix; pairs that are not listed are missing."""
    if kind_of(table) not in TRIALS:
        raise InputError("only scores can become a matrix; leave out --matrix")
    matrix: ScoreMatrix = table.to_matrix() if table.listed else table
    return matrix


def with_key(table: Any, key: TrialList, unmatched: Unmatched) -> TrialList:
    """Return the trials with the labels of a key."""
    if kind_of(table) not in TRIALS:
        raise InputError("only trials can get labels from a key; leave out --key")
    trials: TrialList = table.to_trials()
    joined = trials.join(key, unmatched=unmatched)
    refuse_contradiction(trials, labels_in(trials, key), "key")
    return joined


def labels_in(trials: TrialList, key: TrialList) -> npt.NDArray[Any]:
    """Return the label that the key has for each trial; unknown where it has none."""
    if key.labels is None or len(key) == 0:
        return np.full(len(trials), UNKNOWN, dtype=np.int8)
    match = trials.match(key)
    return np.where(match >= 0, key.labels[match], UNKNOWN)


def contradictions(trials: TrialList, labels: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Tell for each trial whether its own label and another one are known and differ."""
    if trials.labels is None:
        return np.zeros(len(trials), dtype=bool)
    return (trials.labels != labels) & (trials.labels != UNKNOWN) & (labels != UNKNOWN)


def refuse_contradiction(trials: TrialList, labels: npt.NDArray[Any], source: str) -> None:
    """Refuse labels that differ from those that the trials bring."""
    clash = contradictions(trials, labels)
    if clash.any():
        pair = trials.pair(int(np.argmax(clash)))
        count = int(np.count_nonzero(clash))
        raise InputError(f"{count} labels do not agree with the {source}, first that of {pair}; correct one of the two")
