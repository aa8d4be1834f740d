"""``evenscore fit``: train the score model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore.cli import options as opt
from evenscore.cli.option_records import with_records
from evenscore.cli.output import print_json, print_lines
from evenscore.cli.progress import progress_bar
from evenscore.cli.scale_options import ScaleChoices
from evenscore.cli.scorers import ScorerOption, scorer_of
from evenscore.errors import FileError, InputError
from evenscore.spelling import checked_options, name_and_options

if TYPE_CHECKING:
    from evenscore.model import FitResult

__all__ = ["EXAMPLES", "fit"]

EXAMPLES = """
evenscore fit --scores dev.scores --key dev.trials -o m.json
evenscore fit --scores dev.npz --enroll-speakers utt2spk -o m.json
evenscore fit --scores a.npz --key a --scores b.npz --key b -o m.json
evenscore fit --scores d --key k --phrase-from 're:_(p[0-9]+)_' -o m.json
evenscore fit --enroll-embeddings e.npz --test-embeddings t.npz -o m.json
evenscore fit --norm evidence --scores d.npz --key k -o evidence.json
evenscore fit --scores dev.zarr --enroll-speakers utt2spk --workers 4 -o m
"""


_OPTIONS: dict[str, dict[str, type]] = {
    "lgsm": {"dim": int, "tol": float, "max_iter": int, "starts": int, "min_divergence": bool},
    "evidence": {"dim": int},
}


def _trained(incomplete: str) -> list[str]:
    return [name for name in _OPTIONS if name.startswith(incomplete)]


@with_records
def fit(
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Model file to write; '-' is standard output.")
    ],
    scores: Annotated[
        list[str] | None,
        typer.Option("--scores", metavar="FILE", help="Scores; several files are several matrices, one per phrase."),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option("--key", "-k", metavar="FILE", help="Labels of the scores: one file for all, or one for each."),
    ] = None,
    enroll_speakers: Annotated[
        str | None,
        typer.Option("--enroll-speakers", metavar="FILE", help="Map from enrolment to speaker, instead of a key."),
    ] = None,
    test_speakers: Annotated[
        str | None,
        typer.Option("--test-speakers", metavar="FILE", help="Map from test to speaker; else --enroll-speakers."),
    ] = None,
    enroll_embeddings: Annotated[
        str | None,
        typer.Option("--enroll-embeddings", metavar="FILE", help="Embeddings of enrolments, not scores."),
    ] = None,
    test_embeddings: Annotated[
        str | None,
        typer.Option("--test-embeddings", metavar="FILE", help="Embeddings of tests, instead of scores."),
    ] = None,
    scorer: ScorerOption = "cosine",
    phrase_from: Annotated[
        str | None,
        typer.Option(
            "--phrase-from",
            metavar="WHERE",
            help="Split into one matrix per phrase of the tests: 're:' and a regular expression with one group on the "
            "id, a file with lines 'id phrase', or 'column:' and a column of the embeddings.",
        ),
    ] = None,
    norm: Annotated[
        str,
        typer.Option(
            "--norm",
            metavar="NAME[:OPTION=VALUE]",
            help="lgsm, the score model, or evidence, the cohort-evidence model (docs/evidence.md); with options, such "
            "as lgsm:dim=1.",
            autocompletion=_trained,
        ),
    ] = "lgsm",
    unmatched: opt.OnUnmatched = opt.Unmatched.error,
    *,
    scale: ScaleChoices,
    verbose: Annotated[bool, typer.Option("--verbose", help="Print the covariances of the effects, too.")] = False,
    json: opt.Json = False,
) -> None:
    """Train the score model (or another one: --norm) on labelled scores or embeddings, and write a model file.

    Labels come from a key, from speaker maps, or from the score files themselves. Several score files are several
    independent matrices: enrolments and tests have hidden variables of their own in each. From embeddings, every
    enrolment is scored against every test (with --key: the listed trials) without ever forming the matrix; speakers
    come from the embeddings or from the maps. Score matrices in .zarr, and in .npy with lists of ids beside it, and
    lists of trials in .parquet are read in chunks if they are large, or if workers or a memory limit are asked for.
    Prints where the variance of the scores comes from; 'evenscore model show' explains it.

    Options follow the name of the norm after colons, as in lgsm:dim=1:tol=1e-8. dim: hidden dimensions (2, the general
    model; 0 calibrates only); tol: stop when an iteration gains less nats per enrolment and test (1e-10); max_iter:
    most iterations of each start (5000); starts: starting points (3); min_divergence=false: do not fit the prior in
    each iteration, which is slower. evidence has dim alone.
    """
    if output == "-" and json:
        raise InputError("standard output can be the model file or the figures, not both; give -o a file name")
    if not Path(output).absolute().parent.is_dir():  # better now than after the training
        raise FileError(output, "its directory does not exist; create it first")
    name, how = name_and_options(norm)
    if name not in _OPTIONS:
        raise InputError(f"the norm {name!r} has nothing to train; choose {' or '.join(_OPTIONS)}")
    how = checked_options(f"the norm {name}", how, _OPTIONS[name])
    dim = how.pop("dim", 2)
    enroll, test = enroll_embeddings, test_embeddings
    if scores and (enroll or test):
        raise InputError("both scores and embeddings were given; train on one of the two")
    from evenscore.cli.labelled import LabelSources
    from evenscore.cli.training_data import from_embeddings, from_scores, in_memory
    from evenscore.model import fit_score_model

    labels = LabelSources(
        keys=key or (),
        enroll_speakers=enroll_speakers,
        test_speakers=test_speakers,
        unmatched=unmatched.value,
        phrase_from=phrase_from,
    )
    notes: list[str] = []
    with progress_bar() as progress, scale.client(progress) as client:
        progress("reading", 0.0)
        if scores:
            data = from_scores(scores, labels, scale if scale.in_chunks(*scores) else None, client)
            data = data if name == "lgsm" else in_memory(data)
        elif enroll and test:
            chosen = scorer_of(scorer)
            data, notes = from_embeddings(enroll, test, chosen, labels, uses_self_pairs=name != "evidence")
        else:
            raise InputError("there is nothing to train on; give --scores and --key, or embeddings of both sides")
        made_by = scorer if enroll else None
        inputs = {"scores": scores, "key": key, "enroll": enroll, "test": test, "scorer": made_by}
        inputs["phrase_from"] = phrase_from
        inputs = {option: value for option, value in inputs.items() if value}
        if name == "evidence":
            from evenscore.cli.evidence_training import print_evidence, train_from, write_evidence

            evidence = train_from(data, dim, progress)
        else:
            result = fit_score_model(data, dim, **how, progress=progress, client=client)
    if name == "evidence":
        write_evidence(evidence, output, inputs)
        if output != "-":
            print_evidence(evidence, notes, verbose=verbose, json=json)
        return
    _write(output, result, inputs)
    if json:
        print_json(_facts(result, len(data), notes))
    elif output != "-":
        _print(result, len(data), notes, verbose)


def _write(path: str, result: FitResult, inputs: dict[str, Any]) -> None:
    from evenscore._version import __version__
    from evenscore.files.models import save_model

    info = {
        "evenscore": __version__,
        **inputs,
        "n_nontarget": result.n_scores[0],
        "n_target": result.n_scores[1],
        "log_likelihood": float(result.log_likelihood[-1]),
        "iterations": result.n_iter,
        "converged": result.converged,
    }
    save_model(result.model, path, info=info)


def _facts(result: FitResult, n_matrices: int, notes: list[str]) -> dict[str, Any]:
    from evenscore.cli.model import model_facts

    return {
        "model": model_facts(result.model),
        "matrices": n_matrices,
        "scores": {"nontarget": result.n_scores[0], "target": result.n_scores[1]},
        "log_likelihood": result.log_likelihood[-1],
        "iterations": result.n_iter,
        "converged": result.converged,
        "restarts": result.restarts,
        "notes": [*result.notes, *notes],
    }


def _print(result: FitResult, n_matrices: int, notes: list[str], verbose: bool) -> None:
    from evenscore.cli.model import print_covariances, print_variances

    print_variances(result.model)
    if verbose:
        print_covariances(result.model)
    matrices = "1 matrix" if n_matrices == 1 else f"{n_matrices} matrices"
    end = "converged" if result.converged else "not converged"
    print_lines(
        [
            f"{result.n_scores[1]} target and {result.n_scores[0]} non-target scores in {matrices}",
            f"log-likelihood {result.log_likelihood[-1]:.4f}, {end} after {result.n_iter} iterations",
            *(f"! {note}" for note in (*result.notes, *notes)),
        ]
    )
