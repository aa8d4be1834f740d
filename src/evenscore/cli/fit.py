"""``evenscore fit``: labelled scores or embeddings in, a model out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore.cli.model import CLASSES, describe, model_lines
from evenscore.cli.options import Json, MemoryLimit, Scheduler, ScorerOption, Workers, file_option
from evenscore.errors import InputError
from evenscore.spelling import parse_name

if TYPE_CHECKING:
    from evenscore.cli.inputs import Table
    from evenscore.data.blocks import LabelledBlocks
    from evenscore.data.labels import Labels
    from evenscore.model.fit import FitResult

__all__ = ["EXAMPLES", "fit"]

EXAMPLES = """
evenscore fit --scores dev.scores --key dev.trials -o m.json
evenscore fit --scores dev.npz --speakers utt2spk -o m.json
evenscore fit --scores a.npz --key a.trials --scores b.npz --key b.trials -o m.json
evenscore fit --enroll-embeddings e.npz --test-embeddings t.npz -o m.json
evenscore fit --norm evidence --scores dev.npz --key dev.trials -o m.json
"""
_OPTIONS = {
    "lgsm": ("dim", "tol", "max_iter", "residuals", "method"),
    "evidence": ("dim", "ridge", "folds"),
}


def fit(
    output: Annotated[str, file_option("Model file to write; '-' is standard output.", "--output", "-o")],
    scores: Annotated[list[str] | None, file_option("Scores; several files are several matrices.")] = None,
    key: Annotated[list[str] | None, file_option("Labels: one for all, or one for each.", "--key", "-k")] = None,
    norm: Annotated[
        str, typer.Option(metavar="NAME[:OPTION=VALUE]", help="lgsm, the score model, or evidence.")
    ] = "lgsm",
    speakers: Annotated[str | None, file_option("Speakers of both sides by id, in place of a key.")] = None,
    enroll_embeddings: Annotated[str | None, file_option("Embeddings of the enrolments.")] = None,
    test_embeddings: Annotated[str | None, file_option("Embeddings of the tests.")] = None,
    scorer: ScorerOption = "cosine",
    as_json: Json = False,
    workers: Workers = None,
    scheduler: Scheduler = None,
    memory_limit: MemoryLimit = None,
) -> None:
    """Train a score model on labelled scores, and print where their variance comes from.

    Several files of scores, such as one per phrase, share the model. From embeddings, every enrolment is scored against
    every test but itself, or the trials of --key. Options of lgsm: dim (2; 0 calibrates only), tol, max_iter,
    residuals=gaussian (in place of densities with heavier tails), method=em; of evidence: dim, ridge.
    """
    from evenscore.cli.app import progress_bar
    from evenscore.cli.inputs import read_labelled
    from evenscore.files import output_format, write_model
    from evenscore.large import cluster
    from evenscore.model.fit import fit_score_model
    from evenscore.norms.registry import fit_norm, method_named

    name = norm.partition(":")[0]
    if method_named(name).fit is None:
        raise InputError(f"the norm {name!r} needs no training; the norms lgsm and evidence do")
    _, options = parse_name(norm, _OPTIONS.get(name))
    output_format(output, None)  # refused before the work, not after it
    virtual = name == "lgsm"  # which needs sums of the scores only
    with cluster(workers, scheduler, memory_limit), progress_bar("fit") as bar:
        if enroll_embeddings is not None and test_embeddings is not None:
            paths = enroll_embeddings, test_embeddings, speakers
            parts = [_score_vectors(*paths, key or [], scorer, virtual)]
        elif scores:
            parts = read_labelled(scores, key or [], speakers)
        else:
            raise InputError("there is nothing to train on; give --scores, or embeddings of enrolments and of tests")
        if virtual:
            result = fit_score_model(parts, **options, progress=bar)
            model, facts, lines = result.model, _facts(result, len(parts)), _lines(result)
        else:
            model = fit_norm(name, [_own_cohort(*part) for part in parts], **options).model
            facts, lines = {"matrices": len(parts)}, [f"{name}: trained on {len(parts)} score matrices"]
    write_model(model, output, {"files": list(scores or ()), "keys": list(key or ()), **facts})
    text = json.dumps({"model": describe(model), **facts}, indent=2) if as_json else "\n".join(lines)
    typer.echo(text, err=output == "-")


def _score_vectors(
    enroll: str, test: str, speakers: str | None, keys: list[str], scorer: str, virtual: bool
) -> tuple[Any, Labels | None]:
    """Return labelled scores of embeddings: of listed trials, of a matrix, or of one that is never formed."""
    from evenscore.cli.inputs import facts_of_ids, read_scorer, read_sides, score_training
    from evenscore.data.labels import Labels
    from evenscore.files import read_trials
    from evenscore.scoring import score_embeddings

    if len(keys) > 1:
        raise InputError("embeddings have one --key; leave out the others")
    described = facts_of_ids(speakers, None)
    left, right = read_sides(enroll, test)
    same, left = right is left, described(left)
    right = left if same else described(right)
    if keys:
        return score_embeddings(left, right, read_trials(keys[0]), scorer=read_scorer(scorer)), None
    labels = Labels.from_speakers(left, right)
    if not virtual or "train=" in scorer or "center=" in scorer:  # trained on own speakers: scored by folds
        return score_training(scorer, left, right), labels
    return read_scorer(scorer).bilinear(left, right), labels


def _own_cohort(scores: Table, labels: Labels | None) -> LabelledBlocks:
    """Return labelled scores as trials and cohort at once; speakers that are not known follow from target trials."""
    from evenscore.data.blocks import LabelledBlocks
    from evenscore.metrics import speakers_from_targets

    if scores.enroll.speakers is None or scores.test.speakers is None:
        trials = scores.to_trials() if labels is None else scores.to_matrix().to_trials(labels)
        known = speakers_from_targets([trials])
        scores = scores.with_speakers(known, known)
    return LabelledBlocks.own_cohort(scores.to_matrix())


def _facts(result: FitResult, n_matrices: int) -> dict[str, Any]:
    """Return how a training went, for the model file and for JSON."""
    return {
        "matrices": n_matrices,
        "scores": dict(zip(CLASSES, result.n_scores, strict=True)),
        "log_likelihood": float(result.log_likelihood[-1]),
        "iterations": result.n_iter,
        "converged": bool(result.converged),
        "notes": list(result.notes),
    }


def _lines(result: FitResult) -> list[str]:
    """Return what a person wants to know: the variance table, the likelihood, notes."""
    end = f"{'converged' if result.converged else 'not converged'} after {result.n_iter} iterations"
    return [
        *model_lines(result.model),
        f"{result.n_scores[1]} target and {result.n_scores[0]} non-target scores",
        f"log-likelihood {result.log_likelihood[-1]:.4f}, {end}",
        *(f"note: {note}" for note in result.notes),
    ]
