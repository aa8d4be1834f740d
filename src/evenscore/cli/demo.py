"""``evenscore demo``: compare all norms on real scores that come with the package, and on simulated ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from evenscore.cli.options import Json

if TYPE_CHECKING:
    from evenscore.data.blocks import LabelledBlocks

    Sides: TypeAlias = tuple[list[LabelledBlocks], list[LabelledBlocks]]  # training and evaluation

__all__ = ["EXAMPLES", "demo"]

EXAMPLES = """
evenscore demo
evenscore demo -o look-here --methods raw,s,lgsm
"""
_SCORES = Path(__file__).parent.parent / "data" / "audiomnist_gmm"
_TITLES = {
    "audiomnist": "Real scores: spoken digits of AudioMNIST, a text-dependent recognizer (GMM-UBM)",
    "simulated": "Simulated scores, drawn from the score model",
}


def demo(
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="Directory for two reports and all results.")
    ] = "evenscore-demo",
    methods: Annotated[
        str, typer.Option(metavar="NAMES", help="Norms between commas, as in 'evenscore compare'.")
    ] = "raw,z,t,zt,s,as,lgsm,evidence",
    bootstrap: Annotated[int, typer.Option(min=1, metavar="N", help="Draws of speakers for intervals.")] = 200,
    seed: Annotated[int, typer.Option(min=0, metavar="NUMBER", help="Other simulated scores.")] = 1,
    json: Json = False,
) -> None:
    """Compare all norms on real scores that come with evenscore, and on simulated ones.

    This is 'evenscore compare' twice: every method is trained and calibrated on the scores of some speakers, and judged
    on trials of others.
    """
    import json as json_format

    from evenscore.cli.app import progress_bar
    from evenscore.cli.compare import print_comparison, write_results
    from evenscore.comparison import compare
    from evenscore.comparison.folder import check_folder

    folder = check_folder(output)
    folder.mkdir(exist_ok=True)
    names = [name.strip() for name in methods.split(",") if name.strip()]
    found = {}
    for title, sides in (("audiomnist", _read_audiomnist()), ("simulated", _simulate(seed))):
        with progress_bar(title) as bar:
            found[title] = compare(*sides, names, bootstrap=bootstrap, command="evenscore demo", progress=bar)
        write_results(found[title], folder / title)
        if not json:
            typer.echo(f"{_TITLES[title]}\n")
            print_comparison(found[title])
            typer.echo(f"Report: {folder / title / 'report.html'}\n")
    if json:
        typer.echo(json_format.dumps({title: one.to_dict() for title, one in found.items()}, indent=1))
    else:
        typer.echo("Your own scores: evenscore compare --help")


def _read_audiomnist() -> Sides:
    """Return ten digits, each a condition: trials of 20 speakers, with 20 others to train on, who are the cohort."""
    from evenscore.data import LabelledBlocks, Labels, ScoreBlocks
    from evenscore.files import read_scores, read_speakers

    scores, role = read_scores(_SCORES / "scores.npz").to_matrix(), read_speakers(_SCORES / "speakers.set")
    speaker = {name: name.partition("-")[0] for name in (*scores.enroll_ids, *scores.test_ids)}
    scores = scores.with_speakers(speaker, speaker)
    training, evaluation = [], []
    for digit in "0123456789":
        old, new = (
            [
                [name for name in ids if name.split("-")[1] == digit and role[speaker[name]] == wanted]
                for ids in (scores.enroll_ids, scores.test_ids)
            ]
            for wanted in ("development", "evaluation")
        )
        own = LabelledBlocks.own_cohort(scores.select(*old), name=digit)
        trials = scores.select(*new)
        blocks = ScoreBlocks(trials, scores.select(new[0], old[1]), scores.select(old[0], new[1]), own.blocks.cohort)
        training.append(own)
        evaluation.append(LabelledBlocks(blocks, Labels.from_speakers(trials.enroll, trials.test), digit))
    return training, evaluation


def _simulate(seed: int) -> Sides:
    """Draw scores of 60 speakers to train on, who are the cohort too, and trials of 60 others."""
    import numpy as np

    from evenscore.data import LabelledBlocks
    from evenscore.model import ScoreModel, simulate_blocks

    model = ScoreModel(
        mu=np.array([-2.0, 2.5]),
        alpha=np.array([[0.9, 0.0], [0.7, 0.5]]),
        beta=np.array([[0.8, 0.0], [0.6, -0.5]]),
        sigma2=np.array([1.0, 1.5]),
    )
    known, new = ([f"{group}{number:02d}" for number in range(60)] for group in ("known", "new"))
    four = [[name for name in names for _ in range(4)] for names in (new, known)]
    blocks, labels = simulate_blocks(model, new, four[0], known, four[1], seed=seed)
    assert blocks.cohort is not None  # noqa: S101
    return [LabelledBlocks.own_cohort(blocks.cohort, blocks.cohort_labels)], [LabelledBlocks(blocks, labels)]
