"""Inputs that are read chunk by chunk, and outputs that are written so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.cli.labelled import speakers_for
from evenscore.cli.normalize import cohort_labels
from evenscore.cli.phrases import phrase_lookup
from evenscore.cli.scale_options import ScaleChoices
from evenscore.cli.training_data import LabelSources, TrainingScores, by_phrase, from_scores
from evenscore.errors import FileError, InputError
from evenscore.files import read_scores, read_speakers
from evenscore.files.npy import is_score_npy
from evenscore.files.score_tiles import open_chunked_scores
from evenscore.files.streams import ZARR_MARKS
from evenscore.files.trial_chunks import open_chunked_trials
from evenscore.scale import ChunkedBlocks, ChunkedScores, ChunkedTrials, transform_chunks
from evenscore.scale.counting import count_chunks
from evenscore.scale.pair_values import ListedValues, SpeakerLabels
from evenscore.scale.tiles import Tile
from evenscore.scale.trial_labels import apart_by_phrase, with_labels
from evenscore.tables import UNKNOWN, Labels, ScoreMatrix, TrialList

__all__ = ["chunked_blocks", "chunked_training", "in_memory", "open_scores"]

_FEW_BITS = 10  # of a summary that nobody looks at


def open_scores(
    path: str, choices: ScaleChoices, reading: Mapping[str, Any]
) -> ChunkedScores | ChunkedTrials | ScoreMatrix | TrialList:
    """Open scores that can be read in chunks, and read others."""
    file, format = Path(path), reading.get("format")
    store = file.is_dir() and any((file / mark).exists() for mark in ZARR_MARKS)
    if (store and format in (None, "zarr")) or (is_score_npy(path) and format in (None, "npy")):
        try:
            scores = open_chunked_scores(path)
        except FileError as error:
            if error.part not in ("scores", "enroll_ids", "test_ids"):  # a store of listed trials, for instance
                raise
            return read_scores(path, **reading)
        return _accepted(scores.with_tiles(choices.tile_bytes), reading)
    if format == "parquet" or (format is None and file.suffix.lower() in (".parquet", ".pq")):
        from evenscore.files import ReadOptions

        names = ("missing", "infinite", "duplicates", "score_column")
        chosen = {name: reading[name] for name in names if name in reading}
        return open_chunked_trials(path, ReadOptions(kind="scores", **chosen))
    return read_scores(path, **reading)


def _accepted(scores: ChunkedScores, reading: Mapping[str, Any]) -> ChunkedScores:
    """Return scores that are infinite as missing, if such are skipped."""
    if reading.get("missing") != "skip" or reading.get("infinite") == "accept":
        return scores
    finite = transform_chunks(scores, _finite, "finite")
    assert isinstance(finite, ChunkedScores)  # noqa: S101
    return finite


def _finite(scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.where(np.isinf(scores), np.nan, scores)


def chunked_training(
    paths: Sequence[str], labels: LabelSources, choices: ScaleChoices, reading: Mapping[str, Any]
) -> tuple[TrainingScores, list[str]]:
    """Return labelled scores to train on; matrices and lists that can be read in chunks stay where they are."""
    tables = [open_scores(path, choices, reading) for path in paths]
    if not any(isinstance(table, ChunkedScores | ChunkedTrials) for table in tables):
        return from_scores(paths, labels, reading)
    if labels.keys and labels.by_speaker:
        raise InputError("labels come from a key or from speaker maps; leave out one of the two")
    labels.for_file(0, len(paths))  # refuses a wrong number of keys
    keys, shared = labels.read_keys(), len(labels.keys) == 1 and len(paths) > 1
    if labels.unmatched == "error":
        for place, key in enumerate(keys):
            if shared or isinstance(tables[place], ChunkedTrials):
                _refuse_beyond(key, tables if shared else tables[place : place + 1])
    data: TrainingScores = []
    for place, (path, table) in enumerate(zip(paths, tables, strict=True)):
        one = labels.for_file(place, len(paths))
        if isinstance(table, ChunkedTrials):
            data.append(_listed(path, table, one, keys[0 if shared else place] if keys else None))
        elif not isinstance(table, ChunkedScores):
            data += from_scores([path], replace(one, unmatched="drop") if shared else one, reading)[0]
        elif labels.by_speaker:
            (enroll_path, enroll), (test_path, test) = labels.read_speaker_maps()
            rows = speakers_for(table.enroll_ids, enroll_path, enroll, "enrolment")
            columns = speakers_for(table.test_ids, test_path, test, "test")
            known = Labels.from_speakers(rows, columns, enroll_ids=table.enroll_ids, test_ids=table.test_ids)
            data += by_phrase([(table, known)], labels.phrase_from)
        elif keys:
            known = _key_labels(table, keys[0 if shared else place], labels.unmatched, path, shared=shared)
            data += by_phrase([(table, known)], labels.phrase_from)
        else:
            raise _without_labels(path)
    return data, []


def _without_labels(path: str) -> InputError:
    return InputError(f"the scores of {path} have no labels; give --key, or --enroll-speakers")


def in_memory(data: TrainingScores) -> TrainingScores:
    """Read scores that are not in memory, for methods that look at every score again and again."""
    items: TrainingScores = []
    for item in data:
        if isinstance(item, ChunkedTrials):
            items.append(item.gather())
        elif isinstance(item, tuple) and isinstance(item[0], ChunkedScores):
            items.append((item[0].matrix(), item[1]))
        else:
            items.append(item)
    return items


def _listed(path: str, table: ChunkedTrials, labels: LabelSources, key: TrialList | None) -> ChunkedTrials:
    """Return a list of trials with labels and phrases."""
    if labels.by_speaker:
        table = with_labels(table, SpeakerLabels(*labels.read_speaker_maps()))
    elif key is not None:
        table = with_labels(table, ListedValues.of_key(key), labels.unmatched)
    elif len(table) and table.reader.read(slice(0, 1)).labels is None:
        raise _without_labels(path)
    if labels.phrase_from is not None:
        table = apart_by_phrase(table, phrase_lookup(labels.phrase_from), labels.phrase_from)
    return table


def _refuse_beyond(key: TrialList, tables: Sequence[ChunkedScores | ChunkedTrials | ScoreMatrix | TrialList]) -> None:
    """Refuse a key that lists more trials than there can be scores of."""
    values, scored = ListedValues.of_key(key), 0
    for table in tables:
        if isinstance(table, ChunkedTrials | TrialList):
            scored += len(table)
        else:
            scored += len(values.align(table.enroll_ids, table.test_ids))
    if len(key) > scored:
        raise InputError(
            f"the key lists {len(key)} trials, but only {scored} have scores; make the two files agree, or leave out "
            "what does not match (--unmatched drop)"
        )


def _key_labels(table: ChunkedScores, key: TrialList, unmatched: Any, path: str, *, shared: bool = False) -> Labels:
    """Return the labels of a matrix from a key, a byte for each pair; a ``shared`` key lists pairs of others, too.

    To refuse what does not match, the scores are read: which of them are missing, nothing else tells.
    """
    values = ListedValues.of_key(key)
    here = values.align(table.enroll_ids, table.test_ids)
    try:
        if not len(here):
            raise InputError("the key has none of these trials; do the two files belong together?")
        if unmatched == "error":
            count_chunks(table, here if shared else values, unmatched=unmatched, options={"bits": _FEW_BITS})
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    whole = Tile(0, slice(0, table.shape[0]), slice(0, table.shape[1]))
    labels = np.maximum(here.of_tile(whole), UNKNOWN)
    return Labels.from_key(labels, enroll_ids=table.enroll_ids, test_ids=table.test_ids)


def chunked_blocks(
    trials: str,
    paths: Mapping[str, str | None],
    choices: ScaleChoices,
    reading: Mapping[str, Any],
    speakers: str | None,
    cohort_speakers: str | None,
    cohort_key: tuple[str | None, str],
) -> ChunkedBlocks:
    """Open trials and cohort scores; ``cohort_key`` is the file, and what to do with pairs that do not match."""
    scores = open_scores(trials, choices, reading)
    blocks: dict[str, Any] = {name: _matrix(path, choices, reading) for name, path in paths.items() if path is not None}
    sides: dict[str, Any] = {}
    key_path, unmatched = cohort_key
    if key_path is not None:
        if "cohort" not in blocks:
            raise InputError("--cohort-key gives labels to cohort scores; give --cohort too")
        cohort = blocks["cohort"]
        if isinstance(cohort, ChunkedScores):
            [key] = LabelSources(keys=[key_path]).read_keys()
            sides["cohort_labels"] = _key_labels(cohort, key, unmatched, str(paths["cohort"]))
        else:
            sides["cohort_labels"] = cohort_labels(cohort, key_path, unmatched)
    if speakers is not None:
        known = read_speakers(speakers)
        if isinstance(scores, ChunkedTrials | TrialList):
            sides |= {"enroll_speakers": known, "test_speakers": known}
        else:
            sides["enroll_speakers"] = speakers_for(scores.enroll_ids, speakers, known, "enrolment")
            sides["test_speakers"] = speakers_for(scores.test_ids, speakers, known, "test")
    path = cohort_speakers or speakers
    if path is not None:
        known = read_speakers(path)
        for side, other, ids in (("enroll", "test", "enroll_ids"), ("test", "enroll", "test_ids")):
            block = blocks.get("cohort", blocks.get(other))
            if block is not None:
                members = getattr(block, ids)
                sides[f"cohort_{side}_speakers"] = speakers_for(members, path, known, "cohort member")
    return ChunkedBlocks(scores, **blocks, **sides)


def _matrix(path: str, choices: ScaleChoices, reading: Mapping[str, Any]) -> ChunkedScores | ScoreMatrix:
    from evenscore.cli.combine import as_matrix

    scores = open_scores(path, choices, reading)
    if isinstance(scores, ChunkedTrials):
        scores = scores.gather()
    return scores if isinstance(scores, ChunkedScores) else as_matrix(scores)
