"""A bar on the terminal while long work is done; nothing where standard error is a pipe or a file."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from evenscore.parallel import Progress

__all__ = ["progress_bar"]

_WIDTH = 30
_PATIENCE = 1.0  # seconds without a bar: most work is done by then


@contextmanager
def progress_bar(what: str) -> Iterator[Progress | None]:
    """Give a callback that draws a bar on standard error and removes it at the end, or None without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    drawn = time.monotonic() + _PATIENCE

    def show(done: int, total: int) -> None:
        nonlocal drawn
        now = time.monotonic()
        if now - drawn < 0.1:
            return
        drawn = now
        full = _WIDTH * done // max(total, 1)
        typer.echo(f"\r{what} [{'#' * full:{_WIDTH}}] {done} of {total}\x1b[K", err=True, nl=False)

    try:
        yield show
    finally:
        typer.echo("\r\x1b[K", err=True, nl=False)
