"""``evenscore compare``: which norm to use on one's own scores, what it gains, and how sure that is."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import typer

from evenscore.cli import options as opt
from evenscore.cli.norm_options import EMBEDDINGS, CohortChoices, EnrollMap, OwnNorms
from evenscore.cli.option_records import given_options, with_records
from evenscore.cli.options import LARGE_DATA, ScaleChoices
from evenscore.cli.output import check_output_folder, print_json, print_lines, print_table, printable, progress_bar
from evenscore.cli.scorers import ScorerOption, trained_note
from evenscore.cli.self_centering import SelfCenteredOption, mended_training
from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.comparison import Comparison, Figures, MethodResult
    from evenscore.tables import LabelledBlocks

__all__ = [
    "EXAMPLES",
    "Facts",
    "Inputs",
    "RankBy",
    "TrainingScores",
    "TrainingVectors",
    "compare",
    "listed_methods",
    "print_comparison",
]

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

_MARK = "* "  # before the name of the recommended method

RankBy = Literal["cllr", "eer", "min_dcf", "act_dcf", "min_cllr"]  #: what can rank methods
Columns = Sequence[tuple[str, int]]  #: metrics, and at which operating point
Sides = tuple["list[LabelledBlocks]", "list[LabelledBlocks]"]  #: training and evaluation, a part for each condition


@dataclass(frozen=True, kw_only=True)
class TrainingScores:
    """Where the training side and its cohort come from."""

    train: Annotated[
        list[str] | None, opt.file("Training scores with labels; several files are several phrases or conditions.")
    ] = None
    train_key: Annotated[
        list[str] | None, opt.file("Labels of the training scores: one file for all, or one each.")
    ] = None
    cohort: Annotated[
        list[str] | None,
        opt.file(
            "All scores in which cohort members stand, in one file or several: of enrolments against them, of them "
            "against tests, and of them against each other. Ids tell which is which. Without, the training side is "
            "the cohort."
        ),
    ] = None
    speakers: Annotated[str | None, opt.file("Map from id to speaker, for all who have no map of their own.")] = None


@dataclass(frozen=True, kw_only=True)
class EvaluationScores:
    """Where the evaluation trials and their cohort scores come from."""

    trials: Annotated[
        list[str] | None,
        opt.file(
            "Evaluation scores, a file for each of --train in the same order; for embeddings, the trials to score."
        ),
    ] = None
    key: Annotated[list[str] | None, opt.file("Labels of the evaluation trials, likewise.", "--key", "-k")] = None
    enroll_cohort: Annotated[
        list[str] | None, opt.file("Cohort scores in a file apart: evaluation enrolments against the cohort's tests.")
    ] = None
    test_cohort: Annotated[
        list[str] | None, opt.file("The same: the cohort's enrolments against evaluation tests.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class TrainingVectors(CohortChoices):
    """Embeddings of the training side and of the cohort."""

    PANEL: ClassVar[str] = EMBEDDINGS

    train_embeddings: Annotated[str | None, opt.file("Embeddings of the training side.")] = None
    cohort_embeddings: Annotated[
        str | None, opt.file("Embeddings of the cohort; without, the training side is the cohort.")
    ] = None
    scorer: ScorerOption = "cosine"


@dataclass(frozen=True, kw_only=True)
class EvaluationVectors:
    """Embeddings of the evaluation trials."""

    PANEL: ClassVar[str] = EMBEDDINGS

    enroll_embeddings: Annotated[str | None, opt.file("Embeddings of the evaluation enrolments.")] = None
    test_embeddings: Annotated[str | None, opt.file("Embeddings of the evaluation tests; may be the same file.")] = None
    enroll_map: EnrollMap = None


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What else is known about scores and embeddings."""

    PANEL: ClassVar[str] = "Speakers, phrases and keys"

    train_speakers: Annotated[str | None, opt.file("Map from id to speaker for the training side.")] = None
    cohort_speakers: Annotated[str | None, opt.file("Map from id to speaker for the cohort.")] = None
    phrase_from: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="Split all scores by the phrase of the test: 're:' and a regular expression with one group on the "
            "id, a file with lines 'id phrase', or 'column:' and a column of the embeddings.",
        ),
    ] = None
    unmatched: opt.OnUnmatched = "error"
    self_centered: SelfCenteredOption = "keep"


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """All options that say where scores come from, and reading them."""

    training: TrainingScores
    training_vectors: TrainingVectors
    facts: Facts
    evaluation: EvaluationScores | None = None  #: None, like the next, if only the training side is wanted
    evaluation_vectors: EvaluationVectors | None = None
    scale: ScaleChoices | None = None  #: whether and how scores are read in chunks

    def read(self) -> Sides:
        """Read the training side, and the evaluation side if it is wanted."""
        vectors = self.training_vectors
        if bool(self.training.train) == bool(vectors.train_embeddings):
            raise InputError("give the training side with one of --train and --train-embeddings")
        from evenscore.cli.compare_sides import sides_from_embeddings, sides_from_scores

        if self.training.train:
            _refuse("--train", vectors, self.evaluation_vectors)
            if self.evaluation is not None and not self.evaluation.trials:
                raise InputError("there are no evaluation trials; give their scores with --trials")
            sides = sides_from_scores(self)
            return sides if self.facts.self_centered == "keep" else (mended_training(sides[0]), sides[1])
        if self.facts.self_centered != "keep":
            raise InputError("--self-centered is for scores; embeddings are centred as --scorer says")
        _refuse("--train-embeddings", self.training, self.evaluation, but=("--speakers", "--trials", "--key"))
        if vectors.cohort_embeddings is None:
            allowed = ("--train-embeddings", "--scorer")
            _refuse("a cohort that is the training side", vectors, but=allowed)
        return sides_from_embeddings(self)


