"""Options for scores that are made from embeddings, and the scorer that they name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.sources import Scorer

__all__ = ["EnrollMap", "ScorerOption", "scorer_of"]

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
