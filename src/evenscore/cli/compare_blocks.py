"""The blocks of one condition of `evenscore compare`: its training and evaluation scores with their cohort."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evenscore.cli.combine import as_matrix
from evenscore.cli.compare_chunks import listed_ids, made_chunks, own_chunks
from evenscore.cli.evaluated_chunks import LabelledFile
from evenscore.cli.labelled import LabelledScores, label_by_key, speakers_for
from evenscore.errors import InputError
from evenscore.metrics.target_speakers import speakers_by_targets
from evenscore.scale import ChunkedBlocks, ChunkedScores, ChunkedTrials, LabelledChunks
from evenscore.tables import LabelledBlocks, Labels, ScoreBlocks, ScoreMatrix, TrialList
from evenscore.tables.ids import Ids

__all__ = ["own_cohort", "paired_blocks"]

SpeakerMap = tuple[str, Mapping[str, str]]  # with the name of its file
Item = LabelledScores | LabelledFile  # in memory, or not
Block = ScoreMatrix | ChunkedScores
AnyBlocks = LabelledBlocks | LabelledChunks
Found = dict[str, Block | None]  # cohort scores by the name of their option


def paired_blocks(
    pair: tuple[Item, Item | None],
    names: tuple[str, str],
    found: Found,
    maps: Mapping[str, SpeakerMap | None],
    cohort_key: TrialList | None,
) -> tuple[AnyBlocks, AnyBlocks | None]:
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
    >>> found = dict.fromkeys(["enroll", "test", "train_enroll", "train_test"]) | {"cohort": cross}
    >>> _, evaluation = paired_blocks((dev, new), ("", ""), found, dict.fromkeys(["train", "trials", "cohort"]), None)
    >>> evaluation.blocks
    ScoreBlocks(2 listed trials, enroll 1 x 2, test 2 x 2, cohort 2 x 2, speakers of cohort_enroll, cohort_test)
    """
    training, evaluation = pair
    ids = [_ids_of(item) for item in pair if item is not None]
    members = _members(found, ids)
    if members is None:
        if found["train_enroll"] is not None or found["train_test"] is not None:
            raise InputError("--train-enroll and --train-test are for a cohort of others, but there is no such cohort")
        if cohort_key is not None:
            raise InputError("--cohort-key is for a cohort of others, but the training side is the cohort")
        own = own_cohort(training, names[0], maps["train"])
        if evaluation is None:
            return own, None
        return own, _with_training_cohort((evaluation, ids[1]), names[1], own.blocks, found, maps["trials"])
    facts = _cohort_facts(found, members, maps["cohort"], cohort_key)
    first = _labelled_blocks((training, ids[0]), names[0], found, members, maps["train"], facts, "train_")
    if evaluation is None:
        return first, None
    return first, _labelled_blocks((evaluation, ids[1]), names[1], found, members, maps["trials"], facts, "")


def own_cohort(item: Item, name: str, known: SpeakerMap | None) -> AnyBlocks:
    """Return labelled scores as their own cohort; who speaks, a map tells, or else the target trials."""
    if isinstance(item, LabelledFile):
        return own_chunks(item, name, known)
    matrix = as_matrix(_table(item))
    labels = item[1] if isinstance(item, tuple) else Labels.from_trials(item)
    if labels.by_speaker:
        return LabelledBlocks.own_cohort(matrix, labels, name=name)
    by_speaker = _labels_by_speaker(matrix, labels, known)
    if ((labels.matrix == by_speaker.matrix) | matrix.missing).all():
        return LabelledBlocks.own_cohort(matrix, by_speaker, name=name)
    blocks = LabelledBlocks.own_cohort(matrix, by_speaker).blocks
    speakers = {side: getattr(blocks, side) for side in _SPEAKERS}
    return LabelledBlocks(
        ScoreBlocks(matrix, enroll=matrix, test=matrix, cohort=matrix, cohort_labels=labels, **speakers), labels, name
    )


_SPEAKERS = ("enroll_speakers", "test_speakers", "cohort_enroll_speakers", "cohort_test_speakers")


def _labels_by_speaker(matrix: ScoreMatrix, labels: Labels, known: SpeakerMap | None) -> Labels:
    if known is None:
        speaker = speakers_by_targets([matrix.to_trials(labels)])
        sides = [[speaker[name] for name in ids] for ids in (matrix.enroll_ids, matrix.test_ids)]
    else:
        ids = ((matrix.enroll_ids, "enrolment"), (matrix.test_ids, "test"))
        sides = [speakers_for(names, *known, side) for names, side in ids]
    return Labels.from_speakers(*sides, enroll_ids=matrix.enroll_ids, test_ids=matrix.test_ids)


def _table(item: LabelledScores) -> ScoreMatrix | TrialList:
    return item[0] if isinstance(item, tuple) else item


