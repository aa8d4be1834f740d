"""Lists of trials in parquet files that are read some trials at a time: one file, or a directory of parts."""

from __future__ import annotations

import os
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evenscore.errors import FileError
from evenscore.files.formats import ReadOptions
from evenscore.files.parquet import distinct_ids, parquet_parts, parsing_parquet, trials_of_frame
from evenscore.files.streams import PathLike, reading
from evenscore.tables.axis import Axis, merged
from evenscore.tables.identity import hashed
from evenscore.tables.score_table import LazyScores
from evenscore.tables.tile import Cuts, Place, Tile

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ParquetTrials", "open_trials"]


def open_trials(path: PathLike, options: ReadOptions | None = None) -> LazyScores:
    """Open a list of scored trials; only its ids are read, in a pass over two columns.

    Parameters
    ----------
    path
        A parquet file with the columns enroll, test and score, or a directory of such files.
    options
        What to do with missing scores and repeated trials; repeats are found within a chunk only.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from evenscore import TrialList, write
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "dev.parquet"
    >>> write(TrialList.from_pairs(["e1", "e1"], ["t1", "t2"], scores=[2.0, -1.0]), path)
    >>> open_trials(path)
    LazyScores(2 trials, 1 chunks)
    """
    parts = [str(part.absolute()) for part in parquet_parts(Path(path))]
    if not parts:
        raise FileError(path, "there is no parquet file in this directory; check the name")
    sizes = [_size(part) for part in parts]
    ends = tuple(accumulate(sizes))
    bounds = {0}
    for end, size in zip(ends, sizes, strict=True):
        bounds |= {end - size + bound for bound in Cuts.of(size).bounds}
    options = options or ReadOptions(kind="scores")
    known = [distinct_ids(_scan(part), part, options) for part in parts]
    enroll, test = (merged([Axis(found[side]) for found in known]) for side in ("enroll", "test"))
    return LazyScores(
        enroll_axis=enroll,
        test_axis=test,
        dtype=np.result_type(*(found["score"].dtype for found in known)),
        source=ParquetTrials(tuple(parts), ends, options, enroll, test),
        layout=Cuts(tuple(sorted(bounds))),
    )


@dataclass(frozen=True, eq=False)
class ParquetTrials:
    """Some trials of parquet files."""

    parts: tuple[str, ...]
    ends: tuple[int, ...]  #: number of trials up to the end of each part
    options: ReadOptions
    enroll: Axis
    test: Axis

    def read(self, place: Place) -> Tile:
        """Return some trials; they lie in one file."""
        trials = place.rows
        part = bisect_right(self.ends, trials.start)
        path = self.parts[min(part, len(self.parts) - 1)]
        start = trials.start - (self.ends[part - 1] if part else 0)
        with parsing_parquet(path):
            frame = _scan(path).slice(start, trials.stop - trials.start).collect()
            table = trials_of_frame(frame, path, self.options)
        if table.scores is None:
            raise FileError(path, "the trials have no scores; give a score file")
        rows, columns = self.enroll.find(table.enroll_ids), self.test.find(table.test_ids)
        return Tile(
            table.scores,
            rows[table.enroll_index].astype(np.int32),
            columns[table.test_index].astype(np.int32),
            table.labels,
            measures=dict(table.measures),
        )

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
