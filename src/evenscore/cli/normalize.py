"""``evenscore normalize``: trial and cohort scores, or embeddings, in; normalized scores out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from evenscore.cli.options import (
    RARE,
    EnrollMap,
    MemoryLimit,
    Output,
    Scheduler,
    ScorerOption,
    ToFormat,
    Workers,
    file_option,
)
from evenscore.errors import InputError
from evenscore.spelling import parse_name

if TYPE_CHECKING:
    from evenscore.data.blocks import ScoreBlocks
    from evenscore.data.embeddings import Embeddings
    from evenscore.data.score_matrix import ScoreMatrix
    from evenscore.data.trial_list import TrialList
    from evenscore.scoring.scorers import Scorer

    Table: TypeAlias = ScoreMatrix | TrialList
    Vectors: TypeAlias = tuple[Embeddings, Embeddings, Scorer]  # enrolments, tests, and how they are scored

__all__ = ["EXAMPLES", "normalize"]

EXAMPLES = """
evenscore normalize --trials s --enroll-cohort e --test-cohort t -o out
evenscore normalize --norm as:top_k=300 --trials s --enroll-cohort e --test-cohort t -o out
evenscore normalize --norm lgsm --model m.json --trials s --enroll-cohort e --test-cohort t -o out
evenscore normalize --trials dev.trials --enroll-embeddings x.npz --test-embeddings x.npz \\
    --cohort-embeddings c.npz -o out
