"""``evenscore demo``: the main job, on real scores that come with the package and on simulated ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore.cli import options as opt
from evenscore.cli.output import check_output_folder, print_json, print_lines, progress_bar

if TYPE_CHECKING:
    from evenscore.comparison import Comparison
    from evenscore.tables import LabelledBlocks

__all__ = ["EXAMPLES", "demo"]

EXAMPLES = """
evenscore demo
evenscore demo -o look-here --methods raw,s,lgsm
evenscore demo --json
"""

TITLES = {
    "audiomnist": "Real scores: spoken digits of AudioMNIST, our own text-dependent recognizer (GMM-UBM)",
    "simulated": "Simulated scores, drawn from the score model",
}


def demo(
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="Directory for the two reports and all results.")
    ] = "evenscore-demo",
    methods: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Norms between commas, as in 'evenscore compare'.")
    ] = None,
    bootstrap: opt.Bootstrap = "200",
    simulation_seed: Annotated[int, typer.Option(min=0, metavar="N", help="Other simulated scores.")] = 1,
    json: opt.Json = False,
) -> None:
    """Compare all norms on real scores that come with evenscore, and on simulated ones.

    This is 'evenscore compare' twice: every method is trained and calibrated on the scores of some speakers, and judged
    on trials of others. Real and simulated scores differ in what helps; the reports show why. Files that are left of
    an earlier run are used again.
    """
    from evenscore import compare, load_audiomnist_scores, write_report
    from evenscore.cli.compare import listed_methods

    check_output_folder(output)
    chosen, draws, real = listed_methods(methods), opt.Draws.of(bootstrap), load_audiomnist_scores()
    how: dict[str, Any] = {"bootstrap": draws.number, "level": draws.level, "seed": draws.seed}
    scores = {
        "audiomnist": (list(real.development), list(real.evaluation)),
        "simulated": _simulated_scores(simulation_seed),
    }
    found: dict[str, Comparison] = {}
    with progress_bar() as progress:
        for name, sides in scores.items():
            folder = Path(output) / name
            found[name] = compare(*sides, chosen, directory=folder, command="evenscore demo", progress=progress, **how)
            progress("writing the report", 0.0)
            write_report(found[name], folder / "report.html")
    if json:
        print_json({name: comparison.results() for name, comparison in found.items()})
    else:
        _print_story(found, Path(output))


def _simulated_scores(seed: int) -> tuple[list[LabelledBlocks], list[LabelledBlocks]]:
    """Draw scores of 60 speakers to train on, who are the cohort too, and trials of 60 others."""
    from evenscore import LabelledBlocks, ScoreModel, simulate_blocks

    model = ScoreModel(
        mu=[-2.0, 2.5], alpha=[[0.9, 0.0], [0.7, 0.5]], beta=[[0.8, 0.0], [0.6, -0.5]], sigma2=[1.0, 1.5]
    )
    sides = [
        [f"{group}{number:02d}" for number in range(60) for _ in range(each)]
        for group in ("new", "known")
        for each in (1, 4)
    ]
    blocks, labels = simulate_blocks(model, *sides, seed=seed)
    assert blocks.cohort is not None and blocks.cohort_labels is not None  # noqa: S101, PT018
    training = LabelledBlocks.own_cohort(blocks.cohort, blocks.cohort_labels)
    return [training], [LabelledBlocks(blocks, labels)]


def _print_story(found: dict[str, Comparison], output: Path) -> None:
    from evenscore.cli.compare import print_comparison

    for name, comparison in found.items():
        print_lines([TITLES[name], ""])
        print_comparison(comparison)
        print_lines([f"Report: {output / name / 'report.html'}", ""])
    print_lines(["Your own scores: evenscore compare --help"])
