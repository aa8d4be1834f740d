"""The options that say where `evenscore compare` and `choose-cohort` find their scores, and reading them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore.cli import options as opt
from evenscore.cli.cohort_options import CohortChoices
from evenscore.cli.option_records import option_name
from evenscore.cli.scale_options import ScaleChoices
from evenscore.cli.scorers import EnrollMap, ScorerOption, scorer_of
from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.tables import LabelledBlocks

__all__ = ["EvaluationFiles", "Inputs", "ReadingChoices", "SharedSources", "TrainingFiles"]

Sides = tuple["list[LabelledBlocks]", "list[LabelledBlocks]"]


def _file(meaning: str, *names: str) -> Any:
    return typer.Option(*names, metavar="FILE", help=meaning)


@dataclass(frozen=True, kw_only=True)
class TrainingFiles:
    """Where the training side and its cohort come from."""

    train: Annotated[
        list[str] | None, _file("Training scores with labels; several files are several phrases or conditions.")
    ] = None
    train_key: Annotated[list[str] | None, _file("Labels of the training scores: one file for all, or one each.")] = (
        None
    )
    cohort: Annotated[
        list[str] | None,
        _file(
            "All scores in which cohort members stand: of enrolments against them, of them against tests, and of them "
            "against each other. Ids tell which is which. Without, the training side is the cohort."
        ),
    ] = None
    cohort_key: Annotated[
        str | None, _file("Labels of the cohort's scores against itself; by default all are non-targets.")
    ] = None
    train_enroll_cohort: Annotated[
        list[str] | None, _file("Cohort scores in a file apart: training enrolments against the cohort's tests.")
    ] = None
    train_test_cohort: Annotated[
        list[str] | None, _file("The same: the cohort's enrolments against training tests.")
    ] = None
    train_embeddings: Annotated[str | None, _file("Embeddings of the training side, in place of scores.")] = None
    cohort_embeddings: Annotated[
        str | None, _file("Embeddings of the cohort; without, the training side is the cohort.")
    ] = None
    scorer: ScorerOption = "cosine"
    score_set: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="A directory with all scores: a score set of the recipes."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class EvaluationFiles:
    """Where the evaluation trials come from."""

    trials: Annotated[
        list[str] | None,
        _file("Evaluation scores, a file for each of --train in the same order; for embeddings, the trials to score."),
    ] = None
    key: Annotated[list[str] | None, _file("Labels of the evaluation trials, likewise.", "--key", "-k")] = None
    enroll_cohort: Annotated[
        list[str] | None, _file("Cohort scores in a file apart: evaluation enrolments against the cohort's tests.")
    ] = None
    test_cohort: Annotated[list[str] | None, _file("The same: the cohort's enrolments against evaluation tests.")] = (
        None
    )
    enroll_embeddings: Annotated[str | None, _file("Embeddings of the evaluation enrolments.")] = None
    test_embeddings: Annotated[str | None, _file("Embeddings of the evaluation tests; may be the same file.")] = None
    enroll_map: EnrollMap = None


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


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """All options that say where scores come from, and reading them."""

    training: TrainingFiles
    sources: SharedSources
    members: CohortChoices
    reading: ReadingChoices
    evaluation: EvaluationFiles | None = None  #: None if only the training side is wanted
    scale: ScaleChoices | None = None  #: whether and how scores are read in chunks

    def read(self) -> Sides:
        """Read the training side, and the evaluation side if it is wanted."""
        files = self.training
        ways = {"--train": files.train, "--train-embeddings": files.train_embeddings, "--score-set": files.score_set}
        given = [name for name, value in ways.items() if value]
        if len(given) != 1:
            raise InputError("give the training side with one of --train, --train-embeddings and --score-set")
        if given == ["--score-set"]:
            return self._from_score_set()
        if given == ["--train-embeddings"]:
            return self._from_embeddings()
        return self._from_scores()

    def _from_score_set(self) -> Sides:
        self._refuse_others("--score-set", self.training, allowed=("score_set",))
        self._refuse_others("--score-set", self.evaluation, self.sources, self.members, allowed=())
        from evenscore.files import load_score_set

        assert self.training.score_set is not None  # noqa: S101
        if self.scale is not None and self.scale.given:
            raise InputError("a score set is read as a whole; leave out --workers, --scheduler and --memory-limit")
        found = load_score_set(self.training.score_set)
        return list(found.development), list(found.evaluation)

    def _from_scores(self) -> Sides:
        self._refuse_others("--train", self.training, allowed=_OF_TRAINING_SCORES)
        self._refuse_others("--train", self.evaluation, self.members, allowed=_OF_SCORES)
        from evenscore.cli.compare_scores import ScoreFiles, blocks_from_scores
        from evenscore.cli.labelled import LabelSources

        files, trials = self.training, self.evaluation
        if trials is not None and not trials.trials:
            raise InputError("there are no evaluation trials; give their scores with --trials")
        lists = {name: getattr(files, name) or () for name in ("train", "train_key", "cohort", *_TRAINING_BLOCKS)}
        if trials is not None:
            lists |= {name: getattr(trials, name) or () for name in _OF_SCORES}
        found = ScoreFiles(
            **lists,
            cohort_key=files.cohort_key,
            speakers=self.sources.speakers,
            train_speakers=self.sources.train_speakers,
            cohort_speakers=self.sources.cohort_speakers,
            labels=LabelSources(
                unmatched=self.reading.unmatched.value,
                phrase_from=self.sources.phrase_from,
            ),
            scale=self._chunks(*(path for paths in lists.values() for path in paths)),
        )
        return blocks_from_scores(found)

    def _chunks(self, *paths: str) -> ScaleChoices | None:
        """Return how scores are read in chunks, if they are."""
        return self.scale if self.scale is not None and self.scale.in_chunks(*paths) else None

    def _from_embeddings(self) -> Sides:
        from evenscore.cli.compare_embeddings import VectorFiles, blocks_from_embeddings

        files, trials = self.training, self.evaluation or EvaluationFiles()
        self._refuse_others("--train-embeddings", files, allowed=_OF_TRAINING_EMBEDDINGS)
        self._refuse_others("--train-embeddings", trials, allowed=_OF_EMBEDDINGS)
        if files.cohort_embeddings is None:
            self._refuse_others("a cohort that is the training side", self.members, allowed=())
        for name in ("trials", "key"):
            if len(getattr(trials, name) or ()) > 1:
                raise InputError(f"with embeddings one file of --{name} is enough; give one")
        if self.evaluation is not None and (trials.enroll_embeddings is None or trials.test_embeddings is None):
            raise InputError("embeddings of both evaluation sides are needed: --enroll-embeddings, --test-embeddings")
        assert files.train_embeddings is not None  # noqa: S101
        found = VectorFiles(
            train=files.train_embeddings,
            enroll=trials.enroll_embeddings,
            test=trials.test_embeddings,
            cohort=files.cohort_embeddings,
            trials=next(iter(trials.trials or ()), None),
            key=next(iter(trials.key or ()), None),
            enroll_map=trials.enroll_map,
            speakers=self.sources.speakers,
            train_speakers=self.sources.train_speakers,
            cohort_speakers=self.sources.cohort_speakers,
            phrase_from=self.sources.phrase_from,
            unmatched=self.reading.unmatched.value,
            members=self.members,
        )
        scale = self.scale if self.scale is not None and self.scale.given else None
        return blocks_from_embeddings(found, scorer_of(files.scorer), scale)

    def _refuse_others(self, way: str, *records: Any, allowed: tuple[str, ...]) -> None:
        """Refuse options that have no meaning with this way to give the scores."""
        for record in records:
            for field in fields(record) if record is not None else ():
                if field.name not in allowed and getattr(record, field.name) != field.default:
                    raise InputError(f"{option_name(field.name)} has no meaning with {way}; leave it out")


_TRAINING_BLOCKS = ("train_enroll_cohort", "train_test_cohort")
_OF_TRAINING_SCORES = ("train", "train_key", "cohort", "cohort_key", *_TRAINING_BLOCKS)
_OF_TRAINING_EMBEDDINGS = ("train_embeddings", "cohort_embeddings", "scorer")
_OF_SCORES = ("trials", "key", "enroll_cohort", "test_cohort")
_OF_EMBEDDINGS = ("trials", "key", "enroll_embeddings", "test_embeddings", "enroll_map")
