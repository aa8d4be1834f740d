"""Scores in files that are read tile by tile: zarr stores, npy files mapped into memory, lists of trials in parquet.

The ids of an npy file ``name.npy`` are in ``name.enroll_ids`` and ``name.test_ids``, one per line.
"""

from __future__ import annotations

import math
import os
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import FileError
from evenscore.files.numpy_files import check_npy_header, read_ids, score_id_files
from evenscore.files.parquet import distinct_ids, parquet_parts, parsing_parquet, trials_of_frame
from evenscore.files.parquet_sizes import check_sizes
from evenscore.files.registry import ReadOptions
from evenscore.files.streams import PathLike, parsing, reading
from evenscore.files.zarr_chunks import PlainChunks, chunk_places, damaged_chunk
from evenscore.files.zarr_metadata import array_metadata, store_format
from evenscore.files.zarr_sizes import Packing, check_chunk
from evenscore.files.zarr_store import open_store
from evenscore.tables.arrays import hashed
from evenscore.tables.axis import Axis, as_axis, merged
from evenscore.tables.door import looked_through
from evenscore.tables.score_table import LazyScores
from evenscore.tables.tile import Cuts, Grid, Place, Tile

if TYPE_CHECKING:
    import polars as pl

__all__ = ["NpyTiles", "ParquetTrials", "ZarrTiles", "count_stored", "open_scores", "open_trials"]

_MANY = 1 << 12  # chunks; if there are more of them,
_SMALL = 1 << 20  # bytes: chunks of less are taken together


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
        return open_trials(path, options)
    return _open_npy(path) if file.suffix.lower() == ".npy" else _open_zarr(path)


def count_stored(path: PathLike) -> int:
    """Return the number of scores of a zarr store or of parquet files, whose metadata tell it; 0 for any other file."""
    folder = Path(path)
    if folder.suffix.lower() in (".parquet", ".pq") and folder.exists():
        return sum(_size(str(part)) for part in parquet_parts(folder))
    with parsing(path, "a zarr store"):
        metadata = array_metadata(folder / "scores", store_format(folder), path, "scores")
    return 0 if metadata is None else math.prod(metadata.shape)


def _open_zarr(path: PathLike) -> LazyScores:
    stored = open_store(path)
    folder = Path(path) / "scores"
    with parsing(path, "a zarr store"):
        metadata = array_metadata(folder, store_format(folder.parent), path, "scores")
        assert metadata is not None  # noqa: S101
        plain = PlainChunks.of(folder)
    dtype, (rows, columns) = _kept(stored.scores.dtype), metadata.chunks
    shape = len(stored.enroll_ids), len(stored.test_ids)
    table = LazyScores(
        enroll_axis=Axis(stored.enroll_ids),
        test_axis=Axis(stored.test_ids),
        dtype=dtype,
        source=ZarrTiles(
            path=os.path.abspath(path),
            chunks=(rows, columns),
            dtype=dtype,
            plain=plain,
            names=metadata.names,
            packing=Packing.of(metadata, path, "scores"),
            opened=monotonic_ns(),
        ),
        layout=Grid(shape, dtype.itemsize, stored=_together((rows, columns), shape, stored.scores.dtype.itemsize)),
    )
    return looked_through(table)


def _kept(dtype: Any) -> np.dtype[Any]:
    """Return the type in which scores are read: float32 of this machine, or float64 for all other numbers."""
    native = np.dtype(dtype).newbyteorder("=")
    return native if native in (np.float32, np.float64) else np.dtype(np.float64)


