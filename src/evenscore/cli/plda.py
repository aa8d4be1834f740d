"""``evenscore plda``: train the PLDA that --scorer plda uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from evenscore.cli import options as opt
from evenscore.cli.output import check_output, print_lines, progress_bar
from evenscore.errors import InputError
from evenscore.spelling import checked_options, name_and_options

if TYPE_CHECKING:
    from evenscore.plda import PLDAFit
    from evenscore.progress import Progress
    from evenscore.tables import Embeddings

__all__ = ["EXAMPLES", "Shrinkage", "plda", "share_of", "training_embeddings"]

EXAMPLES = """
evenscore plda train.npz -o plda.json
evenscore plda xvector.scp --speakers utt2spk --lda-dim 150 -o plda.json
evenscore plda new.npz --adapt plda.json -o adapted.json
evenscore plda new.npz --adapt plda.json --adaptation coral+ -o adapted.json
"""


Shrinkage = Annotated[
    str,
    typer.Option(
        metavar="auto|SHARE",
        help="Share of the covariances that equal variances replace, as few speakers need it: from 0 to 0.999, or "
        "what left-out training speakers advise.",
    ),
]
_ADAPTATION = {"within": float, "between": float, "mean_shift": float}


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
    shrinkage: Shrinkage = "auto",
    adapt: Annotated[
        str | None, opt.file("A PLDA, of this program or of Kaldi, to be adapted in place of training one.")
    ] = None,
    adaptation: Annotated[
        str,
        typer.Option(
            metavar="NAME[:OPTION=VALUE]",
            help="How it is adapted, without speakers: kaldi (with within=0.3, between=0.7, mean_shift=1) or coral+ "
            "(with within=0.8, between=0.8).",
        ),
    ] = "kaldi",
) -> None:
    """Train two-covariance PLDA on embeddings with known speakers, and write it to a JSON file.

    Its scores are log-likelihood ratios; 'evenscore fit' and 'evenscore normalize' use it with --scorer plda. The file
    remembers how it was trained, so that --scorer plda:model=FILE:train=FILE can train it by folds of speakers. With
    --adapt, a PLDA is adapted to the domain of the embeddings, whose speakers need not be known.
    """
    from evenscore.files.models import save_plda
    from evenscore.plda import fit_plda

    check_output(output)
    if adapt is not None:
        _adapt(adapt, embeddings, adaptation, output)
        return
    with progress_bar() as progress:
        vectors = training_embeddings(embeddings, speakers, progress)
        recipe: dict[str, Any] = {
            "center": center,
            "lda_dim": lda_dim,
            "whiten": whiten,
            "length_normalize": length_normalize,
            "method": training,
        }
        fit = fit_plda(vectors, **recipe, shrinkage=share_of(shrinkage), progress=progress)
    recipe |= {"shrinkage": fit.shrinkage, "inflation": fit.inflation}
    save_plda(fit.model, output, info={"recipe": recipe})
    if output != "-":
        print_lines(_told(fit))


def training_embeddings(path: str, speakers: str | None, progress: Progress) -> Embeddings:
    """Read what is trained on, with its speakers."""
    from evenscore.cli.labelled import with_map
    from evenscore.files import read_embeddings, read_speakers

    progress("reading", 0.0)
    vectors = read_embeddings(path)
    return vectors if speakers is None else with_map(vectors, (speakers, read_speakers(speakers)), "embedding")


def share_of(text: str) -> Any:
    """Return the share that an option names, or auto."""
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise InputError(f"--shrinkage is {text!r}, but must be auto or a number from 0 to 0.999") from None


def _adapt(path: str, embeddings: str, adaptation: str, output: str) -> None:
    from evenscore.files import read_embeddings
    from evenscore.files.kaldi_objects import is_kaldi_plda
    from evenscore.files.models import load_plda, save_plda
    from evenscore.files.vector_records import PLDA_MODEL
    from evenscore.plda import adapt_plda

    method, given = name_and_options(adaptation, "adaptation")
    how: dict[str, Any] = checked_options("an adaptation", given, _ADAPTATION)
    recipe = {} if is_kaldi_plda(path) else PLDA_MODEL.read(path).info.get("recipe", {})
    inflation = recipe.get("inflation", 1.0) if isinstance(recipe, dict) else 1.0
    if not isinstance(inflation, int | float) or not inflation > 0:
        raise InputError(f"{path}: the inflation of its recipe is {inflation!r}, but must be a number above 0")
    vectors = read_embeddings(embeddings)
    adapted = adapt_plda(load_plda(path), vectors, method=method, **how, inflation=inflation)  # type: ignore[arg-type]
    save_plda(adapted, output, info={"adapted": {"method": method, **how}})
    if output != "-":
        print_lines([f"PLDA of dimension {len(adapted.mean)}, adapted to {len(vectors)} embeddings by {method}"])


def _told(fit: PLDAFit) -> list[str]:
    end = "converged" if fit.converged else "not converged"
    lines = [
        f"PLDA of dimension {len(fit.model.mean)}, {end} after {fit.n_iter} iterations",
        f"shrinkage {fit.shrinkage:g}, covariances times {fit.inflation:.3g}",
    ]
    if not fit.converged:
        lines.append("! the last iterations still gained; few speakers for so many dimensions need --shrinkage auto")
    return lines
