"""Options for scores that are made from embeddings, and the scorer that they name."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore.cli.option_records import option_name
from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.sources import Scorer

__all__ = ["EmbeddingChoices", "EnrollMap", "ScorerOption", "TrainingChoices", "scorer_of"]

SCORERS = {"cosine": "center", "dot": "center", "plda": "model"}  # and the file that each may name


ScorerOption = Annotated[
    str,
    typer.Option(
        "--scorer",
        metavar="NAME[:OPTION=FILE]",
        help="How two embeddings make a score: cosine, dot, or plda:model=FILE, trained by 'evenscore plda'. With "
        "cosine:center=FILE the mean of these embeddings is subtracted first; so with dot.",
        autocompletion=lambda incomplete: [name for name in SCORERS if name.startswith(incomplete)],
    ),
]
EnrollMap = Annotated[
    str | None,
    typer.Option(
        "--enroll-map",
        metavar="FILE[:length_norm=WHEN]",
        help="Enrolments of several utterances, as in spk2utt: a model and its utterances per line. Their vectors are "
        "brought to length 1 before they are averaged, after it, or both.",
    ),
]


def _file(meaning: str) -> Any:
    return typer.Option(metavar="FILE", help=meaning)


@dataclass(frozen=True, kw_only=True)
class EmbeddingChoices:
    """Embeddings in place of scores, and how they make scores."""

    enroll_embeddings: Annotated[str | None, _file("Embeddings of the enrolments, in place of SCORES.")] = None
    test_embeddings: Annotated[str | None, _file("Embeddings of the tests; may be the same file.")] = None
    enroll_map: EnrollMap = None
    scorer: ScorerOption = "cosine"

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


def scorer_of(text: str) -> Scorer:
    """Return the scorer that a text names, such as ``plda:model=FILE``; names of files may have colons."""
    from evenscore.files import read_embeddings
    from evenscore.files.models import load_plda
    from evenscore.sources import Cosine, DotProduct

    name, *pieces = re.split(r":(?=model=|center=)", text)
    if name not in SCORERS:
        raise InputError(f"{text!r} is no scorer; choose {', '.join(SCORERS)}, or plda:model=FILE")
    files = dict(piece.split("=", 1) for piece in pieces)
    if set(files) - {SCORERS[name]}:
        raise InputError(f"the scorer {text!r}: {name} has no other option than {SCORERS[name]}=FILE; leave it out")
    if name == "plda":
        if "model" not in files:
            raise InputError("--scorer plda needs a trained PLDA; give plda:model=FILE (made by 'evenscore plda')")
        return load_plda(files["model"])
    mean = read_embeddings(files["center"]).vectors.mean(axis=0, dtype=float) if files else None
    return Cosine(mean=mean) if name == "cosine" else DotProduct(mean=mean)