"""
OPTIONS = {"enroll": "--enroll-cohort", "test": "--test-cohort", "condition": "--conditions"}
OPTIONS |= {"enroll_labels": "--enroll-key", "test_labels": "--test-key", "cohort_labels": "--cohort-key"}
_CHECKED = 5000  # scores that the scorer makes again


def normalize(
    output: Output,
    trials: Annotated[str | None, file_option("Scores to normalize (S), or a list of trials.")] = None,
    norm: Annotated[str, typer.Option(metavar="NAME[:OPTION=VALUE]", help="z t zt tz s as at az lgsm evidence")] = "as",
    model: Annotated[str | None, file_option("Model of 'evenscore fit', for lgsm, evidence.")] = None,
    enroll_cohort: Annotated[str | None, file_option("Enrolments against the cohort (S_e).")] = None,
    test_cohort: Annotated[str | None, file_option("Cohort against the tests (S_t).")] = None,
    cohort: Annotated[str | None, file_option("Cohort against itself (S_I).")] = None,
    speakers: Annotated[str | None, file_option("Speakers by id; a trial's own are left out of its cohort.")] = None,
    cohort_speakers: Annotated[str | None, file_option("Speakers of the cohort, if in another file.")] = None,
    enroll_embeddings: Annotated[str | None, file_option("Embeddings of the enrolments.")] = None,
    test_embeddings: Annotated[str | None, file_option("Embeddings of the tests.")] = None,
    cohort_embeddings: Annotated[str | None, file_option("Embeddings of the cohort.")] = None,
    scorer: ScorerOption = "cosine",
    to_format: ToFormat = None,
    cohort_key: Annotated[str | None, file_option("Labels of --cohort; else from speakers.", rare=True)] = None,
    enroll_key: Annotated[str | None, file_option("Labels of --enroll-cohort: known targets.", rare=True)] = None,
    test_key: Annotated[str | None, file_option("Labels of --test-cohort: known targets.", rare=True)] = None,
    conditions: Annotated[
        str | None,
        file_option("Map from id to condition, which trial and cohort share, or column:NAME.", rare=True),
    ] = None,
    cohort_conditions: Annotated[str | None, file_option("The same for the cohort.", rare=True)] = None,
    folds: Annotated[int | None, typer.Option(metavar="N", help="Folds of own speakers.", rich_help_panel=RARE)] = None,
    enroll_map: EnrollMap = None,
    cohort_unit: Annotated[
        str,
        typer.Option(
            metavar="NAME[:OPTION=VALUE]",
            help="Cohort members: utterance, or speaker (means), with length_norm=before.",
            rich_help_panel=RARE,
        ),
    ] = "utterance",
    exclude_speakers: Annotated[str | None, file_option("Speakers that leave the cohort.", rare=True)] = None,
    quality: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Columns to write: mag, mu, sigma, min:mag, ...", rich_help_panel=RARE),
    ] = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    memory_limit: MemoryLimit = None,
) -> None:
    """Normalize trial scores with cohort scores.

    z needs --enroll-cohort, t --test-cohort, s and as both, zt and tz also --cohort; lgsm and evidence use what there
    is. Options follow a norm: top_k, drop_top, select, statistic, trim, ddof, std_floor, combine, convention.
    """
    from evenscore.cli.app import progress_bar
    from evenscore.cli.inputs import CONDITION, facts_of_ids, labelled_format, read_blocks, refuse_overflow
    from evenscore.files import output_format, write
    from evenscore.large import cluster, is_dask, task_progress
    from evenscore.norms.registry import normalize as normalize_blocks

    method, options = _parse_norm(norm, model)
    lazy = output_format(output, "scores", to_format).name == "zarr"  # refused before the work, not after it
    column = conditions.removeprefix("column:") if conditions and conditions.startswith("column:") else None
    of_trials = facts_of_ids(speakers, None if column else conditions)
    of_cohort = facts_of_ids(cohort_speakers or speakers, None if column else cohort_conditions or conditions)
    vectors = None
    with cluster(workers, scheduler, memory_limit), progress_bar("normalize") as bar:
        if enroll_embeddings and test_embeddings and cohort_embeddings:
            if enroll_cohort or test_cohort or cohort:
                raise InputError("cohort scores are made from embeddings; leave out those of files, or the embeddings")
            vectors = _read_vectors(enroll_embeddings, test_embeddings, enroll_map, scorer, of_trials)
            members = _read_cohort(cohort_embeddings, cohort_unit, exclude_speakers, of_cohort)
            blocks = _score_vectors(vectors, members, trials, method, lazy, options)
        elif enroll_embeddings or test_embeddings or cohort_embeddings:
            names = "--enroll-embeddings, --test-embeddings and --cohort-embeddings"
            raise InputError(f"embeddings must be those of enrolments, tests and cohort; give {names}")
        elif trials is None:
            raise InputError("there is nothing to normalize; give scores by --trials, or embeddings")
        else:
            keys = enroll_key, test_key, cohort_key
            blocks = read_blocks(trials, enroll_cohort, test_cohort, cohort, keys, of_trials, of_cohort)
        condition = column or (CONDITION if conditions else None)
        with task_progress(bar if is_dask(blocks.trials.scores) else None):
            table = normalize_blocks(blocks, method, folds=folds, condition=condition, progress=bar, **options)
            if quality:
                table = _with_quality(table, quality, blocks, vectors, method, options)
            write(refuse_overflow(table), output, format=labelled_format(table, output, to_format))


def _parse_norm(norm: str, model: str | None) -> tuple[str, dict[str, Any]]:
    """Return a norm's name and options, with the model of a file."""
    from evenscore.files import read_model
    from evenscore.norms.options import CLASSICAL, NormOptions
    from evenscore.norms.registry import method_named

    method = norm.partition(":")[0]
    trained = method_named(method).fit is not None
    classical = (*(field.name for field in fields(NormOptions)), "convention")
    _, options = parse_name(norm, classical if method in CLASSICAL else () if trained else None)
    if trained and model is None:
        raise InputError(f"the norm {method!r} needs a trained model; give it by --model, 'evenscore fit' makes one")
    if model is not None and not trained:
        raise InputError(f"--model is for lgsm and evidence; leave it out, the norm {method!r} has none")
    return method, options | ({} if model is None else {"model": read_model(model)})


def _read_vectors(
    enroll: str, test: str, enroll_map: str | None, scorer: str, of_trials: Callable[[Embeddings], Embeddings]
) -> Vectors:
    """Read the embeddings of both sides, and the scorer."""
    from evenscore.cli.inputs import read_scorer, read_sides

    how = read_scorer(scorer)
    left, right = read_sides(enroll, test, enroll_map, how)
    described = of_trials(left)
    return described, described if right is left else of_trials(right), how


