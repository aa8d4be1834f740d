"""Opening scores without reading them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evenscore.files.streams import PathLike

if TYPE_CHECKING:
    from evenscore.files.formats import ReadOptions
    from evenscore.tables.score_table import LazyScores

__all__ = ["open_scores"]


def open_scores(path: PathLike, options: ReadOptions | None = None) -> LazyScores:
    """Open scores that stay in their files; tiles are read when they are needed.

    Parameters
    ----------
    path
        A matrix in a zarr store, or in ``name.npy`` with the ids in ``name.enroll_ids`` and ``name.test_ids``; or a
        list of trials in a parquet file, or in a directory of them.
    options
        What to do with missing scores and repeated trials of a list.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from evenscore import ScoreMatrix, write
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "dev.zarr"
    >>> write(ScoreMatrix([[1.5, -2.0]], ["e1"], ["t1", "t2"]), path)
    >>> open_scores(path)
    LazyScores(1 enrolments x 2 tests, float64, 1 tiles)
    """
    file = Path(path)
    if file.suffix.lower() in (".parquet", ".pq") or (file.is_dir() and any(file.glob("*.parquet"))):
        from evenscore.files.parquet_trials import open_trials

        return open_trials(path, options)
    from evenscore.files.score_tiles import open_matrix

    return open_matrix(path)
