"""What commands give back: JSON for programs, plain tables for people, a progress bar, and scores in files.

What users named is never read as markup.
"""

from __future__ import annotations

import io
import json
import math
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenscore.errors import FileError, InputError, printable
from evenscore.progress import Progress, silent

if TYPE_CHECKING:
    from rich.table import Table

    from evenscore.cli.options import ScaleChoices
    from evenscore.files.chunked_output import ChunkedOutput
    from evenscore.tables import ScoreTable

__all__ = [
    "PIPE_WIDTH",
    "ScoredOutput",
    "check_model_output",
    "check_output",
    "check_output_folder",
    "print_json",
    "print_lines",
    "print_table",
    "printable",
    "progress_bar",
    "scored_output",
    "write_scores",
]

PIPE_WIDTH = 200  #: columns of a table that goes into a pipe, so that little is folded
_ENDINGS = (".zarr", ".parquet", ".pq")


def check_output(*paths: str | None) -> None:
    """Refuse files that cannot be written: better now than after the work."""
    for path in paths:
        if path is None or path == "-":
            continue
        folder = Path(path).absolute().parent
        if not folder.is_dir():
            raise FileError(path, "its directory does not exist; create it first")
        if not os.access(folder, os.W_OK):
            raise FileError(path, "nothing may be written to its directory; choose another one")
        if Path(path).is_dir() and Path(path).suffix.lower() not in _ENDINGS:
            raise FileError(path, "this is a directory; name a file in it")


