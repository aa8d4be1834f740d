"""``evenscore plda``: train the PLDA that ``--scorer plda:model=FILE`` uses, or adapt one."""

from __future__ import annotations

from typing import Annotated

import typer

from evenscore.cli.options import Output, file_option

__all__ = ["EXAMPLES", "plda"]

EXAMPLES = """
evenscore plda train.npz -o plda.json
evenscore plda xvector.scp --speakers utt2spk --lda-dim 150 -o plda.json
evenscore plda new.npz --adapt plda.json -o adapted.json
"""


def plda(
    embeddings: Annotated[str, typer.Argument(metavar="FILE", help="Training embeddings; '-' is standard input.")],
    output: Output,
    speakers: Annotated[str | None, file_option("Speakers by id, if the embeddings have none.")] = None,
    lda_dim: Annotated[
        int | None, typer.Option(metavar="D", help="Directions to keep in which speakers differ.")
    ] = None,
    length_norm: Annotated[bool, typer.Option("--length-norm/--no-length-norm", help="Scale to length 1.")] = True,
    shrinkage: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of the covariances that equal variances replace.")
    ] = 0.0,
    adapt: Annotated[str | None, file_option("A PLDA, of this program or of Kaldi, to adapt instead.")] = None,
) -> None:
    """Train two-covariance PLDA on embeddings with known speakers, by EM, and write it to a JSON file.

    Its scores are log-likelihood ratios. Few speakers in many dimensions need --lda-dim or --shrinkage. With --adapt, a
    PLDA is adapted to the domain of the embeddings, in Kaldi's way; their speakers need not be known.
    """
    from evenscore.files import read_embeddings, read_model, read_speakers, write_model
    from evenscore.scoring import PLDA, adapt_plda, fit_plda

    vectors = read_embeddings(embeddings)
    if adapt is not None:
        adapted = adapt_plda(read_model(adapt, PLDA), vectors)
        write_model(adapted, output, info={"adapted": adapt, "embeddings": len(vectors)})
        typer.echo(f"PLDA of dimension {len(adapted.mean)}, adapted to {len(vectors)} embeddings", err=output == "-")
        return
    if speakers is not None:
        vectors = vectors.with_speakers(read_speakers(speakers))
    how = {"lda_dim": lda_dim, "length_normalize": length_norm, "shrinkage": shrinkage}
    fit = fit_plda(vectors, **how)  # type: ignore[arg-type]
    write_model(fit.model, output, info=how | {"log_likelihood": fit.log_likelihood[-1]})
    end = "converged" if fit.converged else "not converged; few speakers for so many dimensions need --shrinkage"
    steps = len(fit.log_likelihood) - 1
    typer.echo(f"PLDA of dimension {len(fit.model.mean)}, {steps} iterations, {end}", err=output == "-")
