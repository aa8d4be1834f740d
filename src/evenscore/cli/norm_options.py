"""The options of commands that normalize: the norm in one word, its model, cohort scores, and who speaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import typer

from evenscore.errors import InputError
from evenscore.spelling import name_and_options

__all__ = ["CohortScores", "ModelFile", "NormName", "TrialFacts", "norm_settings"]


def _names(incomplete: str) -> list[str]:
    from evenscore.norms import norm_methods

    return [name for name in norm_methods() if name.startswith(incomplete)]


def _file(meaning: str) -> Any:
    return typer.Option(metavar="FILE", help=meaning)


NormName = typer.Option(
    "--norm",
    metavar="NAME[:OPTION=VALUE]",
    help="lgsm (the score model), evidence (all the cohort says), or z, t, zt, tz, s, as, at, az; with options, such "
    "as as:top_k=300.",
    autocompletion=_names,
)
ModelFile = Annotated[str | None, typer.Option("--model", metavar="FILE", help="Model file, for lgsm and evidence.")]


@dataclass(frozen=True, kw_only=True)
class CohortScores:
    """Files with the scores of trials against the cohort."""

    PANEL: ClassVar[str] = "Cohort scores"

    enroll_cohort: Annotated[
        str | None, _file("Cohort scores of the enrolments: they against the cohort's tests (S_e).")
    ] = None
    test_cohort: Annotated[
        str | None, _file("Cohort scores of the tests: the cohort's enrolments against them (S_t).")
    ] = None
    cohort: Annotated[str | None, _file("Scores of the cohort against itself (S_I).")] = None

    @property
    def paths(self) -> dict[str, str]:
        """The files that are given, by the names of the blocks."""
        named = {"enroll": self.enroll_cohort, "test": self.test_cohort, "cohort": self.cohort}
        return {name: path for name, path in named.items() if path is not None}


@dataclass(frozen=True, kw_only=True)
class TrialFacts:
    """Maps that tell who speaks, and under which condition."""

    PANEL: ClassVar[str] = "Speakers and conditions"

    speakers: Annotated[
        str | None, _file("Map from id to speaker: a trial's own speakers are left out of its cohort.")
    ] = None
    cohort_speakers: Annotated[str | None, _file("Map from id to speaker for the cohort; else --speakers.")] = None
    conditions: Annotated[
        str | None,
        _file(
            "Map from id to gender, channel or the like: each side keeps the cohort members of its own condition. '-' "
            "stands for unknown; for embeddings also 'column:' and a column of them."
        ),
    ] = None
    cohort_conditions: Annotated[str | None, _file("The same for the cohort; else --conditions.")] = None

    def __post_init__(self) -> None:
        if self.cohort_conditions is not None and self.conditions is None:
            raise InputError("--cohort-conditions are those of the cohort; give --conditions of the trials, too")


def norm_settings(text: str, model: str | None) -> tuple[str, dict[str, Any]]:
    """Return the name of a norm and its options, as `prepare_norm` takes them; wrong ones are refused."""
    from evenscore.files.models import load_model_of, trained_methods
    from evenscore.norms import prepare_norm

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
    prepare_norm(norm, **settings)
    return norm, settings
