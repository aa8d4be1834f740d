"""Printing: JSON for programs, plain tables for people. What users named is never read as markup."""

from __future__ import annotations

import io
import json
import math
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evenscore.errors import FileError, InputError

__all__ = ["PIPE_WIDTH", "check_model_output", "print_json", "print_lines", "print_table", "printable"]

PIPE_WIDTH = 200  #: columns of a table that goes into a pipe, so that little is folded


def check_model_output(path: str, json: bool) -> None:
    """Refuse a model file that cannot be written: better now than after the training."""
    if path == "-" and json:
        raise InputError("standard output can be the model file or the figures, not both; give -o a file name")
    if not Path(path).absolute().parent.is_dir():
        raise FileError(path, "its directory does not exist; create it first")


def printable(text: str) -> str:
    r"""Return the text on one line, with escapes in place of line ends and terminal control codes.

    Examples
    --------
    >>> print(printable("a\tb\x1b[31m [bold]c"))
    a\tb\x1b[31m [bold]c
    """
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def print_json(value: Any) -> None:
    """Print a value as JSON; numbers that JSON does not know (nan, infinity) become null."""
    json.dump(_jsonable(value), sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")


def print_lines(lines: Sequence[str]) -> None:
    """Print lines of plain text."""
    for line in lines:
        sys.stdout.write(printable(line) + "\n")


def print_table(
    rows: Sequence[Sequence[str]], *, header: Sequence[str] = (), title: str | None = None, numbers: bool = False
) -> None:
    """Print a table; with ``numbers``, every column but the first stands to the right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=None if title is None else Text(printable(title)),
        title_justify="left",
        show_header=bool(header),
        box=box.SIMPLE_HEAD if header else None,
        pad_edge=False,
    )
    for place in range(max((len(row) for row in (header, *rows)), default=0)):
        name = Text(header[place]) if header else ""
        table.add_column(name, justify="right" if numbers and place else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    # Drawn in memory: rich handles a closed pipe and blank line ends in its own way.
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH
    console = Console(file=io.StringIO(), width=width, markup=False, highlight=False, emoji=False)
    console.print(table)
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    sys.stdout.writelines(f"{line}\n" for line in lines if line)


def _jsonable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    if hasattr(value, "tolist"):  # a numpy number or array
        return _jsonable(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
