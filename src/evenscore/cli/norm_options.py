"""The options of commands that normalize: the norm in one word, its model, and who speaks."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from evenscore.errors import InputError
from evenscore.spelling import name_and_options

__all__ = [
    "LGSM",
    "CohortConditions",
    "CohortSpeakers",
    "ModelFile",
    "NormName",
    "TrialConditions",
    "TrialSpeakers",
    "norm_names",
    "norm_settings",
]

LGSM = "lgsm"  #: the score model


def norm_names(incomplete: str) -> list[str]:
    """Return the norms whose names begin so, for the completion of a shell."""
    from evenscore.norms import norm_methods

    return [name for name in norm_methods() if name.startswith(incomplete)]


NormName = typer.Option(
    "--norm",
    metavar="NAME[:OPTION=VALUE]",
    help="lgsm (the score model), evidence (all the cohort says), or z, t, zt, tz, s, as, at, az; with options, such "
    "as as:top_k=300.",
    autocompletion=norm_names,
)
ModelFile = Annotated[str | None, typer.Option("--model", metavar="FILE", help="Model file, for lgsm and evidence.")]
TrialSpeakers = Annotated[
    str | None,
    typer.Option(
        "--speakers", metavar="FILE", help="Map from id to speaker: a trial's own speakers are left out of its cohort."
    ),
]
CohortSpeakers = Annotated[
    str | None,
    typer.Option("--cohort-speakers", metavar="FILE", help="Map from id to speaker for the cohort; else --speakers."),
]
TrialConditions = Annotated[
    str | None,
    typer.Option(
        "--conditions",
        metavar="FILE",
        help="Map from id to gender, channel or the like: each side keeps the cohort members of its own condition. "
        "'-' stands for unknown; for embeddings also 'column:' and a column of them.",
    ),
]
CohortConditions = Annotated[
    str | None,
    typer.Option("--cohort-conditions", metavar="FILE", help="The same for the cohort; else --conditions."),
]


def norm_settings(text: str, model: str | None) -> tuple[str, dict[str, Any]]:
    """Return the name of a norm and its options, as `prepare_norm` takes them."""
    from evenscore.files.models import load_model_of, trained_methods

    norm, settings = name_and_options(text)
    if norm in trained_methods():
        if model is None:
            raise InputError(f"the norm {norm} needs a trained model; give --model, or choose another norm")
        if settings:
            odd = next(iter(settings))
            raise InputError(f"{odd} is for the classical norms, but the norm is {norm}; leave it out")
        return norm, {"model": load_model_of(norm, model)}
    if model is not None:
        raise InputError(
            f"the norm {norm!r} uses no model; leave out --model, or choose {' or '.join(trained_methods())}"
        )
    if "trim" in settings and settings.get("statistic") != "trimmed":
        raise InputError("trim is for statistic=trimmed; give that too, or leave out trim")
    return norm, settings