def _ids_of(item: Item) -> tuple[Ids, Ids]:
    if isinstance(item, LabelledFile):
        scores = item.scores
        return listed_ids(scores) if isinstance(scores, ChunkedTrials) else (scores.enroll_ids, scores.test_ids)
    table = _table(item)
    return table.enroll_ids, table.test_ids


def _members(found: Found, trials: Sequence[tuple[Ids, Ids]]) -> tuple[list[str], list[str]] | None:
    """Return the cohort's enrolments and tests; None if the training side is the cohort."""
    enrolments = {name for ids, _ in trials for name in ids}
    tests = {name for _, ids in trials for name in ids}
    rows = [block.enroll_ids for name, block in found.items() if block is not None and name not in _BY_TEST]
    columns = [block.test_ids for name, block in found.items() if block is not None and name not in _BY_ENROLMENT]
    members = (
        [name for name in dict.fromkeys(np.concatenate(rows)) if name not in enrolments] if rows else [],
        [name for name in dict.fromkeys(np.concatenate(columns)) if name not in tests] if columns else [],
    )
    return members if any(members) else None


_BY_TEST = ("enroll", "train_enroll")  # whose rows are no cohort members
_BY_ENROLMENT = ("test", "train_test")  # whose columns are none


def _part(pool: Block | None, rows: Any, columns: Any) -> Block | None:
    """Return these scores of the pool; None if it has none of them."""
    if pool is None or not len(rows) or not len(columns):
        return None
    row = np.isin(pool.enroll_ids.astype(str), np.asarray(rows, dtype=str))
    column = np.isin(pool.test_ids.astype(str), np.asarray(columns, dtype=str))
    if not row.any() or not column.any():
        return None
    part = pool.take(np.flatnonzero(row), np.flatnonzero(column))
    if isinstance(part, ChunkedScores):
        return part
    return None if part.n_missing == part.scores.size else part


def _with_training_cohort(
    trials: tuple[Item, tuple[Ids, Ids]],
    name: str,
    cohort: ScoreBlocks | ChunkedBlocks,
    found: Found,
    known: SpeakerMap | None,
) -> AnyBlocks:
    (item, ids), pool = trials, found["cohort"]
    rows, columns = cohort.cohort_enroll_ids, cohort.cohort_test_ids
    enroll = found["enroll"] or _part(pool, ids[0], columns)
    test = found["test"] or _part(pool, rows, ids[1])
    facts = {side: getattr(cohort, side) for side in ("cohort", "cohort_labels", *_SPEAKERS[2:])}
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
        whole = cohort.matrix() if isinstance(cohort, ChunkedScores) else cohort
        [labelled] = label_by_key([whole], key, "drop")
        assert isinstance(labelled, tuple)  # noqa: S101
        facts["cohort_labels"] = labelled[1]
    if known is not None:
        for side, names in zip(_SPEAKERS[2:], members, strict=True):
            facts[side] = dict(zip(names, speakers_for(_ids(names), *known, "cohort member"), strict=True))
    return facts


def _ids(names: list[str]) -> Ids:
    ids = np.empty(len(names), dtype=object)
    ids[:] = names
    return ids


def _labelled_blocks(
    trials: tuple[Item, tuple[Ids, Ids]],
    name: str,
    found: Found,
    members: tuple[list[str], list[str]],
    known: SpeakerMap | None,
    facts: Mapping[str, Any],
    prefix: str,
) -> AnyBlocks:
    (item, ids), pool = trials, found["cohort"]
    enroll = found[f"{prefix}enroll"] or _part(pool, ids[0], members[1])
    test = found[f"{prefix}test"] or _part(pool, members[0], ids[1])
    kept = dict(facts)
    if test is None and kept["cohort"] is None:
        kept.pop("cohort_enroll_speakers", None)
    if enroll is None and kept["cohort"] is None:
        kept.pop("cohort_test_speakers", None)
    return _made(item, name, known, {"enroll": enroll, "test": test, **kept})


def _made(item: Item, name: str, known: SpeakerMap | None, cohort: Mapping[str, Any]) -> AnyBlocks:
    """Return labelled blocks with the speakers of the trials, as far as they are known."""
    if isinstance(item, LabelledFile):
        return made_chunks(item, name, known, cohort)
    table, labels = item if isinstance(item, tuple) else (item, None)
    sides: dict[str, Any] = {}
    if labels is not None and labels.by_speaker:
        sides = {"enroll_speakers": labels.enroll_speakers, "test_speakers": labels.test_speakers}
    elif known is not None:
        sides["enroll_speakers"] = speakers_for(table.enroll_ids, *known, "enrolment")
        sides["test_speakers"] = speakers_for(table.test_ids, *known, "test")
    return LabelledBlocks(ScoreBlocks(table, **cohort, **sides), labels, name)
