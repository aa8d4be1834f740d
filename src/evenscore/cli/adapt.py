"""``evenscore adapt``: adapt a score model to trials without labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from evenscore.cli import options as opt
from evenscore.cli.norm_options import CohortScores
from evenscore.cli.option_records import with_records
from evenscore.cli.output import check_model_output, print_json, print_lines, progress_bar
from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.model import AdaptResult

__all__ = ["EXAMPLES", "adapt"]

EXAMPLES = """
evenscore adapt --model m.json --scores eval.scores --prior 0.1 -o new.json
evenscore adapt --model m.json --scores s --test-cohort t --prior 0.1 -o n
evenscore adapt --model m.json --scores s --key some --prior 0.1 -o n.json
evenscore adapt --model m.json --scores s --prior 0.1 -o n.json \\
    --change affine --enroll-speakers utt2spk
"""


@with_records
def adapt(
    output: opt.ModelOutput,
    model: Annotated[str, opt.file("Model file of 'evenscore fit'.")],
    scores: Annotated[list[str], opt.file("Trials of the new domain; several files are several matrices, or phrases.")],
    prior: Annotated[float, typer.Option(metavar="P", help="Share of targets among the unlabelled trials.")],
    key: Annotated[str | None, opt.file("Labels of some of the trials; the rest is hidden.", "--key", "-k")] = None,
    enroll_speakers: Annotated[
        str | None,
        opt.file("Map from enrolment to speaker: those of one speaker are no independent witnesses of a shift."),
    ] = None,
    change: Annotated[
        Literal["all", "affine"], typer.Option(help="Let all parameters change, or only scale and shift of the scores.")
    ] = "all",
    strength: Annotated[
        float, typer.Option(metavar="N", help="Imaginary scores of each class that hold the parameters.")
    ] = 20.0,
    max_iter: Annotated[int, typer.Option(metavar="N", help="Most iterations of each stage.")] = 300,
    phrase_from: opt.PhraseFrom = None,
    *,
    cohort: CohortScores,
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
    check_model_output(output, json)
    from evenscore._version import __version__
    from evenscore.files import read_speakers
    from evenscore.files.models import load_model, save_model
    from evenscore.model import adapt_score_model

    with progress_bar() as progress:
        progress("reading", 0.0)
        trained = load_model(model)
        result = adapt_score_model(
            trained,
            _trials(scores, key, cohort, phrase_from),
            prior=prior,
            change=change,
            strength=strength,
            enroll_speakers=None if enroll_speakers is None else read_speakers(enroll_speakers),
            max_iter=max_iter,
            progress=progress,
        )
    facts = _facts(result)
    inputs = {"scores": scores, **cohort.paths, "key": key, "enroll_speakers": enroll_speakers, "prior": prior}
    given = {name: value for name, value in inputs.items() if value}
    kept = ("scale", "shift", "trials", "known", "share_of_targets", "certainty", "gain", "iterations", "converged")
    info = {"evenscore": __version__, "adapted_from": model, **given, "change": change}
    save_model(result.model, output, info={**info, **{name: facts[name] for name in kept}})
    if json:
        from evenscore.cli.model import model_facts

        print_json({"model": model_facts(result.model), **facts})
    elif output != "-":
        _print(result)


def _trials(paths: list[str], key: str | None, cohort: CohortScores, phrase_from: str | None) -> list[Any]:
    """Read the trials with the labels of the key alone; those that it lacks stay, unlabelled."""
    from evenscore.cli.inputs import open_matrix
    from evenscore.cli.labelled import LabelSources, labels_in
    from evenscore.cli.training_data import by_phrase
    from evenscore.files import read_scores
    from evenscore.tables import ScoreBlocks

    data: list[Any] = []
    known = LabelSources(keys=[key]).read_keys()[0] if key else None
    for path in paths:
        table: Any = read_scores(path)
        if known is not None:
            table = table.to_trials()
            if (table.match(known) < 0).all():
                raise InputError("the key has none of these trials; do the two files belong together?")
            table = table.with_labels(labels_in(table, known))
        elif table.listed:
            table = table.with_labels(None)
        data += by_phrase(table, phrase_from)
    if not cohort.paths:
        return data
    if len(data) > 1:
        raise InputError(
            "cohort scores belong to one file of trials and one phrase, but there are several; adapt to one of them"
        )
    blocks: dict[str, Any] = {name: open_matrix(path) for name, path in cohort.paths.items()}
    return [ScoreBlocks(data[0], **blocks)]


def _facts(result: AdaptResult) -> dict[str, Any]:
    return {
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
