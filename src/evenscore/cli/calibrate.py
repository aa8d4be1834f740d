"""``evenscore calibrate``: scores in, natural-log likelihood ratios out."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore.cli import options as opt
from evenscore.cli.option_records import with_records
from evenscore.cli.output import print_json, print_lines, printable
from evenscore.cli.progress import progress_bar
from evenscore.cli.scale_options import Resume, ScaleChoices
from evenscore.cli.scorers import EmbeddingChoices, TrainingChoices
from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.cli.embedded_scores import EmbeddedScores, Source

__all__ = ["EXAMPLES", "calibrate"]

EXAMPLES = """
evenscore calibrate --train dev.scores --train-key k eval.scores -o out
evenscore calibrate --train dev.scores --train-key k --save c.json
evenscore calibrate --load c.json eval.scores -o eval.llr
evenscore calibrate --train d1 --train d2 --train-key k e1 e2 -o fused
evenscore calibrate --calibration saturating:l2=1e-3 \\
    --train dev.scores --train-key k eval.scores -o out
evenscore calibrate --cross-validate --key eval.key eval.scores -o out
evenscore calibrate --load c.json eval.zarr --workers 4 -o llr.zarr
evenscore calibrate --train-embeddings dev.npz -o llr.zarr \\
    --enroll-embeddings x.npz --test-embeddings y.npz --workers 4
