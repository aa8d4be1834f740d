"""Training and evaluation blocks of `evenscore compare` from score files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore.cli.inputs import open_matrix, phrases_of
from evenscore.cli.labelled import LabelledScores, LabelSources, SpeakerMap, as_matrix, with_map, with_maps
from evenscore.cli.option_records import option_name
from evenscore.cli.training_data import read_labelled
from evenscore.errors import InputError
from evenscore.files import read_speakers
from evenscore.metrics.speakers import speakers_by_targets
from evenscore.tables import TARGET, LabelledBlocks, Labels, ScoreBlocks, ScoreMatrix, ScoreTable, TrialList
from evenscore.tables.ids import shown
from evenscore.tables.pair_values import table_of_labels

if TYPE_CHECKING:
    from evenscore.cli.compare_inputs import Inputs, Sides
    from evenscore.cli.scale_options import ScaleChoices

__all__ = ["sides_from_scores"]

Found = Mapping[str, Sequence[ScoreTable]]  # cohort scores of a condition by their option
Members = tuple[Collection[str], Collection[str]]  # the cohort's enrolments and tests
Maps = Mapping[str, SpeakerMap | None]  # speakers of the training side, of the evaluation trials and of the cohort


def sides_from_scores(inputs: Inputs) -> Sides:
    """Read the training and, if it is wanted, the evaluation side, with the cohort scores of both."""
    files, trials, facts = inputs.training, inputs.evaluation, inputs.facts
    train = files.train or []
    cohort = {"cohort": files.cohort or []}
    if trials is not None:
        cohort |= {"enroll_cohort": trials.enroll_cohort or [], "test_cohort": trials.test_cohort or []}
    paths = [*train, *(trials.trials or [] if trials else []), *(path for some in cohort.values() for path in some)]
    scale = inputs.scale if inputs.scale is not None and inputs.scale.in_chunks(*paths) else None
    maps = _speaker_maps(inputs)
    labels = LabelSources(
        keys=files.train_key or [],
        enroll_speakers=None if files.train_key else facts.train_speakers or files.speakers,
        unmatched=facts.unmatched.value,
        phrase_from=facts.phrase_from,
        options=("--train-key", "--train-speakers"),
    )
    training = _labelled(train, labels, scale)
    evaluation: dict[str, LabelledScores] = {}
    if trials is not None:
        everybody = None if trials.key else files.speakers
        labels = replace(labels, keys=trials.key or [], enroll_speakers=everybody, options=("--key", "--speakers"))
        evaluation = _labelled(trials.trials or [], labels, scale)
    conditions = list(evaluation or training)
    tables = {
        name: _cohort_tables(some, name, conditions, facts.phrase_from, scale) for name, some in cohort.items() if some
    }
    sides: Sides = ([], [])
    for name, partner in _partners(training, conditions).items():
        found = {option: by_condition.get(name, []) for option, by_condition in tables.items()}
        parts = _paired_blocks(training[partner], partner, evaluation.get(name), name, found, maps)
        for side, part in zip(sides, parts, strict=False):
            side.append(part)
    return sides


def _speaker_maps(inputs: Inputs) -> dict[str, SpeakerMap | None]:
    everybody, facts = inputs.training.speakers, inputs.facts
    paths = {
        "train": facts.train_speakers or everybody,
        "trials": everybody,
        "cohort": facts.cohort_speakers or everybody,
    }
    return {side: None if path is None else (path, read_speakers(path)) for side, path in paths.items()}


def _labelled(paths: Sequence[str], labels: LabelSources, scale: ScaleChoices | None) -> dict[str, LabelledScores]:
    """Read the scores of one side with their labels, by condition: by phrase if phrases are known, else by file."""
    data = [file.settled() for file in read_labelled(paths, labels, scale)]
    if labels.phrase_from is None:
        stems = [PurePath(path).name.partition(".")[0] for path in paths]
        numbers = map(str, range(1, len(data) + 1))
        names = [""] if len(data) == 1 else stems if len(set(stems)) == len(stems) else numbers
        return dict(zip(names, data, strict=True))
    found: dict[str, LabelledScores] = {}
    for item in data:
        for phrase, part in _by_phrase(item, item.scores, labels.phrase_from).items():
            if phrase in found:
                raise InputError(f"the phrase {phrase!r} stands in two files; put the scores of a phrase into one")
            found[phrase] = part
    return found


def _cohort_tables(
    paths: Sequence[str], name: str, conditions: Sequence[str], phrase_from: str | None, scale: ScaleChoices | None
) -> dict[str, list[ScoreTable]]:
    """Read cohort scores for each condition; files of --cohort that are not as many serve all."""
    tables = [open_matrix(path, scale) for path in paths]
    if phrase_from is not None:
        parts = [_by_phrase(table, table, phrase_from) for table in tables]
        return {phrase: [part[phrase] for part in parts if phrase in part] for phrase in conditions}
    if len(tables) == len(conditions):
        return {condition: [table] for condition, table in zip(conditions, tables, strict=True)}
    if len(conditions) > 1 and len(tables) > 1 and name != "cohort":
        raise InputError(
            f"there are {len(conditions)} evaluation matrices and {len(tables)} files of {option_name(name)}; "
            "give one for all, or one for each in the same order"
        )
    return dict.fromkeys(conditions, tables)


def _by_phrase(item: Any, table: ScoreTable, source: str) -> dict[str, Any]:
    """Return the scores of each phrase of the tests; enrolments that have phrases, too, stay with theirs."""
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
        parts[phrase] = _taken(item, row, column)
    return parts


def _taken(item: Any, row: Any, column: Any) -> Any:
    """Return some rows and columns of a table, or of one with labels."""
    if isinstance(item, LabelledScores):
        given = item.given
        if isinstance(given, Labels):
            given = given.take(np.flatnonzero(row), np.flatnonzero(column))
        return replace(item, scores=_taken(item.scores, row, column), given=given)
    if isinstance(item, TrialList):
        return item.select(row[item.enroll_index] & column[item.test_index])
    return item.take(np.flatnonzero(row), np.flatnonzero(column))


def _partners(training: Collection[str], conditions: Sequence[str]) -> dict[str, str]:
    """Return for each condition that of the training side which belongs to it."""
    if set(training) == set(conditions):
        return {name: name for name in conditions}
    if len(training) != len(conditions):
        raise InputError(
            f"there are {len(training)} training and {len(conditions)} evaluation matrices ({shown(training)}; "
            f"{shown(conditions)}), so it is not known which belong together; give as many, in the same order"
        )
    return dict(zip(conditions, training, strict=True))


def _paired_blocks(
    training: LabelledScores, partner: str, evaluation: LabelledScores | None, name: str, found: Found, maps: Maps
) -> list[LabelledBlocks]:
    """Return the training and, if there are evaluation trials, the evaluation blocks of one condition.

    Cohort members are those who stand in the cohort scores but not in the trials; without any, the training side is
    the cohort, of itself and of the evaluation. Which scores of ``--cohort`` are whose, their ids tell.
    """
    pool = found.get("cohort", [])
    members = _members(found, [item.scores for item in (training, evaluation) if item is not None])
    if any(members):
        known = maps["cohort"]
        cohort: dict[str, Any] = {"cohort": _spoken(_part(pool, *members), known, "enroll_axis", "test_axis")}
        first = _blocks(training, partner, maps["train"], {}, pool, members, cohort, known)
    else:
        first, known = _own_cohort(training, partner, maps["train"]), None
        cohort = {"cohort": first.blocks.cohort, "cohort_labels": first.blocks.cohort_labels}
        members = set(first.blocks.cohort_enroll_ids), set(first.blocks.cohort_test_ids)  # type: ignore[arg-type]
    if evaluation is None:
        return [first]
    return [first, _blocks(evaluation, name, maps["trials"], found, pool, members, cohort, known)]


def _members(found: Found, trials: Sequence[ScoreTable]) -> Members:
    """Return the cohort's enrolments and tests; nobody if the training side is the cohort."""
    enrolments = {name for table in trials for name in table.enroll_ids}
    tests = {name for table in trials for name in table.test_ids}
    rows = [table for option, tables in found.items() if option != "enroll_cohort" for table in tables]
    columns = [table for option, tables in found.items() if option != "test_cohort" for table in tables]
    return (
        {name for table in rows for name in table.enroll_ids if name not in enrolments},
        {name for table in columns for name in table.test_ids if name not in tests},
    )


