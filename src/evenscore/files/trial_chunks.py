"""Lists of trials in parquet files that are read some trials at a time: one file, or a directory of parts."""

from __future__ import annotations

import os
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from evenscore.errors import FileError
from evenscore.files.formats import ReadOptions
from evenscore.files.parquet import parquet_parts, parsing_parquet, trials_of_frame
from evenscore.files.streams import PathLike, reading
from evenscore.scale.chunked_scores import hashed
from evenscore.scale.chunked_trials import ChunkedTrials
from evenscore.tables import TrialList

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ParquetTrials", "open_chunked_trials"]


def open_chunked_trials(path: PathLike, options: ReadOptions | None = None) -> ChunkedTrials:
    """Open a list of scored trials without reading it.

    Parameters
    ----------
    path
        A parquet file with the columns enroll, test and score, or a directory of such files.
    options
        What to do with missing scores and repeated trials; repeats are found within a chunk only.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from evenscore import write
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "dev.parquet"
    >>> write(TrialList.from_pairs(["e1", "e1"], ["t1", "t2"], scores=[2.0, -1.0]), path)
    >>> open_chunked_trials(path)
    ChunkedTrials(2 trials, 1 chunks)
    """
    parts = [str(part.absolute()) for part in parquet_parts(Path(path))]
    if not parts:
        raise FileError(path, "there is no parquet file in this directory; check the name")
    sizes = [_size(part) for part in parts]
    ends = tuple(accumulate(sizes))
    bounds = {0}
    for end, size in zip(ends, sizes, strict=True):
        bounds |= {end - size + bound for bound in ChunkedTrials.cut(size)}
    reader = ParquetTrials(tuple(parts), ends, options or ReadOptions(kind="scores"))
    return ChunkedTrials(size=ends[-1], reader=reader, bounds=tuple(sorted(bounds)))


@dataclass(frozen=True, eq=False)
class ParquetTrials:
    """Some trials of parquet files."""

    parts: tuple[str, ...]
    ends: tuple[int, ...]  #: number of trials up to the end of each part
    options: ReadOptions

    def read(self, trials: slice) -> TrialList:
        """Return some trials; they lie in one file."""
        part = bisect_right(self.ends, trials.start)
        path = self.parts[part]
        start = trials.start - (self.ends[part - 1] if part else 0)
        with parsing_parquet(path):
            frame = _scan(path).slice(start, trials.stop - trials.start).collect()
            table = trials_of_frame(frame, path, self.options)
        if table.scores is None:
            raise FileError(path, "the trials have no scores; give a score file")
        return table

    def identity(self) -> str:
        """Return a hash of the sizes and times of the files."""
        with reading(self.parts[0]):
            status = [os.stat(part) for part in self.parts]
        return hashed([(one.st_size, one.st_mtime_ns) for one in status])


def _scan(path: str) -> pl.LazyFrame:
    import polars as pl

    return pl.scan_parquet(path, glob=False, hive_partitioning=False)


def _size(path: str) -> int:
    import polars as pl

    with parsing_parquet(path):
        return int(_scan(path).select(pl.len()).collect().item())