def _read_cohort(
    path: str, unit: str, exclude_speakers: str | None, of_cohort: Callable[[Embeddings], Embeddings]
) -> Embeddings:
    """Read the embeddings of a cohort: its utterances, or means of its speakers."""
    from evenscore.files import read_embeddings
    from evenscore.files.streams import text_lines
    from evenscore.scoring import make_cohort

    name, options = parse_name(unit, ("length_norm",))
    excluded = [] if exclude_speakers is None else [line.split()[0] for _, line in text_lines(exclude_speakers)]
    found = of_cohort(read_embeddings(path))
    return make_cohort(found, name, exclude_speakers=excluded, **options)  # type: ignore[arg-type]


def _score_vectors(
    vectors: Vectors, cohort: Embeddings, trials: str | None, method: str, lazy: bool, options: Mapping[str, Any]
) -> ScoreBlocks:
    """Return trials and cohort scores; trials that have scores keep them, if the scorer can have made them."""
    from evenscore.files import read_trials
    from evenscore.scoring import embedding_blocks

    enroll, test, scorer = vectors
    listed = None if trials is None else read_trials(trials)
    blocks = embedding_blocks(enroll, test, cohort, listed, scorer=scorer, method=method, lazy=lazy, **options)
    if listed is not None and listed.scores is not None:
        _check_scorer(blocks.trials.to_trials(), vectors, cohort)
    return blocks


def _check_scorer(trials: TrialList, vectors: Vectors, cohort: Embeddings) -> None:
    """Say so if the scorer does not make the scores of trials again, and which one does."""
    import numpy as np

    from evenscore.scoring import make_scorer

    enroll, test, scorer = vectors
    some = trials.select(np.unique(np.linspace(0, len(trials) - 1, _CHECKED).astype(int)))
    left, right = enroll.select(some.enroll_ids), test.select(some.test_ids)
    scores = some.needs_scores().astype(float)
    rounded = next((d for d in range(1, 6) if np.allclose(scores, scores.round(d), rtol=0, atol=1e-9)), 6)

    def fits(one: Scorer) -> bool:
        """Tell whether a scorer makes the scores but for rounding; a few may be of other embeddings."""
        again = one.bilinear(left, right).pairs(some.rows, some.cols)
        return bool(np.quantile(abs(again - scores), 0.9) <= 10.0**-rounded + 1e-4 * scores.std())

    if fits(scorer):
        return
    others = {"cosine": {}, "dot": {}, "cosine:center=FILE": {"center": "mean"}, "dot:center=FILE": {"center": "mean"}}
    found = [name for name, how in others.items() if fits(make_scorer(name.partition(":")[0], cohort, **how))]
    remedy = f"--scorer {found[0]} makes them" if found else "give another --scorer, its center=FILE, or swap the sides"
    typer.echo(f"warning: --scorer does not make the scores of --trials of the embeddings; {remedy}", err=True)


def _with_quality(
    table: Table, names: Sequence[str], blocks: ScoreBlocks, vectors: Vectors | None, method: str, options: Any
) -> Table:
    """Return a list of trials with quality measures as columns: of both sides, or such as min:mag."""
    from evenscore.calibrate import quality_columns
    from evenscore.data.trial_list import TrialList
    from evenscore.scoring import embedding_quality

    if vectors is None or table.rows is None:
        raise InputError("--quality is for listed trials of embeddings; give these by --enroll-embeddings and --trials")
    center = getattr(getattr(vectors[2], "projection", None), "center", None)
    of_enroll, of_test = embedding_quality(blocks, vectors[0], vectors[1], method, center, **options)
    of_enroll, of_test = (
        of_enroll.take(of_enroll.positions(table.enroll_ids)),
        of_test.take(of_test.positions(table.test_ids)),
    )
    known, columns = table.with_sides(of_enroll, of_test), dict(table.columns)
    for name in (name for text in names for name in text.split(",")):
        both = {f"{name}_e": f"enroll:{name}", f"{name}_t": f"test:{name}"}
        for column, measure in ({name: name} if ":" in name else both).items():
            columns[column] = quality_columns(known, [measure])[..., 0]
    return TrialList.trusted(table.enroll, table.test, table.rows, table.cols, table.scores, table.labels, columns)
