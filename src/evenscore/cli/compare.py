"""``evenscore compare``: which norm to use on one's own scores, what it gains, and how sure that is."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenscore.cli import options as opt
from evenscore.cli.compare_inputs import (
    EvaluationScores,
    EvaluationVectors,
    Facts,
    Inputs,
    TrainingScores,
    TrainingVectors,
)
from evenscore.cli.option_records import with_records
from evenscore.cli.output import print_json, print_lines, print_table, printable, progress_bar
from evenscore.cli.scale_options import LARGE_DATA, ScaleChoices
from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.comparison import Comparison, Figures, MethodResult

__all__ = ["EXAMPLES", "RankBy", "compare", "listed_methods", "print_comparison"]

EXAMPLES = """
evenscore compare --train dev --train-key dev.key --cohort coh \\
    --trials eval --key eval.key -o report/
evenscore compare --train dev.npz --trials eval.npz --speakers utt2spk \\
    --enroll-cohort e.npz --test-cohort t.npz -o report/
evenscore compare --train-embeddings d.npz --scorer cosine:center=d.npz \\
    --enroll-embeddings x.npz --test-embeddings x.npz --key key -o report/
evenscore compare --train dev.zarr --trials eval.zarr --speakers utt2spk \\
    --enroll-cohort e.zarr --test-cohort t.zarr \\
    --workers 4 --no-scores -o report/
"""


_TITLES = {"eer": "EER %", "min_dcf": "minDCF", "act_dcf": "actDCF", "cllr": "Cllr", "min_cllr": "minCllr"}
_TRAINING = 0.25  # of the memory limit, for training scores


class RankBy(str, Enum):
    """What can rank methods."""

    cllr = "cllr"
    eer = "eer"
    min_dcf = "min_dcf"
    act_dcf = "act_dcf"
    min_cllr = "min_cllr"


def listed_methods(text: str | None) -> list[str] | None:
    """Return the names that stand between commas; None, if none were given, for the usual methods."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError("--methods is empty; name some, such as raw,s,as:top_k=100,lgsm, or leave it out")
    return names


@with_records
def compare(
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="Directory for the report and all results.")
    ],
    training: TrainingScores,
    evaluation: EvaluationScores,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            metavar="NAMES",
            help="Norms between commas, with options after colons, such as raw,s,as:top_k=100,lgsm:dim=1; by default "
            "all that are usual.",
        ),
    ] = None,
    calibration: opt.CalibrationName = "logistic",
    rank_by: Annotated[RankBy, typer.Option("--rank-by", help="The metric that ranks the methods.")] = RankBy.cllr,
    points: opt.Points = None,
    bootstrap: opt.Bootstrap = "1000",
    json: opt.Json = False,
    *,
    training_vectors: TrainingVectors,
    evaluation_vectors: EvaluationVectors,
    facts: Facts,
    allow_overlap: Annotated[
        bool,
        typer.Option(
            "--allow-overlap",
            help="Go on if speakers are on the training and on the evaluation side.",
            rich_help_panel=Facts.PANEL,
        ),
    ] = False,
    scale: ScaleChoices,
    no_scores: Annotated[
        bool,
        typer.Option(
            "--no-scores",
            help="Do not write normalized scores that are made in chunks, only figures.",
            rich_help_panel=LARGE_DATA,
        ),
    ] = False,
) -> None:
    """Compare norms on your own scores: which one to use, what it gains, and how sure that is.

    Every method is fitted and calibrated on the training side only, where a trial's own speakers are left out of its
    cohort, and then normalizes the evaluation trials once. Without a cohort of others, the training side is the cohort,
    and --enroll-cohort and --test-cohort (or --cohort) give the scores between the two sides. Who speaks, --speakers
    tells; else ids that target trials connect are of one speaker. The directory gets report.html, results.json, and for
    each method its normalized scores, log-likelihood ratios, calibration and model; a run that was stopped goes on
    there.

    Large files, and all scores if workers or a memory limit are asked for, are read in chunks: figures come from
    summaries, with bounds, and normalized scores are written chunk by chunk.
    """
    chosen, costs, draws = listed_methods(methods), opt.parsed_points(points), opt.Draws.of(bootstrap)
    with progress_bar() as progress, scale.client(progress) as client:
        progress("reading", 0.0)
        sides = Inputs(
            training=training,
            training_vectors=training_vectors,
            facts=facts,
            evaluation=evaluation,
            evaluation_vectors=evaluation_vectors,
            scale=scale,
        ).read()
        progress("reading", 1.0)
        from evenscore.comparison import compare as run_comparison
        from evenscore.report import write_report

        comparison = run_comparison(
            *sides,
            chosen,
            calibration=calibration,
            points=costs,
            rank_by=rank_by.value,
            bootstrap=draws.number,
            level=draws.level,
            seed=draws.seed,
            directory=output,
            write_scores=not no_scores,
            client=client,
            memory=None if scale.limit is None else _TRAINING * scale.limit,
            allow_overlap=allow_overlap,
            command=shlex.join(["evenscore", *sys.argv[1:]]),
            progress=progress,
        )
        progress("writing the report", 0.0)
        report = Path(output) / "report.html"
        write_report(comparison, report)
    for line in comparison.warnings:
        typer.echo(f"warning: {printable(line)}", err=True)
    if json:
        print_json(comparison.results())
        return
    print_comparison(comparison)
    print_lines(["", f"The report is {report}; all figures are in {Path(output) / 'results.json'}."])


