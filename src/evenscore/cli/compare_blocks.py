"""The blocks of one condition of `evenscore compare`: its training and evaluation scores with their cohort."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evenscore.cli.combine import as_matrix
from evenscore.cli.labelled import LabelledScores, SpeakerMap, with_map, with_maps
from evenscore.cli.normalize import cohort_labels
from evenscore.errors import InputError
from evenscore.metrics.target_speakers import speakers_by_targets
from evenscore.tables import TARGET, Axis, LabelledBlocks, Labels, ScoreBlocks, ScoreMatrix, ScoreTable, TrialList
from evenscore.tables.ids import Ids
from evenscore.tables.pair_values import table_of_labels

__all__ = ["own_cohort", "paired_blocks"]

Found = dict[str, ScoreTable | None]  # cohort scores by the name of their option


def paired_blocks(
    pair: tuple[LabelledScores, LabelledScores | None],
    names: tuple[str, str],
    found: Found,
    maps: Mapping[str, SpeakerMap | None],
    cohort_key: TrialList | None,
) -> tuple[LabelledBlocks, LabelledBlocks | None]:
    """Return the training and, if there are evaluation trials, the evaluation blocks of one condition.

    Cohort members are those who stand in the cohort scores (``found``) but not in the trials; without any, the training
    side is the cohort, of itself and of the evaluation. Which scores of ``cohort`` are whose, their ids tell.

    Examples
    --------
    >>> dev = TrialList.from_pairs(["d1", "d1", "d2", "d2"], ["a", "b", "a", "b"], scores=[3, 0, 1, 4],
    ...     labels=[1, 0, 0, 1])
    >>> new = TrialList.from_pairs(["n1", "n1"], ["u", "v"], scores=[3, 1], labels=[1, 0])
    >>> cross = ScoreMatrix([[1, 0, np.nan, np.nan], [np.nan, np.nan, 0, 1], [np.nan, np.nan, 1, 0]],
    ...     ["n1", "d1", "d2"], ["a", "b", "u", "v"], missing="nan")
    >>> blocks = ("enroll_cohort", "test_cohort", "train_enroll_cohort", "train_test_cohort")
    >>> found = dict.fromkeys(blocks) | {"cohort": cross}
    >>> pair = LabelledScores(path="dev", scores=dev), LabelledScores(path="new", scores=new)
    >>> _, evaluation = paired_blocks(pair, ("", ""), found, dict.fromkeys(["train", "trials", "cohort"]), None)
    >>> evaluation.blocks
    ScoreBlocks(2 listed trials, enroll 1 x 2, test 2 x 2, cohort 2 x 2, speakers of cohort_enroll, cohort_test)
    """
    training, evaluation = pair
    members = _members(found, [item.scores for item in pair if item is not None])
    if members is None:
        if found["train_enroll_cohort"] is not None or found["train_test_cohort"] is not None:
            raise InputError(
                "--train-enroll-cohort and --train-test-cohort are for a cohort of others, but there is no such cohort"
            )
        if cohort_key is not None:
            raise InputError("--cohort-key is for a cohort of others, but the training side is the cohort")
        own = own_cohort(training, names[0], maps["train"])
        if evaluation is None:
            return own, None
        return own, _with_training_cohort(evaluation, names[1], own.blocks, found, maps["trials"])
    facts = _cohort_facts(found, members, maps["cohort"], cohort_key)
    first = _labelled_blocks(training, names[0], found, members, maps["train"], facts, "train_")
    if evaluation is None:
        return first, None
    return first, _labelled_blocks(evaluation, names[1], found, members, maps["trials"], facts, "")


def own_cohort(item: LabelledScores, name: str, known: SpeakerMap | None) -> LabelledBlocks:
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


def _members(found: Found, trials: Sequence[ScoreTable]) -> tuple[list[str], list[str]] | None:
    """Return the cohort's enrolments and tests; None if the training side is the cohort."""
    enrolments = {name for table in trials for name in table.enroll_ids}
    tests = {name for table in trials for name in table.test_ids}
    rows = [block.enroll_ids for name, block in found.items() if block is not None and name not in _BY_TEST]
    columns = [block.test_ids for name, block in found.items() if block is not None and name not in _BY_ENROLMENT]
    members = (
        [name for name in dict.fromkeys(np.concatenate(rows)) if name not in enrolments] if rows else [],
        [name for name in dict.fromkeys(np.concatenate(columns)) if name not in tests] if columns else [],
    )
    return members if any(members) else None


