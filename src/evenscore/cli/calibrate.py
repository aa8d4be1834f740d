"""``evenscore calibrate``: scores in, natural-log likelihood ratios out."""

from __future__ import annotations

from typing import Annotated

import typer

from evenscore.cli import options as opt
from evenscore.cli.option_records import with_records
from evenscore.cli.options import Resume, ScaleChoices
from evenscore.cli.output import check_output, print_json, print_lines, printable, scored_output
from evenscore.errors import InputError

__all__ = ["EXAMPLES", "calibrate"]

EXAMPLES = """
evenscore calibrate --train dev.scores --train-key k eval.scores -o out
evenscore calibrate --train dev.scores --train-key k --save c.json
evenscore calibrate --load c.json eval.scores -o eval.llr
evenscore calibrate --train d1 --train d2 --train-key k e1 e2 -o fused
evenscore calibrate --calibration saturating:l2=1e-3 \\
    --train dev.scores --train-key k eval.scores -o out
evenscore calibrate --cross-validate 5 --key eval.key eval.scores -o out
evenscore calibrate --load c.json eval.zarr --workers 4 -o llr.zarr
"""


@with_records
def calibrate(
    scores: Annotated[
        list[str] | None,
        typer.Argument(metavar="SCORES", help="Scores to be calibrated; several files are systems to be fused."),
    ] = None,
    output: Annotated[str | None, opt.file("File to write; '-' is standard output.", "--output", "-o")] = None,
    train: Annotated[
        list[str] | None, opt.file("Scores to train on; for a fusion one file per system, in order.")
    ] = None,
    train_key: Annotated[str | None, opt.file("Labels of the training scores, found by id.")] = None,
    calibration: opt.CalibrationName = "logistic",
    save: Annotated[str | None, opt.file("Keep the calibration in a JSON file.")] = None,
    load: Annotated[str | None, opt.file("Apply a calibration that was kept, instead of training.")] = None,
    cross_validate: Annotated[
        int | None,
        typer.Option(
            "--cross-validate",
            metavar="FOLDS",
            help="Calibrate labelled SCORES by fits that never met a trial's speakers; 5 folds of them are usual.",
        ),
    ] = None,
    key: Annotated[str | None, opt.file("Labels of SCORES, for --cross-validate only.", "--key", "-k")] = None,
    *,
    labels: opt.LabelChoices,
    measures: opt.QualityChoices,
    scale: ScaleChoices,
    resume: Resume = False,
    to_format: opt.ToFormat = None,
    json: opt.Json = False,
) -> None:
    """Turn scores into natural-log likelihood ratios.

    Train on labelled scores of other speakers (--train), apply a calibration that was kept (--load), or, where there
    are no other scores, cross-validate by speaker: calibrating on the evaluated trials is cheating. Several training
    files and as many SCORES are a fusion. The output keeps order, form and labels of the (first) SCORES. Who speaks,
    the speaker maps tell; without maps, ids that target trials connect are of one speaker.

    Options of a calibration follow its name after colons, as in logistic:l2=1e-3. logistic and saturating: p_target,
    the prior at which LLRs should be best (0.5), and l2, a penalty on the weights; saturating bounds the LLRs by the
    shares of trials that behave like the other class, found by cross-validation; gaussian, bayesian and unsupervised:
    shared_variance=true, one variance for both classes; unsupervised, which needs no labels and may train on SCORES
    themselves: p_target, the share of targets, if it is known; pav: smoothing, made-up trials at each end (1), where 0
    allows infinity. elub is for scores that are LLRs already: it bounds them where they rest on extrapolation.

    Scores in .zarr, in .npy with lists of ids beside it, and in .parquet are read in chunks if they are large or if
    workers or a memory limit are asked for: a fit then uses a fine histogram of the training scores, and the output,
    .zarr or .parquet, is written chunk by chunk.
    """
    from evenscore.calibrate import calibration_and_options
    from evenscore.cli.calibration import CalibrationJob, run_job

    method, options = calibration_and_options(calibration)
    job = CalibrationJob(
        scores=tuple(scores or ()),
        train=tuple(train or ()),
        train_key=train_key,
        key=key,
        load=load,
        folds=cross_validate,
        method=method,
        options=options,
        quality=tuple(name for text in measures.quality or () for name in text.split(",")),
        metadata=tuple(measures.metadata or ()),
        train_metadata=tuple(measures.train_metadata or measures.metadata or ()),
        sources=labels.sources(*((train_key, "--train-key") if cross_validate is None else (key, "--key"))),
    )
    _check_outputs(job.scores, output, save, json, cross_validate is not None)
    lazy = resume or scale.given or (scale.in_chunks(*job.train, *job.scores) and not job.needs_memory)
    with scored_output(output, to_format, scale, lazy=lazy, resume=resume) as place:
        result = run_job(job, place, scale if lazy else None)
    if save is not None:
        from evenscore.files.models import save_calibration

        assert result.calibration is not None  # noqa: S101
        save_calibration(result.calibration, save, info=result.info)
    for line in result.warnings:
        typer.echo(f"warning: {printable(line)}", err=True)
    if json:
        print_json(result.facts)
    elif "-" not in (output, save):
        print_lines(result.story)


def _check_outputs(
    scores: tuple[str, ...], output: str | None, save: str | None, json: bool, cross_validate: bool
) -> None:
    """Refuse what leaves no trace, or too many."""
    if scores and output is None:
        raise InputError("the calibrated scores need a place; give -o FILE, or -o - for standard output")
    if output is not None and not scores:
        raise InputError("there is nothing to calibrate; give SCORES, or leave out -o")
    if output is None and save is None:
        raise InputError("nothing would be written; give SCORES with -o, or --save")
    if save is not None and cross_validate:
        raise InputError("--cross-validate makes a calibration for every pair of folds; leave out --save")
    if [output, save, "-" if json else None].count("-") > 1:
        raise InputError("standard output can hold one thing only; give the others file names")
    check_output(output, save)
