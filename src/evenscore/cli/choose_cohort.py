"""``evenscore choose-cohort``: which cohort, how large, which top-k, by cross-validation on the training side."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore.cli import options as opt
from evenscore.cli.cohort_options import CohortChoices
from evenscore.cli.compare import RankBy
from evenscore.cli.compare_inputs import Inputs, ReadingChoices, SharedSources, TrainingFiles
from evenscore.cli.norm_options import NormName
from evenscore.cli.option_records import with_records
from evenscore.cli.output import print_json, print_lines, print_table
from evenscore.cli.progress import progress_bar
from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.comparison import CohortCandidate, CohortChoice
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
_ALL = "all"


@with_records
def choose_cohort(
    training: TrainingFiles,
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
    cohort_conditions: Annotated[
        str | None,
        typer.Option(
            "--cohort-conditions",
            metavar="FILE",
            help="Map from cohort member to gender, channel or the like: the members of each are a candidate.",
        ),
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", help="How many cohorts of each size are drawn.")
    ] = 5,
    folds: Annotated[int, typer.Option("--folds", metavar="N", help="Folds of speakers.")] = 5,
    metric: Annotated[RankBy, typer.Option("--metric", help="What candidates are compared by.")] = RankBy.cllr,
    calibration: opt.CalibrationName = "logistic",
    points: Annotated[
        list[str] | None,
        typer.Option("--points", metavar="P[,CM,CF]", help="Operating point of the detection costs."),
    ] = None,
    bootstrap: Annotated[
        int, typer.Option("--bootstrap", metavar="N", help="Draws of the trials' speakers, for intervals.")
    ] = 200,
    draws_seed: Annotated[
        int, typer.Option("--draws-seed", min=0, metavar="N", help="Of folds, of cohorts and of the speakers drawn.")
    ] = 0,
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE", help="Figure to draw: .svg, .pdf or .png.")
    ] = None,
    *,
    sources: SharedSources,
    members: CohortChoices,
    reading: ReadingChoices,
    json: opt.Json = False,
) -> None:
    """Choose the cohort and its size, or top-k, by cross-validation on the training side.

    The speakers of the training side are divided into folds; the trials among the speakers of a fold are normalized
    and calibrated by what was fitted to the others, with a cohort without them. Every combination of --candidates,
    --sizes and --top-k is measured on the same trials. Evaluation trials are never looked at.
    """
    wanted = _sizes(sizes), _top_k(top_k)
    named = [_candidate(text) for text in candidates or ()]
    if wanted == ([None], [None]) and not named and cohort_conditions is None:
        raise InputError("there is nothing to choose from; give --sizes, --top-k, --candidates or --cohort-conditions")
    costs = opt.parsed_points(points)
    if plot is not None:
        from evenscore.plot.style import require_matplotlib

        require_matplotlib()  # better now than after the work
    with progress_bar() as progress:
        progress("reading", 0.0)
        blocks, _ = Inputs(training=training, sources=sources, members=members, reading=reading).read()
        progress("reading", 1.0)
        from evenscore.comparison import choose_cohort as chosen

        choice = chosen(
            blocks,
            norm,
            sizes=wanted[0],
            top_k=wanted[1],
            cohorts=_cohorts(blocks, named, cohort_conditions),
            metric=metric.value,
            calibration=calibration,
            points=costs,
            folds=folds,
            repeats=repeats,
            bootstrap=bootstrap,
            seed=draws_seed,
            progress=progress,
        )
        if plot is not None:
            _draw(choice, plot)
    if json:
        print_json(_facts(choice))
    else:
        _print(choice)


def _numbers(text: str, option: str) -> list[str]:
    found = [part.strip() for part in text.split(",") if part.strip()]
    if not found:
        raise InputError(f"{option} is empty; give some numbers between commas, or leave it out")
    return found


def _sizes(text: str | None) -> list[int | None]:
    """Return sizes; None is everybody.

    Examples
    --------
    >>> _sizes("10, 20,all")
    [10, 20, None]
    """
    if text is None:
        return [None]
    parts = _numbers(text, "--sizes")
    odd = [part for part in parts if part != _ALL and not part.isdecimal()]
    if odd:
        raise InputError(f"--sizes has {odd[0]!r}, but must have counts such as 10,20, or 'all'")
    return [None if part == _ALL else int(part) for part in parts]


def _top_k(text: str | None) -> list[int | float | None]:
    if text is None:
        return [None]
    return [_count_or_fraction(part) for part in _numbers(text, "--top-k")]


def _count_or_fraction(text: str) -> int | float:
    try:
        return float(text) if any(mark in text for mark in ".eE") else int(text)
    except ValueError:
        raise InputError(f"--top-k has {text!r}, but must have counts like 300 or fractions like 0.1") from None


def _candidate(text: str) -> tuple[str, Collection[str] | None]:
    """Return a candidate's name and its ids or speakers; None is everybody."""
    from evenscore.files.speakers import read_names

    name, mark, path = text.partition("=")
    if not name or (mark and not path):
        raise InputError(f"--candidates is {text!r}, but must be a name and a list of ids, such as women=women.list")
    return name, read_names(path) if mark else None


def _cohorts(
    blocks: list[LabelledBlocks], named: list[tuple[str, Collection[str] | None]], conditions: str | None
) -> dict[str, Collection[str]] | None:
    """Return the candidates by name; None if everybody is the only one."""
    if not named and conditions is None:
        return None
    everybody = sorted(
        {
            name
            for part in blocks
            for ids in (part.blocks.cohort_enroll_ids, part.blocks.cohort_test_ids)
            if ids is not None
            for name in ids
        }
    )
    found: dict[str, Collection[str]] = {}
    for name, ids in named:
        if name in found:
            raise InputError(f"two candidates are called {name!r}; give them two names")
        found[name] = everybody if ids is None else ids
    if conditions is not None:
        from evenscore.cli.embedding_sets import read_conditions

        known = read_conditions(conditions)
        for value in sorted({known[name] for name in everybody if known.get(name) is not None}, key=str):
            found.setdefault(str(value), [name for name in everybody if known.get(name) == value])
    return found


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
    from evenscore.comparison.verdict import METRIC_NAMES

    title = METRIC_NAMES[choice.metric]
    rows = [_row(one, choice) for one in choice.candidates]
    header = (choice.method, "members", title, "interval", "spread", "to the best")
    print_table([*rows, ["raw", "", _cell(choice, choice.raw), "", "", ""]], header=header, numbers=True)
    drawn = any(len(one.values) > 1 for one in choice.candidates)
    lines = [f"{choice.folds} folds of speakers, {choice.n_trials} trials of the training side"]
    if drawn:
        lines[0] += f"; mean and spread (standard deviation) of {choice.repeats} random cohorts"
    lines += [f"not measured: {name}: {reason}" for name, reason in choice.not_run.items()]
    print_lines([*lines, "", choice.text])


def _row(one: CohortCandidate, choice: CohortChoice) -> list[str]:
    interval, difference = (
        "..".join(_cell(choice, end) for end in (ends.low, ends.high)) for ends in (one.interval, one.to_best)
    )
    spread = _cell(choice, one.spread) if len(one.values) > 1 else ""
    return [
        one.name(choice.unit),
        f"{one.members:.0f}",
        _cell(choice, one.mean),
        interval,
        spread,
        "" if one is choice.best else difference,
    ]


def _cell(choice: CohortChoice, value: float) -> str:
    return f"{100 * value:.2f} %" if choice.metric == "eer" else f"{value:.3f}"