_BY_TEST = ("enroll_cohort", "train_enroll_cohort")  # whose rows are no cohort members
_BY_ENROLMENT = ("test_cohort", "train_test_cohort")  # whose columns are none


def _part(pool: ScoreTable | None, rows: Any, columns: Any) -> ScoreTable | None:
    """Return these scores of the pool; None if it has none of them."""
    if pool is None or not len(rows) or not len(columns):
        return None
    row = np.isin(pool.enroll_ids.astype(str), np.asarray(rows, dtype=str))
    column = np.isin(pool.test_ids.astype(str), np.asarray(columns, dtype=str))
    if not row.any() or not column.any():
        return None
    part = pool.take(np.flatnonzero(row), np.flatnonzero(column))
    return None if isinstance(part, ScoreMatrix) and part.n_missing == part.scores.size else part


def _with_training_cohort(
    item: LabelledScores, name: str, cohort: ScoreBlocks, found: Found, known: SpeakerMap | None
) -> LabelledBlocks:
    pool, trials = found["cohort"], item.scores
    enroll = found["enroll_cohort"] or _part(pool, trials.enroll_ids, cohort.cohort_test_ids)
    test = found["test_cohort"] or _part(pool, cohort.cohort_enroll_ids, trials.test_ids)
    facts = {"cohort": cohort.cohort, "cohort_labels": cohort.cohort_labels}
    return _made(item, name, known, {"enroll": enroll, "test": test, **facts})


def _cohort_facts(
    found: Found, members: tuple[list[str], list[str]], known: SpeakerMap | None, key: TrialList | None
) -> dict[str, Any]:
    """Return the cohort against itself, and the speakers of its members."""
    cohort = _part(found["cohort"], *members)
    facts: dict[str, Any] = {"cohort": cohort}
    if key is not None:
        if cohort is None:
            raise InputError("--cohort-key gives labels to scores of the cohort against itself, but there are none")
        facts["cohort_labels"] = cohort_labels("the cohort", cohort, key, "drop")
    if known is not None:
        for side, names in zip(("cohort_enroll_speakers", "cohort_test_speakers"), members, strict=True):
            with_map(_axis(names), known, "cohort member")  # refuses a map that lacks somebody
            facts[side] = {name: known[1][name] for name in names}
    return facts


def _axis(names: list[str]) -> Axis:
    ids: Ids = np.empty(len(names), dtype=object)
    ids[:] = names
    return Axis(ids)


def _labelled_blocks(
    item: LabelledScores,
    name: str,
    found: Found,
    members: tuple[list[str], list[str]],
    known: SpeakerMap | None,
    facts: Mapping[str, Any],
    prefix: str,
) -> LabelledBlocks:
    pool, trials = found["cohort"], item.scores
    enroll = found[f"{prefix}enroll_cohort"] or _part(pool, trials.enroll_ids, members[1])
    test = found[f"{prefix}test_cohort"] or _part(pool, members[0], trials.test_ids)
    kept = dict(facts)
    if test is None and kept["cohort"] is None:
        kept.pop("cohort_enroll_speakers", None)
    if enroll is None and kept["cohort"] is None:
        kept.pop("cohort_test_speakers", None)
    return _made(item, name, known, {"enroll": enroll, "test": test, **kept})


def _made(item: LabelledScores, name: str, known: SpeakerMap | None, cohort: Mapping[str, Any]) -> LabelledBlocks:
    """Return labelled blocks with the speakers of the trials, as far as they are known."""
    trials = item.scores
    if known is not None and trials.enroll_axis.speakers is None:
        trials = with_maps(trials, known, known)
    return LabelledBlocks(ScoreBlocks(trials, **cohort), item.given, name, item.unmatched)
