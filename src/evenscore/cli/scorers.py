"""Options for scores that are made from embeddings, and the scorer that they name."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.sources import Scorer

__all__ = ["Center", "PldaFile", "ScorerName", "ScorerOption", "scorer_of"]


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
