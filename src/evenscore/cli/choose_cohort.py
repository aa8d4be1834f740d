"""``evenscore choose-cohort``: which cohort, how large, which top-k, by cross-validation on the training side."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore.cli import options as opt
from evenscore.cli.compare import Facts, Inputs, RankBy, TrainingScores, TrainingVectors
from evenscore.cli.norm_options import NormName, OwnNorms
from evenscore.cli.option_records import with_records
from evenscore.cli.output import check_output, print_json, print_lines, print_table, progress_bar
from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.comparison import CohortChoice
    from evenscore.tables import LabelledBlocks

__all__ = ["EXAMPLES", "choose_cohort"]

EXAMPLES = """
evenscore choose-cohort --train dev.npz --train-speakers utt2spk \\
    --norm s --sizes 10,20,40,all --plot sizes.svg
evenscore choose-cohort --train dev.npz --train-key dev.key \\
    --norm as --top-k 10,30,100,0.5
evenscore choose-cohort --train-embeddings dev.npz \\
    --cohort-embeddings coh.npz --candidates f=women.list \\
    --candidates m=men.list --candidates everybody
"""


@with_records
def choose_cohort(
    training: TrainingScores,
    norm: Annotated[str, NormName] = "as",
    sizes: Annotated[
        str | None,
        typer.Option(
            "--sizes",
            metavar="N,N,...",
            help="Numbers of cohort speakers to draw at random (of members, if speakers are not known); 'all' for all.",
        ),
    ] = None,
    top_k: Annotated[
        str | None,
        typer.Option("--top-k", metavar="K,K,...", help="Counts or fractions of cohort scores for as, at and az."),
    ] = None,
    candidates: Annotated[
        list[str] | None,
        typer.Option(
            "--candidates",
            metavar="NAME=FILE",
            help="A candidate: its name, and a list of ids or speakers, one per line; a name alone is everybody. Can "
            "be repeated.",
        ),
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", help="How many cohorts of each size are drawn.")
    ] = 5,
    folds: Annotated[int, typer.Option("--folds", metavar="N", help="Folds of speakers.")] = 5,
    rank_by: Annotated[RankBy, typer.Option("--rank-by", help="What candidates are compared by.")] = "cllr",
    calibration: opt.CalibrationName = "logistic",
    points: opt.Points = None,
    bootstrap: opt.Bootstrap = "200",
    *,
    own: OwnNorms,
    training_vectors: TrainingVectors,
    facts: Facts,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Figure to draw: .svg, .pdf or .png.", rich_help_panel=opt.OUTPUT)
    ] = None,
    json: opt.Json = False,
) -> None:
    """Choose the cohort and its size, or top-k, by cross-validation on the training side.

    The speakers of the training side are divided into folds; the trials among the speakers of a fold are normalized
    and calibrated by what was fitted to the others, with a cohort without them. Every combination of --candidates,
    --sizes and --top-k is measured on the same trials. Evaluation trials are never looked at. The seed of --bootstrap
    is that of folds and cohorts, too.
    """
    wanted = (
        _listed(sizes, "--sizes", lambda part: None if part == "all" else int(part), "counts such as 10,20, or 'all'"),
        _listed(top_k, "--top-k", _count_or_fraction, "counts like 300 or fractions like 0.1"),
    )
    named = [_candidate(text) for text in candidates or ()]
    if wanted == ([None], [None]) and not named:
        raise InputError("there is nothing to choose from; give --sizes, --top-k or --candidates")
    costs, draws = opt.parsed_points(points), opt.Draws.of(bootstrap)
    from evenscore.comparison.methods import Method

    Method.of(norm).check()  # better now than after the work
    if plot is not None:
        from evenscore.plot.style import require_matplotlib

        require_matplotlib()  # better now than after the work
        check_output(plot)
    with progress_bar() as progress:
        progress("reading", 0.0)
        blocks, _ = Inputs(training=training, training_vectors=training_vectors, facts=facts).read()
        progress("reading", 1.0)
        from evenscore.comparison import choose_cohort as chosen

        choice = chosen(
            blocks,
            norm,
            sizes=wanted[0],
            top_k=wanted[1],
            cohorts=_cohorts(blocks, named),
            metric=rank_by,
            calibration=calibration,
            points=costs,
            folds=folds,
            repeats=repeats,
            bootstrap=draws.number,
            level=draws.level,
            seed=draws.seed,
            progress=progress,
        )
        if plot is not None:
            _draw(choice, plot)
    if json:
        print_json(_facts(choice))
    else:
        _print(choice)


def _listed(text: str | None, option: str, read: Callable[[str], Any], what: str) -> list[Any]:
    """Return the numbers between commas; None stands for all of them, or for what is usual."""
    if text is None:
        return [None]
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise InputError(f"{option} is empty; give some numbers between commas, or leave it out")

    def number(part: str) -> Any:
        try:
            return read(part)
        except ValueError:
            raise InputError(f"{option} has {part!r}, but must have {what}") from None

    return [number(part) for part in parts]


def _count_or_fraction(text: str) -> int | float:
    return float(text) if any(mark in text for mark in ".eE") else int(text)


def _candidate(text: str) -> tuple[str, Collection[str] | None]:
    """Return a candidate's name and its ids or speakers; None is everybody."""
    from evenscore.files.speakers import read_names

    name, mark, path = text.partition("=")
    if not name or (mark and not path):
        raise InputError(f"--candidates is {text!r}, but must be a name and a list of ids, such as women=women.list")
    return name, read_names(path) if mark else None


