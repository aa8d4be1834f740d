"""Training and evaluation blocks of `evenscore compare` and `choose-cohort`, from score files or from embeddings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore.cli.inputs import EmbeddingFiles, open_matrix
from evenscore.cli.labelled import LabelledScores, LabelSources, SpeakerMap, as_matrix, with_key, with_map, with_maps
from evenscore.cli.option_records import option_name
from evenscore.cli.phrases import of_phrase, phrase_names, phrases_of
from evenscore.cli.scorers import scorer_of, training_scorer_of
from evenscore.cli.training_data import labels_by_targets, read_labelled
from evenscore.errors import InputError
from evenscore.files import read_speakers, read_trials
from evenscore.sources.blocks import cohort_matrix
from evenscore.sources.scorers import scored
from evenscore.tables import Embeddings, LabelledBlocks, Labels, ScoreBlocks, ScoreMatrix, ScoreTable, TrialList
from evenscore.tables.ids import shown
from evenscore.tables.pair_values import table_of_labels

if TYPE_CHECKING:
    from evenscore.cli.compare import Inputs, Sides
    from evenscore.cli.options import ScaleChoices
    from evenscore.sources import Scorer

__all__ = ["sides_from_embeddings", "sides_from_scores"]

Pair = tuple[Embeddings, Embeddings]  # enrolments and tests
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
        unmatched=facts.unmatched,
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
    if item.listed:
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
        trials, enroll=_spoken(enroll, cohort_map, "test_axis"), test=_spoken(test, cohort_map, "enroll_axis"), **cohort
    )
    return LabelledBlocks(blocks, item.given, name, item.unmatched)


def _part(pool: Sequence[ScoreTable], rows: Collection[str], columns: Collection[str]) -> ScoreTable | None:
    """Return these scores of the pool; None if it has none of them."""
    found = []
    for table in pool:
        row = np.flatnonzero([name in rows for name in table.enroll_ids])
        column = np.flatnonzero([name in columns for name in table.test_ids])
        part: Any = table.take(row, column)
        if part.size and not (part.is_in_memory and part.n_missing == part.size):
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
    if known is None:
        by_speaker = labels_by_targets(matrix, labels)
    else:
        spoken = with_maps(matrix, known, known)
        by_speaker = Labels.of_axes(spoken.enroll_axis, spoken.test_axis)
    missing = matrix.missing if matrix.is_in_memory else np.False_
    if ((labels.matrix == by_speaker.matrix) | missing).all():
        return LabelledBlocks.own_cohort(matrix, by_speaker, name=name)
    blocks = LabelledBlocks.own_cohort(matrix, by_speaker).blocks
    return LabelledBlocks(blocks.replace(cohort_labels=labels), labels, name)


def sides_from_embeddings(inputs: Inputs) -> Sides:
    """Score the training and, if wanted, the evaluation side; without cohort embeddings, the former is the cohort.

    If workers or a memory limit are asked for, scores are made tile by tile when they are needed. Training trials are
    centred without their own speakers, as the centre of evaluation trials has none of theirs.
    """
    source = inputs.facts.phrase_from
    scorer = scorer_of(inputs.training_vectors.scorer)
    scale = inputs.scale if inputs.scale is not None and inputs.scale.given else None
    trials = _trials(inputs, scorer)
    training, cohort = _training_and_cohort(inputs)
    trainer = training_scorer_of(inputs.training_vectors.scorer, training)
    tested = training
    if trials is not None:
        (_, test), listed = trials
        tested = test if listed is None else test.select(listed.test_ids)
    sides: Sides = ([], [])
    for phrase in phrase_names(tested, source):
        own = of_phrase(training, phrase, source, "training")
        others = own if cohort is None else of_phrase(cohort, phrase, source, "cohort", may_lack=True)
        sides[0].append(_scored_blocks(trainer, (own, own), others, None, phrase, scale))
        if trials is not None:
            (enroll, test), listed = trials
            test = of_phrase(test, phrase, source, "test")
            pair = of_phrase(enroll, phrase, source, "enrolment", may_lack=True), test
            sides[1].append(_scored_blocks(scorer, pair, others, _of_tests(listed, test), phrase, scale))
    return sides


def _training_and_cohort(inputs: Inputs) -> tuple[Embeddings, Embeddings | None]:
    vectors, facts, everybody = inputs.training_vectors, inputs.facts, inputs.training.speakers
    path = vectors.train_embeddings or ""
    files = EmbeddingFiles(enroll=path, test=path, speakers=facts.train_speakers or everybody)
    training, _ = files.read_trial_sides()
    if training.speakers is None:
        raise InputError(f"the embeddings of {path} have no speakers; give --train-speakers")
    if vectors.cohort_embeddings is None:
        return training, None
    speakers = facts.cohort_speakers or everybody
    others = EmbeddingFiles(enroll=path, test=path, cohort=vectors.cohort_embeddings, cohort_speakers=speakers)
    return training, others.read_cohort(vectors)


def _trials(inputs: Inputs, scorer: Scorer) -> tuple[Pair, TrialList | None] | None:
    """Return the embeddings of the evaluation side, and its trials if they are listed; None if it is not wanted."""
    vectors = inputs.evaluation_vectors
    if vectors is None:
        return None
    if vectors.enroll_embeddings is None or vectors.test_embeddings is None:
        raise InputError("embeddings of both evaluation sides are needed: --enroll-embeddings, --test-embeddings")
    files = EmbeddingFiles(
        enroll=vectors.enroll_embeddings,
        test=vectors.test_embeddings,
        enroll_map=vectors.enroll_map,
        speakers=inputs.training.speakers,
    )
    enroll, test = files.read_trial_sides(scorer)
    listed = _listed(inputs)
    if listed is None and (enroll.speakers is None or test.speakers is None):
        raise InputError("the evaluation trials have no labels; give --key, or the speakers with --speakers")
    return (enroll, test), listed


def _listed(inputs: Inputs) -> TrialList | None:
    """Return the trials that are listed, with the labels that are known."""
    paths = {}
    for name in ("trials", "key"):
        given = getattr(inputs.evaluation, name) or [None]
        if len(given) > 1:
            raise InputError(f"with embeddings one file of --{name} is enough; give one")
        paths[name] = given[0]
    key = None if paths["key"] is None else read_trials(paths["key"])
    if key is not None and key.labels is None:
        raise InputError(f"the key {paths['key']} has no labels; give a list of trials with labels")
    if paths["trials"] is None:
        return key
    trials = read_trials(paths["trials"])
    if key is not None:
        return with_key(trials, key, inputs.facts.unmatched)
    if trials.labels is None:
        raise InputError(f"the trials of {paths['trials']} have no labels; give a key with --key")
    return trials


def _of_tests(listed: TrialList | None, tests: Embeddings) -> TrialList | None:
    """Return the listed trials of some tests."""
    if listed is None:
        return None
    here = set(tests.ids)
    kept = np.array([name in here for name in listed.test_ids], dtype=bool)
    return listed if kept.all() else listed.select(kept[listed.test_index])


def _scored_blocks(
    scorer: Scorer, pair: Pair, cohort: Embeddings, listed: TrialList | None, phrase: str, scale: ScaleChoices | None
) -> LabelledBlocks:
    """Score the trials of one phrase, all of them or those that are listed, and their cohort, each two sides once."""
    enroll, test = pair
    made: dict[tuple[int, int], ScoreTable] = {}

    def table(one: Embeddings, other: Embeddings) -> ScoreTable:
        """Return all scores, but those of an utterance with itself."""
        key = id(one), id(other)
        if key not in made:
            scores = scored(scorer, one, other)
            made[key] = cohort_matrix(scores) if scale is None else scores.without_itself().in_tiles(scale.tile_bytes)
        return made[key]

    if listed is None:
        trials = table(enroll, test)
    else:
        enroll, test = enroll.select(listed.enroll_ids), test.select(listed.test_ids)
        scores = scored(scorer, enroll, test)
        trials = (
            scores.score_trials(listed).with_axes(enroll.axis, test.axis) if scale is None else scores.of_trials(listed)
        )
    blocks = ScoreBlocks(trials, enroll=table(enroll, cohort), test=table(cohort, test), cohort=table(cohort, cohort))
    return LabelledBlocks(blocks, Labels.of_axes(*pair) if listed is None else None, phrase)
