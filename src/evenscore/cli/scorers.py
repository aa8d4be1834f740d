"""Options for scores that are made from embeddings, and the scorer that they name."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore.cli.cohort_options import LengthNorm
from evenscore.cli.option_records import option_name
from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.sources import Scorer

__all__ = ["Center", "EmbeddingChoices", "PldaFile", "ScorerName", "ScorerOption", "TrainingChoices", "scorer_of"]


class ScorerName(str, Enum):
    """Ways to make a score from two embeddings."""

    cosine = "cosine"
    dot = "dot"
    plda = "plda"


ScorerOption = Annotated[ScorerName, typer.Option("--scorer", help="How two embeddings make a score.")]
PldaFile = Annotated[
    str | None, typer.Option("--plda", metavar="FILE", help="PLDA model, for --scorer plda; see 'evenscore plda'.")
]
Center = Annotated[
    str | None,
    typer.Option(
        "--center", metavar="FILE", help="Embeddings whose mean is subtracted first, for --scorer cosine and dot."
    ),
]


def _file(meaning: str) -> Any:
    return typer.Option(metavar="FILE", help=meaning)


@dataclass(frozen=True, kw_only=True)
class EmbeddingChoices:
    """Embeddings in place of scores, and how they make scores."""

    enroll_embeddings: Annotated[str | None, _file("Embeddings of the enrolments, in place of SCORES.")] = None
    test_embeddings: Annotated[str | None, _file("Embeddings of the tests; may be the same file.")] = None
    enroll_map: Annotated[
        str | None,
        _file("Enrolments of several utterances, as in spk2utt: a model and its utterances per line."),
    ] = None
    enroll_length_norm: Annotated[
        LengthNorm,
        typer.Option(help="Bring their vectors to length 1 before they are averaged, after it, or both."),
    ] = LengthNorm.none
    scorer: ScorerOption = ScorerName.cosine
    plda: PldaFile = None
    center: Center = None

    @property
    def sides(self) -> tuple[str, str] | None:
        """The files of enrolments and of tests, None if there are none."""
        if self.enroll_embeddings is None and self.test_embeddings is None:
            return None
        if self.enroll_embeddings is None or self.test_embeddings is None:
            raise InputError("embeddings of both sides are needed; give --enroll-embeddings and --test-embeddings")
        return self.enroll_embeddings, self.test_embeddings

    def check(self, training: TrainingChoices | None = None) -> None:
        """Refuse options that have no meaning without others."""
        trained = training is not None and training.sides is not None
        for field in fields(self):
            unused = self.sides is None and (field.name == "enroll_map" or not trained)
            if unused and getattr(self, field.name) != field.default:
                raise InputError(f"{option_name(field.name)} has no meaning without embeddings; leave it out")
        averaged = self.enroll_map is not None or (training is not None and training.train_enroll_map is not None)
        if self.enroll_length_norm is not LengthNorm.none and not averaged:
            raise InputError("--enroll-length-norm is for enrolments of several utterances; give --enroll-map, too")


@dataclass(frozen=True, kw_only=True)
class TrainingChoices:
    """Embeddings in place of training scores."""

    train_embeddings: Annotated[
        str | None,
        _file("Embeddings to train on, in place of --train: each against each other one, or the trials of the key."),
    ] = None
    train_test_embeddings: Annotated[str | None, _file("Those of the training tests, if they are in a file apart.")] = (
        None
    )
    train_enroll_map: Annotated[str | None, _file("Training enrolments of several utterances, as in spk2utt.")] = None

    @property
    def sides(self) -> tuple[str, str] | None:
        """The files of enrolments and of tests, None if there are none."""
        if self.train_embeddings is None:
            for field in fields(self):
                if getattr(self, field.name) is not None:
                    raise InputError(f"{option_name(field.name)} has no meaning without --train-embeddings; give both")
            return None
        return self.train_embeddings, self.train_test_embeddings or self.train_embeddings


def scorer_of(name: ScorerName, plda: str | None, center: str | None) -> Scorer:
    """Return the scorer that the options ask for."""
    from evenscore.files import read_embeddings
    from evenscore.sources import Cosine, DotProduct

    if name is ScorerName.plda:
        from evenscore.files.models import load_plda

        if plda is None:
            raise InputError("--scorer plda needs a trained PLDA; give --plda FILE (train it with 'evenscore plda')")
        if center is not None:
            raise InputError("a PLDA model subtracts a mean of its own; leave out --center")
        return load_plda(plda)
    if plda is not None:
        raise InputError(f"--plda is for --scorer plda, but the scorer is {name.value}; change one of the two")
    mean = None if center is None else read_embeddings(center).vectors.mean(axis=0, dtype=float)
    return Cosine(mean=mean) if name is ScorerName.cosine else DotProduct(mean=mean)