"""


@with_records
def calibrate(
    scores: Annotated[
        list[str] | None,
        typer.Argument(metavar="SCORES", help="Scores to be calibrated; several files are systems to be fused."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="File to write; '-' is standard output.")
    ] = None,
    train: Annotated[
        list[str] | None,
        typer.Option("--train", metavar="FILE", help="Scores to train on; for a fusion one file per system, in order."),
    ] = None,
    train_key: Annotated[
        str | None, typer.Option("--train-key", metavar="FILE", help="Labels of the training scores, found by id.")
    ] = None,
    calibration: opt.CalibrationName = "logistic",
    quality: Annotated[
        list[str] | None,
        typer.Option(
            "--quality",
            metavar="COLUMN",
            help="logistic: quality measures, from columns of the score files or of --metadata; log: before a name "
            "takes the logarithm, enroll: or test: says whose value. Can be repeated, or a list with commas.",
        ),
    ] = None,
    metadata: opt.Metadata = None,
    train_metadata: Annotated[
        str | None,
        typer.Option("--train-metadata", metavar="FILE", help="The same for the training scores; else --metadata."),
    ] = None,
    save: Annotated[
        str | None, typer.Option("--save", metavar="FILE", help="Keep the calibration in a JSON file.")
    ] = None,
    load: Annotated[
        str | None,
        typer.Option("--load", metavar="FILE", help="Apply a calibration that was kept, instead of training."),
    ] = None,
    cross_validate: Annotated[
        bool,
        typer.Option("--cross-validate", help="Calibrate labelled SCORES by fits that never met a trial's speakers."),
    ] = False,
    folds: Annotated[
        int, typer.Option("--folds", metavar="N", help="Folds of speakers for --cross-validate, at least 3.")
    ] = 5,
    key: Annotated[
        str | None,
        typer.Option("--key", "-k", metavar="FILE", help="Labels of SCORES, for --cross-validate only."),
    ] = None,
    enroll_speakers: opt.EnrollSpeakers = None,
    test_speakers: opt.TestSpeakers = None,
    unmatched: opt.OnUnmatched = opt.Unmatched.error,
    to_format: opt.ToFormat = None,
    *,
    training: TrainingChoices,
    vectors: EmbeddingChoices,
    trials: Annotated[
        str | None,
        typer.Option("--trials", metavar="FILE", help="For embeddings, the trials to score; without, all pairs."),
    ] = None,
    scale: ScaleChoices,
    resume: Resume = False,
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
    allows infinity.

    Scores in .zarr, in .npy with lists of ids beside it, and in .parquet are read in chunks if they are large or if
    workers or a memory limit are asked for: a fit then uses a fine histogram of the training scores, and the output,
    .zarr or .parquet, is written chunk by chunk. Quality measures need scores in memory.

    Embeddings can take the place of --train, of SCORES, or of both: --scorer makes scores of the trials that a key or
    --trials lists, or of every enrolment against every test, but of no utterance against itself. Labels come from
    --train-key (--key to cross-validate), from the speaker maps, or from the speakers in the embeddings.
    """
    from evenscore.calibrate import calibration_and_options
    from evenscore.cli.calibration import CalibrationJob, Opener, run_job
    from evenscore.cli.embedded_scores import EmbeddedScores, embedded_scores
    from evenscore.cli.inputs import is_large
    from evenscore.cli.labelled import LabelSources
    from evenscore.cli.scored_output import scored_output

    method, options = calibration_and_options(calibration)
    labels = LabelSources(
        enroll_speakers=enroll_speakers,
        test_speakers=test_speakers,
        unmatched=unmatched.value,
        options=("--key" if cross_validate else "--train-key", "--enroll-speakers"),
    )
    if trials is not None and (vectors.sides is None or key is not None):
        remedy = "leave it out" if vectors.sides is None else "leave out --trials or --key"
        raise InputError(f"--trials lists the trials of embeddings, if no key does; {remedy}")
    vectors.check(training)
    known = labels if cross_validate else replace(labels, enroll_speakers=None, test_speakers=None)
    made = embedded_scores(vectors, known, key=key, trials=trials)
    to_train = embedded_scores(vectors, labels, training=training, key=train_key)
    job = CalibrationJob(
        scores=_one_of(scores, made, "SCORES", "--enroll-embeddings"),
        train=_one_of(train, to_train, "--train", "--train-embeddings"),
        train_key=train_key,
        key=key,
        load=load,
        folds=folds if cross_validate else None,
        method=method,
        options=options,
        quality=tuple(name for text in quality or () for name in text.split(",")),
        metadata=metadata,
        train_metadata=train_metadata or metadata,
        sources=labels,
    )
    _check_outputs(job.scores, output, save, json, cross_validate)
    with progress_bar() as progress, scale.client(progress) as client:
        sources = (*job.train, *job.scores)
        lazy = resume or scale.given or (is_large(scale, sources) and not job.needs_memory)
        opened: Opener
        if lazy:
            from evenscore.cli.calibration_of_tables import TableSystems

            job.refuse_needing_memory()
            opened = partial(TableSystems.opened, scale=scale, client=client, progress=progress)
        else:
            from evenscore.cli.calibration_of_trials import TrialSystems

            opened = TrialSystems.read
        how: dict[str, Any] = {"resume": resume, "client": client, "progress": progress}
        with scored_output(output, to_format, lazy=lazy, **how) as place:
            result = run_job(job, opened, place, progress)
        if save is not None:
            from evenscore.files.models import save_calibration

            assert result.calibration is not None  # noqa: S101
            save_calibration(result.calibration, save, info=result.info)
    unscored = (line for source in sources if isinstance(source, EmbeddedScores) for line in source.warnings())
    for line in (*unscored, *result.warnings):
        typer.echo(f"warning: {printable(line)}", err=True)
    if json:
        print_json(result.facts)
    elif "-" not in (output, save):
        print_lines(result.story)


def _one_of(paths: list[str] | None, made: EmbeddedScores | None, files: str, embeddings: str) -> tuple[Source, ...]:
    """Return score files, or scores of embeddings."""
    if paths and made is not None:
        raise InputError(f"both {files} and {embeddings} were given; choose one")
    return tuple(paths or ()) if made is None else (made,)


def _check_outputs(
    scores: tuple[Source, ...], output: str | None, save: str | None, json: bool, cross_validate: bool
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
