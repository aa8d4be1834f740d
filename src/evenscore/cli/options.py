"""Options that several commands have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.metrics import OperatingPoint

__all__ = ["EnrollMap", "Json", "MemoryLimit", "Output", "Scheduler", "ScorerOption", "ToFormat", "Workers"]
__all__ += ["RARE", "file_option", "operating_point"]

RARE = "Large data and rare options"  #: the panel of options that --help-all lists


def file_option(help_text: str, *names: str, rare: bool = False) -> Any:
    """Return an option that is the name of a file; a rare one is listed by --help-all only."""
    return typer.Option(*names, metavar="FILE", help=help_text, rich_help_panel=RARE if rare else None)


Output = Annotated[str, file_option("Output; '-': standard output.", "--output", "-o")]
ToFormat = Annotated[
    str | None, typer.Option("--to", metavar="FORMAT", help="Format of the output, if not by its name.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Workers = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Start N processes of Dask.", rich_help_panel=RARE)
]
Scheduler = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Use the Dask cluster of this scheduler.", rich_help_panel=RARE)
]
MemoryLimit = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Most memory of each process, like 2GB.", rich_help_panel=RARE)
]


ScorerOption = Annotated[
    str,
    typer.Option(
        "--scorer",
        metavar="NAME[:OPTION=VALUE]",
        help="cosine or dot, with center=FILE, or train=FILE:lda=150 or :wccn=1; plda:model=FILE or plda:train=FILE.",
    ),
]
EnrollMap = Annotated[
    str | None,
    typer.Option(
        metavar="FILE[:length_norm=before]",
        help="Utterances of each enrolment, as in spk2utt; their mean is scored.",
        rich_help_panel=RARE,
    ),
]


def operating_point(text: str) -> OperatingPoint:
    """Return the operating point of a prior, or of a prior and the costs of a miss and of a false alarm."""
    from evenscore.metrics import OperatingPoint

    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 3):
        raise InputError(f"--points is {text!r}, but must be a prior such as 0.01, or PRIOR,C_MISS,C_FA")
    return OperatingPoint(*numbers)
