"""``python -m recipes.takes``: what known target scores of enrolments are worth, on scores and on speech."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from evenscore import fit_norm, load_audiomnist_scores
from evenscore.cli import options as opt
from evenscore.cli.app import program
from evenscore.cli.output import print_json, print_table, progress_bar
from evenscore.files import load_score_set
from evenscore.progress import Progress
from recipes.takes.known import Outcome, further_takes

__all__ = ["APP", "EXAMPLES", "takes"]

EXAMPLES = """
python -m recipes.takes                           # the bundled scores
python -m recipes.takes --scores real-scores/
python -m recipes.takes --audiomnist AudioMNIST   # the enrolments' own takes, from speech
"""


def takes(
    scores: Annotated[
        str | None, typer.Option("--scores", metavar="DIR", help="A saved score set, in place of the bundled one.")
    ] = None,
    numbers: Annotated[
        str, typer.Option("--numbers", metavar="N,N,...", help="How many further takes of each speaker are known.")
    ] = "0,1,2,3",
    audiomnist: Annotated[
        str | None,
        typer.Option(
            "--audiomnist", metavar="DIR", help="The corpus: leave-one-out scores of the enrolments' own takes."
        ),
    ] = None,
    cache: Annotated[
        str | None, typer.Option("--cache", metavar="DIR", help="Where features are kept for the next run.")
    ] = None,
    residuals: Annotated[
        str, typer.Option("--residuals", metavar="NAME", help="gaussian, as in the paper, or sinh-arcsinh.")
    ] = "gaussian",
    json: opt.Json = False,
) -> None:
    """Show what known target scores of an enrolment are worth to the score model.

    The model is trained on development speakers and judged, by its own log-likelihood ratios, on evaluation speakers.
    Further takes are tests of the same speaker, left out of all trials. From speech, the enrolment's own takes serve:
    each is scored against an enrolment by the others.
    """
    with progress_bar() as progress:
        if audiomnist is not None:
            outcomes = _from_speech(audiomnist, cache, residuals, progress)
        else:
            found = load_audiomnist_scores() if scores is None else load_score_set(scores)
            progress("score model", 0.0)
            model = fit_norm("lgsm", found.development, residuals=residuals).model
            outcomes = further_takes(found, model, [int(number) for number in numbers.split(",")])
    if json:
        print_json([asdict(outcome) for outcome in outcomes])
        return
    rows = [
        [one.name, str(one.n_trials), f"{100 * one.eer:.2f}", f"{one.min_cllr:.4f}", f"{one.cllr:.4f}"]
        for one in outcomes
    ]
    print_table(rows, header=["known", "trials", "EER %", "minCllr", "Cllr"], numbers=True)


def _from_speech(root: str, cache: str | None, residuals: str, progress: Progress) -> list[Outcome]:
    from recipes.takes.leave_one_out import compare_ways
    from recipes.text_dependent import TextDependentSystem, read_audiomnist, split_speakers

    corpus = read_audiomnist(root)
    split = split_speakers(corpus)
    system = TextDependentSystem(corpus, cache=cache, progress=progress)
    return compare_ways(system.score(split), split, system, residuals)


APP = program("takes", takes, EXAMPLES)
