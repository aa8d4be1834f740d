"""Score matrices in files that are read tile by tile: zarr stores, and npy files that are mapped into memory.

The ids of an npy file ``name.npy`` are in ``name.enroll_ids`` and ``name.test_ids``, one per line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import FileError
from evenscore.files.checks import parsing
from evenscore.files.npy import read_ids, score_id_files
from evenscore.files.npz import check_npy_header
from evenscore.files.streams import PathLike, reading
from evenscore.files.zarr_chunks import PlainChunks, chunk_places, damaged_chunk
from evenscore.files.zarr_metadata import array_metadata, store_format
from evenscore.files.zarr_store import open_store
from evenscore.tables.axis import Axis, as_axis
from evenscore.tables.identity import hashed
from evenscore.tables.score_table import LazyScores
from evenscore.tables.tile import Grid, Place, Tile

__all__ = ["NpyTiles", "ZarrTiles", "open_matrix"]

_MANY = 1 << 12  # chunks; if there are more of them,
_SMALL = 1 << 20  # bytes: chunks of less are taken together


def open_matrix(path: PathLike) -> LazyScores:
    r"""Open a score matrix without reading it: a zarr store, or an npy file with lists of ids beside it.

    Parameters
    ----------
    path
        A zarr store with the arrays ``scores``, ``enroll_ids`` and ``test_ids``; or ``name.npy`` with the ids in
        ``name.enroll_ids`` and ``name.test_ids``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from evenscore import ScoreMatrix, write
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "dev.npy"
    >>> np.save(path, np.zeros((1, 2), dtype=np.float32))
    >>> _ = path.with_suffix(".enroll_ids").write_text("e1\n"), path.with_suffix(".test_ids").write_text("t1\nt2\n")
    >>> open_matrix(path)
    LazyScores(1 enrolments x 2 tests, float32, 1 tiles)
    """
    if str(path).lower().endswith(".npy"):
        return _open_npy(path)
    stored = open_store(path)
    folder = Path(path) / "scores"
    with parsing(path, "a zarr store"):
        metadata = array_metadata(folder, store_format(folder.parent), path, "scores")
        assert metadata is not None  # noqa: S101
        plain = PlainChunks.of(folder)
    dtype, (rows, columns) = _kept(stored.scores.dtype), metadata.chunks
    shape = len(stored.enroll_ids), len(stored.test_ids)
    return LazyScores(
        enroll_axis=Axis(stored.enroll_ids),
        test_axis=Axis(stored.test_ids),
        dtype=dtype,
        source=ZarrTiles(
            path=os.path.abspath(path),
            chunks=(rows, columns),
            dtype=dtype,
            plain=plain,
            names=metadata.names,
            blosc=metadata.codecs[-1][0] == "blosc",
        ),
        layout=Grid(shape, dtype.itemsize, stored=_together((rows, columns), shape, stored.scores.dtype.itemsize)),
    )


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
    blosc: bool  #: whether they are packed with blosc

    def read(self, place: Place) -> Tile:
        """Return a tile, NaN where a pair is missing; a chunk that cannot be read is named."""
        return Tile(self._scores(place.rows, place.columns), place.rows, place.columns)

    def _scores(self, rows: slice, columns: slice) -> npt.NDArray[Any]:
        if self.plain is not None:
            with reading(self.path):
                return self.plain.read(rows, columns)
        if self.blosc:
            for i, j in chunk_places(rows, columns, self.chunks):
                self._check_length(i, j)
        array = _array(self.path)
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
        """Refuse a chunk that is cut off, which blosc would not notice; its length stands at byte 12."""
        file = Path(self.path) / "scores" / self.names.format(i, j)
        if not file.is_file():
            return
        with reading(self.path), open(file, "rb") as stream:
            header = stream.read(16)
        if len(header) < 16 or int.from_bytes(header[12:], "little") > file.stat().st_size:
            raise self._damaged(i, j, "it is cut off")

    def _damaged(self, i: int, j: int, why: str) -> FileError:
        return damaged_chunk(Path(self.path) / "scores", self.names.format(i, j), why)


@lru_cache(maxsize=8)
def _array(path: str) -> Any:
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
    return LazyScores(
        enroll_axis=as_axis(rows, "enroll_ids"),
        test_axis=as_axis(columns, "test_ids"),
        dtype=dtype,
        source=NpyTiles(os.path.abspath(path), dtype),
        layout=Grid(array.shape, dtype.itemsize),
    )


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
        with reading(self.path):
            status = os.stat(self.path)
        return hashed(status.st_size, status.st_mtime_ns)
