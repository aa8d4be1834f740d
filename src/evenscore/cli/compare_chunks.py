"""Scores and embeddings of `evenscore compare` that are not in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evenscore.cli.chunked_data import open_scores
from evenscore.cli.combine import as_matrix
from evenscore.cli.evaluated_chunks import LabelledFile, labelled_files
from evenscore.cli.labelled import speakers_for
from evenscore.cli.scale_options import ScaleChoices
from evenscore.cli.training_data import LabelSources
from evenscore.metrics.target_speakers import speakers_by_targets
from evenscore.scale import ChunkedBlocks, ChunkedScores, ChunkedTrials, LabelledChunks, as_chunked
from evenscore.scale.embeddings import chunked_pairs
from evenscore.scale.pair_values import TableLabels
from evenscore.sources import Bilinear
from evenscore.tables import Labels, ScoreMatrix, TrialList
from evenscore.tables.ids import Ids

__all__ = [
    "chunked_files",
    "chunked_matrix",
    "chunked_part",
    "listed_ids",
    "made_chunks",
    "own_chunks",
    "scored_chunks",
]

_FEW_BITS = 10  # of a summary that nobody looks at
SpeakerMap = tuple[str, Mapping[str, str]]  # with the name of its file


def chunked_files(
    paths: Sequence[str], sources: LabelSources, scale: ScaleChoices, reading: Mapping[str, Any]
) -> list[LabelledFile]:
    """Open labelled scores, each with the key that is its own or serves all."""
    shared = len(sources.keys) == 1 and len(paths) > 1
    found = []
    for place, path in enumerate(paths):
        [file] = labelled_files([path], sources.for_file(place, len(paths)), scale, reading)
        found.append(replace(file, unmatched="drop") if shared else file)  # the key has trials of other files, too
    return found


def chunked_matrix(path: str, scale: ScaleChoices, reading: Mapping[str, Any]) -> ChunkedScores | ScoreMatrix:
    """Open cohort scores."""
    scores = open_scores(path, scale, reading)
    if isinstance(scores, ChunkedTrials):
        scores = scores.gather()
    return scores if isinstance(scores, ChunkedScores) else as_matrix(scores)


def chunked_part(item: Any, rows: Any, columns: Any) -> Any:
    """Return some rows and columns of scores, with or without labels."""
    if isinstance(item, ChunkedScores):
        return item.take(rows, columns)
    labels = item.labels
    if isinstance(labels, TableLabels):
        labels = TableLabels(labels.labels.take(rows, columns))
    return replace(item, scores=item.scores.take(rows, columns), labels=labels, unmatched="drop")


def listed_ids(trials: ChunkedTrials) -> tuple[Ids, Ids]:
    """Return the ids of a list, in one pass over it."""
    sides: tuple[dict[str, None], dict[str, None]] = ({}, {})
    for chunk in trials.chunks():
        part = trials.reader.read(chunk.trials)
        for side, ids in zip(sides, (part.enroll_ids, part.test_ids), strict=True):
            side.update(dict.fromkeys(ids.tolist()))
    return tuple(np.array(list(side), dtype=object) for side in sides)  # type: ignore[return-value]


def own_chunks(item: LabelledFile, name: str, known: SpeakerMap | None) -> LabelledChunks:
    """Return labelled scores as their own cohort; who speaks, a map tells, or else the target trials."""
    scores = item.scores
    if item.key is not None and item.unmatched == "error":
        item.count(bits=_FEW_BITS)  # refuses what does not match
    if isinstance(scores, ChunkedTrials):
        listed = LabelledChunks(ChunkedBlocks(scores), item.labels, unmatched=item.unmatched).in_memory().trials
        matrix = as_chunked(as_matrix(listed))
        labels = Labels.from_trials(listed)
    else:
        matrix = scores
        table = LabelledChunks(ChunkedBlocks(matrix), _plain(item), unmatched=item.unmatched).table()
        assert table is not None  # noqa: S101
        labels = table
    sides = _speakers(matrix, labels, known)
    blocks = ChunkedBlocks(
        matrix,
        enroll=matrix,
        test=matrix,
        cohort=matrix,
        cohort_labels=labels,
        **{f"{prefix}{side}_speakers": who for prefix in ("", "cohort_") for side, who in sides.items()},
    )
    return LabelledChunks(blocks, labels, name)


def _speakers(matrix: ChunkedScores, labels: Labels, known: SpeakerMap | None) -> dict[str, Any]:
    if labels.by_speaker:
        return {"enroll": labels.enroll_speakers, "test": labels.test_speakers}
    ids = {"enroll": matrix.enroll_ids, "test": matrix.test_ids}
    if known is not None:
        return {side: speakers_for(names, *known, side) for side, names in ids.items()}
    rows, columns = np.nonzero(labels.matrix == 1)
    speaker = speakers_by_targets(
        [TrialList(matrix.enroll_ids, matrix.test_ids, rows, columns, labels=np.ones(len(rows), dtype=np.int8))]
    )
    return {side: [speaker[name] for name in names] for side, names in ids.items()}


def made_chunks(item: LabelledFile, name: str, known: SpeakerMap | None, cohort: Mapping[str, Any]) -> LabelledChunks:
    """Return labelled blocks with the speakers of the trials, as far as they are known."""
    table, labels = item.scores, _plain(item)
    sides: dict[str, Any] = {}
    if isinstance(labels, Labels) and labels.by_speaker:
        sides = {"enroll_speakers": labels.enroll_speakers, "test_speakers": labels.test_speakers}
    elif known is not None and isinstance(table, ChunkedTrials):
        sides = {"enroll_speakers": known[1], "test_speakers": known[1]}
    elif known is not None and isinstance(table, ChunkedScores):
        sides["enroll_speakers"] = speakers_for(table.enroll_ids, *known, "enrolment")
        sides["test_speakers"] = speakers_for(table.test_ids, *known, "test")
    return LabelledChunks(ChunkedBlocks(table, **cohort, **sides), labels, name, item.unmatched)


def _plain(item: LabelledFile) -> Any:
    """Return the labels as `LabelledChunks` takes them."""
    if item.key is not None:
        return item.key
    return item.labels.labels if isinstance(item.labels, TableLabels) else item.labels


def scored_chunks(scores: Bilinear, scale: ScaleChoices) -> ChunkedScores:
    """Return the scores of embeddings in tiles of the size that was asked for."""
    return chunked_pairs(scores).with_tiles(scale.tile_bytes)