def _together(chunks: tuple[int, int], shape: tuple[int, int], itemsize: int) -> tuple[int, int]:
    """Return shards or chunks as they are, but very many tiny ones as fewer: each becomes a file of the output."""
    rows, columns = (max(min(size, whole), 1) for size, whole in zip(chunks, shape, strict=True))
    down, across = -(-shape[0] // rows), -(-shape[1] // columns)
    if down * across > _MANY:
        columns *= max(min(_SMALL // (rows * columns * itemsize), across), 1)
        rows *= max(min(_SMALL // (rows * columns * itemsize), down), 1)
    return rows, columns


@dataclass(frozen=True, eq=False)
class ZarrTiles:
    """Tiles of the array ``scores`` of a zarr store."""

    path: str
    chunks: tuple[int, int]  #: or shards: what is in a file
    dtype: np.dtype[Any]
    plain: PlainChunks | None
    names: str  #: of the files, with {} for each place
    packing: Packing  #: of what is in them
    opened: int  #: when; a store that is opened later under the same name may be another one

    def read(self, place: Place) -> Tile:
        """Return a tile, NaN where a pair is missing; a chunk that cannot be read is named."""
        return Tile(self._scores(place.rows, place.columns), place.rows, place.columns)

    def _scores(self, rows: slice, columns: slice) -> npt.NDArray[Any]:
        if self.plain is not None:
            with reading(self.path):
                return self.plain.read(rows, columns)
        if self.packing.packer:
            for i, j in chunk_places(rows, columns, self.chunks):
                self._check_length(i, j)
        array = _array(self.path, self.opened)
        try:
            return np.asarray(array[rows, columns], dtype=self.dtype)
        except MemoryError:
            raise
        except Exception as error:  # a library that meets damaged data raises nearly anything
            raise self._named(array, rows, columns, error) from None

    def identity(self) -> str:
        """Return a hash of the names, sizes and times of all files of the array."""
        return hashed(sorted(_files(Path(self.path) / "scores")))

    def _named(self, array: Any, rows: slice, columns: slice, error: Exception) -> FileError:
        """Find the chunk that cannot be read."""
        for i, j in chunk_places(rows, columns, self.chunks):
            top, left = i * self.chunks[0], j * self.chunks[1]
            try:
                array[top : top + self.chunks[0], left : left + self.chunks[1]]
            except Exception as found:
                return self._damaged(i, j, (str(found).strip() or type(found).__name__).splitlines()[0])
        return FileError(self.path, f"it cannot be read: {error}", part="scores")

    def _check_length(self, i: int, j: int) -> None:
        """Refuse a chunk that is cut off, which blosc would not notice (its length stands at byte 12), or a bomb."""
        file = Path(self.path) / "scores" / self.names.format(i, j)
        if not file.is_file():
            return
        with parsing(self.path, "a zarr store", part="scores"):
            check_chunk(file, self.packing, self.path, "scores")
            with open(file, "rb") as stream:
                header = stream.read(16)
        short = len(header) < 16 or int.from_bytes(header[12:], "little") > file.stat().st_size
        if self.packing.packer == "blosc" and not self.packing.in_shard and short:
            raise self._damaged(i, j, "it is cut off")

    def _damaged(self, i: int, j: int, why: str) -> FileError:
        return damaged_chunk(Path(self.path) / "scores", self.names.format(i, j), why)


@lru_cache(maxsize=8)
def _array(path: str, _opened: int) -> Any:
    return open_store(path).scores


def _files(folder: Path) -> Iterator[tuple[str, int, int]]:
    with reading(folder.parent):
        for place, _, names in os.walk(folder):
            for name in names:
                status = os.stat(os.path.join(place, name))
                yield os.path.relpath(os.path.join(place, name), folder), status.st_size, status.st_mtime_ns


def _open_npy(path: PathLike) -> LazyScores:
    for file in score_id_files(path):
        if not file.is_file():
            raise FileError(path, f"a score matrix in npy needs its ids, but there is no {file}; write one id per line")
    rows, columns = (read_ids(file) for file in score_id_files(path))
    with parsing(path, "an npy file"):
        with open(path, "rb") as stream:
            check_npy_header(stream, os.path.getsize(path), path, None)
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.dtype.kind not in "fiu" or array.shape != (len(rows), len(columns)):
        found = f"it is {array.dtype} of shape {array.shape}"
        raise FileError(path, f"{found}, but numbers of shape {(len(rows), len(columns))} are expected by its ids")
    dtype = _kept(array.dtype)
    table = LazyScores(
        enroll_axis=as_axis(rows, "enroll_ids"),
        test_axis=as_axis(columns, "test_ids"),
        dtype=dtype,
        source=NpyTiles(os.path.abspath(path), dtype),
        layout=Grid(array.shape, dtype.itemsize),
    )
    return looked_through(table)


@dataclass(frozen=True, eq=False)
class NpyTiles:
    """Tiles of an npy file, which is mapped into memory where it is read."""

    path: str
    dtype: np.dtype[Any]

    def read(self, place: Place) -> Tile:
        """Return a tile, in memory."""
        with parsing(self.path, "an npy file"):
            array = np.load(self.path, mmap_mode="r", allow_pickle=False)
            scores = np.array(array[place.rows, place.columns], dtype=self.dtype, order="C")
        return Tile(scores, place.rows, place.columns)

    def identity(self) -> str:
        """Return a hash of the size and time of the file."""
        return _stamped(self.path)


def open_trials(path: PathLike, options: ReadOptions | None = None) -> LazyScores:
    """Open a list of scored trials in a parquet file, or in a directory of such files.

    Only its ids are read, in a pass over two columns; repeated trials are found within a chunk only.
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
        return _stamped(*self.parts)


def _stamped(*files: str) -> str:
    with reading(files[0]):
        status = [os.stat(file) for file in files]
    return hashed([(one.st_size, one.st_mtime_ns) for one in status])


def _scan(path: str) -> pl.LazyFrame:
    import polars as pl

    return pl.scan_parquet(path, glob=False, hive_partitioning=False)


def _size(path: str) -> int:
    import polars as pl

    with parsing_parquet(path):
        check_sizes(Path(path), path)
        return int(_scan(path).select(pl.len()).collect().item())
