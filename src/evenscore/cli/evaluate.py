"""``evenscore evaluate``: how good scores are, and how sure that is."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from evenscore.cli import options as opt
from evenscore.cli.option_records import with_records
from evenscore.cli.output import printable
from evenscore.cli.progress import progress_bar
from evenscore.cli.scale_options import ScaleChoices
from evenscore.cli.scorers import EmbeddingChoices
from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.cli.embedded_scores import EmbeddedScores, Source
    from evenscore.metrics import OperatingPoint

__all__ = ["EXAMPLES", "Eer", "Metric", "evaluate", "parsed_points"]

EXAMPLES = """
evenscore evaluate eval.scores --key eval.trials
evenscore evaluate eval.scores --key eval.trials --bootstrap 1000
evenscore evaluate raw.npz llr.npz --key k --points 0.01 --points 0.05,10,1
evenscore evaluate e.scores --key k --metadata meta.csv --by gender
evenscore evaluate a.scores b.scores --key k --paired --metric cllr
evenscore evaluate eval.zarr --enroll-speakers utt2spk --workers 4
evenscore evaluate --enroll-embeddings x.npz --test-embeddings y.npz \\
    --key eval.trials
"""


class Eer(str, Enum):
    """The conventions of the equal error rate."""

    rocch = "rocch"
    interpolated = "interpolated"
    nearest_mean = "nearest-mean"
    nearest_max = "nearest-max"
    kaldi = "kaldi"


class Metric(str, Enum):
    """What two systems can be compared by."""

    eer = "eer"
    cllr = "cllr"
    min_cllr = "min_cllr"
    calibration_loss = "calibration_loss"
    min_dcf = "min_dcf"
    act_dcf = "act_dcf"


@with_records
def evaluate(
    scores: Annotated[
        list[str] | None,
        typer.Argument(metavar="SCORES", help="Score files, one per system; '-' is standard input."),
    ] = None,
    key: opt.Key = None,
    points: Annotated[
        list[str] | None,
        typer.Option(
            "--points",
            metavar="P[,CM,CF]",
            help="Operating point: prior of a target, cost of a miss, cost of a false alarm. Can be repeated; the "
            "default is 0.01,1,1.",
        ),
    ] = None,
    eer: Annotated[Eer, typer.Option("--eer", help="Convention of the equal error rate.")] = Eer.rocch,
    normalize: Annotated[
        bool,
        typer.Option("--normalize/--no-normalize", help="Divide costs by that of the better system that is deaf."),
    ] = True,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="COLUMN",
            help="Evaluate each value of a column of the metadata apart, too; enroll:COLUMN or test:COLUMN says whose "
            "value. Can be repeated.",
        ),
    ] = None,
    metadata: opt.Metadata = None,
    equalize: Annotated[
        bool, typer.Option("--equalize", help="Let every condition of --by weigh the same in the pooled figures.")
    ] = False,
    bootstrap: Annotated[
        int, typer.Option("--bootstrap", metavar="N", help="Confidence intervals from N draws of the speakers.")
    ] = 0,
    level: Annotated[float, typer.Option("--level", metavar="L", help="Level of the intervals.")] = 0.95,
    bootstrap_seed: opt.BootstrapSeed = 0,
    paired: Annotated[
        bool, typer.Option("--paired", help="Test whether the first of two systems is better than the second.")
    ] = False,
    metric: Annotated[
        list[Metric] | None,
        typer.Option("--metric", metavar="NAME", help="What --paired compares; can be repeated. The default is eer."),
    ] = None,
    enroll_speakers: opt.EnrollSpeakers = None,
    test_speakers: opt.TestSpeakers = None,
    unmatched: opt.OnUnmatched = opt.Unmatched.error,
    *,
    vectors: EmbeddingChoices,
    scale: ScaleChoices,
    json: opt.Json = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV instead of tables.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print a LaTeX table (booktabs).")] = False,
) -> None:
    """Tell how good scores are: EER, detection costs, Cllr, with conditions, intervals and comparisons.

    Labels come from --key, from the score file itself, or from speaker maps; trials of unknown class are counted and
    left out. Actual costs and Cllr take the scores for natural-log likelihood ratios; infinite ones are accepted.
    Intervals and tests draw speakers with replacement, because trials that share a speaker are not independent. Who
    speaks, the speaker maps tell; without maps, ids that target trials connect are of one speaker, and an id without
    target trials is a speaker of its own.

    Scores in .zarr, in .npy with lists of ids beside it, and in .parquet are counted chunk by chunk if they are large
    or if workers or a memory limit are asked for. Cllr, actual costs and counts are exact then; the other figures come
    from a fine histogram, and certain bounds are printed where they matter.

    In place of SCORES, embeddings are scored by --scorer: the trials of the key, or every enrolment against every test,
    but no utterance against itself. Without key and maps, labels follow from the speakers in the embeddings. The matrix
    of all scores is never formed if it is large or if workers or a memory limit are asked for.
    """
    from evenscore.cli.embedded_scores import embedded_scores
    from evenscore.cli.evaluated_trials import open_labelled, warnings_about
    from evenscore.cli.evaluation import EvaluationOptions, evaluate_systems
    from evenscore.cli.evaluation_output import print_evaluation
    from evenscore.cli.inputs import is_large
    from evenscore.cli.labelled import LabelSources

    labels = LabelSources(
        keys=(key,) if key else (),
        enroll_speakers=enroll_speakers,
        test_speakers=test_speakers,
        unmatched=unmatched.value,
    )
    made = embedded_scores(vectors, labels, key=key)
    systems = _systems(scores or [], made)
    vectors.check()
    options = EvaluationOptions(
        points=parsed_points(points or []),
        eer_method=eer.value,
        normalize=normalize,
        by=tuple(by or ()),
        metadata=metadata,
        equalize=equalize,
        replicates=bootstrap,
        level=level,
        seed=bootstrap_seed,
        compared=tuple(one.value for one in metric or [Metric.eer]) if paired else (),
        sources=labels,
    )
    form = _form(json=json, csv=csv, latex=latex)
    if metric and not paired:
        raise InputError("--metric says what --paired compares; give --paired, too")
    if paired and len(scores or ()) != 2:
        raise InputError(f"--paired compares two systems, but there are {len(scores or ())} score files; give two")
    if paired and form in ("csv", "latex"):
        raise InputError(f"a comparison has no place in --{form}; use --json, or leave out --paired")
    with progress_bar() as progress, scale.client(progress) as client:
        progress("reading", 0.0)
        if made is not None:
            options = replace(options, metadata=metadata or key, sources=made.labels_from(labels))
        large = is_large(scale, systems)
        files = open_labelled(systems, options.sources, scale if large else None)
        results = evaluate_systems(files, options, large=large, client=client, progress=progress)
    warnings = [] if made is None else made.warnings()
    for line in (*warnings, *(line for one in results.get("systems", [results]) for line in warnings_about(one))):
        typer.echo(f"warning: {printable(line)}", err=True)
    print_evaluation(results, options, form)


def _systems(scores: list[str], made: EmbeddedScores | None) -> list[Source]:
    """Return what is evaluated: score files, or scores of embeddings."""
    if scores and made is not None:
        raise InputError("both scores and embeddings were given; evaluate one of the two")
    if not scores and made is None:
        raise InputError("there is nothing to evaluate; give SCORES, or --enroll-embeddings and --test-embeddings")
    return [*scores] if made is None else [made]


def parsed_points(texts: list[str]) -> tuple[OperatingPoint, ...]:
    """Return the operating points that options spell as P or P,CM,CF; the usual one if there are none."""
    from evenscore.metrics.operating_points import DEFAULT_POINTS, OperatingPoint

    points = []
    for text in texts:
        try:
            numbers = [float(part) for part in text.split(",")]
        except ValueError:
            numbers = []
        if len(numbers) not in (1, 3):
            raise InputError(
                f"the operating point {text!r} must be a prior, such as 0.01, or prior and costs, such as 0.01,10,1; "
                "repeat --points for several"
            )
        points.append(OperatingPoint(*numbers))
    return tuple(points) or DEFAULT_POINTS


def _form(**wanted: bool) -> str:
    """Return which form of output is asked for; '' is a table for people."""
    names = [name for name, given in wanted.items() if given]
    if len(names) > 1:
        raise InputError(f"both --{names[0]} and --{names[1]} were given; choose one")
    return names[0] if names else ""
