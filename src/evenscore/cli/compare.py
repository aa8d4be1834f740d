"""``evenscore compare``: which norm to use on one's own scores, what it gains, and how sure that is."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from evenscore.cli.options import RARE, Json, ScorerOption, file_option, operating_point
from evenscore.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from evenscore.comparison import Comparison
    from evenscore.data.blocks import LabelledBlocks
    from evenscore.data.embeddings import Embeddings
    from evenscore.data.labels import Labels
    from evenscore.data.score_matrix import ScoreMatrix
    from evenscore.data.side import Ids, Side
    from evenscore.data.trial_list import TrialList

    Labelled: TypeAlias = tuple[ScoreMatrix | TrialList, Labels | None]  # a list has its labels itself
    Sides: TypeAlias = tuple[list[LabelledBlocks], list[LabelledBlocks]]  # training and evaluation, by condition

__all__ = ["EXAMPLES", "compare", "print_comparison", "write_results"]

EXAMPLES = """
evenscore compare --train d --train-key k --cohort c --trials e --key l -o r
evenscore compare --train-embeddings d.npz --enroll-embeddings x.npz \\
    --test-embeddings x.npz --scorer cosine:center=d.npz --key key -o report
"""
OPTIONS = {"enroll": "--enroll-cohort", "test": "--test-cohort"}

Files = list[str] | None


def compare(
    output: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="Directory for report and results.")],
    train: Annotated[Files, file_option("Training scores; a file for each condition.")] = None,
    train_key: Annotated[Files, file_option("Their labels, one file for all or for each.")] = None,
    trials: Annotated[Files, file_option("Evaluation scores, a file for each of --train.")] = None,
    key: Annotated[Files, file_option("Their labels; with embeddings, the trials.", "--key", "-k")] = None,
    enroll_cohort: Annotated[Files, file_option("Enrolments against the cohort's tests.")] = None,
    test_cohort: Annotated[Files, file_option("The cohort's enrolments against tests.")] = None,
    cohort: Annotated[Files, file_option("All scores of cohort members, in any order.")] = None,
    speakers: Annotated[str | None, file_option("Map from id to speaker, for everybody.")] = None,
    train_embeddings: Annotated[str | None, file_option("Embeddings to train on, also the cohort.")] = None,
    enroll_embeddings: Annotated[str | None, file_option("Embeddings of evaluation enrolments.")] = None,
    test_embeddings: Annotated[str | None, file_option("Embeddings of evaluation tests.")] = None,
    scorer: ScorerOption = "cosine",
    methods: Annotated[
        str, typer.Option(metavar="NAMES", help="Norms, such as raw,s,as:top_k=100,lgsm:dim=1.")
    ] = "raw,z,t,zt,s,as,lgsm,evidence",
    calibration: Annotated[str, typer.Option(metavar="NAME", help="Of all methods.")] = "logistic",
    points: Annotated[
        Files,
        typer.Option(metavar="PRIOR[,C_MISS,C_FA]", help="Operating points, by default 0.01.", rich_help_panel=RARE),
    ] = None,
    bootstrap: Annotated[int, typer.Option(min=1, metavar="N", help="Draws of speakers.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, metavar="NUMBER", help="Of the draws.", rich_help_panel=RARE)] = 0,
    allow_overlap: Annotated[
        bool, typer.Option("--allow-overlap", help="Speakers may be on both sides.", rich_help_panel=RARE)
    ] = False,
    scores: Annotated[bool, typer.Option("--scores", help="Write each method's scores, too.")] = False,
    json: Json = False,
) -> None:
    """Tell which norm to use on your own scores, what it gains, and how sure that is.

    All is trained on the training side; without a cohort of others, that is the cohort.
    """
    from evenscore.cli.app import progress_bar
    from evenscore.cli.inputs import facts_of_ids
    from evenscore.comparison import compare as compare_norms
    from evenscore.comparison.folder import check_folder
    from evenscore.comparison.judge import parse_methods

    wanted = [name.strip() for name in methods.split(",") if name.strip()]
    parse_methods(wanted)  # what is wrong is refused before the work, not after it
    places = [operating_point(text) for text in points or ("0.01",)]
    folder = check_folder(output)
    of_ids = facts_of_ids(speakers, None)
    if train_embeddings is not None:
        if train or enroll_embeddings is None or test_embeddings is None:
            names = "--train-embeddings, --enroll-embeddings and --test-embeddings"
            raise InputError(f"embeddings must be those of training, enrolments and tests; give {names}, not --train")
        paths = train_embeddings, enroll_embeddings, test_embeddings
        sides = _sides_from_embeddings(paths, key, trials, scorer, of_ids)
    elif train and trials:
        known = _read_side(train, train_key, speakers, of_ids), _read_side(trials, key, speakers, of_ids)
        sides = _sides_from_scores(*known, (enroll_cohort, test_cohort, cohort), of_ids)
    else:
        raise InputError("both sides are needed; give --train and --trials, or embeddings")
    command = shlex.join(["evenscore", *sys.argv[1:]])
    how = {"calibration": calibration, "bootstrap": bootstrap, "seed": seed, "allow_overlap": allow_overlap}
    with progress_bar("compare") as bar:
        found = compare_norms(*sides, wanted, points=places, command=command, progress=bar, **how)  # type: ignore[arg-type]
    write_results(found, folder, scores=scores)
    if json:
        import json as json_format

        typer.echo(json_format.dumps(found.to_dict(), indent=1))
        return
    print_comparison(found)
    typer.echo(f"\nThe report is {folder / 'report.html'}; all figures are in {folder / 'results.json'}.")


def _read_side(
    paths: Sequence[str], keys: Files, speakers: str | None, of_ids: Callable[[Side], Side]
) -> list[tuple[str, Labelled]]:
    """Read the labelled scores of one side, with a name for each condition and the speakers that are known."""
    from evenscore.cli.inputs import read_labelled

    names = [path.rpartition("/")[2].partition(".")[0] for path in paths] if len(paths) > 1 else [""]
    tables = read_labelled(paths, keys or [], None if keys else speakers)
    known = [(table.with_sides(of_ids(table.enroll), of_ids(table.test)), labels) for table, labels in tables]
    return list(zip(names, known, strict=True))


def _sides_from_scores(
    training: list[tuple[str, Labelled]],
    evaluation: list[tuple[str, Labelled]],
    cohort_files: tuple[Files, Files, Files],
    of_ids: Callable[[Side], Side],
) -> Sides:
    """Return the blocks of both sides; cohort scores of files apart are those of each condition, or of all."""
    from evenscore.data.score_matrix import ScoreMatrix
    from evenscore.files import read_scores

    if len(training) != len(evaluation):
        raise InputError(f"there are {len(training)} of --train and {len(evaluation)} of --trials; give as many")
    read: list[list[ScoreMatrix]] = []
    for paths in cohort_files:
        tables = [read_scores(path).to_matrix() for path in paths or ()]
        read.append([table.with_sides(of_ids(table.enroll), of_ids(table.test)) for table in tables])
    for option, tables in (("--enroll-cohort", read[0]), ("--test-cohort", read[1])):
        if len(tables) not in (0, 1, len(training)):
            raise InputError(f"there are {len(tables)} of {option}; give one for all conditions or one for each")
    pool = ScoreMatrix.concat(read[2]) if read[2] else None
    pairs = []
    for number, (own, new) in enumerate(zip(training, evaluation, strict=True)):
        enroll, test = (tables[number % len(tables)] if tables else None for tables in read[:2])
        pairs.append(_paired_blocks(own, new, enroll, test, pool))
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def _paired_blocks(
    training: tuple[str, Labelled],
    evaluation: tuple[str, Labelled],
    enroll: ScoreMatrix | None,
    test: ScoreMatrix | None,
    pool: ScoreMatrix | None,
) -> tuple[LabelledBlocks, LabelledBlocks]:
    """Return the blocks of one condition on both sides.

    Cohort members are those in the pool of cohort scores who have no trials; without any, the training side is the
    cohort, of itself and of the evaluation.
    """
    from evenscore.data.blocks import LabelledBlocks, ScoreBlocks

    (own_name, (own, own_labels)), (name, (new, labels)) = training, evaluation
    rows, cols = own.enroll_ids, own.test_ids
    others: Ids | None = None
    if pool is not None:
        others = pool.enroll_ids[(own.enroll.find(pool.enroll_ids) < 0) & (new.enroll.find(pool.enroll_ids) < 0)]
        tests = pool.test_ids[(own.test.find(pool.test_ids) < 0) & (new.test.find(pool.test_ids) < 0)]
        others = others if len(others) or len(tests) else None
        rows, cols = (rows, cols) if others is None else (others, tests)
    enroll = _part(pool, new.enroll_ids, cols) if enroll is None else enroll
    test = _part(pool, rows, new.test_ids) if test is None else test
    if others is None:
        first = _own_cohort(own, own_labels, own_name)
        blocks = ScoreBlocks(new, enroll, test, first.blocks.cohort, cohort_labels=first.blocks.cohort_labels)
    else:
        inner = _part(pool, rows, cols)
        of_own = _part(pool, own.enroll_ids, cols), _part(pool, rows, own.test_ids)
        first = LabelledBlocks(ScoreBlocks(own, *of_own, inner), own_labels, own_name)
        blocks = ScoreBlocks(new, enroll, test, inner)
    return first, LabelledBlocks(blocks, labels, name)


def _part(pool: ScoreMatrix | None, rows: Ids, cols: Ids) -> ScoreMatrix | None:
    """Return these rows and columns of the pool, as far as it has them; None if it has no score of them."""
    import numpy as np

    if pool is None:
        return None
    at, there = pool.enroll.find(rows), pool.test.find(cols)
    found = pool.take(at[at >= 0], there[there >= 0])
    return None if np.isnan(found.scores).all() else found


def _own_cohort(scores: ScoreMatrix | TrialList, labels: Labels | None, name: str) -> LabelledBlocks:
    """Return labelled scores as their own cohort; a map tells who speaks, or else the target trials."""
    from evenscore.data.blocks import LabelledBlocks
    from evenscore.data.labels import Labels
    from evenscore.metrics import speakers_from_targets

    listed = scores.to_trials() if labels is None else scores.to_matrix().to_trials(labels)
    matrix = scores.to_matrix()
    if matrix.enroll.speakers is None or matrix.test.speakers is None:
        known = speakers_from_targets([listed])
        matrix = matrix.with_speakers(known, known)
    own = LabelledBlocks.own_cohort(matrix, name=name)
    by_speaker = Labels.from_speakers(matrix.enroll, matrix.test)
    if (by_speaker.pairs(listed.rows, listed.cols) == listed.labels).all():
        return own
    return LabelledBlocks(own.blocks, Labels.from_trials(listed), name)


def _sides_from_embeddings(
    paths: tuple[str, str, str], key: Files, trials: Files, scorer: str, of_ids: Callable[[Embeddings], Embeddings]
) -> Sides:
    """Score the training side against itself, which is the cohort, and the evaluation trials."""
    from evenscore.cli.inputs import read_scorer, read_sides, score_training
    from evenscore.data.blocks import LabelledBlocks
    from evenscore.data.labels import Labels
    from evenscore.files import read_embeddings, read_trials
    from evenscore.scoring import embedding_blocks

    training = of_ids(read_embeddings(paths[0]))
    if training.speakers is None:
        raise InputError("the training embeddings have no speakers; give them by --speakers")
    enroll, test = map(of_ids, read_sides(*paths[1:]))
    listed = [read_trials(path) for path in (*(key or ()), *(trials or ()))]
    if len(listed) > 1 or (listed and listed[0].labels is None):
        raise InputError("with embeddings, --key is one list of trials with labels; give that and no --trials")
    blocks = embedding_blocks(enroll, test, training, listed[0] if listed else None, scorer=read_scorer(scorer))
    labels = None if listed else Labels.from_speakers(enroll, test)
    own = LabelledBlocks.own_cohort(score_training(scorer, training, training))
    return [own], [LabelledBlocks(blocks, labels)]


def write_results(comparison: Comparison, folder: Path, *, scores: bool = False) -> None:
    """Write the folder of a comparison, with its report."""
    from evenscore.comparison import write_folder
    from evenscore.report import render_report

    write_folder(comparison, folder, render_report(comparison), scores=scores)


def print_comparison(comparison: Comparison) -> None:
    """Print methods and figures, lowest Cllr first, then what follows from them."""
    for diagnostic in comparison.diagnostics:
        typer.echo(f"warning: {diagnostic.message}", err=True)
    typer.echo(str(comparison))
