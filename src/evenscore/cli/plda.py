"""``evenscore plda``: train the PLDA that --scorer plda uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from evenscore.cli import options as opt
from evenscore.cli.output import print_lines, progress_bar
from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.plda import PLDAFit

__all__ = ["EXAMPLES", "plda"]

EXAMPLES = """
evenscore plda train.npz -o plda.json
evenscore plda xvector.scp --speakers utt2spk --lda-dim 150 -o plda.json
"""


def plda(
    embeddings: Annotated[str, typer.Argument(metavar="FILE", help="Training embeddings; '-' is standard input.")],
    output: opt.Output,
    speakers: Annotated[str | None, opt.file("Map from id to speaker, if the embeddings have none.")] = None,
    lda_dim: Annotated[
        int | None, typer.Option(min=1, metavar="D", help="Keep the D directions that tell most speakers.")
    ] = None,
    whiten: Annotated[bool, typer.Option("--whiten", help="Whiten the within-speaker covariance first.")] = False,
    center: Annotated[bool, typer.Option("--center/--no-center", help="Subtract the mean first.")] = True,
    length_normalize: Annotated[
        bool, typer.Option("--length-norm/--no-length-norm", help="Bring vectors to length 1 before the model.")
    ] = True,
    training: Annotated[
        Literal["em", "moments"], typer.Option(help="Maximum likelihood by EM, or moments in closed form.")
    ] = "em",
    shrinkage: Annotated[
        str,
        typer.Option(
            metavar="auto|SHARE",
            help="Share of the covariances that equal variances replace, as few speakers need it: from 0 to below 1, "
            "or what left-out training speakers advise.",
        ),
    ] = "auto",
) -> None:
    """Train two-covariance PLDA on embeddings with known speakers, and write it to a JSON file.

    Its scores are log-likelihood ratios; 'evenscore fit' and 'evenscore normalize' use it with --scorer plda. The file
    remembers how it was trained, so that --scorer plda:model=FILE:train=FILE can train it by folds of speakers.
    """
    from evenscore.cli.labelled import with_map
    from evenscore.files import read_embeddings, read_speakers
    from evenscore.files.models import save_plda
    from evenscore.plda import fit_plda

    with progress_bar() as progress:
        progress("reading", 0.0)
        vectors = read_embeddings(embeddings)
        if speakers is not None:
            vectors = with_map(vectors, (speakers, read_speakers(speakers)), "embedding")
        recipe: dict[str, Any] = {
            "center": center,
            "lda_dim": lda_dim,
            "whiten": whiten,
            "length_normalize": length_normalize,
            "method": training,
        }
        fit = fit_plda(vectors, **recipe, shrinkage=_share(shrinkage), progress=progress)
    recipe |= {"shrinkage": fit.shrinkage, "inflation": fit.inflation}
    save_plda(fit.model, output, info={"recipe": recipe})
    if output != "-":
        print_lines(_told(fit))


def _share(text: str) -> Any:
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise InputError(f"--shrinkage is {text!r}, but must be auto or a number from 0 to below 1") from None


def _told(fit: PLDAFit) -> list[str]:
    end = "converged" if fit.converged else "not converged"
    lines = [
        f"PLDA of dimension {len(fit.model.mean)}, {end} after {fit.n_iter} iterations",
        f"shrinkage {fit.shrinkage:g}, covariances times {fit.inflation:.3g}",
    ]
    if not fit.converged:
        lines.append("! the last iterations still gained; few speakers for so many dimensions need --shrinkage auto")
    return lines
