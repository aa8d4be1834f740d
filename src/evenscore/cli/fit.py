"""``evenscore fit``: train the score model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from evenscore.cli import options as opt
from evenscore.cli.norm_options import EMBEDDINGS
from evenscore.cli.option_records import with_records
from evenscore.cli.options import ScaleChoices
from evenscore.cli.output import check_model_output, print_json, print_lines, progress_bar
from evenscore.cli.scorers import ScorerOption
from evenscore.cli.self_centering import SelfCenteredOption
from evenscore.errors import InputError
from evenscore.spelling import checked_options, name_and_options

if TYPE_CHECKING:
    from evenscore.cli.training_data import MeasuredBeyond, OwnLlrs
    from evenscore.evidence import CohortEvidence
    from evenscore.model import FitResult

__all__ = ["EXAMPLES", "fit"]

EXAMPLES = """
evenscore fit --scores dev.scores --key dev.trials -o m.json
evenscore fit --scores dev.npz --enroll-speakers utt2spk -o m.json
evenscore fit --scores a.npz --key a --scores b.npz --key b -o m.json
evenscore fit --scores d --key k --phrase-from 're:_(p[0-9]+)_' -o m.json
evenscore fit --enroll-embeddings e.npz --test-embeddings t.npz -o m.json
evenscore fit --norm evidence --scores d.npz --key k -o evidence.json
evenscore fit --scores dev.zarr --enroll-speakers utt2spk --workers 2 -o m
"""


_OPTIONS: dict[str, dict[str, type]] = {
    "lgsm": {
        "dim": int,
        "tol": float,
        "max_iter": int,
        "starts": int,
        "min_divergence": bool,
        "residuals": str,
    },
    "evidence": {"dim": int},
}


def _trained(incomplete: str) -> list[str]:
    return [name for name in _OPTIONS if name.startswith(incomplete)]


@dataclass(frozen=True, kw_only=True)
class _Vectors:
    """Embeddings in place of scores."""

    PANEL: ClassVar[str] = EMBEDDINGS

    enroll_embeddings: Annotated[str | None, opt.file("Embeddings of the enrolments.")] = None
    test_embeddings: Annotated[str | None, opt.file("Embeddings of the tests.")] = None
    scorer: ScorerOption = "cosine"
    keep_self_pairs: Annotated[
        bool,
        typer.Option(
            "--keep-self-pairs",
            help="lgsm: an utterance that stands on both sides is scored against itself, too, as a target.",
        ),
    ] = False


@with_records
def fit(
    output: opt.ModelOutput,
    scores: Annotated[list[str] | None, opt.file("Scores; several files are several matrices, one per phrase.")] = None,
    key: Annotated[
        list[str] | None, opt.file("Labels of the scores: one file for all, or one for each.", "--key", "-k")
    ] = None,
    norm: Annotated[
        str,
        typer.Option(
            metavar="NAME[:OPTION=VALUE]",
            help="lgsm, the score model, or evidence, the cohort-evidence model (docs/evidence.md); with options, such "
            "as lgsm:dim=1.",
            autocompletion=_trained,
        ),
    ] = "lgsm",
    phrase_from: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="Split into one matrix per phrase of the tests: 're:' and a regular expression with one group on the "
            "id, a file with lines 'id phrase', or 'column:' and a column of the embeddings.",
        ),
    ] = None,
    *,
    self_centered: SelfCenteredOption = "keep",
    labels: opt.LabelChoices,
    vectors: _Vectors,
    scale: ScaleChoices,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print the covariances of the effects, too.", rich_help_panel=opt.OUTPUT)
    ] = False,
    json: opt.Json = False,
) -> None:
    """Train the score model (or another one: --norm) on labelled scores or embeddings, and write a model file.

    Labels come from a key, from speaker maps, or from the score files themselves. Several score files are several
    independent matrices: enrolments and tests have hidden variables of their own in each. From embeddings, every
    enrolment is scored against every test but itself (with --key: the listed trials) without ever forming the matrix;
    speakers come from the embeddings or from the maps. What is centred on its own speakers (--scorer
    cosine:center=FILE) is centred without the two of each pair, as new speakers are not in the centre either;
    leave_out=none keeps them. Score matrices in .zarr, and in .npy with lists of ids beside it, and lists of trials in
    .parquet are read in chunks if they are large, or if workers or a memory limit are asked for.
    Prints where the variance of the scores comes from, the floor or ceiling of the LLR, and how many training trials
    lie beyond it; 'evenscore model show' explains it. The model gives LLRs, which are calibrated as far as new trials
    and their cohort are like the training scores, and as the densities fit: the Cllr of training trials, each with the
    other speakers as its cohort, is printed with and without logistic calibration on other speakers.

    Options follow the name of the norm after colons, as in lgsm:dim=1:tol=1e-8. dim: hidden dimensions (2, the general
    model; 0 calibrates only); tol: stop when an iteration gains less nats per enrolment and test (1e-10); max_iter:
    most iterations of each start (5000); starts: starting points (3); min_divergence=false: do not fit the prior in
    each iteration, which is slower; residuals=gaussian: Gaussian densities of what the model does not predict, as in
    the paper and for dim=0, in place of sinh-arcsinh ones, which may be skewed and have heavier tails. evidence has dim
    alone.
    """
    check_model_output(output, json)
    name, how = name_and_options(norm)
    if name not in _OPTIONS:
        raise InputError(f"the norm {name!r} has nothing to train; choose {' or '.join(_OPTIONS)}")
    how = checked_options(f"the norm {name}", how, _OPTIONS[name])
    enroll, test = vectors.enroll_embeddings, vectors.test_embeddings
    if scores and (enroll or test):
        raise InputError("both scores and embeddings were given; train on one of the two")
    if vectors.keep_self_pairs and (name == "evidence" or key or not enroll):
        raise InputError("--keep-self-pairs is for lgsm and all pairs of embeddings; leave it out")
    from evenscore._version import __version__
    from evenscore.cli.training_data import (
        beyond_vertex,
        checked_centers,
        fit_evidence_model,
        from_embeddings,
        from_scores,
        own_llrs,
        with_densities,
    )
    from evenscore.model import fit_score_model
    from evenscore.norms.score_model import checked_residuals

    residuals = checked_residuals(how.pop("residuals", None), how.get("dim", 2)) if name == "lgsm" else ""
    sources = replace(labels.sources(None), keys=key or (), phrase_from=phrase_from)
    inputs = {"scores": scores, "key": key, "enroll": enroll, "test": test}
    inputs |= {"scorer": vectors.scorer if enroll else None, "phrase_from": phrase_from}
    info = {"evenscore": __version__, **{option: value for option, value in inputs.items() if value}}
    notes: list[str] = []
    with progress_bar() as progress, scale.client(progress) as client:
        progress("reading", 0.0)
        if scores:
            data = from_scores(scores, sources, scale if scale.in_chunks(*scores) else None, client)
            data, notes = checked_centers(data, correct=self_centered == "correct")
        elif enroll and test:
            data, notes = from_embeddings(
                enroll, test, vectors.scorer, sources, keep_self_pairs=vectors.keep_self_pairs
            )
        else:
            raise InputError("there is nothing to train on; give --scores and --key, or embeddings of both sides")
        if name == "evidence":
            evidence = fit_evidence_model(data, progress, **how)
        else:
            how["keep_self_pairs"] = vectors.keep_self_pairs
            result = fit_score_model(data, **how, progress=progress, client=client)
            beyond = beyond_vertex(result.model, data)
            if residuals != "gaussian":
                result = replace(result, model=with_densities(result.model, data, client, progress))
            own = own_llrs(result.model, data)
    told = _Told(output=output, info=info, notes=notes, verbose=verbose, json=json)
    if name == "evidence":
        _tell_of_evidence(evidence, told)
    else:
        _tell_of_score_model(result, len(data), beyond, own, told)


@dataclass(frozen=True, kw_only=True)
class _Told:
    """Where a model goes, and what is said about it."""

    output: str
    info: dict[str, Any]  #: what it was trained on, kept with the model
    notes: list[str]
    verbose: bool
    json: bool


def _tell_of_evidence(model: CohortEvidence, told: _Told) -> None:
    from evenscore.cli.model import evidence_facts, print_evidence
    from evenscore.files.models import save_evidence

    save_evidence(model, told.output, info=told.info)
    if told.json:
        print_json({**evidence_facts(model), "notes": told.notes})
    elif told.output != "-":
        print_evidence(model, told.notes, verbose=told.verbose)


def _tell_of_score_model(
    result: FitResult, n_matrices: int, beyond: MeasuredBeyond | None, own: OwnLlrs | None, told: _Told
) -> None:
    from evenscore.cli.model import model_facts, print_covariances, print_variances, shape_of
    from evenscore.files.models import save_model

    nontarget, target = result.n_scores
    figures = {"log_likelihood": float(result.log_likelihood[-1])}
    figures |= {"iterations": result.n_iter, "converged": result.converged}
    info = {**told.info, "n_nontarget": nontarget, "n_target": target, **figures}
    if beyond is not None:
        info |= {"nontarget_beyond_vertex": beyond.nontarget, "target_beyond_vertex": beyond.target}
    if own is not None:
        info |= {"own_cllr": own.cllr, "calibrated_cllr": own.calibrated_cllr}
    save_model(result.model, told.output, info=info)
    notes = [*result.notes, *told.notes]
    if told.json:
        counts = {"matrices": n_matrices, "scores": {"nontarget": nontarget, "target": target}}
        facts = {"model": model_facts(result.model), **counts, **figures}
        facts |= {"beyond_vertex": None if beyond is None else vars(beyond)}
        facts |= {"own_llrs": None if own is None else vars(own)}
        print_json({**facts, "restarts": result.restarts, "notes": notes})
    elif told.output != "-":
        print_variances(result.model)
        if told.verbose:
            print_covariances(result.model)
        matrices = "1 matrix" if n_matrices == 1 else f"{n_matrices} matrices"
        end = "converged" if result.converged else "not converged"
        iterations = "1 iteration" if result.n_iter == 1 else f"{result.n_iter} iterations"
        print_lines(
            [
                *shape_of(result.model, beyond),
                f"{target} target and {nontarget} non-target scores in {matrices}",
                f"log-likelihood {result.log_likelihood[-1]:.4f}, {end} after {iterations}",
                *([] if own is None else own.sentences),
                *(f"! {note}" for note in notes),
            ]
        )
