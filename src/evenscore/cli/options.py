"""Options that several commands share, so that they are called and explained the same everywhere."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import typer

from evenscore.errors import InputError
from evenscore.spelling import checked_options, name_and_options

if TYPE_CHECKING:
    from evenscore.cli.labelled import LabelSources
    from evenscore.metrics import OperatingPoint
    from evenscore.progress import Progress

__all__ = [
    "LARGE_DATA",
    "OUTPUT",
    "Bootstrap",
    "CalibrationName",
    "Draws",
    "Json",
    "Key",
    "LabelChoices",
    "Metadata",
    "ModelOutput",
    "OnUnmatched",
    "Output",
    "PhraseFrom",
    "Points",
    "QualityChoices",
    "ReadingChoices",
    "Resume",
    "ScaleChoices",
    "ToFormat",
    "file",
    "parsed_points",
]

OUTPUT = "Output"  #: title of the options that say what is written, and how
LARGE_DATA = "Large data"  #: title of those for data that is larger than memory or than one machine

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_SMALLEST = 1e6  # bytes of memory; a number without a unit, most likely
_TILES = 16  # that fit into the memory limit, with all that is computed from them


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
        help="logistic, gaussian, pav, bayesian, unsupervised, saturating or elub; with options: logistic:l2=1e-3.",
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
Key = Annotated[str | None, file("File with labels for the trials, found by id.", "--key", "-k")]
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
    Literal["error", "drop"],
    typer.Option("--unmatched", help="Trials only in the scores or only in the key: refuse, or leave them out."),
]
Metadata = Annotated[
    str | None, file("CSV, TSV or parquet with a header, and a row per enrolment, per test or per trial; else the key.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.", rich_help_panel=OUTPUT)]
ModelOutput = Annotated[str, file("Model file to write; '-' is standard output.", "--output", "-o")]
Output = Annotated[str, file("File to write; '-' is standard output.", "--output", "-o")]


PhraseFrom = Annotated[
    str | None,
    typer.Option(
        "--phrase-from",
        metavar="WHERE",
        help="Phrases of the tests: 're:' and a regular expression with one group on the id, a file with lines "
        "'id phrase', or 'column:' and a column of the embeddings.",
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on with a run that was cut short: only the chunks that OUTPUT.partial lacks are made. Inputs and "
        "options must be the same.",
        rich_help_panel=LARGE_DATA,
    ),
]


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
        Literal["error", "skip"],
        typer.Option(help="A score that is absent, nan or infinite: refuse, or leave the trial out."),
    ] = "error"
    duplicates: Annotated[
        Literal["error", "drop"], typer.Option(help="A trial listed twice: refuse, or drop identical repeats.")
    ] = "error"
    score_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Column with the scores, for files with a header.")
    ] = None
    ids: Annotated[str | None, file("List of ids, one per line, for npy embeddings.")] = None

    @property
    def options(self) -> dict[str, Any]:
        """The options of `evenscore.read`."""
        found = {"missing": self.missing, "duplicates": self.duplicates}
        return {"format": self.from_format, **found, "score_column": self.score_column, "ids": self.ids}


@dataclass(frozen=True, kw_only=True)
class LabelChoices:
    """Where labels come from beside a key, and what is left out."""

    PANEL: ClassVar[str] = "Labels"

    enroll_speakers: Annotated[str | None, file("Map from enrolment to speaker; labels, if there is no key.")] = None
    test_speakers: Annotated[str | None, file("Map from test to speaker; else --enroll-speakers.")] = None
    unmatched: OnUnmatched = "error"

    def sources(self, key: str | None, key_option: str = "--key") -> LabelSources:
        """Return where labels come from; the option that gives a key is for messages."""
        from evenscore.cli.labelled import LabelSources

        return LabelSources(
            keys=(key,) if key else (),
            enroll_speakers=self.enroll_speakers,
            test_speakers=self.test_speakers,
            unmatched=self.unmatched,
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
            help="logistic: quality measures, from columns of the score files or of --metadata. min:, max:, diff: or "
            "ratio: before a name compares the two sides (min:mag is the lower of mag_e and mag_t), log: takes the "
            "logarithm, enroll: or test: says whose value. Can be repeated, or a list with commas.",
        ),
    ] = None
    metadata: Annotated[
        list[str] | None,
        file("CSV, TSV or parquet with a header, and a row per enrolment, test or trial; or utt2dur. Can be repeated."),
    ] = None
    train_metadata: Annotated[list[str] | None, file("The same for the training scores; else --metadata.")] = None


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


@dataclass(frozen=True, kw_only=True)
class ScaleChoices:
    """Where and in how much memory the work is done. With any of these, data is read and written chunk by chunk."""

    PANEL: ClassVar[str] = LARGE_DATA

    workers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Start a Dask cluster of N processes on this machine, a core each."),
    ] = None
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Use the Dask cluster of this scheduler, like tcp://head:8786."),
    ] = None
    memory_limit: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Most memory of each process, like 2GB; larger files are read in chunks."),
    ] = None

    @property
    def given(self) -> bool:
        """Whether one of the options was given."""
        return (self.workers, self.scheduler, self.memory_limit) != (None, None, None)

    @property
    def limit(self) -> float | None:
        """The memory limit in bytes, None if there is none."""
        if self.memory_limit is None:
            return None
        size = _bytes_of(self.memory_limit)
        if size < _SMALLEST:
            raise InputError(f"--memory-limit is {self.memory_limit!r}, less than 1 MB; give a size like 500MB or 2GB")
        return size

    @property
    def tile_bytes(self) -> float:
        """About how large the tiles are that are worked on at a time."""
        from evenscore.tables.tile import TILE_BYTES

        return TILE_BYTES if self.limit is None else min(max(self.limit / _TILES, 1 << 20), TILE_BYTES)

    @property
    def room(self) -> float:
        """How many bytes the work may take in memory."""
        from evenscore.files.streams import memory_room

        return memory_room(self.limit)

    def is_large(self, n_trials: int) -> bool:
        """Tell whether work on so many trials takes too much memory."""
        from evenscore.files.streams import TRIAL_BYTES

        return n_trials * TRIAL_BYTES > self.room

    def in_chunks(self, *paths: str | None) -> bool:
        """Tell whether files are read chunk by chunk: one of these options is given, or they are large together."""
        from evenscore.files.numpy_files import is_score_npy
        from evenscore.files.score_tiles import count_stored

        found = [path for path in paths if path is not None and path != "-"]
        return self.given or any(map(is_score_npy, found)) or self.is_large(sum(map(count_stored, found)))

    @contextmanager
    def client(self, progress: Progress) -> Iterator[Any]:
        """Give a `distributed.Client`, or None to work in this process; where to watch it is said on standard error."""
        from evenscore.engine.cluster import connected, dashboard_link

        progress("starting workers", 0.0)
        with (
            _logs_restored(),
            connected(workers=self.workers, scheduler=self.scheduler, memory_limit=self.limit) as client,
        ):
            progress("starting workers", 1.0)
            link = None if client is None else dashboard_link(client)
            if link is not None:
                typer.echo(f"dashboard: {link}", err=True)
            with _closed_quietly():
                yield client


@contextmanager
def _logs_restored() -> Iterator[None]:
    before = logging.root.manager.disable
    try:
        yield
    finally:
        logging.disable(before)


@contextmanager
def _closed_quietly() -> Iterator[None]:
    """Keep the scheduler from reporting work that was dropped because a run ends by an error or by Ctrl-C."""
    try:
        yield
    except BaseException:
        logging.disable(logging.CRITICAL)
        raise


def _bytes_of(text: str) -> float:
    """Return the bytes of a size like 1.5GB or 64KiB."""
    found = _SIZE.fullmatch(text.strip())
    size = 0.0
    if found is not None:
        number, prefix, binary = found.groups()
        size = float(number) * (1024 if binary else 1000) ** " kmgt".index(prefix.lower() or " ")
    if not size > 0:
        raise InputError(f"--memory-limit is {text!r}, but must be a size above 0, like 500MB or 2GB")
    return size
