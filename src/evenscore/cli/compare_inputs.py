"""The options that say where `evenscore compare` and `choose-cohort` find their scores, and reading them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from evenscore.cli import options as opt
from evenscore.cli.norm_options import CohortChoices, EnrollMap, ScorerOption
from evenscore.cli.option_records import given_options
from evenscore.cli.scale_options import ScaleChoices
from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.tables import LabelledBlocks

__all__ = ["EvaluationScores", "EvaluationVectors", "Facts", "Inputs", "Sides", "TrainingScores", "TrainingVectors"]

Sides = tuple["list[LabelledBlocks]", "list[LabelledBlocks]"]  #: training and evaluation, a part for each condition
_VECTORS = "Embeddings in place of scores"


def _file(meaning: str, *names: str) -> Any:
    return typer.Option(*names, metavar="FILE", help=meaning)


@dataclass(frozen=True, kw_only=True)
class TrainingScores:
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
            "All scores in which cohort members stand, in one file or several: of enrolments against them, of them "
            "against tests, and of them against each other. Ids tell which is which. Without, the training side is "
            "the cohort."
        ),
    ] = None
    speakers: Annotated[str | None, _file("Map from id to speaker, for all who have no map of their own.")] = None


@dataclass(frozen=True, kw_only=True)
class EvaluationScores:
    """Where the evaluation trials and their cohort scores come from."""

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


@dataclass(frozen=True, kw_only=True)
class TrainingVectors(CohortChoices):
    """Embeddings of the training side and of the cohort."""

    PANEL: ClassVar[str] = _VECTORS

    train_embeddings: Annotated[str | None, _file("Embeddings of the training side.")] = None
    cohort_embeddings: Annotated[
        str | None, _file("Embeddings of the cohort; without, the training side is the cohort.")
    ] = None
    scorer: ScorerOption = "cosine"


@dataclass(frozen=True, kw_only=True)
class EvaluationVectors:
    """Embeddings of the evaluation trials."""

    PANEL: ClassVar[str] = _VECTORS

    enroll_embeddings: Annotated[str | None, _file("Embeddings of the evaluation enrolments.")] = None
    test_embeddings: Annotated[str | None, _file("Embeddings of the evaluation tests; may be the same file.")] = None
    enroll_map: EnrollMap = None


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What else is known about scores and embeddings."""

    PANEL: ClassVar[str] = "Speakers, phrases and keys"

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
    unmatched: opt.OnUnmatched = opt.Unmatched.error


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """All options that say where scores come from, and reading them."""

    training: TrainingScores
    training_vectors: TrainingVectors
    facts: Facts
    evaluation: EvaluationScores | None = None  #: None, like the next, if only the training side is wanted
    evaluation_vectors: EvaluationVectors | None = None
    scale: ScaleChoices | None = None  #: whether and how scores are read in chunks

    def read(self) -> Sides:
        """Read the training side, and the evaluation side if it is wanted."""
        vectors = self.training_vectors
        if bool(self.training.train) == bool(vectors.train_embeddings):
            raise InputError("give the training side with one of --train and --train-embeddings")
        if self.training.train:
            from evenscore.cli.compare_scores import sides_from_scores

            _refuse("--train", vectors, self.evaluation_vectors)
            if self.evaluation is not None and not self.evaluation.trials:
                raise InputError("there are no evaluation trials; give their scores with --trials")
            return sides_from_scores(self)
        from evenscore.cli.compare_embeddings import sides_from_embeddings

        _refuse("--train-embeddings", self.training, self.evaluation, but=("--speakers", "--trials", "--key"))
        if vectors.cohort_embeddings is None:
            allowed = ("--train-embeddings", "--scorer")
            _refuse("a cohort that is the training side", vectors, but=allowed)
        return sides_from_embeddings(self)


def _refuse(way: str, *records: Any, but: tuple[str, ...] = ()) -> None:
    """Refuse options that have no meaning with this way to give the scores."""
    odd = [name for record in records if record is not None for name in given_options(record) if name not in but]
    if odd:
        raise InputError(f"{odd[0]} has no meaning with {way}; leave it out")
