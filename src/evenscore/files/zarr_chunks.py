"""The chunks of plain zarr arrays, read and written without the zarr library, at the speed of the disk.

Plain is format 2, two dimensions, C order, no filters, and packed not at all or with a checksum before the numbers
(numcodecs' ``crc32``). The zarr library reads and writes such arrays, too; it only takes several times as long.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from socket import gethostname
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import FileError
from evenscore.scale.tiles import spans

__all__ = ["PlainChunks"]

_CHECKSUM = 4  # bytes
_PIECE = 1 << 19  # bytes that are read or written at a time; they stay in the cache for the checksum and the copy


@dataclass(frozen=True)
class PlainChunks:
    """Where the chunks of an array are, and what they look like."""

    folder: str
    shape: tuple[int, int]
    chunks: tuple[int, int]
    dtype: np.dtype[Any]
    checksum: bool
    separator: str = "."

    @classmethod
    def of(cls, folder: Path) -> PlainChunks | None:
        """Return the chunks of an array, None if it is not plain."""
        metadata_file = folder / ".zarray"
        if not metadata_file.is_file():
            return None
        metadata = json.loads(metadata_file.read_bytes())
        packed = metadata.get("compressor")
        dtype = np.dtype(metadata["dtype"])
        plain = (
            metadata.get("order") == "C"
            and not metadata.get("filters")
            and packed in (None, {"id": "crc32"})
            and len(metadata["shape"]) == 2
            and dtype in (np.dtype("<f4"), np.dtype("<f8"))
            and metadata.get("fill_value") == "NaN"
        )
        if not plain:
            return None
        shape, chunks = tuple(metadata["shape"]), tuple(metadata["chunks"])
        return cls(
            str(folder.absolute()), shape, chunks, dtype, packed is not None, metadata.get("dimension_separator") or "."
        )

    def create(self) -> None:
        """Write the metadata of an array that has no chunk yet."""
        metadata = {
            "zarr_format": 2,
            "shape": self.shape,
            "chunks": self.chunks,
            "dtype": self.dtype.str,
            "order": "C",
            "filters": None,
            "compressor": {"id": "crc32"} if self.checksum else None,
            "dimension_separator": self.separator,
            "fill_value": "NaN",
        }
        folder = Path(self.folder)
        folder.mkdir()
        (folder / ".zarray").write_text(json.dumps(metadata, indent=2), encoding="utf-8")

    def read(self, rows: slice, columns: slice) -> npt.NDArray[Any]:
        """Return some rows and columns; a chunk that is not there is missing scores, a damaged one is an error."""
        from evenscore.norms.threads import in_parallel

        out = np.empty((rows.stop - rows.start, columns.stop - columns.start), dtype=self.dtype)
        places = self._places(rows, columns)

        def work(start: int, stop: int) -> None:
            for i, j in places[start:stop]:
                self._copy(i, j, rows, columns, out)

        in_parallel(work, len(places), out.size // max(len(places), 1))
        return out

    def write(self, rows: slice, columns: slice, scores: npt.NDArray[Any]) -> None:
        """Write whole chunks; each appears under its name only when all of it is written."""
        from evenscore.norms.threads import in_parallel

        places = self._places(rows, columns)

        def work(start: int, stop: int) -> None:
            for i, j in places[start:stop]:
                top, left = i * self.chunks[0], j * self.chunks[1]
                part = scores[
                    top - rows.start : top - rows.start + self.chunks[0],
                    left - columns.start : left - columns.start + self.chunks[1],
                ]
                self._write_one(i, j, part)

        in_parallel(work, len(places), scores.size // max(len(places), 1))

    def is_written(self, rows: slice, columns: slice) -> bool:
        """Tell whether the files of all these chunks are there, in full length."""
        files = [self._file(*place) for place in self._places(rows, columns)]
        return all(file.is_file() and file.stat().st_size == self._file_size for file in files)

    @property
    def _file_size(self) -> int:
        return self.chunks[0] * self.chunks[1] * self.dtype.itemsize + _CHECKSUM * self.checksum

    def _file(self, i: int, j: int) -> Path:
        return Path(self.folder) / f"{i}{self.separator}{j}"

    def _places(self, rows: slice, columns: slice) -> list[tuple[int, int]]:
        first = (rows.start // self.chunks[0], columns.start // self.chunks[1])
        last = (-(-rows.stop // self.chunks[0]), -(-columns.stop // self.chunks[1]))
        return [(i, j) for i in range(first[0], last[0]) for j in range(first[1], last[1])]

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
            if not Path(self.folder, ".zarray").is_file():
                problem = f"there is no such store on {gethostname()}; all workers must see the same files"
                raise FileError(Path(self.folder).parent, problem) from None
            target[:] = np.nan
        except OSError as error:
            raise self._damaged(i, j, error.strerror or str(error)) from None

    def _pieces(self, stream: FileIO, i: int, j: int) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Read a chunk: some of its rows at a time, and which is the first of them; the next overwrite them."""
        if os.fstat(stream.fileno()).st_size != self._file_size:
            raise self._damaged(i, j, f"it does not have the {self._file_size} bytes that are expected")
        expected = stream.read(_CHECKSUM) if self.checksum else b""
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
            if self.checksum:
                found = zlib.crc32(data, found)
            yield rows.start, piece
        if self.checksum and found != int.from_bytes(expected, "little"):
            raise self._damaged(i, j, "its checksum is wrong")

    @property
    def _piece_rows(self) -> int:
        return max(min(_PIECE // (self.chunks[1] * self.dtype.itemsize), self.chunks[0]), 1)

    def _damaged(self, i: int, j: int, why: str) -> FileError:
        folder = Path(self.folder)
        name = f"{folder.name}/{i}{self.separator}{j}"
        return FileError(folder.parent, f"the chunk is damaged ({why}); copy or write it again", part=name)

    def _write_one(self, i: int, j: int, part: npt.NDArray[Any]) -> None:
        if part.shape != self.chunks:
            whole = np.full(self.chunks, np.nan, dtype=self.dtype)
            whole[: part.shape[0], : part.shape[1]] = part
            part = whole
        file = self._file(i, j)
        temporary = file.with_name(f".{file.name}.{os.getpid()}.part")
        checksum = 0
        try:
            with open(temporary, "wb") as stream:
                stream.write(bytes(_CHECKSUM * self.checksum))
                for rows in spans(self.chunks[0], self._piece_rows):
                    piece = np.ascontiguousarray(part[rows], dtype=self.dtype)
                    checksum = zlib.crc32(piece.data, checksum) if self.checksum else 0
                    stream.write(piece.data)
                if self.checksum:
                    stream.seek(0)
                    stream.write(checksum.to_bytes(_CHECKSUM, "little"))
            os.replace(temporary, file)
        finally:
            temporary.unlink(missing_ok=True)
