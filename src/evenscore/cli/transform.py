"""``evenscore transform``: train what is done to embeddings before the cosine."""

from __future__ import annotations

from typing import Annotated

import typer

from evenscore.cli import options as opt
from evenscore.cli.output import check_output, print_lines, progress_bar
from evenscore.cli.plda import Shrinkage, share_of, training_embeddings

__all__ = ["EXAMPLES", "transform"]

EXAMPLES = """
evenscore transform train.npz -o transform.json
evenscore transform xvector.scp --speakers utt2spk --steps lda:150 -o t.json
"""


def transform(
    embeddings: Annotated[str, typer.Argument(metavar="FILE", help="Training embeddings; '-' is standard input.")],
    output: opt.Output,
    speakers: Annotated[str | None, opt.file("Map from id to speaker, if the embeddings have none.")] = None,
    steps: Annotated[
        str,
        typer.Option(
            metavar="STEP,STEP",
            help="In this order: center, whiten (total covariance I), lda or lda:100 (so many directions in which "
            "speakers differ most, and WCCN), wccn (within-speaker covariance I), length (length 1).",
        ),
    ] = "center,wccn",
    shrinkage: Shrinkage = "auto",
) -> None:
    """Train a transform of embeddings for --scorer cosine:transform=FILE, and write it to a JSON file.

    The file remembers how it was trained, so that cosine:transform=FILE:train=FILE can train it by folds of speakers.
    """
    from evenscore.files.models import save_transform
    from evenscore.scoring import fit_transform

    check_output(output)
    with progress_bar() as progress:
        vectors = training_embeddings(embeddings, speakers, progress)
        wanted = [step.strip() for step in steps.split(",")]
        fit = fit_transform(vectors, wanted, shrinkage=share_of(shrinkage), progress=progress)
    save_transform(fit.transform, output, info={"recipe": {"steps": wanted, "shrinkage": fit.shrinkage}})
    if output != "-":
        sizes = vectors.dim, fit.transform.steps[-1].dim
        print_lines([f"{', '.join(wanted)}: from {sizes[0]} to {sizes[1]} dimensions, shrinkage {fit.shrinkage:g}"])
