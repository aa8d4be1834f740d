"""What `evenscore fit` trains on: labelled scores, or embeddings whose scores are never formed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from evenscore.cli.labelled import LabelledScores, label_by_key, label_by_speakers, speakers_for, split_by_phrase
from evenscore.cli.phrases import phrases_of, phrases_of_embeddings
from evenscore.errors import InputError
from evenscore.files import read_embeddings, read_scores, read_speakers, read_trials
from evenscore.tables import Labels, TrialList
from evenscore.tables.ids import shown

if TYPE_CHECKING:
    from evenscore.scale import ChunkedTrials
    from evenscore.sources import Bilinear, Scorer
    from evenscore.tables import Embeddings

__all__ = ["LabelSources", "SpeakerMap", "TrainingScores", "by_phrase", "from_embeddings", "from_scores"]

SpeakerMap: TypeAlias = tuple[str, Mapping[str, str]]  #: name of the file, and the speaker of each id
TrainingScores: TypeAlias = "list[TrialList | ChunkedTrials | tuple[Any, Labels]]"


@dataclass(frozen=True, kw_only=True)
class LabelSources:
    """Where labels and phrases come from: names of files."""

    keys: Sequence[str] = ()
    key_format: str | None = None
    enroll_speakers: str | None = None
    test_speakers: str | None = None
    unmatched: Literal["error", "drop"] = "error"
    phrase_from: str | None = None
    speaker_maps: tuple[SpeakerMap, SpeakerMap] | None = None  #: of both sides, where they are known already

    @property
    def by_speaker(self) -> bool:
        """Whether there is a speaker map."""
        return self.speaker_maps is not None or self.has_map_files

    @property
    def has_map_files(self) -> bool:
        """Whether a file with a speaker map was given."""
        return self.enroll_speakers is not None or self.test_speakers is not None

    @property
    def origin(self) -> str:
        """What the speakers are known from, if they are known."""
        return "the speaker maps" if self.has_map_files else "the embeddings"

    def read_keys(self) -> list[TrialList]:
        """Read the keys."""
        keys = [read_trials(path, format=self.key_format) for path in self.keys]
        for path, key in zip(self.keys, keys, strict=True):
            if key.labels is None:
                raise InputError(f"the key {path} has no labels; give a list of trials with labels")
        return keys

    def for_file(self, place: int, number: int) -> LabelSources:
        """Return the labels of one of several score files, with the key that is its own or serves all."""
        if len(self.keys) > 1 and len(self.keys) != number:
            raise InputError(f"there are {number} score files and {len(self.keys)} keys; give one key, or one for each")
        return self if len(self.keys) < 2 else replace(self, keys=self.keys[place : place + 1])

    def read_speaker_maps(self) -> tuple[SpeakerMap, SpeakerMap]:
        """Read the maps of both sides, with their names; one that is given alone serves both."""
        if self.speaker_maps is not None:
            return self.speaker_maps
        enroll, test = self.enroll_speakers or self.test_speakers, self.test_speakers or self.enroll_speakers
        assert enroll is not None and test is not None  # noqa: S101, PT018
        first = read_speakers(enroll)
        return (enroll, first), (test, first if test == enroll else read_speakers(test))


def from_scores(
    paths: Sequence[str], labels: LabelSources, reading: Mapping[str, Any]
) -> tuple[TrainingScores, list[str]]:
    """Read labelled scores, one matrix or list per file and phrase, and say what should be known about them."""
    if labels.keys and labels.by_speaker:
        raise InputError("labels come from a key or from speaker maps; leave out one of the two")
    labels.for_file(0, len(paths))  # refuses a wrong number of keys
    tables = [read_scores(path, **reading) for path in paths]
    data: list[LabelledScores] = []
    if labels.keys:
        keys = labels.read_keys()
        if len(keys) == 1:
            data = label_by_key(tables, keys[0], labels.unmatched)
        else:
            pairs = zip(tables, keys, strict=True)
            data = [label_by_key([table], key, labels.unmatched)[0] for table, key in pairs]
    elif labels.by_speaker:
        maps = labels.read_speaker_maps()
        data = [label_by_speakers(table, *maps) for table in tables]
    else:
        for path, table in zip(paths, tables, strict=True):
            if not isinstance(table, TrialList) or table.labels is None:
                raise InputError(f"the scores of {path} have no labels; give --key, or --enroll-speakers")
            data.append(table)
    return by_phrase(data, labels.phrase_from), []


def by_phrase(data: Sequence[Any], phrase_from: str | None) -> TrainingScores:
    """Split each matrix or list into one per phrase of its tests."""
    if phrase_from is None:
        return list(data)
    parts: TrainingScores = []
    for item in data:
        table = item if isinstance(item, TrialList) else item[0]
        parts += split_by_phrase(item, phrases_of(table.test_ids, phrase_from))
    return parts


def from_embeddings(
    enroll: str,
    test: str,
    scorer: Scorer,
    labels: LabelSources,
    reading: Mapping[str, Any],
    *,
    uses_self_pairs: bool = True,
) -> tuple[TrainingScores, list[str]]:
    """Read embeddings; every enrolment is scored against every test of its phrase, or the trials of a key are.

    ``uses_self_pairs`` tells whether what is trained takes the score of an utterance against itself for a target.
    """
    sides = read_embeddings(enroll, **reading), read_embeddings(test, **reading)
    if labels.keys:
        if labels.by_speaker:
            raise InputError("labels come from a key or from speaker maps; leave out one of the two")
        source = scorer.score(*sides)
        scored = [source.score_trials(key) for key in labels.read_keys()]
        return by_phrase(scored, labels.phrase_from), []
    if labels.by_speaker:
        maps = labels.read_speaker_maps()
        sides = (
            sides[0].with_speakers(speakers_for(sides[0].ids, *maps[0], "enrolment")),
            sides[1].with_speakers(speakers_for(sides[1].ids, *maps[1], "test")),
        )
    for path, side in zip((enroll, test), sides, strict=True):
        if side.speakers is None:
            raise InputError(f"the embeddings of {path} have no speakers; give --enroll-speakers, or --key")
    both = sorted(set(sides[0].ids) & set(sides[1].ids))
    notes = []
    if both:
        use = "scored against themselves, as targets" if uses_self_pairs else "not scored against themselves"
        notes.append(
            f"{len(both)} ids stand on both sides and were {use}: {shown(both)}; list the trials to train on with --key"
        )
    return [_scored(scorer, *part) for part in _pairs_by_phrase(*sides, labels.phrase_from)], notes


def _pairs_by_phrase(
    enroll: Embeddings, test: Embeddings, phrase_from: str | None
) -> list[tuple[Embeddings, Embeddings]]:
    """Return the enrolments and tests of each phrase; enrolments without phrases belong to all."""
    if phrase_from is None:
        return [(enroll, test)]
    tests = phrases_of_embeddings(test, phrase_from, "test")
    enrolments = phrases_of_embeddings(enroll, phrase_from, "enrolment", may_lack=True)
    parts = []
    for phrase in dict.fromkeys(tests):
        rows = np.array([found in (None, phrase) for found in enrolments])
        if not rows.any():
            raise InputError(f"there is no enrolment of phrase {phrase!r}, but there are tests of it; leave them out")
        parts.append((enroll.take(rows), test.take(np.array([found == phrase for found in tests]))))
    return parts


def _scored(scorer: Scorer, enroll: Embeddings, test: Embeddings) -> tuple[Bilinear, Labels]:
    assert enroll.speakers is not None and test.speakers is not None  # noqa: S101, PT018
    labels = Labels.from_speakers(enroll.speakers, test.speakers, enroll_ids=enroll.ids, test_ids=test.ids)
    return scorer.score(enroll, test), labels
