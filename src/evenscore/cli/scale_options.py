"""Options for data that is larger than memory or than one machine, shared by the commands that can do it."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.progress import Progress

__all__ = ["Resume", "ScaleChoices", "bytes_of"]

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_LARGE = 0.25  # of the memory: files above this are read chunk by chunk
_SMALLEST = 1e6  # bytes of memory; a number without a unit, most likely
_TILES = 16  # that fit into the memory limit, with all that is computed from them

LARGE_DATA = "Large data"  #: the panel of the help
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
        size = bytes_of(self.memory_limit, "--memory-limit")
        if size < _SMALLEST:
            raise InputError(f"--memory-limit is {self.memory_limit!r}, less than 1 MB; give a size like 500MB or 2GB")
        return size

    @property
    def tile_bytes(self) -> float:
        """About how large the tiles are that are worked on at a time."""
        from evenscore.tables.tile import TILE_BYTES

        return TILE_BYTES if self.limit is None else min(max(self.limit / _TILES, 1 << 20), TILE_BYTES)

    def in_chunks(self, *paths: str | None) -> bool:
        """Tell whether files are read chunk by chunk: one of these options is given, or they are large together."""
        from evenscore.files.numpy_files import is_score_npy
        from evenscore.files.streams import memory_size

        found = [Path(path) for path in paths if path is not None and path != "-"]
        sizes = [_size(path) for path in found if path.suffix.lower() in (".zarr", ".npy", ".parquet", ".pq")]
        return self.given or any(map(is_score_npy, found)) or sum(sizes) > _LARGE * (self.limit or memory_size())

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


def bytes_of(text: str, option: str) -> float:
    """Return a size in bytes.

    Examples
    --------
    >>> bytes_of("1.5GB", "--memory"), bytes_of("64KiB", "--memory")
    (1500000000.0, 65536.0)
    """
    found = _SIZE.fullmatch(text.strip())
    size = 0.0
    if found is not None:
        number, prefix, binary = found.groups()
        size = float(number) * (1024 if binary else 1000) ** " kmgt".index(prefix.lower() or " ")
    if not size > 0:
        raise InputError(f"{option} is {text!r}, but must be a size above 0, like 500MB or 2GB")
    return size


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return path.stat().st_size if path.exists() else 0
