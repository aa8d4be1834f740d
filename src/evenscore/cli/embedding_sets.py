"""The embeddings of enrolments, tests and cohort, with the speakers and conditions that maps tell about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore.cli.cohort_options import CohortChoices
from evenscore.cli.phrases import COLUMN
from evenscore.errors import InputError
from evenscore.tables import Embeddings
from evenscore.tables.ids import Ids, shown

if TYPE_CHECKING:
    from evenscore.cli.scale_options import ScaleChoices
    from evenscore.cli.scored_output import ScoredOutput
    from evenscore.tables import ScoreTable

__all__ = ["CONDITION", "EmbeddingFiles", "read_conditions", "scores_of"]

CONDITION = "condition"  #: the column of the embeddings that are returned, if there are conditions
_UNKNOWN = "-"  # in a map of conditions
_LENGTH_NORM = ":length_norm="  # after the name of a map
_Map = Mapping[str, str | None]


@dataclass(frozen=True, kw_only=True)
class EmbeddingFiles:
    """Where embeddings and what is known about them come from: names of files."""

    enroll: str
    test: str
    cohort: str | None = None
    enroll_map: str | None = None  #: with its option, as `EnrollMap` explains it
    speakers: str | None = None
    cohort_speakers: str | None = None
    conditions: str | None = None
    cohort_conditions: str | None = None

    def read_trial_sides(self) -> tuple[Embeddings, Embeddings]:
        """Read the enrolments and the tests; they are one object if both are the same file."""
        from evenscore.files.speakers import read_members
        from evenscore.scoring import average_embeddings

        utterances = self._read(self.enroll)
        if self.enroll_map is None:
            enroll = self._with_facts(utterances, utterances, {}, "enrolment")
            if self.test == self.enroll:
                return enroll, enroll
        else:
            path, _, length_norm = self.enroll_map.partition(_LENGTH_NORM)
            if not path:
                raise InputError(f"{self.enroll_map!r} tells how to average, not what; name a file of --enroll-map")
            models = read_members(path)
            means = average_embeddings(utterances, models, length_norm=length_norm or "none")  # type: ignore[arg-type]
            enroll = self._with_facts(means, utterances, models, "enrolment")
        tests = utterances if self.test == self.enroll else self._read(self.test)
        return enroll, self._with_facts(tests, tests, {}, "test")

    def read_cohort(self, choices: CohortChoices | None = None) -> Embeddings:
        """Read the cohort and choose its members."""
        assert self.cohort is not None  # noqa: S101
        utterances = self._read(self.cohort)
        path = self.cohort_speakers or self.speakers
        if path is not None:
            known = _speaker_map(path)
            utterances = utterances.with_speakers(_values(utterances.ids, {}, known, path, "speaker", "cohort member"))
        members = utterances if choices is None else choices.chosen(utterances)
        source = self.cohort_conditions or self.conditions
        if source is None:
            return members
        by_speaker: dict[str, list[str]] = {}
        if choices is not None and choices.by_speaker and utterances.speakers is not None:
            for name, speaker in zip(utterances.ids, utterances.speakers, strict=True):
                by_speaker.setdefault(speaker, []).append(name)
        return _with_conditions(members, utterances, by_speaker, source, "cohort member")

    def _read(self, path: str) -> Embeddings:
        from evenscore.files import read_embeddings

        return read_embeddings(path)

    def _with_facts(
        self, sides: Embeddings, utterances: Embeddings, models: Mapping[str, Sequence[str]], what: str
    ) -> Embeddings:
        path = self.speakers
        if path is not None:
            sides = sides.with_speakers(_values(sides.ids, models, _speaker_map(path), path, "speaker", what))
        if self.conditions is not None:
            sides = _with_conditions(sides, utterances, models, self.conditions, what)
        return sides


def scores_of(
    files: EmbeddingFiles,
    trials: str | None,
    place: ScoredOutput,
    scale: ScaleChoices | None,
    *,
    members: CohortChoices | None = None,
    **norm: Any,
) -> ScoreTable:
    """Return the scores of embeddings, normalized if a norm is among the options of `score_embeddings`.

    With ``scale`` they are made tile by tile when they are written.
    """
    from evenscore.files import read_trials
    from evenscore.scoring import score_embeddings, score_lazily

    listed = None if trials is None else read_trials(trials)
    enroll, test = files.read_trial_sides()
    if files.cohort is not None:
        norm["cohort"] = files.read_cohort(members)
    if scale is not None:
        place.check(listed is not None)
        how: dict[str, Any] = {"client": place.client, "progress": place.progress, "keep": place.store}
        return score_lazily(enroll, test, listed, **norm, **how).in_tiles(scale.tile_bytes)
    return score_embeddings(enroll, test, listed, progress=place.progress, **norm)


def _speaker_map(path: str) -> _Map:
    from evenscore.files import read_speakers

    return dict(read_speakers(path))


def read_conditions(path: str) -> dict[str, str | None]:
    """Read a map from id to condition, None where it is not known."""
    from evenscore.files import read_speakers

    if path.startswith(COLUMN):
        raise InputError(f"{path!r}: scores have no columns; give a file with lines 'id condition'")
    known = read_speakers(path, format="utt2spk")
    return {name: None if value == _UNKNOWN else value for name, value in known.items()}


def _with_conditions(
    members: Embeddings, utterances: Embeddings, averaged: Mapping[str, Sequence[str]], source: str, what: str
) -> Embeddings:
    known: _Map
    if source.startswith(COLUMN):
        column = source.removeprefix(COLUMN)
        if column not in utterances.columns:
            have = shown(utterances.columns, most=20) if utterances.columns else "none"
            raise InputError(f"the embeddings of each {what} have no column {column!r}; their columns: {have}")
        values = utterances.columns[column].tolist()
        known = {
            name: None if value is None else str(value) for name, value in zip(utterances.ids, values, strict=True)
        }
    else:
        known = read_conditions(source)
    found = _values(members.ids, averaged, known, source, "condition", what)
    return Embeddings(
        members.ids,
        members.vectors,
        members.speakers,
        columns={**members.columns, CONDITION: np.array(found, dtype=object)},
    )


def _values(
    ids: Ids, averaged: Mapping[str, Sequence[str]], known: _Map, path: str, fact: str, what: str
) -> list[str | None]:
    """Return the value of each id: its own in the map, else the one that the utterances it was averaged from share."""
    values, absent = [], []
    for name in ids:
        if name in known:
            values.append(known[name])
            continue
        parts = averaged.get(name, ())
        if not parts or any(part not in known for part in parts):
            absent.append(name)
        shared = {known[part] for part in parts if part in known}
        values.append(shared.pop() if len(shared) == 1 else None)
    if absent:
        raise InputError(f"{path} has no {fact} for {what} {shown(absent)}; add it to the map")
    return values