def check_output_folder(path: str) -> None:
    """Refuse a directory that cannot be made or written to, before the work is done."""
    place = Path(path).absolute()
    if place.exists() and not place.is_dir():
        raise FileError(path, "it is a file, but a directory is needed; choose another name")
    there = next(folder for folder in (place, *place.parents) if folder.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise FileError(path, f"nothing may be written to {there}; choose another place")


def check_model_output(path: str, json: bool) -> None:
    """Refuse a model file that cannot be written: better now than after the training."""
    if path == "-" and json:
        raise InputError("standard output can be the model file or the figures, not both; give -o a file name")
    check_output(path)


def print_json(value: Any, *, spell_infinity: bool = False) -> None:
    """Print a value as JSON; numbers that JSON does not know become null, but infinity may be the text 'inf'."""
    json.dump(_jsonable(value, spell_infinity), sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")


def print_lines(lines: Sequence[str]) -> None:
    """Print lines of plain text."""
    for line in lines:
        sys.stdout.write(printable(line) + "\n")


def print_table(
    rows: Sequence[Sequence[str]], *, header: Sequence[str] = (), title: str | None = None, numbers: bool = False
) -> None:
    """Print a table; with ``numbers``, every column but the first stands to the right, and is never folded.

    Where the terminal is too narrow for all columns with numbers, those that are left follow in a table of their own.
    """
    from rich.console import Console

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH
    # Drawn in memory: rich handles a closed pipe and blank line ends in its own way.
    console = Console(file=io.StringIO(), width=width, markup=False, highlight=False, emoji=False)
    number = max((len(row) for row in (header, *rows)), default=0)
    left = list(range(number))
    while True:
        shown = _fitting(rows, header, left, width) if numbers else left
        console.print(_table(rows, header, shown, title, width if numbers else None))
        left = [place for place in left if place not in shown]
        if not left:
            break
        left, title = [0, *left], None
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    sys.stdout.writelines(f"{line}\n" for line in lines if line)


def _fitting(rows: Sequence[Sequence[str]], header: Sequence[str], places: list[int], width: int) -> list[int]:
    """Return as many of these columns as stand side by side: the first one, and at least one more."""
    from rich.console import Console
    from rich.measure import Measurement

    endless = Console(file=io.StringIO(), width=10_000)
    for end in range(len(places), 2, -1):
        table = _table(rows, header, places[:end], None, width)
        if Measurement.get(endless, endless.options, table).maximum <= width:
            return places[:end]
    return places[:2]


def _table(
    rows: Sequence[Sequence[str]], header: Sequence[str], places: Sequence[int], title: str | None, width: int | None
) -> Table:
    """Return some columns as a table; with a ``width``, all but the first (half of it at most) have numbers."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=None if title is None else Text(printable(title)),
        title_justify="left",
        show_header=bool(header),
        box=box.SIMPLE_HEAD if header else None,
        pad_edge=False,
    )
    for place in places:
        number = width is not None and place > 0
        table.add_column(
            Text(header[place]) if header else "",
            justify="right" if number else "left",
            overflow="fold",
            no_wrap=number,
            max_width=None if number or width is None else width // 2,
        )
    for row in rows:
        table.add_row(*(Text(printable(row[place])) if place < len(row) else "" for place in places))
    return table


def _jsonable(value: Any, spell_infinity: bool) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _jsonable(item, spell_infinity) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item, spell_infinity) for item in value]
    if hasattr(value, "tolist"):  # a numpy number or array
        return _jsonable(value.tolist(), spell_infinity)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value) if spell_infinity and math.isinf(value) else None
    return value


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


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoredOutput:
    """A place for scores; ``store`` is one that is written tile by tile, None for a file that is written whole."""

    path: str | None
    format: str | None = None
    store: ChunkedOutput | None = None
    client: Any = None
    progress: Progress = silent
    room: float = math.inf  #: bytes of a result that may be brought together, for formats that have no chunks

    @property
    def how(self) -> dict[str, Any]:
        """Where the work is done, and who is told of it."""
        return {"client": self.client, "progress": self.progress}

    def begin(self, listed: bool, identity: Callable[[], Mapping[str, str]]) -> None:
        """Start a store, or go on with one of a run with the same inputs and options."""
        self.check(listed)
        if self.store is not None:
            self.store.begin(identity())

    def check(self, listed: bool) -> None:
        """Refuse a list of trials that this format has no place for, before anything is computed."""
        if self.store is not None and listed:
            self.store.refuse_lists()

    def write(self, scores: ScoreTable) -> None:
        """Write scores; those that are not in memory must be few if the format has no chunks."""
        assert self.path is not None  # noqa: S101
        if self.store is not None:
            self.store.write(scores, **self.how)
            return
        if not scores.is_in_memory and scores.nbytes > self.room:
            raise FileError(self.path, "these scores are too many for this format; write them to .zarr or .parquet")
        self.progress("writing", 0.9)
        write_scores(scores.in_memory(), self.path, self.format)


@contextmanager
def scored_output(
    path: str | None, format: str | None, scale: ScaleChoices, *, lazy: bool, resume: bool = False
) -> Iterator[ScoredOutput]:
    """Give the output of a command, as a context: ``lazy`` scores are written tile by tile where the format can.

    It has the cluster that the work is done on, and the progress bar that it is told to.
    """
    check_output(path)
    if path is None and resume:
        raise InputError("--resume goes on with an output that was cut short; give its name with -o")
    ending = "" if path is None else Path(path).suffix.lower()
    in_chunks = lazy and (format in ("zarr", "parquet") or (format is None and ending in _ENDINGS))
    if path is not None and resume and not in_chunks:
        raise FileError(path, "only .zarr and .parquet are written in chunks, so --resume has nothing to go on with")
    with progress_bar() as progress, scale.client(progress) as client:
        place = ScoredOutput(path=path, format=format, client=client, progress=progress, room=scale.room)
        if path is None or not in_chunks:
            yield place
            return
        from evenscore.files.chunked_output import ChunkedOutput

        with ChunkedOutput(path, format=format, resume=resume) as store:
            yield replace(place, store=store)


def write_scores(scores: Any, output: str, to_format: str | None) -> None:
    """Write scores; labels that are known for all trials choose a text format that has a place for them."""
    from evenscore.files import FORMATS, write

    endings = tuple(ending for format in FORMATS.values() for ending in format.extensions)
    has_labels = scores.listed and scores.labels is not None and not scores.n_unknown
    if to_format is None and has_labels and not output.lower().removesuffix(".gz").endswith(endings):
        to_format = "wespeaker"  # the usual format for such names has no place for labels
    write(scores, output, format=to_format)
