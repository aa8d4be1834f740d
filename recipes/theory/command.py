"""``python -m recipes.theory``: what the theory says of ideal scores and of broken assumptions, shown."""

from __future__ import annotations

import json as json_format
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore import FileError
from evenscore.cli import options as opt
from evenscore.cli.app import program
from evenscore.cli.output import print_json, print_lines, print_table, progress_bar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from evenscore.files import ScoreSet
    from evenscore.progress import Progress
    from recipes.theory.calibration import Checked
    from recipes.theory.ideal import Ideal

__all__ = ["APP", "EXAMPLES", "theory"]

EXAMPLES = """
python -m recipes.theory -o theory/              # about two minutes
python -m recipes.theory -o theory/ --quick      # a small version
python -m recipes.theory -o theory/ --break little-data --seeds 10
python -m recipes.theory -o theory/ --scores real-scores/
"""

_FULL_SEEDS, _QUICK_SEEDS, _QUICK_LEVELS = 5, 2, (0, 2, 4)
_SIZES = {"dependence": (8.5, 7.0), "killer": (8.0, 3.2), "broken": (11.0, 7.0), "gain": (11.0, 7.0)}
_SIZES |= {"calibration": (10.5, 4.4)}
_ENDINGS = ("svg", "png")


def theory(
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="Directory for the results; made if it is not there.")
    ],
    breaks: Annotated[
        list[str] | None,
        typer.Option("--break", metavar="NAME", help="Break this assumption only; may be repeated. All by default."),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", min=2, metavar="N", help="Draw everything anew N times; 5 by default.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="NUMBER", help="The first seed.")] = 1,
    scores: Annotated[
        str | None,
        typer.Option(
            "--scores", metavar="DIR", help="A saved score set for the calibration plot, in place of AudioMNIST."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few speakers and seeds: seconds instead of minutes.")] = False,
    json: opt.Json = False,
) -> None:
    """Show where score normalization cannot help, and where it can.

    Draws embeddings from a known model. Scored with that model, the scores are log-likelihood ratios and no norm gains
    anything; then each assumption is broken, by more and more: approximation, little-data, scaled-noise,
    rotated-noise, session-shift, other-session. Checks the calibration of the score model on scores drawn from it and
    on real ones, by default those of AudioMNIST that come with evenscore.

    Writes results.json, norms.csv, the tables as Markdown, figures (SVG and PNG) and the page index.md.
    """
    from recipes.theory.breaks import BREAKS, break_named
    from recipes.theory.ideal import run_ideal
    from recipes.theory.world import Sizes

    names = [break_named(name).name for name in dict.fromkeys(breaks or BREAKS)]
    real = _real_scores(scores)
    _require_packages()
    folder = _made(output)
    count = (_QUICK_SEEDS if quick else _FULL_SEEDS) if seeds is None else seeds
    with progress_bar() as progress:
        found = run_ideal(
            sizes=Sizes(development=24, evaluation=24) if quick else Sizes(),
            breaks=names,
            seeds=range(seed, seed + count),
            levels=_QUICK_LEVELS if quick else None,
            replicates=100 if quick else 500,
            progress=progress,
        )
        checked = _checked(real, seed, quick, progress)
        results = _write_results(folder, found, checked)
        _draw_figures(folder, found, checked, progress)
    if json:
        print_json(results)
    else:
        _print_findings(folder, found)


APP = program("theory", theory, EXAMPLES)


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


def _require_packages() -> None:
    """Fail now rather than after the work if graphs or figures cannot be made."""
    from evenscore.plot.style import require_matplotlib
    from recipes.theory.dependence import score_graph

    score_graph()
    require_matplotlib()


def _real_scores(directory: str | None) -> ScoreSet:
    from evenscore import load_audiomnist_scores
    from evenscore.files import load_score_set

    return load_audiomnist_scores() if directory is None else load_score_set(directory)


def _checked(real: ScoreSet, seed: int, quick: bool, progress: Progress) -> dict[str, Checked]:
    from recipes.theory.calibration import MODEL, check_calibration, model_scores

    drawn = model_scores(seed=seed, speakers=60, sets=1) if quick else model_scores(seed=seed)
    return {
        "Scores drawn from the score model": check_calibration(*drawn, truth=MODEL, progress=progress),
        "Real scores": check_calibration(real.development, real.evaluation, progress=progress),
    }


def _write_results(folder: Path, found: Ideal, checked: Mapping[str, Checked]) -> dict[str, Any]:
    from recipes.theory.page import ideal_page
    from recipes.theory.tables import as_csv, as_json, rows_of, tables_of

    results = as_json(found, checked)
    _write(folder / "results.json", json_format.dumps(results, indent=1, allow_nan=False) + "\n")
    _write(folder / "norms.csv", as_csv(rows_of(found)))
    for name, table in tables_of(found, checked).items():
        _write(folder / f"{name}.md", table + "\n")
    _write(folder / "index.md", ideal_page(found, checked))
    return results


def _write(path: Path, text: str) -> None:
    from evenscore.files.streams import atomic_output

    with atomic_output(path) as stream:
        stream.write(text.encode())


def _draw_figures(folder: Path, found: Ideal, checked: Mapping[str, Checked], progress: Progress) -> None:
    from evenscore.plot import figure_style, save_figure
    from recipes.theory.dependence_figure import draw_dependence
    from recipes.theory.figures import draw_broken, draw_calibration, draw_gain, draw_killer

    drawings: dict[str, Callable[[Figure], None]] = {
        "dependence": draw_dependence,
        "killer": lambda figure: draw_killer(figure, found),
        "calibration": lambda figure: draw_calibration(figure, checked),
    }
    if found.broken:
        drawings["broken"] = lambda figure: draw_broken(figure, found)
        drawings["gain"] = lambda figure: draw_gain(figure, found)
    with figure_style():
        from matplotlib.figure import Figure

        for place, (name, draw) in enumerate(drawings.items()):
            progress("drawing", place / len(drawings))
            figure = Figure(figsize=_SIZES[name])
            draw(figure)
            for ending in _ENDINGS:
                save_figure(figure, folder / f"{name}.{ending}", dpi=150)


def _print_findings(folder: Path, found: Ideal) -> None:
    from recipes.theory.ideal import METRICS, ORACLE
    from recipes.theory.page import killer_verdict, mismatch_verdict
    from recipes.theory.tables import TITLES

    rows = []
    for name, values in found.killer.values.items():
        if name == ORACLE:
            continue
        change = found.killer.differences[name]["cllr"]
        shown = [f"{100 * values['eer'].value:.2f} %", *(f"{values[metric].value:.3f}" for metric in METRICS[1:])]
        rows.append((TITLES[name], *shown, f"{change.value:+.3f} [{change.low:+.3f}, {change.high:+.3f}]"))
    print_table(rows, header=("Ideal scores", "EER", "min DCF", "Cllr", "min Cllr", "Cllr - raw"), numbers=True)
    print_lines(["", killer_verdict(found), ""])
    print_lines([f"{name}: {mismatch_verdict(found, name)}" for name in found.broken])
    print_lines(["", f"{folder / 'index.md'} has it all."])