def _cohorts(
    blocks: list[LabelledBlocks], named: list[tuple[str, Collection[str] | None]]
) -> dict[str, Collection[str]] | None:
    """Return the candidates by name; None if everybody is the only one."""
    sides = [side for part in blocks for side in (part.blocks.cohort_enroll_ids, part.blocks.cohort_test_ids)]
    everybody = {name for ids in sides if ids is not None for name in ids}
    found: dict[str, Collection[str]] = {}
    for name, ids in named:
        if name in found:
            raise InputError(f"two candidates are called {name!r}; give them two names")
        found[name] = everybody if ids is None else ids
    return found or None


def _draw(choice: CohortChoice, path: str) -> None:
    from evenscore.cli.plot import save
    from evenscore.plot import plot_cohort_choice

    save(lambda ax: plot_cohort_choice(choice, ax=ax), path)


def _facts(choice: CohortChoice) -> dict[str, Any]:
    from evenscore.comparison.results import plain

    settings = ("method", "metric", "unit", "not_run", "raw", "folds", "repeats", "seed", "n_trials", "text")
    rows = choice.table().to_dicts()
    found: dict[str, Any] = plain({name: getattr(choice, name) for name in settings} | {"candidates": rows})
    return found | {"best": rows[choice.candidates.index(choice.best)]}


def _print(choice: CohortChoice) -> None:
    from evenscore.comparison.verdict import METRIC_NAMES, shown_value

    def shown(*values: float) -> str:
        return "..".join(shown_value(choice.metric, value) for value in values)

    rows = [
        [
            one.name(choice.unit),
            f"{one.members:.0f}",
            shown(one.mean),
            shown(one.interval.low, one.interval.high),
            shown(one.spread) if len(one.values) > 1 else "",
            "" if one is choice.best else shown(one.to_best.low, one.to_best.high),
        ]
        for one in choice.candidates
    ]
    header = (choice.method, "members", METRIC_NAMES[choice.metric], "interval", "spread", "to the best")
    print_table([*rows, ["raw", "", shown(choice.raw), "", "", ""]], header=header, numbers=True)
    lines = [f"{choice.folds} folds of speakers, {choice.n_trials} trials of the training side"]
    if any(len(one.values) > 1 for one in choice.candidates):
        lines[0] += f"; mean and spread (standard deviation) of {choice.repeats} random cohorts"
    lines += [f"not measured: {name}: {reason}" for name, reason in choice.not_run.items()]
    print_lines([*lines, "", choice.text])
