"""What commands give back: files, checked before the work, and a progress bar on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evenscore.errors import FileError, InputError
from evenscore.files import check_output_format, write

__all__ = ["check_output", "cluster", "write_output"]


def check_output(path: str, to_format: str | None) -> None:
    """Refuse an output that cannot be written: better before the work than after it."""
    check_output_format(path, to_format)
    if path != "-":
        folder = Path(path).absolute().parent
        if not folder.is_dir():
            raise FileError(path, "its directory does not exist; create it first")
        if not os.access(folder, os.W_OK):
            raise FileError(path, "nothing may be written to its directory; choose another one")


def write_output(table: Any, path: str, to_format: str | None) -> None:
    """Write a table; what dask computes is computed now."""
    write(table, path, format=to_format)


@contextmanager
def cluster(workers: int | None, scheduler: str | None, memory_limit: str | None) -> Iterator[None]:
    """Let dask compute on worker processes, if they are asked for, and show its progress on a terminal."""
    if workers is not None and scheduler is not None:
        raise InputError("--workers starts a cluster and --scheduler names one; give one of the two")
    if workers is None and scheduler is None:
        with _progress_bar():
            yield
        return
    from evenscore.large import start_cluster

    with start_cluster(workers, scheduler, memory_limit):
        yield


@contextmanager
def _progress_bar() -> Iterator[None]:
    if not sys.stderr.isatty() or "dask" not in sys.modules:
        yield
        return
    from dask.diagnostics import ProgressBar

    with ProgressBar(minimum=1.0, out=sys.stderr):
        yield
