"""The options of the norms, which `evenscore normalize` and `evenscore score` share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from enum import Enum
from typing import Annotated, Any

import typer

from evenscore.cli.option_records import option_name
from evenscore.errors import InputError

__all__ = [
    "LGSM",
    "CohortConditions",
    "CohortSpeakers",
    "ModelFile",
    "NormChoices",
    "TrialConditions",
    "TrialSpeakers",
    "in_words_of_options",
    "norm_names",
    "norm_settings",
]

LGSM = "lgsm"  #: the score model


class Select(str, Enum):
    """Who ranks the cohort."""

    own = "own"
    cross = "cross"


class Statistic(str, Enum):
    """Location and scale of cohort scores."""

    mean = "mean"
    trimmed = "trimmed"
    median = "median"


class Combine(str, Enum):
    """How two sides become one score."""

    mean = "mean"
    sqrt2 = "sqrt2"


class Excess(str, Enum):
    """What to do if more members are asked for than there are."""

    error = "error"
    clip = "clip"


class ZeroStd(str, Enum):
    """What to do with a standard deviation of zero."""

    error = "error"
    one = "one"


class Vanished(str, Enum):
    """What to do with trials that have no cohort left."""

    error = "error"
    raw = "raw"
    missing = "missing"


def norm_names(incomplete: str) -> list[str]:
    """Return the norms whose names begin so, for the completion of a shell."""
    from evenscore.norms import norm_methods

    return [name for name in norm_methods() if name.startswith(incomplete)]


def _conventions(incomplete: str) -> list[str]:
    from evenscore.norms import CONVENTIONS

    return [name for name in CONVENTIONS if name.startswith(incomplete)]


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


@dataclass(frozen=True, kw_only=True)
class NormChoices:
    """What the command line says about a classical norm; None is for the convention or the default to say."""

    convention: Annotated[
        str | None,
        typer.Option(
            metavar="TOOL",
            help="All below as in wespeaker, speechbrain, espnet, asv-subtools, hyperion or bob; single options win.",
            autocompletion=_conventions,
        ),
    ] = None
    top_k: Annotated[
        str | None,
        typer.Option(
            metavar="K",
            help="as, at, az: how many of the highest cohort scores to take, or a fraction like 0.1; else 300.",
        ),
    ] = None
    excess: Annotated[
        Excess | None, typer.Option(help="--top-k larger than the cohort: refuse (default), or take all there is.")
    ] = None
    drop_top: Annotated[
        int | None, typer.Option(metavar="N", help="Leave out the N very highest cohort scores; default 0.")
    ] = None
    select: Annotated[
        Select | None,
        typer.Option(help="as, at, az: each side ranks its own cohort (default), or that of the other side."),
    ] = None
    statistic: Annotated[
        Statistic | None,
        typer.Option(help="Mean and standard deviation (default), the same without both ends, or median and MAD."),
    ] = None
    trim: Annotated[
        float | None, typer.Option(metavar="F", help="Fraction at each end for --statistic trimmed; default 0.1.")
    ] = None
    ddof: Annotated[
        int | None, typer.Option(metavar="0|1", help="Variance over n - ddof cohort scores; default 0.")
    ] = None
    std_floor: Annotated[
        float | None, typer.Option(metavar="X", help="Raise smaller standard deviations to X; default 0.")
    ] = None
    zero_std: Annotated[
        ZeroStd | None, typer.Option(help="A standard deviation of zero: refuse (default), or divide by 1.")
    ] = None
    combine: Annotated[
        Combine | None, typer.Option(help="s, as: half the sum of the sides (default), or the sum over the root of 2.")
    ] = None
    vanished: Annotated[
        Vanished | None,
        typer.Option(help="Trials without a cohort: refuse (default), keep the raw score, or make them missing."),
    ] = None

    @property
    def given(self) -> dict[str, Any]:
        """The options that were given, as the library takes them."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        found = {name: value for name, value in values.items() if value is not None}
        return {name: value.value if isinstance(value, Enum) else value for name, value in found.items()}


def norm_settings(method: str, model: str | None, choices: NormChoices) -> dict[str, Any]:
    """Return the options of a norm, as `prepare_norm` takes them."""
    settings = choices.given
    from evenscore.files.models import load_model_of, trained_methods

    if method in trained_methods():
        if model is None:
            raise InputError(f"the method {method} needs a trained model; give --model, or choose another norm")
        if settings:
            odd = option_name(next(iter(settings)))
            raise InputError(f"{odd} is for the classical norms, but the method is {method}; leave it out")
        return {"model": load_model_of(method, model)}
    if model is not None:
        raise InputError(
            f"the norm {method!r} uses no model; leave out --model, or choose {' or '.join(trained_methods())}"
        )
    if "top_k" in settings:
        settings["top_k"] = _count_or_fraction(settings["top_k"])
    if "trim" in settings and settings.get("statistic") != "trimmed":
        raise InputError("--trim is for --statistic trimmed; give that too, or leave out --trim")
    return settings


def _count_or_fraction(text: str) -> int | float:
    try:
        return float(text) if any(mark in text for mark in ".eE") else int(text)
    except ValueError:
        raise InputError(f"--top-k is {text!r}, but must be a count like 300 or a fraction like 0.1") from None


@contextmanager
def in_words_of_options() -> Iterator[None]:
    """Let errors of the library speak of options as they are written on the command line.

    Examples
    --------
    >>> with in_words_of_options():
    ...     raise InputError("top_k is 9; take fewer, or decide with excess='clip'")
    Traceback (most recent call last):
    evenscore.errors.InputError: --top-k is 9; take fewer, or decide with --excess clip
    """
    try:
        yield
    except InputError as error:
        names = "|".join(field.name for field in fields(NormChoices))
        text = re.sub(rf"\b({names})='(\w+)'(?: or '(\w+)')?", _option_with_value, str(error))
        text = re.sub(r"(?<!-)\b(top_k|drop_top|std_floor|zero_std)\b|^(trim|ddof)\b", _option, text)
        raise InputError(text) from None


def _option_with_value(found: re.Match[str]) -> str:
    values = [value for value in found.groups()[1:] if value]
    return " or ".join(f"{option_name(found[1])} {value}" for value in values)


def _option(found: re.Match[str]) -> str:
    return option_name(found[0])
