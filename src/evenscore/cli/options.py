"""Options that several commands share, so that they are called and explained the same everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from evenscore.errors import InputError
from evenscore.spelling import checked_options, name_and_options

if TYPE_CHECKING:
    from evenscore.cli.labelled import LabelSources
    from evenscore.metrics import OperatingPoint

__all__ = [
    "OUTPUT",
    "Bootstrap",
    "CalibrationName",
    "Draws",
    "Duplicates",
    "EnrollSpeakers",
    "Json",
    "Key",
    "LabelChoices",
    "Metadata",
    "Missing",
    "ModelOutput",
    "OnUnmatched",
    "Output",
    "Points",
    "QualityChoices",
    "ReadingChoices",
    "TestSpeakers",
    "ToFormat",
    "Unmatched",
    "file",
    "parsed_points",
]


OUTPUT = "Output"  #: title of the options that say what is written, and how


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


def file(meaning: str, *names: str) -> Any:
    """Return an option that names a file."""
    return typer.Option(*names, metavar="FILE", help=meaning)


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
ToFormat = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="FORMAT",
        help="Format of the output; follows from its name if not given.",
        autocompletion=_format_names,
        rich_help_panel=OUTPUT,
    ),
]
Key = Annotated[
    str | None, typer.Option("--key", "-k", metavar="FILE", help="File with labels for the trials, found by id.")
]
Points = Annotated[
    list[str] | None,
    typer.Option(
        "--points",
        metavar="P[,CM,CF]",
        help="Operating point: prior of a target, cost of a miss, cost of a false alarm. Can be repeated; the default "
        "is 0.01,1,1.",
    ),
]
Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        metavar="N[:level=L:seed=S]",
        help="Confidence intervals from N draws of the speakers, such as 1000; their level is 0.95 unless it is given. "
        "Another seed, other draws.",
        rich_help_panel="Uncertainty",
    ),
]
OnUnmatched = Annotated[
    Unmatched,
    typer.Option("--unmatched", help="Trials only in the scores or only in the key: refuse, or leave them out."),
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
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.", rich_help_panel=OUTPUT)]
ModelOutput = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="Model file to write; '-' is standard output.")
]
Output = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="File to write; '-' is standard output.")]


@dataclass(frozen=True, kw_only=True)
class ReadingChoices:
    """How files are read that need a word about it."""

    PANEL: ClassVar[str] = "Repairs"

    from_format: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FORMAT",
            help="Format of the input (see 'evenscore formats'); guessed if not given.",
            autocompletion=_format_names,
        ),
    ] = None
    missing: Annotated[
        Missing, typer.Option(help="A score that is absent, nan or infinite: refuse, or leave the trial out.")
    ] = Missing.error
    duplicates: Annotated[Duplicates, typer.Option(help="A trial listed twice: refuse, or drop identical repeats.")] = (
        Duplicates.error
    )
    score_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Column with the scores, for files with a header.")
    ] = None
    ids: Annotated[str | None, typer.Option(metavar="FILE", help="List of ids, one per line, for npy embeddings.")] = (
        None
    )

    @property
    def options(self) -> dict[str, Any]:
        """The options of `evenscore.read`."""
        found = {"missing": self.missing.value, "duplicates": self.duplicates.value}
        return {"format": self.from_format, **found, "score_column": self.score_column, "ids": self.ids}


@dataclass(frozen=True, kw_only=True)
class LabelChoices:
    """Where labels come from beside a key, and what is left out."""

    PANEL: ClassVar[str] = "Labels"

    enroll_speakers: EnrollSpeakers = None
    test_speakers: TestSpeakers = None
    unmatched: OnUnmatched = Unmatched.error

    def sources(self, key: str | None, key_option: str = "--key") -> LabelSources:
        """Return where labels come from; the option that gives a key is for messages."""
        from evenscore.cli.labelled import LabelSources

        return LabelSources(
            keys=(key,) if key else (),
            enroll_speakers=self.enroll_speakers,
            test_speakers=self.test_speakers,
            unmatched=self.unmatched.value,
            options=(key_option, "--enroll-speakers"),
        )


@dataclass(frozen=True, kw_only=True)
class QualityChoices:
    """Quality measures of trials."""

    PANEL: ClassVar[str] = "Quality measures"

    quality: Annotated[
        list[str] | None,
        typer.Option(
            "--quality",
            metavar="COLUMN",
            help="logistic: quality measures, from columns of the score files or of --metadata; log: before a name "
            "takes the logarithm, enroll: or test: says whose value. Can be repeated, or a list with commas.",
        ),
    ] = None
    metadata: Metadata = None
    train_metadata: Annotated[
        str | None,
        typer.Option("--train-metadata", metavar="FILE", help="The same for the training scores; else --metadata."),
    ] = None


@dataclass(frozen=True)
class Draws:
    """How often speakers are drawn, and what for."""

    number: int = 0
    level: float = 0.95
    seed: int = 0

    @classmethod
    def of(cls, text: str) -> Draws:
        """Return what ``--bootstrap`` spells.

        Examples
        --------
        >>> Draws.of("1000:level=0.9")
        Draws(number=1000, level=0.9, seed=0)
        """
        number, options = name_and_options(text, "number of draws")
        if not number.isdecimal():
            raise InputError(f"--bootstrap is {text!r}, but must begin with a number of draws, such as 1000")
        draws = cls(int(number), **checked_options("--bootstrap", options, {"level": float, "seed": int}))
        if not 0 < draws.level < 1:
            raise InputError(f"--bootstrap: level is {draws.level:g}, but must lie between 0 and 1, such as 0.95")
        if draws.seed < 0:
            raise InputError(f"--bootstrap: seed is {draws.seed}, but must be at least 0")
        return draws


def parsed_points(texts: list[str] | None) -> tuple[OperatingPoint, ...]:
    """Return the operating points that options spell as P or P,CM,CF; the usual one if there are none."""
    from evenscore.metrics.operating_points import DEFAULT_POINTS, OperatingPoint

    points = []
    for text in texts or ():
        try:
            numbers = [float(part) for part in text.split(",")]
        except ValueError:
            numbers = []
        if len(numbers) not in (1, 3):
            raise InputError(
                f"the operating point {text!r} must be a prior, such as 0.01, or prior and costs, such as 0.01,10,1; "
                "repeat --points for several"
            )
        points.append(OperatingPoint(*numbers))
    return tuple(points) or DEFAULT_POINTS
