"""``evenscore evaluate``: how good scores are, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, ClassVar, Literal

import typer

from evenscore.cli import options as opt
from evenscore.cli.option_records import with_records
from evenscore.cli.options import ScaleChoices
from evenscore.cli.output import printable, progress_bar
from evenscore.errors import InputError

__all__ = ["EXAMPLES", "EvaluationChoices", "UncertaintyChoices", "evaluate"]

EXAMPLES = """
evenscore evaluate eval.scores --key eval.trials
evenscore evaluate eval.scores --key eval.trials --bootstrap 1000
evenscore evaluate raw.npz llr.npz --key k --points 0.01 --points 0.05,10,1
evenscore evaluate e.scores --key k --metadata meta.csv --by gender
evenscore evaluate sre18.tsv --key sre18_trial_key.tsv --preset sre18
evenscore evaluate sasv.tsv --key protocol.txt --spoof asvspoof5
evenscore evaluate llr.scores --key k --forensic
evenscore evaluate a.scores b.scores --key k --paired --metric cllr
evenscore evaluate eval.zarr --enroll-speakers utt2spk --workers 4
"""

Eer = Literal["rocch", "interpolated", "nearest-mean", "nearest-max", "kaldi"]  #: conventions of the equal error rate
Preset = Literal["sre16", "sre18", "sre18-vast", "sre19", "sre19-av", "sre21"]  #: evaluations of NIST


class Metric(str, Enum):
    """What two systems can be compared by."""

    eer = "eer"
    cllr = "cllr"
    min_cllr = "min_cllr"
    calibration_loss = "calibration_loss"
    min_dcf = "min_dcf"
    act_dcf = "act_dcf"
    min_c_primary = "min_c_primary"
    act_c_primary = "act_c_primary"


@dataclass(frozen=True, kw_only=True)
class EvaluationChoices:
    """What to measure, and how."""

    points: opt.Points = None
    eer: Annotated[Eer, typer.Option(help="Convention of the equal error rate.")] = "rocch"
    normalize: Annotated[
        bool, typer.Option("--normalize/--no-normalize", help="Divide costs by that of the better system that is deaf.")
    ] = True
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Evaluate each value of a column of the metadata apart, too; enroll:COLUMN or test:COLUMN says whose "
            "value, pair:COLUMN means both values ('f-m'), and same:COLUMN whether they agree. Can be repeated.",
        ),
    ] = None
    metadata: opt.Metadata = None
    preset: Annotated[
        Preset | None,
        typer.Option(
            help="Score as an evaluation of NIST: its operating points and partitions (columns of the key or of "
            "--metadata), which weigh the same, and the EER by interpolation."
        ),
    ] = None
    spoof: Annotated[
        str | None,
        typer.Option(
            metavar="COSTS",
            help="Trials that the key calls spoof are a third class: a-DCF, SASV-, SV- and SPF-EER. COSTS: asvspoof5, "
            "a-dcf (those of its paper), or three priors and three costs: targets, non-targets, spoofs.",
        ),
    ] = None
    forensic: Annotated[
        bool, typer.Option("--forensic", help="Tell devPAV, and the bounds (ELUB) beyond which LLRs are extrapolated.")
    ] = False
    equalize: Annotated[
        bool, typer.Option("--equalize", help="Let every condition of --by weigh the same in the pooled figures.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class UncertaintyChoices:
    """How sure it is."""

    PANEL: ClassVar[str] = "Uncertainty"

    bootstrap: opt.Bootstrap = "0"
    paired: Annotated[
        bool, typer.Option("--paired", help="Test whether the first of two systems is better than the second.")
    ] = False
    metric: Annotated[
        list[Metric] | None,
        typer.Option(metavar="NAME", help="What --paired compares; can be repeated. The default is eer."),
    ] = None


@with_records
def evaluate(
    scores: Annotated[
        list[str], typer.Argument(metavar="SCORES", help="Score files, one per system; '-' is standard input.")
    ],
    key: opt.Key = None,
    *,
    what: EvaluationChoices,
    labels: opt.LabelChoices,
    doubt: UncertaintyChoices,
    scale: ScaleChoices,
    json: opt.Json = False,
    table: Annotated[
        Literal["csv", "latex"] | None,
        typer.Option("--table", help="Print CSV, or a LaTeX table (booktabs).", rich_help_panel=opt.OUTPUT),
    ] = None,
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
    """
    from evenscore.cli.evaluation import EvaluationOptions, evaluate_systems, open_labelled, warnings_about
    from evenscore.cli.evaluation_tables import print_evaluation

    options = EvaluationOptions(what=what, doubt=doubt, sources=labels.sources(key))
    if doubt.paired and len(scores) != 2:
        raise InputError(f"--paired compares two systems, but there are {len(scores)} score files; give two")
    if doubt.paired and table is not None:
        raise InputError("a comparison has no place in a table; use --json, or leave out --paired")
    if table is not None and json:
        raise InputError("both --json and --table were given; choose one")
    if table is not None and what.spoof is not None:
        raise InputError("--spoof has figures of its own, which have no place in this table; use --json")
    with progress_bar() as progress, scale.client(progress) as client:
        progress("reading", 0.0)
        if what.spoof is not None:
            from evenscore.cli.spoofing import evaluate_spoofed, print_spoofed, spoof_costs

            costs = spoof_costs(what.spoof)
            spoofed = evaluate_spoofed(open_labelled(scores, options.sources), options, costs)
            print_spoofed(spoofed, costs, json=json)
            return
        files = open_labelled(scores, options.sources, scale if scale.in_chunks(*scores) else None)
        results = evaluate_systems(files, options, scale, client=client, progress=progress)
    for line in (line for one in results.get("systems", [results]) for line in warnings_about(one)):
        typer.echo(f"warning: {printable(line)}", err=True)
    print_evaluation(results, options, table or ("json" if json else ""))
