"""``evenscore adapt``: adapt a score model to trials without labels."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore.cli import options as opt
from evenscore.cli.output import print_json, print_lines
from evenscore.cli.progress import progress_bar
from evenscore.errors import FileError, InputError

if TYPE_CHECKING:
    from evenscore.model import AdaptResult
    from evenscore.tables import TrialList

__all__ = ["EXAMPLES", "adapt"]

EXAMPLES = """
evenscore adapt --model m.json --scores eval.scores --prior 0.1 -o new.json
evenscore adapt --model m.json --scores e --test-cohort t --prior 0.1 -o n
evenscore adapt --model m.json --scores e --key k --prior 0.1 -o n.json
evenscore adapt --model m.json --scores e --prior 0.1 -o n.json \\
    --change affine --enroll-speakers utt2spk
"""


class Change(str, Enum):
    """What may change."""

    all = "all"
    affine = "affine"


def adapt(
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Model file to write; '-' is standard output.")
    ],
    model: Annotated[str, typer.Option("--model", metavar="FILE", help="Model file of 'evenscore fit'.")],
    scores: Annotated[
        list[str],
        typer.Option(
            "--scores", metavar="FILE", help="Trials of the new domain; several files are several matrices, or phrases."
        ),
    ],
    prior: Annotated[float, typer.Option("--prior", metavar="P", help="Share of targets among the unlabelled trials.")],
    enroll_cohort: Annotated[
        str | None,
        typer.Option("--enroll-cohort", metavar="FILE", help="Cohort scores of enrolments (S_e), if any."),
    ] = None,
    test_cohort: Annotated[
        str | None, typer.Option("--test-cohort", metavar="FILE", help="Cohort scores of the tests (S_t), if any.")
    ] = None,
    cohort: Annotated[
        str | None, typer.Option("--cohort", metavar="FILE", help="Scores of the cohort against itself (S_I), if any.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", "-k", metavar="FILE", help="Labels of some of the trials; the rest is hidden."),
    ] = None,
    enroll_speakers: Annotated[
        str | None,
        typer.Option(
            "--enroll-speakers",
            metavar="FILE",
            help="Map from enrolment to speaker: those of one speaker are no independent witnesses of a shift.",
        ),
    ] = None,
    change: Annotated[
        Change, typer.Option("--change", help="Let all parameters change, or only scale and shift of the scores.")
    ] = Change.all,
    strength: Annotated[
        float,
        typer.Option("--strength", metavar="N", help="Imaginary scores of each class that hold the parameters."),
    ] = 20.0,
    max_iter: Annotated[int, typer.Option("--max-iter", metavar="N", help="Most iterations of each stage.")] = 300,
    json: opt.Json = False,
) -> None:
    """Adapt a score model to trials of a new domain whose labels are not known.

    Labels are inferred together with the parameters, starting from the trained model. The share of targets (--prior)
    must be about right. Cohort scores are non-targets whose labels are known; give them only if they belong to the new
    domain. Refuses, with a reason, exit code 2 and no file, when the trials cannot support an adaptation: too few of
    them, classes that the scores do not tell apart, or no gain over the trained model that would show in most
    enrolments and be worth the risk. If speakers enrolled more than once, say who did (--enroll-speakers), or the guard
    is too easily sure.
    """
    if output == "-" and json:
        raise InputError("standard output can be the model file or the figures, not both; give -o a file name")
    if not Path(output).absolute().parent.is_dir():
        raise FileError(output, "its directory does not exist; create it first")
    from evenscore.files import read_scores, read_speakers
    from evenscore.files.models import load_model
    from evenscore.model import adapt_score_model

    with progress_bar() as progress:
        progress("reading", 0.0)
        trained = load_model(model)
        tables = [_without_labels(read_scores(path)) for path in scores]
        paths = {"enroll": enroll_cohort, "test": test_cohort, "cohort": cohort}
        data = [_with_labels(table, key) for table in tables] if key else tables
        if any(paths.values()):
            data = [_blocks(data, paths)]
        result = adapt_score_model(
            trained,
            data,
            prior=prior,
            change=change.value,
            strength=strength,
            enroll_speakers=None if enroll_speakers is None else read_speakers(enroll_speakers),
            max_iter=max_iter,
            progress=progress,
        )
    inputs: dict[str, Any] = {"model": model, "scores": scores, **paths, "key": key, "enroll_speakers": enroll_speakers}
    inputs |= {"prior": prior, "change": change.value}
    _write(output, result, {name: value for name, value in inputs.items() if value})
    if json:
        print_json(_facts(result))
    elif output != "-":
        _print(result)


def _without_labels(table: Any) -> Any:
    """Return trials as if they had no labels; what is known is said by --key."""
    from evenscore.tables import TrialList

    return table.with_labels(None) if isinstance(table, TrialList) and table.labels is not None else table


def _with_labels(table: Any, path: str) -> TrialList:
    """Return trials with the labels of a key; those that it lacks stay, unlabelled."""
    import numpy as np

    from evenscore.cli.combine import as_list, labels_in
    from evenscore.cli.labelled import LabelSources

    [key] = LabelSources(keys=[path]).read_keys()
    trials = as_list(table)
    if (trials.match(key) < 0).all():
        raise InputError("the key has none of these trials; do the two files belong together?")
    return trials.with_labels(np.asarray(labels_in(trials, key)))


def _blocks(data: list[Any], paths: dict[str, str | None]) -> Any:
    from evenscore.cli.inputs import open_matrix
    from evenscore.tables import ScoreBlocks

    if len(data) > 1:
        raise InputError("cohort scores belong to one file of trials, but several were given; adapt to one of them")
    cohort: dict[str, Any] = {name: open_matrix(path) for name, path in paths.items() if path is not None}
    return ScoreBlocks(data[0], **cohort)


def _facts(result: AdaptResult) -> dict[str, Any]:
    from evenscore.cli.model import model_facts

    return {
        "model": model_facts(result.model),
        "scale": result.scale,
        "shift": result.shift,
        "trials": result.n_trials,
        "known": result.n_known,
        "share_of_targets": result.share_of_targets,
        "certainty": result.certainty,
        "gain": float(result.bound[-1] - result.unadapted_bound),
        "score_gain": result.score_gain.nats,
        "score_gain_needed": result.score_gain.needed,
        "expected_cllr": {"trained": result.expected_cllr[0], "adapted": result.expected_cllr[1]},
        "iterations": result.n_iter,
        "converged": result.converged,
        "notes": list(result.notes),
    }


def _write(path: str, result: AdaptResult, inputs: dict[str, Any]) -> None:
    from evenscore._version import __version__
    from evenscore.files.models import save_model

    facts = _facts(result)
    kept = ("scale", "shift", "trials", "known", "share_of_targets", "certainty", "gain", "iterations", "converged")
    info = {"evenscore": __version__, "adapted_from": inputs.pop("model"), **inputs, **{n: facts[n] for n in kept}}
    save_model(result.model, path, info=info)


def _print(result: AdaptResult) -> None:
    from evenscore.cli.model import print_variances

    print_variances(result.model)
    end, alone = "converged" if result.converged else "not converged", result.score_gain
    lines = [
        f"{result.n_trials} trials without labels, {result.n_known} scores with labels",
        f"scores are {result.scale:.4g} times those of the trained model, and {result.shift:.4g} higher",
        f"{100 * result.share_of_targets:.3g} % of the trials look like targets; "
        f"{100 * result.certainty:.0f} % of the uncertainty about the labels is gone",
        f"{result.bound[-1] - result.unadapted_bound:.1f} nats gained, {end} after {result.n_iter} iterations",
        f"{alone.nats:.1f} nats gained on single scores, where {alone.needed:.1f} are needed to be sure across "
        f"{alone.n_groups} enrolments or speakers",
        "without a cohort, it expects a Cllr of {:.3f} of the trained model and of {:.3f} of itself".format(
            *result.expected_cllr
        ),
    ]
    print_lines([*lines, *(f"! {note}" for note in result.notes)])