def _blocks(
    item: LabelledScores,
    name: str,
    known: SpeakerMap | None,
    apart: Found,
    pool: Sequence[ScoreTable],
    members: Members,
    cohort: Mapping[str, Any],
    cohort_map: SpeakerMap | None,
) -> LabelledBlocks:
    """Return the trials with their cohort scores (``apart``, or from the pool) and all speakers that are known."""
    trials = item.scores
    if known is not None and trials.enroll_axis.speakers is None:
        trials = with_maps(trials, known, known)
    enroll, test = (_joined(apart.get(option, [])) for option in ("enroll_cohort", "test_cohort"))
    if enroll is None:
        enroll = _part(pool, set(trials.enroll_ids), members[1])
    if test is None:
        test = _part(pool, members[0], set(trials.test_ids))
    blocks = ScoreBlocks(
        trials,
        enroll=_spoken(enroll, cohort_map, "test_axis"),
        test=_spoken(test, cohort_map, "enroll_axis"),
        **cohort,
    )
    return LabelledBlocks(blocks, item.given, name, item.unmatched)


def _part(pool: Sequence[ScoreTable], rows: Collection[str], columns: Collection[str]) -> ScoreTable | None:
    """Return these scores of the pool; None if it has none of them."""
    found = []
    for table in pool:
        row = np.flatnonzero([name in rows for name in table.enroll_ids])
        column = np.flatnonzero([name in columns for name in table.test_ids])
        part = table.take(row, column)
        if part.size and not (isinstance(part, ScoreMatrix) and part.n_missing == part.scores.size):
            found.append(part)
    return _joined(found)


