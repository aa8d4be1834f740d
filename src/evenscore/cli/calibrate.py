"""``evenscore calibrate``: scores in, natural-log likelihood ratios out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore.cli.options import ToFormat, file_option
from evenscore.errors import InputError
from evenscore.spelling import parse_name

if TYPE_CHECKING:
    from evenscore.calibrate import Calibration
    from evenscore.cli.inputs import Table
    from evenscore.data.side import Side

__all__ = ["EXAMPLES", "calibrate"]

EXAMPLES = """
evenscore calibrate --train dev.scores --train-key k eval.scores -o out
evenscore calibrate --train dev.scores --train-key k --save c.json
evenscore calibrate --load c.json eval.scores -o eval.csv --posterior 0.01
evenscore calibrate --train d1 --train d2 --train-key k e1 e2 -o fused
evenscore calibrate --cross-validate 5 --key eval.key eval.scores -o out
"""
OPTIONS = {"labels": "--train-key", "folds": "--cross-validate", "scores": "SCORES"}


def calibrate(
    scores: Annotated[
        list[str] | None, typer.Argument(metavar="SCORES", help="Scores to calibrate; several files are fused.")
    ] = None,
    output: Annotated[str | None, file_option("Output; '-': standard output.", "--output", "-o")] = None,
    train: Annotated[list[str] | None, file_option("Scores to train on; a file per system.")] = None,
    train_key: Annotated[str | None, file_option("Labels of the training scores.")] = None,
    speakers: Annotated[str | None, file_option("Speakers of both sides by id, in place of a key.")] = None,
    calibration: Annotated[
        str | None, typer.Option(metavar="NAME[:OPTION=VALUE]", help="See above.", show_default="logistic")
    ] = None,
    save: Annotated[str | None, file_option("Write the calibration to a JSON file.")] = None,
    load: Annotated[str | None, file_option("Apply a calibration instead of training.")] = None,
    cross_validate: Annotated[int | None, typer.Option(metavar="N", help="Calibrate by N folds of speakers.")] = None,
    key: Annotated[str | None, file_option("Labels of SCORES, for --cross-validate.", "--key", "-k")] = None,
    quality: Annotated[list[str] | None, typer.Option(metavar="NAME,...", help="Quality measures to weigh.")] = None,
    metadata: Annotated[list[str] | None, file_option("Table with columns by id for --quality.")] = None,
    posterior: Annotated[
        float | None, typer.Option(metavar="P", min=0, max=1, help="Add probabilities of targets at this prior.")
    ] = None,
    to_format: ToFormat = None,
) -> None:
    """Turn scores into natural-log likelihood ratios.

    Train on labelled scores of other speakers, load a calibration, or cross-validate by speaker (those of
    --speakers; else target trials tell). Several files of --train and as many SCORES are a fusion. Calibrations:
    logistic (p_target, l2), gaussian, bayesian (shared_variance=true), pav (smoothing), saturating (p_target, l2), and
    unsupervised, which needs no labels and may train on SCORES. Quality measures are columns: dur, test:dur, min:dur,
    max:dur, diff:dur, ratio:dur, log:min:dur.
    """
    from evenscore.calibrate import Calibration, calibration_class, cross_validate as cross_validated
    from evenscore.cli.inputs import read_labelled, refuse_overflow, warn_self_pairs
    from evenscore.files import output_format, read_model, read_scores, write, write_model

    if load and (calibration or train_key):
        raise InputError("--load applies a calibration as it was trained; leave out --calibration and --train-key")
    kind = calibration_class((calibration or "logistic").partition(":")[0])
    options = parse_name(calibration or "logistic", kind.option_names())[1]
    train = scores if not (train or load or cross_validate or kind.supervised) else train
    if bool(train) + bool(load) + bool(cross_validate) != 1:
        raise InputError("give one of --train (with --train-key), --load, and --cross-validate (with --key)")
    if key and not cross_validate:
        raise InputError("figures on trials that were trained on are too good; --key is for --cross-validate only")
    if bool(scores) != bool(output) or not (output or save) or (save and not train):
        raise InputError("give SCORES with -o FILE, and --save FILE only with --train")
    form = "" if output is None else output_format(output, "scores", to_format).name  # refused before the work
    if posterior is not None and form not in ("csv", "tsv", "parquet", "npz"):
        raise InputError("--posterior adds a column, which this output does not have; write csv, tsv, parquet or npz")
    names = [name for text in quality or () for name in text.split(",")] or None
    found: Any = None
    info, labels = {}, None
    if load:
        found = read_model(load, Calibration)
    elif kind.supervised or cross_validate:
        keys = [path for path in (train_key, key) if path]
        maps = None if keys else speakers
        parts = read_labelled(train or scores or (), keys, maps, "--train-key" if train else "--key")
        training, labels = _with_metadata([table for table, _ in parts], metadata), parts[0][1]
    else:
        training = [read_scores(path) for path in train or ()]
    if cross_validate:
        tables = [_with_speakers(training[0], labels, speakers), *training[1:]]
        result = cross_validated(tables, labels, calibration=kind, folds=cross_validate, quality=names, **options)
        llrs = result.llr
        typer.echo(f"{kind.kind}, {len(result.speaker_folds)} speakers in {cross_validate} folds", err=output == "-")
    else:
        if found is None:
            found = kind.fit(training, labels, quality=names, **options)
            info = _facts(found, training, labels)
            warn_self_pairs(training[0])
            figures = "".join(f", {name} {value:.6g}" for name, value in info.items())
            typer.echo(f"{kind.kind} calibration{figures}", err="-" in (output, save))
        tables = _with_metadata([read_scores(path) for path in scores or ()], metadata)
        llrs = None if not tables else found(tables, names) if names and found.fuses else found(tables)
    if save is not None:
        write_model(found, save, {"train": train, **({"train_key": train_key} if train_key else {}), **info})
    if output is not None and llrs is not None:
        warn_self_pairs(tables[0])
        llrs = refuse_overflow(llrs, infinite=True)
        write(llrs if posterior is None else _with_posterior(llrs, posterior), output, format=to_format)


def _with_metadata(tables: list[Table], paths: Sequence[str] | None) -> list[Table]:
    """Return tables of which the first has the numbers of metadata as columns of its sides; NaN where there is none."""
    import numpy as np

    from evenscore.files import read_metadata

    def described(side: Side, numbers: dict[str, dict[str, float]]) -> Side:
        ids = side.ids.tolist()
        return side.with_columns(
            {name: np.array([known.get(i, np.nan) for i in ids]) for name, known in numbers.items()}
        )

    for path in paths or () if tables else ():
        data = read_metadata(path)
        texts = {name: data.by_id(name) for name in data.columns if name not in data.ids}
        numbers = {name: known for name, values in texts.items() if (known := _numbers(values)) is not None}
        enroll, test = tables[0].enroll, tables[0].test
        enroll = enroll if data.side == "test" else described(enroll, numbers)
        test = test if data.side == "enroll" else described(test, numbers)
        tables = [tables[0].with_sides(enroll, test), *tables[1:]]
    return tables


def _numbers(values: dict[str, str]) -> dict[str, float] | None:
    """Return the numbers of a column, None if it holds text."""
    try:
        return {name: float(value or "nan") for name, value in values.items()}
    except ValueError:
        return None


def _with_speakers(table: Table, labels: Any, speakers: str | None) -> Table:
    """Return a table with the speakers of a map, or with those that target trials tell."""
    from evenscore.cli.inputs import facts_of_ids
    from evenscore.metrics import speakers_from_targets

    if speakers is not None:
        described = facts_of_ids(speakers, None)
        return table.with_sides(described(table.enroll), described(table.test))
    known = speakers_from_targets([table.to_trials() if labels is None else table.to_matrix().to_trials(labels)])
    return table.with_speakers(known, known)


def _facts(found: Calibration, training: list[Table], labels: Any) -> dict[str, Any]:
    """Return how many trials a calibration was fitted to, and their Cllr."""
    from evenscore.metrics import as_points, cllr

    if not found.supervised:
        return {}
    points = as_points(found(training), labels)
    return {"n_target": points.n_target, "n_nontarget": points.n_nontarget, "cllr": cllr(points)}


def _with_posterior(llrs: Table, prior: float) -> Table:
    """Return the trials with a column of posterior probabilities."""
    from evenscore.data.trial_list import TrialList
    from evenscore.metrics import posterior_probability

    trials = llrs.to_trials()
    columns = {**trials.columns, "posterior": posterior_probability(trials.needs_scores(), prior)}
    return TrialList.trusted(**{**vars(trials), "columns": columns})
