"""The chunks of plain zarr arrays, read and written without the zarr library, at the speed of the disk.

Plain is two dimensions, float32 or float64 in C order, little-endian, NaN where a chunk is missing, and packed not at
all or with a checksum: CRC-32 before the numbers in format 2 (numcodecs' ``crc32``), CRC-32C after them in format 3.
The zarr library reads and writes such arrays, too; it only takes longer (0.5 GB with checksums: 0.8 s to write here,
2.2 s there, best of six turns on two busy cores).
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from io import FileIO
from itertools import product
from pathlib import Path
from socket import gethostname
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import FileError
from evenscore.files.working_files import temporary_file
from evenscore.files.zarr_metadata import METADATA_FILES, ZarrFormat, array_metadata, store_format
from evenscore.tables.tile import Place, Tile, spans

__all__ = ["PlainChunks", "chunk_places", "damaged_chunk", "fast_crc32c"]

Checksum = Callable[[Any, int], int]  #: of the bytes of an array, given that of what stands before them

_CHECKSUM = 4  # bytes
_CHECKSUM_CODECS: dict[ZarrFormat, str] = {2: "crc32", 3: "crc32c"}
_PIECE = 1 << 19  # bytes that are read or written at a time; they stay in the cache for the checksum and the copy


@cache
def fast_crc32c() -> Checksum | None:
    """Return the checksum that comes with zarr 3; None where it is not installed, or was not compiled."""
    with suppress(ImportError):
        import google_crc32c

        if google_crc32c.implementation == "c":
            # It takes arrays, but no memoryviews, and keeps other threads waiting, but for less time than a copy takes.
            return lambda numbers, before: int(google_crc32c.extend(before, numbers))
    with suppress(ImportError):  # that of earlier releases of zarr 3
        import crc32c

        return lambda numbers, before: int(crc32c.crc32c(numbers, before))
    return None


def chunk_places(rows: slice, columns: slice, chunks: tuple[int, int]) -> list[tuple[int, int]]:
    """Return which chunks hold some rows and columns."""
    down, across = (
        range(part.start // size, -(-part.stop // size)) for part, size in zip((rows, columns), chunks, strict=True)
    )
    return list(product(down, across))


def damaged_chunk(folder: Path, name: str, why: str) -> FileError:
    """Return the error for a chunk of an array that cannot be read."""
    problem = f"the chunk is damaged ({why}); copy or write it again"
    return FileError(folder.parent, problem, part=f"{folder.name}/{name}")


@dataclass(frozen=True)
class PlainChunks:
    """Where the chunks of an array are, and what they look like."""

    folder: str
    shape: tuple[int, int]
    chunks: tuple[int, int]
    dtype: np.dtype[Any]
    checksum: bool
    format: ZarrFormat
    names: str  #: of the files, ``{}.{}`` or ``c/{}/{}``

    @classmethod
    def of(cls, folder: Path) -> PlainChunks | None:
        """Return the chunks of an array of a store, None if it is not there or not plain."""
        found = array_metadata(folder, store_format(folder.parent), folder.parent, folder.name)
        if found is None:
            return None
        packed = found.codecs[1:]
        checked = packed == ((_CHECKSUM_CODECS[found.format], {}),)
        plain = (
            len(found.shape) == 2
            and all(found.chunks)
            and found.codecs[0] == ("bytes", {"endian": "little"})
            and found.data_type in ("<f4", "<f8", "float32", "float64")
            and found.fill_value == "NaN"
            and (not packed or checked)
        )
        if not plain or (checked and found.format == 3 and fast_crc32c() is None):
            return None
        (rows, columns), (chunk_rows, chunk_columns) = found.shape, found.chunks
        return cls(
            folder=str(folder.absolute()),
            shape=(rows, columns),
            chunks=(chunk_rows, chunk_columns),
            dtype=found.dtype.newbyteorder("<"),
            checksum=checked,
            format=found.format,
            names=found.names,
        )

    @classmethod
    def create(cls, folder: Path, shape: tuple[int, int], chunks: tuple[int, int], dtype: np.dtype[Any]) -> PlainChunks:
        """Add an array with checksums to a store, in its format; the array has no chunk yet."""
        format = store_format(folder.parent)
        assert format is not None  # noqa: S101
        dtype = dtype.newbyteorder("<")
        metadata: dict[str, Any] = {"zarr_format": format, "shape": shape, "fill_value": "NaN"}
        if format == 2:
            metadata |= {"chunks": chunks, "dtype": dtype.str, "order": "C", "filters": None}
            metadata |= {"compressor": {"id": _CHECKSUM_CODECS[2]}, "dimension_separator": "."}
        else:
            metadata |= {"node_type": "array", "data_type": dtype.name, "attributes": {}, "storage_transformers": []}
            metadata["chunk_grid"] = {"name": "regular", "configuration": {"chunk_shape": chunks}}
            metadata["chunk_key_encoding"] = {"name": "default", "configuration": {"separator": "/"}}
            numbers = {"name": "bytes", "configuration": {"endian": "little"}}
            metadata["codecs"] = [numbers, {"name": _CHECKSUM_CODECS[3]}]
        folder.mkdir()
        file = folder / METADATA_FILES[format]
        with temporary_file(file, tidy=False) as (temporary, stream):
            stream.write(json.dumps(metadata, indent=2).encode())
            stream.flush()
            os.replace(temporary, file)
        created = cls.of(folder)
        assert created is not None  # noqa: S101
        return created

    def read(self, rows: slice, columns: slice) -> npt.NDArray[Any]:
        """Return some rows and columns; a chunk that is not there is missing scores, a damaged one is an error."""
        from evenscore.threads import in_parallel

        out = np.empty((rows.stop - rows.start, columns.stop - columns.start), dtype=self.dtype)
        places = chunk_places(rows, columns, self.chunks)

        def work(start: int, stop: int) -> None:
            for i, j in places[start:stop]:
                self._copy(i, j, rows, columns, out)

        in_parallel(work, len(places), out.size // max(len(places), 1))
        return out

    def write(self, place: Place, tile: Tile) -> None:
        """Write whole chunks; each appears under its name only when all of it is written."""
        from evenscore.threads import in_parallel

        rows, columns, scores = place.rows, place.columns, tile.scores
        places = chunk_places(rows, columns, self.chunks)

        def work(start: int, stop: int) -> None:
            for i, j in places[start:stop]:
                top, left = i * self.chunks[0], j * self.chunks[1]
                part = scores[
                    top - rows.start : top - rows.start + self.chunks[0],
                    left - columns.start : left - columns.start + self.chunks[1],
                ]
                self._write_one(i, j, part)

        in_parallel(work, len(places), scores.size // max(len(places), 1))

    def is_written(self, place: Place) -> bool:
        """Tell whether the files of all its chunks are there, in full length."""
        files = [self._file(*chunk) for chunk in chunk_places(place.rows, place.columns, self.chunks)]
        return all(file.is_file() and file.stat().st_size == self._file_size for file in files)

    @property
    def _file_size(self) -> int:
        return self.chunks[0] * self.chunks[1] * self.dtype.itemsize + _CHECKSUM * self.checksum

    def _file(self, i: int, j: int) -> Path:
        return Path(self.folder) / self.names.format(i, j)

    def _copy(self, i: int, j: int, rows: slice, columns: slice, out: npt.NDArray[Any]) -> None:
        """Copy what is wanted of a chunk to its place."""
        top, left = i * self.chunks[0] - rows.start, j * self.chunks[1] - columns.start
        target = out[max(top, 0) : top + self.chunks[0], max(left, 0) : left + self.chunks[1]]
        first, left = max(-top, 0), max(-left, 0)  # of the chunk, that are wanted
        try:
            with open(self._file(i, j), "rb", buffering=0) as stream:
                for start, piece in self._pieces(stream, i, j):
                    wanted = piece[max(first - start, 0) :, left : left + target.shape[1]]
                    place = target[max(start - first, 0) :][: len(wanted)]
                    place[:] = wanted[: len(place)]
        except FileNotFoundError:
            if not Path(self.folder, METADATA_FILES[self.format]).is_file():
                problem = f"there is no such store on {gethostname()}; all workers must see the same files"
                raise FileError(Path(self.folder).parent, problem) from None
            target[:] = np.nan
        except OSError as error:
            raise self._damaged(i, j, error.strerror or str(error)) from None

    def _pieces(self, stream: FileIO, i: int, j: int) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Read a chunk: some of its rows at a time, and which is the first of them; the next overwrite them."""
        if os.fstat(stream.fileno()).st_size != self._file_size:
            raise self._damaged(i, j, f"it does not have the {self._file_size} bytes that are expected")
        checksum = self._checksum()
        expected = stream.read(_CHECKSUM) if checksum and self.format == 2 else b""
        found = 0
        buffer = np.empty((self._piece_rows, self.chunks[1]), dtype=self.dtype)
        for rows in spans(self.chunks[0], self._piece_rows):
            piece = buffer[: rows.stop - rows.start]
            data, length = piece.reshape(-1).view(np.uint8).data, 0
            while length < len(data):
                more = stream.readinto(data[length:])
                if not more:
                    raise self._damaged(i, j, "it is cut off")
                length += more
            if checksum:
                found = checksum(piece, found)
            yield rows.start, piece
        if checksum and self.format == 3:
            expected = stream.read(_CHECKSUM)
        if checksum and found != int.from_bytes(expected, "little"):
            raise self._damaged(i, j, "its checksum is wrong")

    @property
    def _piece_rows(self) -> int:
        return max(min(_PIECE // (self.chunks[1] * self.dtype.itemsize), self.chunks[0]), 1)

    def _damaged(self, i: int, j: int, why: str) -> FileError:
        return damaged_chunk(Path(self.folder), self.names.format(i, j), why)

    def _checksum(self) -> Checksum | None:
        if not self.checksum:
            return None
        found: Checksum | None = zlib.crc32 if self.format == 2 else fast_crc32c()
        if found is None:
            problem = f"the checksums of zarr 3 cannot be had on {gethostname()}; install the same zarr there as here"
            raise FileError(Path(self.folder).parent, problem)
        return found

    def _write_one(self, i: int, j: int, part: npt.NDArray[Any]) -> None:
        if part.shape != self.chunks:
            whole = np.full(self.chunks, np.nan, dtype=self.dtype)
            whole[: part.shape[0], : part.shape[1]] = part
            part = whole
        file = self._file(i, j)
        self._make_folders(file)
        checksum = self._checksum()
        found = 0
        with temporary_file(file, tidy=False) as (temporary, stream):  # what is left goes when all chunks are written
            if checksum and self.format == 2:
                stream.write(bytes(_CHECKSUM))
            for rows in spans(self.chunks[0], self._piece_rows):
                piece = np.ascontiguousarray(part[rows], dtype=self.dtype)
                found = checksum(piece, found) if checksum else 0
                stream.write(piece.data)
            if checksum and self.format == 2:
                stream.seek(0)
            if checksum:
                stream.write(found.to_bytes(_CHECKSUM, "little"))
            stream.flush()
            os.replace(temporary, file)

    def _make_folders(self, file: Path) -> None:
        """Make the folders of a chunk within that of the array, which must be there: all workers see the same files."""
        for place in reversed(list(file.relative_to(self.folder).parents)[:-1]):
            (Path(self.folder) / place).mkdir(exist_ok=True)
