"""Where the files of a comparison stand, relative to its folder; names of methods and conditions may be anything.

Scores that are not in memory are written chunk by chunk, and a summary of each stands beside them.

================================  ==============================================================================
``results.json``                  all figures, see docs/schema/comparison.schema.json
``methods/NAME/scores*.npz``      the normalized evaluation trials with labels, one file per condition
``methods/NAME/llrs*.npz``        the same, calibrated
``methods/NAME/scores*.zarr``     in place of both, where they are not in memory (``.parquet`` if they are a list)
``methods/NAME/calibration.json`` the calibration
``methods/NAME/model.json``       the score model, where there is one
``methods/NAME/stored.json``      which of these are complete, and what they were made from
``methods/NAME/summaries/``       histograms of these scores and LLRs, for the report
``methods/NAME/record.json``      what a later run needs to go on from here; written last
================================  ==============================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import EvenscoreError
from evenscore.files import open_scores
from evenscore.files.chunked_output import ChunkedOutput
from evenscore.files.numpy_files import ArrayCache
from evenscore.files.records import read_json, write_object
from evenscore.metrics import OperatingPoint
from evenscore.metrics.summary import ScoreSummary
from evenscore.progress import Progress
from evenscore.tables import ScoreTable
from evenscore.tables.arrays import frozen
from evenscore.tables.tile import TILE_BYTES

__all__ = [
    "CALIBRATION",
    "MODEL",
    "RECORD",
    "RESULTS",
    "load_summaries",
    "method_folders",
    "save_summaries",
    "score_files",
    "stored_tables",
    "write_tables",
]

RESULTS = "results.json"
CALIBRATION = "calibration.json"
MODEL = "model.json"
RECORD = "record.json"
STORED = "stored.json"
SUMMARIES = "summaries"

_ODD = re.compile(r"[^A-Za-z0-9_.=+]+")
_LONGEST = 80
_LARGEST = 10_000_000  # bytes of the list of what is written


def method_folders(names: Iterable[str]) -> dict[str, str]:
    """Return the folder of each method.

    Examples
    --------
    >>> method_folders(["as:top_k=100", "as-top_k=100", "../x"])
    {'../x': 'methods/x', 'as-top_k=100': 'methods/as-top_k=100', 'as:top_k=100': 'methods/as-top_k=100-2'}
    """
    folders: dict[str, str] = {}
    for name in sorted(names):
        folder = first = f"methods/{_plain(name)}"
        number = 1
        while folder in folders.values():
            number += 1
            folder = f"{first}-{number}"
        folders[name] = folder
    return folders


def score_files(kind: str, conditions: Sequence[str], tables: Sequence[ScoreTable] = ()) -> list[str]:
    """Return the names of the files with the scores (or LLRs) of each condition; of tables that are not in memory, too.

    Examples
    --------
    >>> score_files("llrs", [""]), score_files("llrs", ["one/f", "two/m"])
    (['llrs.npz'], ['llrs-1-one-f.npz', 'llrs-2-two-m.npz'])
    """
    ends = [".parquet" if table.listed else ".zarr" for table in tables] or [".npz"] * len(conditions)
    if len(conditions) == 1:
        return [f"{kind}{ends[0]}"]
    named = enumerate(zip(conditions, ends, strict=True), 1)
    return [f"{kind}-{place}-{_plain(name)}{end}" for place, (name, end) in named]


def _plain(name: str) -> str:
    return _ODD.sub("-", name).strip("-.")[:_LONGEST] or "unnamed"


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
    with closing(ChunkedOutput(path, resume=True)) as output:  # what is begun is gone on with next time
        output.begin({"scores": identity}, start_over=True)  # if it was begun with other data or options
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
