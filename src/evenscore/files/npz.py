"""npz files: a zip archive of NumPy arrays, without pickles. `named_arrays` says which arrays hold which table."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from evenscore.errors import FileError
from evenscore.files.checks import parsing, refuse_larger_than_memory
from evenscore.files.formats import ArrayTable, ReadOptions, Table
from evenscore.files.named_arrays import StoredArrays, from_arrays, to_arrays
from evenscore.files.streams import PathLike, atomic_output, local_file

__all__ = ["check_npy_header", "read_npz", "write_members", "write_npz"]

# Deflate packs at most about 1032 to 1; an entry that claims more is damaged or hostile.
_MOST_PACKED = 1100


def read_npz(path: PathLike, options: ReadOptions) -> Table:
    """Read a score matrix, a list of trials or embeddings; the names of the arrays decide which."""
    with local_file(path) as file, parsing(path, "an npz file"), zipfile.ZipFile(file) as archive:
        return from_arrays(_Arrays(archive, path), path, options)


def write_npz(table: ArrayTable, path: PathLike) -> None:
    """Write a table; numbers are stored as they are, ids are packed."""
    arrays = {name: _storable(values, path, name) for name, values in to_arrays(table, path).items()}
    write_members(arrays, path)


def write_members(arrays: Mapping[str, npt.NDArray[Any]], path: PathLike) -> None:
    """Write arrays of numbers and text."""
    with atomic_output(path) as stream, zipfile.ZipFile(_Forward(stream), "w") as archive:
        for name, values in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED if values.dtype.kind == "U" else zipfile.ZIP_STORED
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values, allow_pickle=False)


def check_npy_header(member: Any, size: int, path: PathLike, part: str | None) -> None:
    """Read the header of an npy file and refuse objects, and a shape that does not fit into ``size`` bytes."""
    version = np.lib.format.read_magic(member)
    if version not in ((1, 0), (2, 0)):
        raise FileError(path, f"npy version {version} is not known; write it with numpy.save", part=part)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = header(member)
    if dtype.hasobject or dtype.kind not in "biufUS":
        raise FileError(
            path,
            f"the array has type {dtype}, but only plain numbers and text are read (no pickled objects); "
            "write it again with such a type",
            part=part,
        )
    needed = int(np.prod(shape, dtype=object)) * dtype.itemsize
    found = size - member.tell()
    if needed != found:
        raise FileError(
            path, f"shape {shape} needs {needed} bytes, but there are {found}; the file is damaged", part=part
        )
    refuse_larger_than_memory(path, needed, part)


class _Forward:
    """A stream that only goes forward: gzip and pipes cannot seek, and so the archive is the same everywhere."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, data: bytes, /) -> int:
        return self._stream.write(data)

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        """Do nothing: the stream belongs to the caller."""


class _Arrays(StoredArrays):
    """The arrays of an archive."""

    def __init__(self, archive: zipfile.ZipFile, path: PathLike) -> None:
        entries = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        super().__init__(path, "an npz file", entries)
        self.archive = archive

    def read_at(self, place: zipfile.ZipInfo, name: str) -> npt.NDArray[Any]:
        if place.file_size > _MOST_PACKED * (place.compress_size + 1):
            problem = f"{place.compress_size} bytes cannot unpack to {place.file_size}; the file is damaged"
            raise FileError(self.path, problem, part=name)
        with self.archive.open(place) as member:
            check_npy_header(member, place.file_size, self.path, name)
        with self.archive.open(place) as member:
            array: npt.NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
            return array


def _storable(values: npt.NDArray[Any], path: PathLike, part: str) -> npt.NDArray[Any]:
    """Return text with a fixed width, as NumPy stores it."""
    if values.dtype != object:
        return values
    texts = values.astype(str) if len(values) else np.empty(0, dtype="<U1")
    lost = np.fromiter((text.endswith("\0") for text in values.tolist()), dtype=bool, count=len(values))
    if lost.any():
        text = values[int(np.argmax(lost))]
        raise FileError(path, f"{text!r} ends in a null character, which NumPy drops; rename it", part=part)
    return texts
