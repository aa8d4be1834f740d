"""Options that several commands have, and the mini-language ``NAME:option=value``."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated, Any

import typer

from evenscore.errors import InputError

__all__ = ["MemoryLimit", "Output", "Scheduler", "ToFormat", "Workers", "file_option", "parse_name"]

_RARE = "Large data and rare options"


def file_option(help_text: str, *names: str) -> Any:
    """Return an option that takes the name of a file."""
    return typer.Option(*names, metavar="FILE", help=help_text)


Output = Annotated[str, file_option("File to write; '-' is standard output.", "--output", "-o")]
ToFormat = Annotated[
    str | None, typer.Option("--to", metavar="FORMAT", help="Format of the output, if not by its name.")
]
Workers = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Start N processes of Dask.", rich_help_panel=_RARE)
]
Scheduler = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Use the Dask cluster of this scheduler.", rich_help_panel=_RARE)
]
MemoryLimit = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Most memory of each process, like 2GB.", rich_help_panel=_RARE)
]


def parse_name(text: str, known: tuple[str, ...] | None = None) -> tuple[str, dict[str, Any]]:
    """Return the name and the options of ``NAME:option=value:option=value``; numbers are numbers.

    Examples
    --------
    >>> parse_name("as:top_k=300:select=cross")
    ('as', {'top_k': 300, 'select': 'cross'})
    """
    name, *settings = text.split(":")
    options: dict[str, Any] = {}
    for setting in settings:
        option, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"{setting!r} in {text!r} must be OPTION=VALUE, such as top_k=300")
        if known is not None and option not in known:
            plain = {one.replace("_", ""): one for one in known}
            close = plain.get(option.lower().replace("_", "").replace("-", "").replace("topn", "topk"))
            close = close or next(iter(get_close_matches(option, known, 1)), None)
            hint = f"did you mean {close!r}?" if close else f"there are {', '.join(known)}"
            raise InputError(f"{name!r} has no option {option!r}; {hint}")
        options[option] = _value(value)
    return name, options


def _value(text: str) -> int | float | str:
    try:
        number = float(text)
    except ValueError:
        return text
    return int(text) if text.lstrip("+-").isdigit() else number
