"""Options that several commands share, so that they are called and explained the same everywhere."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

__all__ = [
    "BootstrapSeed",
    "CalibrationName",
    "Duplicates",
    "EnrollSpeakers",
    "FromFormat",
    "IdList",
    "Json",
    "Key",
    "KeyFormat",
    "Metadata",
    "Missing",
    "ModelOutput",
    "OnDuplicates",
    "OnMissing",
    "OnUnmatched",
    "Output",
    "ScoreColumn",
    "TestSpeakers",
    "ToFormat",
    "Unmatched",
]


class Missing(str, Enum):
    """What to do with a score that is absent, nan or infinite."""

    error = "error"
    skip = "skip"


class Duplicates(str, Enum):
    """What to do with a trial that is listed twice."""

    error = "error"
    drop = "drop"


class Unmatched(str, Enum):
    """What to do with trials that stand only in the scores or only in the key."""

    error = "error"
    drop = "drop"


def _format_names(incomplete: str) -> list[str]:
    from evenscore.files import FORMATS

    return [name for name in FORMATS if name.startswith(incomplete)]


def _calibrations(incomplete: str) -> list[str]:
    from evenscore.calibrate import CALIBRATIONS

    return [name for name in CALIBRATIONS if name.startswith(incomplete)]


CalibrationName = Annotated[
    str,
    typer.Option(
        "--calibration",
        metavar="NAME[:OPTION=VALUE]",
        help="logistic, gaussian, pav, bayesian, unsupervised or saturating; with options, such as logistic:l2=1e-3.",
        autocompletion=_calibrations,
    ),
]
FromFormat = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="FORMAT",
        help="Format of the input (see 'evenscore formats'); guessed if not given.",
        autocompletion=_format_names,
    ),
]
ToFormat = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="FORMAT",
        help="Format of the output; follows from its name if not given.",
        autocompletion=_format_names,
    ),
]
KeyFormat = Annotated[
    str | None,
    typer.Option(
        "--key-from", metavar="FORMAT", help="Format of the key; guessed if not given.", autocompletion=_format_names
    ),
]
Key = Annotated[
    str | None, typer.Option("--key", "-k", metavar="FILE", help="File with labels for the trials, found by id.")
]
BootstrapSeed = Annotated[
    int, typer.Option("--bootstrap-seed", min=0, metavar="N", help="Of the draws of speakers; another, other draws.")
]
OnMissing = Annotated[
    Missing, typer.Option("--missing", help="A score that is absent, nan or infinite: refuse, or leave the trial out.")
]
OnDuplicates = Annotated[
    Duplicates, typer.Option("--duplicates", help="A trial listed twice: refuse, or drop identical repeats.")
]
OnUnmatched = Annotated[
    Unmatched,
    typer.Option("--unmatched", help="Trials only in the scores or only in the key: refuse, or leave them out."),
]
ScoreColumn = Annotated[
    str | None,
    typer.Option("--score-column", metavar="NAME", help="Column with the scores, for files with a header."),
]
IdList = Annotated[
    str | None, typer.Option("--ids", metavar="FILE", help="List of ids, one per line, for npy embeddings.")
]
EnrollSpeakers = Annotated[
    str | None,
    typer.Option(
        "--enroll-speakers", metavar="FILE", help="Map from enrolment to speaker; labels, if there is no key."
    ),
]
TestSpeakers = Annotated[
    str | None,
    typer.Option("--test-speakers", metavar="FILE", help="Map from test to speaker; else --enroll-speakers."),
]
Metadata = Annotated[
    str | None,
    typer.Option(
        "--metadata",
        metavar="FILE",
        help="CSV, TSV or parquet with a header, and a row per enrolment, per test or per trial; else the key.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
ModelOutput = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="Model file to write; '-' is standard output.")
]
Output = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="File to write; '-' is standard output.")]
