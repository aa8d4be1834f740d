"""The chunks of plain zarr arrays, read and written without the zarr library, at the speed of the disk.

Plain is format 2, two dimensions, C order, no filters, and packed not at all or with a checksum before the numbers
(numcodecs' ``crc32``). The zarr library reads and writes such arrays, too; it only takes several times as long.
"""

from __future__ import annotations

import json
import os
import threading
import zlib
from dataclasses import dataclass
from pathlib import Path
from socket import gethostname
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import FileError

__all__ = ["PlainChunks"]

_CHECKSUM = 4  # bytes


_kept = threading.local()


def _content(file: Path, size: int) -> npt.NDArray[np.uint8]:
    """Read a file of this size, or less or one byte more of another; the thread's next call overwrites it.

    Fresh memory for each chunk would cost as much time as reading it.
    """
    if getattr(_kept, "buffer", None) is None or _kept.buffer.size < size + 1:
        _kept.buffer = np.empty(size + 1, dtype=np.uint8)
    buffer: npt.NDArray[np.uint8] = _kept.buffer[: size + 1]
    length = 0
    with open(file, "rb", buffering=0) as stream:
        while length < buffer.size and (more := stream.readinto(buffer[length:].data)):
            length += more
    return buffer[:length]


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
        top, left = i * self.chunks[0], j * self.chunks[1]
        r0, r1 = max(rows.start, top), min(rows.stop, top + self.chunks[0])
        c0, c1 = max(columns.start, left), min(columns.stop, left + self.chunks[1])
        target = out[r0 - rows.start : r1 - rows.start, c0 - columns.start : c1 - columns.start]
        chunk = self._read_one(i, j)
        target[:] = np.nan if chunk is None else chunk[r0 - top : r1 - top, c0 - left : c1 - left]

    def _read_one(self, i: int, j: int) -> npt.NDArray[Any] | None:
        try:
            data = _content(self._file(i, j), self._file_size)
        except FileNotFoundError:
            if not Path(self.folder, ".zarray").is_file():
                problem = f"there is no such store on {gethostname()}; all workers must see the same files"
                raise FileError(Path(self.folder).parent, problem) from None
            return None
        except OSError as error:
            raise self._damaged(i, j, error.strerror or str(error)) from None
        if data.size != self._file_size:
            raise self._damaged(i, j, f"it does not have the {self._file_size} bytes that are expected")
        if self.checksum:
            expected = int.from_bytes(data[:_CHECKSUM].tobytes(), "little")
            data = data[_CHECKSUM:]
            if zlib.crc32(data.data) != expected:
                raise self._damaged(i, j, "its checksum is wrong")
        return data.view(self.dtype).reshape(self.chunks)

    def _damaged(self, i: int, j: int, why: str) -> FileError:
        folder = Path(self.folder)
        name = f"{folder.name}/{i}{self.separator}{j}"
        return FileError(folder.parent, f"the chunk is damaged ({why}); copy or write it again", part=name)

    def _write_one(self, i: int, j: int, part: npt.NDArray[Any]) -> None:
        if part.shape != self.chunks:
            whole = np.full(self.chunks, np.nan, dtype=self.dtype)
            whole[: part.shape[0], : part.shape[1]] = part
            part = whole
        values = np.ascontiguousarray(part, dtype=self.dtype)
        file = self._file(i, j)
        temporary = file.with_name(f".{file.name}.{os.getpid()}.part")
        try:
            with open(temporary, "wb") as stream:
                if self.checksum:
                    stream.write(zlib.crc32(values.data).to_bytes(_CHECKSUM, "little"))
                stream.write(values.data)
            os.replace(temporary, file)
        finally:
            temporary.unlink(missing_ok=True)