def _refuse(way: str, *records: Any, but: tuple[str, ...] = ()) -> None:
    """Refuse options that have no meaning with this way to give the scores."""
    odd = [name for record in records if record is not None for name in given_options(record) if name not in but]
    if odd:
        raise InputError(f"{odd[0]} has no meaning with {way}; leave it out")


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
    rank_by: Annotated[RankBy, typer.Option("--rank-by", help="The metric that ranks the methods.")] = "cllr",
    points: opt.Points = None,
    bootstrap: opt.Bootstrap = "1000",
    json: opt.Json = False,
    *,
    own: OwnNorms,
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
    cohort, and of the mean that embeddings are centred on, and then normalizes the evaluation trials once. Without a
    cohort of others, the training side is the cohort, and --enroll-cohort and --test-cohort (or --cohort) give the
    scores between the two sides. Who speaks, --speakers tells; else ids that target trials connect are of one speaker.
    The directory gets report.html, results.json, and for each method its normalized scores, log-likelihood ratios,
    calibration and model; a run that was stopped goes on there.

    Large files, and all scores if workers or a memory limit are asked for, are read in chunks: figures come from
    summaries, with bounds, and normalized scores are written chunk by chunk.
    """
    own.refuse_workers(scale)
    chosen, costs, draws = listed_methods(methods), opt.parsed_points(points), opt.Draws.of(bootstrap)
    from evenscore.comparison.methods import as_methods

    check_output_folder(output)
    as_methods(chosen, ())  # which refuses wrong options before anything is read
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
            rank_by=rank_by,
            bootstrap=draws.number,
            level=draws.level,
            seed=draws.seed,
            directory=output,
            write_scores=not no_scores,
            client=client,
            memory=scale.room,
            allow_overlap=allow_overlap,
            command=shlex.join(["evenscore", *sys.argv[1:]]),
            progress=progress,
        )
        progress("writing the report", 0.0)
        report = Path(output) / "report.html"
        write_report(comparison, report)
    trained = trained_note(training_vectors.scorer) if training_vectors.train_embeddings else []
    for line in (*comparison.warnings, *trained):
        typer.echo(f"warning: {printable(line)}", err=True)
    if json:
        print_json(comparison.results())
        return
    print_comparison(comparison)
    print_lines(["", f"The report is {report}; all figures are in {Path(output) / 'results.json'}."])


def print_comparison(comparison: Comparison) -> None:
    """Print methods and figures, best first, then what follows from them."""
    from evenscore.comparison.verdict import METRIC_NAMES, shown_metrics

    points, ranked = comparison.how.points, METRIC_NAMES[comparison.rank_by]
    columns = [(metric, point) for _, metric, point in shown_metrics(points)]
    titles = [f"{title} %" if metric == "eer" else title for title, metric, _ in shown_metrics(points)]
    rows = [row for method in comparison.methods for row in _rows(method, comparison, columns)]
    print_table(rows, header=("", *titles, f"{ranked} to raw"), numbers=True)
    lines = [f"not run: {name}: {reason}" for name, reason in comparison.not_run.items()]
    lines.append(f"{_MARK}recommended; every method with {comparison.how.calibration} calibration of the training side")
    costs = [f"p_target {point.p_target:g}, c_miss {point.c_miss:g}, c_fa {point.c_fa:g}" for point in points]
    lines.append(f"DCF at {'; '.join(costs)}")
    lines.append(
        f"{100 * comparison.how.level:g} % intervals from {comparison.how.replicates} draws of "
        f"{comparison.drawn}, known from {comparison.trials.speakers_from}; those of '{ranked} to raw' hold for all "
        "methods at once"
    )
    print_lines([*lines, "", comparison.verdict.text])


def _rows(method: MethodResult, comparison: Comparison, columns: Columns) -> list[Sequence[str]]:
    test = method.to_raw[comparison.rank_by]
    same = method.name == "raw"
    ends = (test.interval.low, test.interval.high)
    difference = "" if same else _cell(comparison.rank_by, test.difference, sign="+")
    interval = "" if same else "..".join(_cell(comparison.rank_by, end, sign="+") for end in ends)
    mark = _MARK if method.name == comparison.verdict.use else ""
    rows = [
        [f"{mark}{method.name}", *_values(method.figures, columns), difference],
        [f"    {100 * comparison.how.level:g} %", *_ranges(method.figures, columns), interval],
    ]
    if method.uncalibrated is not None:
        rows.append(["    not calibrated", *_values(method.uncalibrated, columns), ""])
    return rows  # type: ignore[return-value]


def _values(figures: Figures, columns: Columns) -> list[str]:
    return [_cell(metric, figures.value(metric, point)) for metric, point in columns]


def _ranges(figures: Figures, columns: Columns) -> list[str]:
    both = [(metric, figures.interval(metric, point)) for metric, point in columns]
    return ["" if ends is None else "..".join(_cell(metric, end) for end in ends) for metric, ends in both]


def _cell(metric: str, value: float, sign: str = "") -> str:
    return f"{100 * value:{sign}.2f}" if metric == "eer" else f"{value:{sign}.3f}"
