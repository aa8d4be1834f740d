"""``python -m recipes.analysis``: what cohorts, phrases and hidden variables do, on real scores."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore import FileError, InputError
from evenscore.cli.app import program
from evenscore.cli.output import print_lines, print_table, progress_bar

if TYPE_CHECKING:
    from evenscore.files import ScoreSet

__all__ = ["APP", "EXAMPLES", "analysis"]

EXAMPLES = """
python -m recipes.analysis -o out/
python -m recipes.analysis -o out/ --draws 2 --sizes 2,5
python -m recipes.analysis -o out/ --scores my-scores/
"""

_SIZES = "2,3,5,8,12,20"


def analysis(
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="Directory for the results; made if it is not there.")
    ],
    scores: Annotated[
        str | None,
        typer.Option(
            "--scores",
            metavar="DIR",
            help="A saved score set, such as --save-scores of recipes.paper writes, in place of AudioMNIST.",
        ),
    ] = None,
    sizes: Annotated[
        str,
        typer.Option("--sizes", metavar="N,N,...", help="Numbers of cohort speakers; all of them are always one more."),
    ] = _SIZES,
    draws: Annotated[
        int, typer.Option("--draws", min=1, metavar="N", help="How many cohorts of each size are drawn.")
    ] = 20,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="NUMBER", help="Of all that is drawn at random.")] = 0,
) -> None:
    """Look inside the score model and its rivals, on real scores.

    Draws smaller cohorts, leaves out blocks of cohort scores, takes phrases apart, compares what the hidden variables
    are told by the cohort with what the trials show, and looks at residuals and likelihoods. Everything is trained on
    the development scores and measured on the evaluation trials, by default on those of AudioMNIST that come with
    evenscore.

    Writes results.json, the tables as Markdown, figures (SVG) and the page index.md.
    """
    from evenscore.plot.style import require_matplotlib
    from recipes.analysis.run import run_analysis

    require_matplotlib()  # better now than after the work
    numbers = _numbers(sizes)
    given = _scores(scores)
    folder = _made(output)
    with progress_bar() as progress:
        found = run_analysis(given, sizes=numbers, draws=draws, seed=seed, progress=progress)
        progress("drawing", 0.0)
        _write(found, folder)
    _print(found.numbers, folder)


APP = program("analysis", analysis, EXAMPLES)


def _numbers(sizes: str) -> list[int]:
    try:
        numbers = [int(size) for size in sizes.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 2:
        raise InputError(f"--sizes is {sizes!r}, but must be whole numbers from 2, such as 2,5,20")
    return numbers


def _scores(directory: str | None) -> ScoreSet:
    from evenscore import load_audiomnist_scores
    from evenscore.files import load_score_set

    return load_audiomnist_scores() if directory is None else load_score_set(directory)


def _made(output: str) -> Path:
    """Return the directory for the results, after it has been made."""
    from evenscore.files.streams import writing

    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise FileError(output, "a file of this name exists, but several files are to be written; name a directory")
    with writing(output):
        folder.mkdir(exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise FileError(output, "no permission to write there; choose another place")
    return folder


def _write(found: Any, folder: Path) -> None:
    """Write all files; the page that shows them last, so that it is never there without them."""
    from evenscore.files.streams import atomic_output
    from evenscore.plot import save_figure
    from recipes.analysis.figures import analysis_figures
    from recipes.analysis.page import analysis_texts

    for name, figure in analysis_figures(found).items():
        save_figure(figure, folder / name, dpi=150)
    for name, text in analysis_texts(found.numbers).items():
        with atomic_output(folder / name) as stream:
            stream.write(text.encode())


def _print(numbers: dict[str, Any], folder: Path) -> None:
    rows: dict[int, dict[str, str]] = {}
    for row in numbers["sizes"]:
        rows.setdefault(row["size"], {})[row["system"]] = f"{100 * row['eer']['mean']:.2f}"
    names = list(rows[max(rows)])
    lines = [[str(size), *(found.get(name, "–") for name in names)] for size, found in rows.items()]
    print_table(lines, header=["EER (%), speakers", *names], numbers=True)
    print_lines(["", f"wrote {folder / 'index.md'}"])