def print_comparison(comparison: Comparison) -> None:
    """Print methods and figures, best first, then what follows from them."""
    metric = comparison.rank_by
    header = ("", *_TITLES.values(), f"{_TITLES[metric].removesuffix(' %')} to raw")
    rows: list[Sequence[str]] = []
    for method in comparison.methods:
        rows += _rows(method, comparison)
    print_table(rows, header=header, numbers=True)
    lines = [f"not run: {name}: {reason}" for name, reason in comparison.not_run.items()]
    point = comparison.how.points[0]
    lines.append(
        f"DCF at p_target {point.p_target:g}, c_miss {point.c_miss:g}, c_fa {point.c_fa:g}; every method with "
        f"{comparison.how.calibration} calibration of the training side"
    )
    lines.append(
        f"{100 * comparison.how.level:g} % intervals from {comparison.how.replicates} draws of "
        f"{comparison.drawn}, known from {comparison.trials.speakers_from}"
    )
    print_lines([*lines, "", comparison.verdict.text])


def _rows(method: MethodResult, comparison: Comparison) -> list[Sequence[str]]:
    test = method.to_raw[comparison.rank_by]
    same = method.name == "raw"
    ends = (test.interval.low, test.interval.high)
    difference = "" if same else _cell(comparison.rank_by, test.difference, sign="+")
    interval = "" if same else "..".join(_cell(comparison.rank_by, end, sign="+") for end in ends)
    rows = [
        [method.name, *_values(method.figures), difference],
        [f"    {100 * comparison.how.level:g} %", *_ranges(method.figures), interval],
    ]
    if method.uncalibrated is not None:
        rows.append(["    not calibrated", *_values(method.uncalibrated), ""])
    return rows  # type: ignore[return-value]


def _values(figures: Figures) -> list[str]:
    return [_cell(metric, figures.values[metric]) for metric in _TITLES]


def _ranges(figures: Figures) -> list[str]:
    found = []
    for metric in _TITLES:
        ends = figures.interval(metric)
        found.append("" if ends is None else "..".join(_cell(metric, end) for end in ends))
    return found


def _cell(metric: str, value: float, sign: str = "") -> str:
    return f"{100 * value:{sign}.2f}" if metric == "eer" else f"{value:{sign}.3f}"
