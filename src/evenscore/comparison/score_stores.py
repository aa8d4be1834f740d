"""Normalized scores that are not in memory, on disk: written chunk by chunk, and a summary of each beside them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.comparison.layout import STORED, SUMMARIES, score_files
from evenscore.errors import EvenscoreError
from evenscore.files import open_scores
from evenscore.files.chunked_output import ChunkedOutput
from evenscore.files.numpy_files import ArrayCache
from evenscore.files.records import read_json, write_object
from evenscore.files.streams import writing
from evenscore.metrics import OperatingPoint
from evenscore.metrics.summary import ScoreSummary
from evenscore.progress import Progress
from evenscore.tables import ScoreTable
from evenscore.tables.arrays import frozen
from evenscore.tables.tile import TILE_BYTES

__all__ = ["load_summaries", "save_summaries", "stored_tables", "write_tables"]

_LARGEST = 10_000_000  # bytes of the list of what is written


def write_tables(
    place: Path, tables: Sequence[ScoreTable], conditions: Sequence[str], *, client: Any, progress: Progress
) -> list[ScoreTable]:
    """Write the scores of each condition that are not there yet, chunk by chunk, and return what was written.

    A run that was stopped goes on in the middle of a table; tables of other data or options are replaced.
    """
    written = _written(place)
    found: list[ScoreTable] = []
    for at, (name, table) in enumerate(zip(score_files("scores", conditions, tables), tables, strict=True)):
        path, identity = place / name, table.identity()
        if written.get(name) != identity or not path.exists():
            part = _share(progress, at, len(tables))
            _write(path, table, identity, client, part)
            written[name] = identity
            write_object(place / STORED, written)
        found.append(_opened(path, table))
    return found


def stored_tables(
    place: Path, tables: Sequence[ScoreTable], conditions: Sequence[str]
) -> tuple[ScoreTable, ...] | None:
    """Return the scores that are kept of tables of this form; None if some are not there."""
    files = score_files("scores", conditions, tables)
    written = _written(place)
    if any(name not in written or not (place / name).exists() for name in files):
        return None
    return tuple(_opened(place / name, table) for name, table in zip(files, tables, strict=True))


def _written(place: Path) -> dict[str, Any]:
    try:
        return read_json(place / STORED, largest=_LARGEST) if (place / STORED).is_file() else {}
    except EvenscoreError:  # damaged: write the scores again
        return {}


def _write(path: Path, table: ScoreTable, identity: str, client: Any, progress: Progress) -> None:
    output = ChunkedOutput(path, resume=True)
    try:
        output.begin({"scores": identity})
    except EvenscoreError:  # begun with other data or options
        with writing(path):
            shutil.rmtree(output.partial)
        output = ChunkedOutput(path)
        output.begin({"scores": identity})
    output.write(table, client=client, progress=progress)


def _opened(path: Path, like: ScoreTable) -> ScoreTable:
    return open_scores(path).in_tiles(getattr(like.layout, "tile_bytes", TILE_BYTES))


def _share(progress: Progress, at: int, number: int) -> Progress:
    return lambda stage, fraction: progress(stage, (at + fraction) / number)


def save_summaries(place: Path, fingerprint: str, summaries: Mapping[str, ScoreSummary]) -> None:
    """Keep the summaries of a method's scores and LLRs, from which its curves are drawn."""
    cache = ArrayCache(place / SUMMARIES)
    for kind, summary in summaries.items():
        arrays = {field.name: getattr(summary, field.name) for field in fields(summary)}
        del arrays["points"]
        cache.put(
            {"fingerprint": fingerprint, "kind": kind}, {name: np.asarray(array) for name, array in arrays.items()}
        )


def load_summaries(place: Path, fingerprint: str, points: tuple[OperatingPoint, ...]) -> dict[str, ScoreSummary] | None:
    """Return the summaries that were kept; None if one is not there."""
    cache = ArrayCache(place / SUMMARIES)
    found: dict[str, ScoreSummary] = {}
    for kind in ("scores", "llrs"):
        arrays: dict[str, npt.NDArray[Any]] | None = cache.get({"fingerprint": fingerprint, "kind": kind})
        if arrays is None:
            return None
        bits = int(arrays.pop("bits"))
        found[kind] = ScoreSummary(points=points, bits=bits, **{name: frozen(array) for name, array in arrays.items()})
    return found
