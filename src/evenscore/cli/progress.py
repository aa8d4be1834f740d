"""A progress bar on a terminal, nothing in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from evenscore.progress import Progress, silent

__all__ = ["progress_bar"]


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Give the callback that long work reports to; it draws on standard error, so that output can be piped."""
    if not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress as Bars, TaskID

    from evenscore.compiled import announced

    tasks: dict[str, TaskID] = {}
    with Bars(console=Console(stderr=True), transient=True) as bars:

        def report(stage: str, fraction: float) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(escape(stage), total=1.0)
            bars.update(tasks[stage], completed=min(max(fraction, 0.0), 1.0))

        with announced(lambda: bars.console.print("compiling loops for large data, once on this machine ...")):
            yield report