def _joined(tables: Sequence[Any]) -> ScoreTable | None:
    if len(tables) < 2:
        return next(iter(tables), None)
    if not all(table.is_in_memory for table in tables):
        raise InputError(
            "cohort scores of the same trials that are read in chunks must be in one file, but they are in "
            f"{len(tables)}; put them together with 'evenscore convert'"
        )
    return ScoreMatrix.concat(list(tables))


def _spoken(table: ScoreTable | None, known: SpeakerMap | None, *sides: str) -> ScoreTable | None:
    """Return cohort scores that know who the members on these sides are."""
    if table is None or known is None:
        return table
    axes = {side: getattr(table, side) for side in ("enroll_axis", "test_axis")}
    axes |= {side: with_map(axes[side], known, "cohort member") for side in sides}
    return table.with_axes(*axes.values())


def _own_cohort(item: LabelledScores, name: str, known: SpeakerMap | None) -> LabelledBlocks:
    """Return labelled scores as their own cohort; who speaks, a map tells, or else the target trials."""
    matrix: Any = item.scores
    if matrix.listed:
        listed = item.trials()
        matrix, labels = as_matrix(listed), Labels.from_trials(listed)
    else:
        labels = table_of_labels(matrix, item.labels)
    if labels.by_speaker:
        return LabelledBlocks.own_cohort(matrix, labels, name=name)
    by_speaker = _labels_by_speaker(matrix, labels, known)
    missing = matrix.missing if isinstance(matrix, ScoreMatrix) else np.False_
    if ((labels.matrix == by_speaker.matrix) | missing).all():
        return LabelledBlocks.own_cohort(matrix, by_speaker, name=name)
    blocks = LabelledBlocks.own_cohort(matrix, by_speaker).blocks
    return LabelledBlocks(blocks.replace(cohort_labels=labels), labels, name)


def _labels_by_speaker(matrix: ScoreTable, labels: Labels, known: SpeakerMap | None) -> Labels:
    if known is not None:
        found = with_maps(matrix, known, known)
        return Labels.of_axes(found.enroll_axis, found.test_axis)
    rows, columns = np.nonzero(labels.matrix == TARGET)
    if isinstance(matrix, ScoreMatrix):
        scored = ~matrix.missing[rows, columns]
        rows, columns = rows[scored], columns[scored]
    targets = TrialList(matrix.enroll_axis, matrix.test_axis, rows, columns, labels=np.ones(len(rows), dtype=np.int8))
    speaker = speakers_by_targets([targets])
    sides = [[speaker[name] for name in ids] for ids in (matrix.enroll_ids, matrix.test_ids)]
    return Labels.from_speakers(*sides, enroll_ids=matrix.enroll_ids, test_ids=matrix.test_ids)
