"""Training and evaluation blocks of `evenscore compare` from score files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

import numpy as np

from evenscore.cli.compare_blocks import paired_blocks
from evenscore.cli.inputs import open_matrix
from evenscore.cli.labelled import LabelledScores, LabelSources, SpeakerMap
from evenscore.cli.option_records import option_name
from evenscore.cli.phrases import phrases_of
from evenscore.cli.scale_options import ScaleChoices
from evenscore.cli.training_data import read_labelled
from evenscore.errors import InputError
from evenscore.files import read_speakers, read_trials
from evenscore.tables import LabelledBlocks, Labels, ScoreMatrix, TrialList
from evenscore.tables.ids import shown

__all__ = ["BLOCKS", "ScoreFiles", "blocks_from_scores"]

BLOCKS = ("enroll_cohort", "test_cohort", "cohort", "train_enroll_cohort", "train_test_cohort")  #: as options name them

Conditions = dict[str, Any]  # the scores of each condition, by its name


@dataclass(frozen=True, kw_only=True)
class ScoreFiles:
    """The score files of both sides, and where labels and speakers come from: names of files."""

    train: Sequence[str]
    trials: Sequence[str] = ()  #: none if only the training side is wanted
    enroll_cohort: Sequence[str] = ()
    test_cohort: Sequence[str] = ()
    cohort: Sequence[str] = ()
    train_enroll_cohort: Sequence[str] = ()
    train_test_cohort: Sequence[str] = ()
    train_key: Sequence[str] = ()
    key: Sequence[str] = ()
    cohort_key: str | None = None
    speakers: str | None = None
    train_speakers: str | None = None
    cohort_speakers: str | None = None
    labels: LabelSources  #: what to do with unmatched trials, where phrases come from
    scale: ScaleChoices | None = None  #: how scores are read in chunks; None reads them whole

    def speaker_map(self, side: str) -> SpeakerMap | None:
        """Return the map of one side, ``"train"``, ``"trials"`` or ``"cohort"``, and its name."""
        path = {
            "trials": self.speakers,
            "train": self.train_speakers or self.speakers,
            "cohort": self.cohort_speakers or self.speakers,
        }[side]
        return None if path is None else (path, read_speakers(path))

    def read_cohort_key(self) -> TrialList | None:
        """Return the labels of the cohort scores, if there are any."""
        return None if self.cohort_key is None else read_trials(self.cohort_key)


def blocks_from_scores(files: ScoreFiles) -> tuple[list[LabelledBlocks], list[LabelledBlocks]]:
    """Read the training and, if there are any trials, the evaluation side, with the cohort scores of both."""
    training = _labelled(files, "train")
    evaluation = _labelled(files, "trials") if files.trials else dict.fromkeys(training)
    blocks = {name: _tables(getattr(files, name), name, evaluation, files) for name in BLOCKS}
    partners = _partners(training, evaluation)
    maps = {side: files.speaker_map(side) for side in ("train", "trials", "cohort")}
    key = files.read_cohort_key()
    sides: tuple[list[LabelledBlocks], list[LabelledBlocks]] = ([], [])
    for name, item in evaluation.items():
        found = {block: tables.get(name) for block, tables in blocks.items()}
        parts = paired_blocks((training[partners[name]], item), (partners[name], name), found, maps, key)
        for side, part in zip(sides, parts, strict=True):
            side += [] if part is None else [part]
    return sides


def _labelled(files: ScoreFiles, side: str) -> dict[str, LabelledScores]:
    """Read the scores of one side with their labels, by condition."""
    paths, keys = (files.train, files.train_key) if side == "train" else (files.trials, files.key)
    known = files.speaker_map(side)
    sources = replace(
        files.labels,
        keys=keys,
        enroll_speakers=known[0] if known and not keys else None,
        phrase_from=None,
        options=("--train-key", "--train-speakers") if side == "train" else ("--key", "--speakers"),
    )
    data = [file.settled() for file in read_labelled(paths, sources, files.scale)]
    return _split(data, paths, files.labels.phrase_from)


def _tables(paths: Sequence[str], name: str, evaluation: Mapping[str, Any], files: ScoreFiles) -> Conditions:
    """Read cohort scores as one matrix for each condition; one that is given alone serves all."""
    matrices = [open_matrix(path, files.scale) for path in paths]
    if not matrices:
        return {}
    if files.labels.phrase_from is not None:
        return _split([_joined(matrices, paths)], paths[:1], files.labels.phrase_from)
    if len(evaluation) == 1 or len(matrices) == 1:
        return dict.fromkeys(evaluation, _joined(matrices, paths))
    if len(matrices) != len(evaluation):
        raise InputError(
            f"there are {len(evaluation)} evaluation matrices and {len(matrices)} files of {option_name(name)}; "
            "give one for all, or one for each in the same order"
        )
    return dict(zip(evaluation, matrices, strict=True))


def _joined(matrices: Sequence[Any], paths: Sequence[str]) -> Any:
    if len(matrices) == 1:
        return matrices[0]
    if not all(matrix.is_in_memory for matrix in matrices):
        raise InputError(f"cohort scores that are read in chunks must be in one file, but there are {shown(paths)}")
    return ScoreMatrix.concat(list(matrices))


def _split(data: Sequence[Any], paths: Sequence[str], phrase_from: str | None) -> dict[str, Any]:
    """Return scores by condition: by phrase if phrases are known, else by file."""
    if phrase_from is None:
        if len(data) == 1:
            return {"": data[0]}
        stems = [PurePath(path).name.partition(".")[0] for path in paths]
        unique = len(set(stems)) == len(stems)
        return {
            stem if unique else str(place): item for place, (stem, item) in enumerate(zip(stems, data, strict=True), 1)
        }
    found: dict[str, Any] = {}
    for item in data:
        for phrase, part in _by_phrase(item, phrase_from).items():
            if phrase in found:
                raise InputError(f"the phrase {phrase!r} stands in two files; put the scores of a phrase into one")
            found[phrase] = part
    return found


def _by_phrase(item: Any, source: str) -> dict[str, Any]:
    """Return the scores of each phrase of the tests; enrolments that have phrases, too, stay with theirs."""
    table = item.scores if isinstance(item, LabelledScores) else item
    if table.listed and not table.is_in_memory:
        raise InputError(f"{item.path}: a list that is read in chunks cannot be split by phrase; give a file for each")
    columns = phrases_of(table.test_ids, source)
    try:
        rows: Mapping[str, str] | None = phrases_of(table.enroll_ids, source)
    except InputError:
        rows = None
    parts = {}
    for phrase in dict.fromkeys(columns.values()):
        column = np.array([columns[name] == phrase for name in table.test_ids])
        row = np.array([rows is None or rows[name] == phrase for name in table.enroll_ids])
        parts[phrase] = _part(item, row, column)
    return parts


def _part(item: Any, row: Any, column: Any) -> Any:
    """Return some rows and columns of a table, or of one with labels."""
    if isinstance(item, LabelledScores):
        given = item.given
        if isinstance(given, Labels):
            given = given.take(np.flatnonzero(row), np.flatnonzero(column))
        return replace(item, scores=_part(item.scores, row, column), given=given)
    if isinstance(item, TrialList):
        return item.select(row[item.enroll_index] & column[item.test_index])
    return item.take(np.flatnonzero(row), np.flatnonzero(column))


def _partners(training: Conditions, evaluation: Conditions) -> dict[str, str]:
    """Return for each condition of the evaluation that of the training side which belongs to it."""
    if set(training) == set(evaluation):
        return {name: name for name in evaluation}
    if len(training) != len(evaluation):
        raise InputError(
            f"there are {len(training)} training and {len(evaluation)} evaluation matrices ({shown(training)}; "
            f"{shown(evaluation)}), so it is not known which belong together; give as many, in the same order"
        )
    return dict(zip(evaluation, training, strict=True))
