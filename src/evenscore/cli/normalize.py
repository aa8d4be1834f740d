"""``evenscore normalize``: cohort scores in, comparable scores or log-likelihood ratios out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore.cli import options as opt
from evenscore.cli.progress import progress_bar
from evenscore.cli.scorers import Center, PldaFile, ScorerName, ScorerOption, scorer_of
from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.tables import Labels, ScoreBlocks, ScoreMatrix, TrialList

__all__ = ["EXAMPLES", "normalize"]

EXAMPLES = """
evenscore normalize --method as --trials s --enroll e --test t -o out
evenscore normalize --method z --trials s --enroll z.scores -o out.csv
evenscore normalize --model m.json --trials s --enroll e --test t -o out
evenscore normalize --model m.json --trials s --cohort c --enroll e -o o
evenscore normalize --method as --trials dev.trials -o out \\
    --enroll-embeddings x --test-embeddings x --cohort-embeddings c
"""

LGSM = "lgsm"


def _methods(incomplete: str) -> list[str]:
    from evenscore.norms import norm_methods

    return [name for name in norm_methods() if name.startswith(incomplete)]


def _block(name: str, meaning: str) -> Any:
    return typer.Option(f"--{name}", metavar="FILE", help=meaning)


def normalize(
    output: opt.Output,
    trials: Annotated[
        str | None,
        typer.Option(
            "--trials", metavar="FILE", help="Scores to be normalized (S); for embeddings, the trials to score, or all."
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="NAME",
            help="lgsm (the score model; default), or z, t, zt, tz, s, as, at, az.",
            autocompletion=_methods,
        ),
    ] = LGSM,
    model: Annotated[
        str | None, typer.Option("--model", metavar="FILE", help="Model file of 'evenscore fit', for lgsm.")
    ] = None,
    enroll: Annotated[
        str | None, _block("enroll", "Cohort scores of the enrolments: they against the cohort's tests (S_e).")
    ] = None,
    test: Annotated[
        str | None, _block("test", "Cohort scores of the tests: the cohort's enrolments against them (S_t).")
    ] = None,
    cohort: Annotated[str | None, _block("cohort", "Scores of the cohort against itself (S_I).")] = None,
    cohort_key: Annotated[
        str | None, _block("cohort-key", "Labels of the cohort scores; by default all are non-targets.")
    ] = None,
    speakers: Annotated[
        str | None,
        _block("speakers", "Map from id to speaker: a trial's own speakers are left out of its cohort."),
    ] = None,
    cohort_speakers: Annotated[
        str | None, _block("cohort-speakers", "Map from id to speaker for the cohort; else --speakers.")
    ] = None,
    enroll_embeddings: Annotated[
        str | None, _block("enroll-embeddings", "Embeddings of the enrolments, in place of the blocks of scores.")
    ] = None,
    test_embeddings: Annotated[str | None, _block("test-embeddings", "Embeddings of the tests.")] = None,
    cohort_embeddings: Annotated[
        str | None, _block("cohort-embeddings", "Embeddings of the cohort, which serve on both sides.")
    ] = None,
    scorer: ScorerOption = ScorerName.cosine,
    plda: PldaFile = None,
    center: Center = None,
    top_k: Annotated[
        str | None,
        typer.Option("--top-k", metavar="N", help="as, at, az: highest cohort scores taken, or a fraction like 0.1."),
    ] = None,
    convention: Annotated[
        str | None,
        typer.Option(
            "--convention",
            metavar="TOOL",
            help="Classical norms as in wespeaker, speechbrain, espnet, asv-subtools, hyperion or bob.",
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Other options of the classical norms: ddof, std_floor, zero_std, combine, select, drop_top, "
            "statistic, trim, excess, vanished.",
        ),
    ] = None,
    unmatched: opt.OnUnmatched = opt.Unmatched.error,
    missing: opt.OnMissing = opt.Missing.error,
    duplicates: opt.OnDuplicates = opt.Duplicates.error,
    score_column: opt.ScoreColumn = None,
    from_format: opt.FromFormat = None,
    to_format: opt.ToFormat = None,
) -> None:
    """Normalize trial scores with the help of cohort scores.

    lgsm needs a trained model (--model) and returns log-likelihood ratios; it works with the cohort scores of both
    sides, of one, or of none. z needs --enroll, t needs --test, s and as need both, zt and tz also --cohort. The four
    blocks are matched by id; their rows and columns may be in any order. The output keeps the form (matrix or list),
    the order and the labels of the trials. With embeddings of enrolments, tests and cohort, all scores are made by
    --scorer.
    """
    from evenscore.norms import prepare_norm

    settings = _settings(method, model, top_k, convention, option or [])
    reading = {
        "format": from_format,
        "missing": missing.value,
        "duplicates": duplicates.value,
        "score_column": score_column,
    }
    with progress_bar() as progress:
        progress("reading", 0.0)
        norm = prepare_norm(method, **settings)
        paths = {"enroll": enroll, "test": test, "cohort": cohort}
        vectors = (enroll_embeddings, test_embeddings, cohort_embeddings)
        if any(vectors):
            from evenscore.cli.embedding_norms import normalize_embeddings, read_sides

            if any(paths.values()) or cohort_key:
                raise InputError("both embeddings and cohort scores were given; normalize with one of the two")
            sides = read_sides(vectors, speakers, cohort_speakers)
            progress("normalizing", 0.3)
            made_by = scorer_of(scorer, plda, center)
            result = normalize_embeddings(method, settings, made_by, sides, trials, from_format)
        else:
            blocks = _read_blocks(trials, paths, reading, cohort_key, speakers, cohort_speakers, unmatched.value)
            progress("normalizing", 0.3)
            result = norm.normalize(blocks)
        progress("writing", 0.9)
        _write(result, output, to_format)


def _settings(
    method: str, model: str | None, top_k: str | None, convention: str | None, given: list[str]
) -> dict[str, Any]:
    """Return the options of the norm from those of the command line."""
    if method == LGSM:
        if model is None:
            raise InputError("the method lgsm needs a trained model; give --model, or choose another --method")
        odd = [name for name, value in (("--top-k", top_k), ("--convention", convention), ("--set", given)) if value]
        if odd:
            raise InputError(f"{odd[0]} is for the classical norms, but the method is lgsm; leave it out")
        from evenscore.files.model_json import load_model

        return {"model": load_model(model)}
    if model is not None:
        raise InputError(f"the norm {method!r} uses no model; leave out --model, or choose --method lgsm")
    settings: dict[str, Any] = {} if top_k is None else {"top_k": _number(top_k, "--top-k")}
    if convention is not None:
        settings["convention"] = convention
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--set {text!r} is not of the form NAME=VALUE")
        settings[name.replace("-", "_")] = _number_or_text(value)
    return settings


def _number(text: str, option: str) -> int | float:
    value = _number_or_text(text)
    if isinstance(value, str):
        raise InputError(f"{option} is {text!r}, but must be a number")
    return value


def _number_or_text(text: str) -> int | float | str:
    try:
        return float(text) if any(mark in text for mark in ".eE") else int(text)
    except ValueError:
        return text


def _read_blocks(
    trials: str | None,
    paths: dict[str, str | None],
    reading: dict[str, Any],
    cohort_key: str | None,
    speakers: str | None,
    cohort_speakers: str | None,
    unmatched: Any,
) -> ScoreBlocks:
    from evenscore.cli.combine import as_matrix
    from evenscore.cli.labelled import speakers_for
    from evenscore.files import read_scores, read_speakers
    from evenscore.tables import ScoreBlocks

    if trials is None:
        raise InputError("there is nothing to normalize; give --trials, or embeddings")
    scores = read_scores(trials, **reading)
    blocks: dict[str, Any] = {
        name: as_matrix(read_scores(path, **reading)) for name, path in paths.items() if path is not None
    }
    if cohort_key is not None and "cohort" not in blocks:
        raise InputError("--cohort-key gives labels to cohort scores; give --cohort too")
    labels = None if cohort_key is None else _cohort_labels(blocks["cohort"], cohort_key, unmatched)
    sides: dict[str, Any] = {}
    if speakers is not None:
        known = read_speakers(speakers)
        sides["enroll_speakers"] = speakers_for(scores.enroll_ids, speakers, known, "enrolment")
        sides["test_speakers"] = speakers_for(scores.test_ids, speakers, known, "test")
    path = cohort_speakers or speakers
    if path is not None:
        known = read_speakers(path)
        for side, other, ids in (("enroll", "test", "enroll_ids"), ("test", "enroll", "test_ids")):
            block = blocks.get("cohort", blocks.get(other))
            if block is not None:
                members = getattr(block, ids)
                sides[f"cohort_{side}_speakers"] = speakers_for(members, path, known, "cohort member")
    return ScoreBlocks(scores, cohort_labels=labels, **blocks, **sides)


def _cohort_labels(cohort: ScoreMatrix, key: str, unmatched: Any) -> Labels:
    from evenscore.cli.labelled import label_by_key
    from evenscore.files import read_trials

    [labelled] = label_by_key([cohort], read_trials(key), unmatched)
    assert isinstance(labelled, tuple)  # noqa: S101
    return labelled[1]


def _write(result: ScoreMatrix | TrialList, output: str, to_format: str | None) -> None:
    from evenscore.files import FORMATS, write
    from evenscore.tables import TrialList

    endings = tuple(ending for format in FORMATS.values() for ending in format.extensions)
    labelled = isinstance(result, TrialList) and result.labels is not None
    if to_format is None and labelled and not output.lower().removesuffix(".gz").endswith(endings):
        to_format = "wespeaker"  # the usual format for such names has no place for labels
    write(result, output, format=to_format)
