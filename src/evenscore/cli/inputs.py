"""Reading scores, whatever they are in: all of them, or, where they are large, tile by tile when they are needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.cli.embedded_scores import EmbeddedScores, Source
from evenscore.errors import FileError
from evenscore.files import open_scores as open_file, read_scores
from evenscore.files.numpy_files import is_score_npy
from evenscore.files.streams import ZARR_MARKS
from evenscore.tables import ScoreTable

if TYPE_CHECKING:
    from evenscore.cli.scale_options import ScaleChoices

__all__ = ["is_large", "open_matrix", "open_scores", "open_tiles"]

_BYTES = 32  # that a trial takes in memory, with its label and what is computed from it


def open_scores(source: Source, reading: Mapping[str, Any], scale: ScaleChoices | None = None) -> ScoreTable:
    """Read scores, or make those of embeddings.

    Parameters
    ----------
    source
        Name of a file, or embeddings.
    reading
        Options of `read_scores`.
    scale
        If given, scores that can be read tile by tile stay where they are.
    """
    if isinstance(source, EmbeddedScores):
        return source.table() if scale is None else source.lazy().in_tiles(scale.tile_bytes)
    found = None if scale is None else _opened(source, reading)
    if found is None or scale is None:
        return read_scores(source, **reading)
    found = found.in_tiles(scale.tile_bytes)
    skips_infinite = reading.get("missing") == "skip" and reading.get("infinite") != "accept"
    return found.map(_finite, "finite") if skips_infinite and not found.listed else found


def open_tiles(source: Source, reading: Mapping[str, Any], scale: ScaleChoices | None = None) -> ScoreTable:
    """Read scores; with ``scale``, those that had to be read whole are cut into tiles, too."""
    scores = open_scores(source, reading, scale)
    return scores.in_tiles(scale.tile_bytes) if scale is not None and scores.is_in_memory else scores


def open_matrix(path: str, reading: Mapping[str, Any], scale: ScaleChoices | None = None) -> ScoreTable:
    """Read scores, such as those of a cohort, that must be a matrix; pairs that are not listed are missing."""
    from evenscore.cli.combine import as_matrix

    scores = open_scores(path, reading, scale)
    return as_matrix(scores.in_memory()) if scores.listed else scores


def is_large(scale: ScaleChoices, sources: Iterable[Source]) -> bool:
    """Tell whether scores are read, or made, tile by tile."""
    every = list(sources)
    paths = [source for source in every if isinstance(source, str)]
    made = sum(_BYTES * source.size for source in every if isinstance(source, EmbeddedScores))
    return scale.in_chunks(*paths, made=made)


def _opened(path: str, reading: Mapping[str, Any]) -> ScoreTable | None:
    """Open scores that can be read tile by tile; None if this file's cannot."""
    file, format = Path(path), reading.get("format")
    store = file.is_dir() and any((file / mark).exists() for mark in ZARR_MARKS)
    if (store and format in (None, "zarr")) or (is_score_npy(path) and format in (None, "npy")):
        try:
            return open_file(path)
        except FileError as error:
            if error.part not in ("scores", "enroll_ids", "test_ids"):
                raise
            return None  # a store of listed trials, for instance
    if format == "parquet" or (format is None and file.suffix.lower() in (".parquet", ".pq")):
        from evenscore.files import ReadOptions
        from evenscore.files.score_tiles import open_trials

        names = ("missing", "infinite", "duplicates", "score_column")
        return open_trials(path, ReadOptions(kind="scores", **{n: reading[n] for n in names if n in reading}))
    return None


def _finite(scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.where(np.isinf(scores), np.nan, scores)
