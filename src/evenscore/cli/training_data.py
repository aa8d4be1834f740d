"""What `evenscore fit` trains on: labelled scores, or embeddings whose scores are never formed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from evenscore.cli.inputs import open_scores
from evenscore.cli.labelled import LabelledScores, LabelSources, labelled_scores, refuse_mismatch, with_map
from evenscore.cli.phrases import phrases_of, phrases_of_embeddings
from evenscore.errors import InputError
from evenscore.files import read_embeddings
from evenscore.tables import Labels, ScoreTable, TrialList
from evenscore.tables.ids import shown
from evenscore.tables.labelled_source import apart_by_phrase

if TYPE_CHECKING:
    from evenscore.cli.scale_options import ScaleChoices
    from evenscore.sources import Scorer
    from evenscore.tables import Embeddings

__all__ = ["TrainingScores", "from_embeddings", "from_scores", "in_memory", "read_labelled"]

_Item: TypeAlias = ScoreTable | tuple[ScoreTable, Labels]  # a list that has labels, or a matrix and its labels
TrainingScores: TypeAlias = list[_Item]


def from_scores(
    paths: Sequence[str],
    labels: LabelSources,
    scale: ScaleChoices | None = None,
    client: Any = None,
) -> TrainingScores:
    """Read labelled scores, one matrix or list per file and phrase; with ``scale``, some stay where they are."""
    if labels.keys and labels.by_speaker:
        raise InputError("labels come from a key or from speaker maps; leave out one of the two")
    files = read_labelled(paths, labels, scale, client)
    return [part for file in files for part in _by_phrase(file.to_train_on(), labels.phrase_from)]


def read_labelled(
    paths: Sequence[str],
    labels: LabelSources,
    scale: ScaleChoices | None = None,
    client: Any = None,
) -> list[LabelledScores]:
    """Read scores, and their labels, which must match: one key for all, or one for each."""
    tables = [open_scores(path, scale) for path in paths]
    files = labelled_scores(paths, tables, labels, maps_first=True)
    for sharing in [files] if len(labels.keys) == 1 else [[file] for file in files]:
        refuse_mismatch(sharing, client=client)
    return files


def in_memory(data: TrainingScores) -> TrainingScores:
    """Read scores that are not in memory, for methods that look at every score again and again."""
    return [(item[0].in_memory(), item[1]) if isinstance(item, tuple) else item.in_memory() for item in data]


def _by_phrase(item: _Item, phrase_from: str | None) -> TrainingScores:
    """Return one part per phrase of the tests; a list that is not in memory stays one, with enrolments for each."""
    if phrase_from is None:
        return [item]
    table, labels = item if isinstance(item, tuple) else (item, None)
    phrases = phrases_of(table.test_ids, phrase_from)
    if labels is None and not isinstance(table, TrialList):
        return [apart_by_phrase(table, phrases)]
    names = np.array([phrases[test] for test in table.test_ids], dtype=object)
    parts: TrainingScores = []
    for phrase in dict.fromkeys(names.tolist()):
        here = names == phrase
        if labels is None:
            parts.append(table.select(here[table.test_index]))  # type: ignore[attr-defined]
        else:
            columns = np.flatnonzero(here)
            parts.append((table.take(None, columns), labels.take(np.arange(table.shape[0]), columns)))
    return parts


def from_embeddings(
    enroll: str,
    test: str,
    scorer: Scorer,
    labels: LabelSources,
    *,
    uses_self_pairs: bool = True,
) -> tuple[TrainingScores, list[str]]:
    """Read embeddings; every enrolment is scored against every test of its phrase, or the trials of a key are.

    ``uses_self_pairs`` tells whether what is trained takes the score of an utterance against itself for a target.
    """
    sides = read_embeddings(enroll), read_embeddings(test)
    if labels.keys:
        if labels.by_speaker:
            raise InputError("labels come from a key or from speaker maps; leave out one of the two")
        source = scorer.score(*sides)
        scored = [source.score_trials(key) for key in labels.read_keys()]
        return [part for item in scored for part in _by_phrase(item, labels.phrase_from)], []
    if labels.by_speaker:
        maps = labels.read_speaker_maps()
        sides = (
            with_map(sides[0], maps[0], "enrolment"),
            with_map(sides[1], maps[1], "test"),
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


def _scored(scorer: Scorer, enroll: Embeddings, test: Embeddings) -> _Item:
    assert enroll.speakers is not None and test.speakers is not None  # noqa: S101, PT018
    labels = Labels.from_speakers(enroll.speakers, test.speakers, enroll_ids=enroll.ids, test_ids=test.ids)
    return scorer.score(enroll, test), labels
