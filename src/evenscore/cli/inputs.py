"""Reading scores, whatever they are in: all of them, or, where they are large, tile by tile when they are needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evenscore.errors import FileError
from evenscore.files import ReadOptions, open_scores as open_file, read_scores
from evenscore.files.numpy_files import is_score_npy
from evenscore.files.streams import ZARR_MARKS
from evenscore.tables import ScoreTable

if TYPE_CHECKING:
    from evenscore.cli.scale_options import ScaleChoices

__all__ = ["open_matrix", "open_scores", "open_tiles"]


def open_scores(source: str, scale: ScaleChoices | None = None, *, infinite: bool = False) -> ScoreTable:
    """Read scores.

    Parameters
    ----------
    source
        Name of a file.
    scale
        If given, scores that can be read tile by tile stay where they are.
    infinite
        Whether infinite scores are scores like others, as those of log-likelihood ratios are.
    """
    options = ReadOptions(kind="scores", infinite="accept" if infinite else "error")
    found = None if scale is None else _opened(source, options)
    if found is None or scale is None:
        return read_scores(source, infinite=options.infinite)
    return found.in_tiles(scale.tile_bytes)


def open_tiles(source: str, scale: ScaleChoices | None = None, *, infinite: bool = False) -> ScoreTable:
    """Read scores; with ``scale``, those that had to be read whole are cut into tiles, too."""
    scores = open_scores(source, scale, infinite=infinite)
    return scores.in_tiles(scale.tile_bytes) if scale is not None and scores.is_in_memory else scores


def open_matrix(path: str, scale: ScaleChoices | None = None) -> ScoreTable:
    """Read scores, such as those of a cohort, that must be a matrix; pairs that are not listed are missing."""
    from evenscore.cli.combine import as_matrix

    scores = open_scores(path, scale)
    return as_matrix(scores.in_memory()) if scores.listed else scores


def _opened(path: str, options: ReadOptions) -> ScoreTable | None:
    """Open scores that can be read tile by tile; None if this file's cannot."""
    file = Path(path)
    store = file.is_dir() and any((file / mark).exists() for mark in ZARR_MARKS)
    if file.suffix.lower() not in (".parquet", ".pq") and not store and not is_score_npy(path):
        return None
    try:
        return open_file(path, options)
    except FileError as error:
        if error.part not in ("scores", "enroll_ids", "test_ids"):
            raise
        return None  # a store of listed trials, for instance
