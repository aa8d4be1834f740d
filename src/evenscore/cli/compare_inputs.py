"""The options that say where `evenscore compare` finds its scores, and reading them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore.cli import options as opt
from evenscore.cli.cohort_options import CohortChoices
from evenscore.cli.option_records import option_name
from evenscore.cli.scorers import Center, PldaFile, ScorerName, ScorerOption, scorer_of
from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.tables import LabelledBlocks

__all__ = ["ComparedEmbeddings", "ComparedScores", "ReadingChoices", "SharedSources", "read_sides"]

Sides = tuple["list[LabelledBlocks]", "list[LabelledBlocks]"]


def _file(meaning: str, *names: str) -> Any:
    return typer.Option(*names, metavar="FILE", help=meaning)


@dataclass(frozen=True, kw_only=True)
class ComparedScores:
    """Score files of both sides and of the cohort."""

    train: Annotated[
        list[str] | None, _file("Training scores with labels; several files are several phrases or conditions.")
    ] = None
    train_key: Annotated[list[str] | None, _file("Labels of the training scores: one file for all, or one each.")] = (
        None
    )
    trials: Annotated[
        list[str] | None,
        _file("Evaluation scores, a file for each of --train in the same order; for embeddings, the trials to score."),
    ] = None
    key: Annotated[list[str] | None, _file("Labels of the evaluation trials, likewise.", "--key", "-k")] = None
    cohort: Annotated[
        list[str] | None,
        _file(
            "All scores in which cohort members stand: of enrolments against them, of them against tests, and of them "
            "against each other. Ids tell which is which."
        ),
    ] = None
    cohort_key: Annotated[
        str | None, _file("Labels of the cohort's scores against itself; by default all are non-targets.")
    ] = None
    enroll: Annotated[
        list[str] | None, _file("Cohort scores in a file apart: evaluation enrolments against the cohort's tests.")
    ] = None
    test: Annotated[list[str] | None, _file("The same: the cohort's enrolments against evaluation tests.")] = None
    train_enroll: Annotated[
        list[str] | None, _file("The same: training enrolments against the tests of a cohort of others.")
    ] = None
    train_test: Annotated[
        list[str] | None, _file("The same: the enrolments of a cohort of others against training tests.")
    ] = None
    score_set: Annotated[
        str | None, typer.Option(metavar="DIR", help="A directory with all scores, as the recipes save them.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class ComparedEmbeddings:
    """Embeddings of both sides and of the cohort, and how they are scored."""

    train_embeddings: Annotated[str | None, _file("Embeddings of the training side, in place of scores.")] = None
    enroll_embeddings: Annotated[str | None, _file("Embeddings of the evaluation enrolments.")] = None
    test_embeddings: Annotated[str | None, _file("Embeddings of the evaluation tests; may be the same file.")] = None
    cohort_embeddings: Annotated[
        str | None, _file("Embeddings of the cohort; without, the training side is the cohort.")
    ] = None
    enroll_map: Annotated[str | None, _file("Evaluation enrolments of several utterances, as in spk2utt.")] = None
    scorer: ScorerOption = ScorerName.cosine
    plda: PldaFile = None
    center: Center = None


@dataclass(frozen=True, kw_only=True)
class SharedSources:
    """Speakers and phrases, of scores and of embeddings."""

    speakers: Annotated[str | None, _file("Map from id to speaker, for all who have no map of their own.")] = None
    train_speakers: Annotated[str | None, _file("Map from id to speaker for the training side.")] = None
    cohort_speakers: Annotated[str | None, _file("Map from id to speaker for the cohort.")] = None
    phrase_from: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="Split all scores by the phrase of the test: 're:' and a regular expression with one group on the "
            "id, a file with lines 'id phrase', or 'column:' and a column of the embeddings.",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ReadingChoices:
    """How files are read."""

    unmatched: opt.OnUnmatched = opt.Unmatched.error
    missing: opt.OnMissing = opt.Missing.error
    duplicates: opt.OnDuplicates = opt.Duplicates.error
    score_column: opt.ScoreColumn = None
    from_format: opt.FromFormat = None
    key_format: opt.KeyFormat = None


def read_sides(
    scores: ComparedScores,
    vectors: ComparedEmbeddings,
    sources: SharedSources,
    members: CohortChoices,
    reading: ReadingChoices,
) -> Sides:
    """Read the training and the evaluation side from where the options say."""
    ways = [scores.score_set, vectors.train_embeddings, scores.train]
    if sum(bool(way) for way in ways) != 1:
        raise InputError("give the training side with one of --train, --train-embeddings and --score-set")
    if scores.score_set is not None:
        _refuse_others("--score-set", scores, vectors, sources, allowed=("score_set",))
        from evenscore.recipes.text_dependent import load_score_set

        found = load_score_set(scores.score_set)
        return list(found.development), list(found.evaluation)
    if vectors.train_embeddings is not None:
        return _from_embeddings(scores, vectors, sources, members, reading)
    _refuse_others("--train", vectors, members, allowed=("seed",))
    return _from_scores(scores, sources, reading)


def _from_scores(scores: ComparedScores, sources: SharedSources, reading: ReadingChoices) -> Sides:
    from evenscore.cli.compare_scores import BLOCKS, ScoreFiles, blocks_from_scores
    from evenscore.cli.training_data import LabelSources

    if not scores.trials:
        raise InputError("there are no evaluation trials; give their scores with --trials")
    files = ScoreFiles(
        train=scores.train or (),
        trials=scores.trials,
        train_key=scores.train_key or (),
        key=scores.key or (),
        cohort_key=scores.cohort_key,
        speakers=sources.speakers,
        train_speakers=sources.train_speakers,
        cohort_speakers=sources.cohort_speakers,
        labels=LabelSources(
            key_format=reading.key_format, unmatched=reading.unmatched.value, phrase_from=sources.phrase_from
        ),
        **{name: getattr(scores, name) or () for name in BLOCKS},
    )
    return blocks_from_scores(files, _reading(reading))


def _reading(choices: ReadingChoices) -> dict[str, Any]:
    return {
        "format": choices.from_format,
        "missing": choices.missing.value,
        "duplicates": choices.duplicates.value,
        "score_column": choices.score_column,
    }


def _from_embeddings(
    scores: ComparedScores,
    vectors: ComparedEmbeddings,
    sources: SharedSources,
    members: CohortChoices,
    reading: ReadingChoices,
) -> Sides:
    from evenscore.cli.compare_embeddings import VectorFiles, blocks_from_embeddings

    _refuse_others("--train-embeddings", scores, allowed=("trials", "key"))
    if vectors.cohort_embeddings is None:
        _refuse_others("a cohort that is the training side", members, allowed=("seed",))
    for name in ("trials", "key"):
        if len(getattr(scores, name) or ()) > 1:
            raise InputError(f"with embeddings one file of --{name} is enough; give one")
    if vectors.train_embeddings is None or vectors.enroll_embeddings is None or vectors.test_embeddings is None:
        raise InputError("embeddings of both evaluation sides are needed: --enroll-embeddings and --test-embeddings")
    files = VectorFiles(
        train=vectors.train_embeddings,
        enroll=vectors.enroll_embeddings,
        test=vectors.test_embeddings,
        cohort=vectors.cohort_embeddings,
        trials=next(iter(scores.trials or ()), None),
        key=next(iter(scores.key or ()), None),
        key_format=reading.key_format,
        enroll_map=vectors.enroll_map,
        speakers=sources.speakers,
        train_speakers=sources.train_speakers,
        cohort_speakers=sources.cohort_speakers,
        phrase_from=sources.phrase_from,
        format=reading.from_format,
        unmatched=reading.unmatched.value,
        members=members,
    )
    return blocks_from_embeddings(files, scorer_of(vectors.scorer, vectors.plda, vectors.center))


def _refuse_others(way: str, *records: Any, allowed: tuple[str, ...]) -> None:
    """Refuse options that have no meaning with this way to give the scores."""
    for record in records:
        for field in fields(record):
            if field.name not in allowed and getattr(record, field.name) != field.default:
                raise InputError(f"{option_name(field.name)} has no meaning with {way}; leave it out")
