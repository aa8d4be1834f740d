"""Files of NumPy, without pickles: npz archives, npy matrices with lists of ids beside them, and a cache of arrays.

npz
    `named_arrays` says which arrays hold which table.
npy
    A matrix of embeddings; its ids are in the file that is named (``ReadOptions.ids``), else in ``name.npy.ids``,
    ``name.ids`` (which is what is written), ``name.npy.txt`` or ``name.txt``, one per line and row. Speakers and
    columns have no place here. A matrix of scores has ``name.enroll_ids`` and ``name.test_ids`` beside it.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from evenscore.errors import FileError, InputError
from evenscore.files.named_arrays import StoredArrays, from_arrays, to_arrays
from evenscore.files.registry import ArrayTable, ReadOptions, Table
from evenscore.files.streams import (
    PathLike,
    atomic_output,
    atomic_pair,
    local_file,
    parsing,
    refuse_larger_than_memory,
    writing,
)
from evenscore.files.text.chunks import text_lines
from evenscore.files.text.line_ids import refuse_odd_ids
from evenscore.memory import refuse_bomb
from evenscore.tables import Embeddings
from evenscore.tables.ids import as_ids

__all__ = [
    "ArrayCache",
    "check_npy_header",
    "is_score_npy",
    "read_array",
    "read_ids",
    "read_npy",
    "read_npz",
    "score_id_files",
    "storable",
    "stored_arrays",
    "write_members",
    "write_npy",
    "write_npz",
]

# Deflate packs at most about 1032 to 1; an entry that claims more is damaged or hostile.
_MOST_PACKED = 1100
_LONG_TEXT = 1 << 28  # bytes of text that are not packed, so that what was written is not taken for a bomb


def read_npz(path: PathLike, options: ReadOptions) -> Table:
    """Read a score matrix, a list of trials or embeddings; the names of the arrays decide which."""
    with stored_arrays(path) as arrays:
        return from_arrays(arrays, path, options)


@contextmanager
def stored_arrays(path: PathLike) -> Iterator[StoredArrays]:
    """Open an archive; what goes wrong with it, also while it is open, is a `FileError`."""
    with local_file(path) as file, parsing(path, "an npz file"), zipfile.ZipFile(file) as archive:
        refuse_bomb(file.stat().st_size, sum(entry.file_size for entry in archive.infolist()))
        yield _Arrays(archive, path)


def write_npz(table: ArrayTable, path: PathLike) -> None:
    """Write a table; numbers are stored as they are, ids are packed."""
    arrays = {name: storable(values, path, name) for name, values in to_arrays(table, path).items()}
    write_members(arrays, path)


def write_members(arrays: Mapping[str, npt.NDArray[Any]], path: PathLike) -> None:
    """Write arrays of numbers and text."""
    with atomic_output(path) as stream, zipfile.ZipFile(_Forward(stream), "w") as archive:
        for name, values in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            packed = values.dtype.kind == "U" and values.nbytes < _LONG_TEXT
            entry.compress_type = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
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


def storable(values: npt.NDArray[Any], path: PathLike, part: str) -> npt.NDArray[Any]:
    """Return text with a fixed width, as NumPy stores it."""
    if values.dtype != object:
        return values
    texts = values.astype(str) if len(values) else np.empty(0, dtype="<U1")
    lost = np.fromiter((text.endswith("\0") for text in values.tolist()), dtype=bool, count=len(values))
    if lost.any():
        text = values[int(np.argmax(lost))]
        raise FileError(path, f"{text!r} ends in a null character, which NumPy drops; rename it", part=part)
    return texts


def read_array(file: Path, path: PathLike) -> npt.NDArray[Any]:
    """Read an npy file; ``path`` is what it is called in errors."""
    with open(file, "rb") as stream:
        check_npy_header(stream, file.stat().st_size, path, None)
        stream.seek(0)
        array: npt.NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
        return array


def read_npy(path: PathLike, options: ReadOptions) -> Embeddings:
    """Read a matrix of embeddings and the list of their ids."""
    if options.kind == "scores":
        problem = "a score matrix in npy needs its ids; write them to files of the same name, one per line,"
        raise FileError(path, f"{problem} that end in .enroll_ids and .test_ids")
    with local_file(path) as file, parsing(path, "an npy file"):
        vectors = read_array(file, path)
        if vectors.ndim != 2:
            problem = f"shape {vectors.shape} is not that of a matrix; expected one row per id"
            raise FileError(path, problem)
        ids_path = options.ids if options.ids is not None else _ids_beside(path)
        ids = read_ids(ids_path)
        if len(ids) != len(vectors):
            raise FileError(ids_path, f"there are {len(ids)} ids, but {path} has {len(vectors)} rows; make them agree")
        return Embeddings(ids, vectors)


def write_npy(table: Embeddings, path: PathLike) -> None:
    """Write the matrix, and the ids to a file of the same name with the ending ``.ids``."""
    if str(path) == "-":
        raise FileError("<stdout>", "the ids need a file beside the matrix; write it to a file, or choose npz")
    refuse_odd_ids(table.ids.tolist(), path, "", "line ends")
    for name in table.ids.tolist():
        if name != name.strip() or len(name.splitlines()) > 1:
            raise FileError(path, f"the id {name!r} cannot stand on a line of its own; rename it, or choose npz")
    with atomic_pair(path, _stem(path).with_suffix(".ids")) as (stream, beside):
        beside.write("".join(f"{name}\n" for name in table.ids.tolist()).encode())
        np.lib.format.write_array(stream, table.vectors, allow_pickle=False)


def _stem(path: PathLike) -> Path:
    return Path(str(path).removesuffix(".gz"))


def _ids_beside(path: PathLike) -> Path:
    if str(path) == "-":
        raise FileError(path, "an npy file has no ids; read it with ids=FILE, a list of them")
    name = _stem(path)
    places = [Path(f"{name}.ids"), name.with_suffix(".ids"), Path(f"{name}.txt"), name.with_suffix(".txt")]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        problem = f"an npy file has no ids, and there is no {name.with_suffix('.ids')} beside it; write one"
        raise FileError(path, f"{problem}, or read it with ids=FILE")
    return found


def read_ids(path: PathLike) -> list[str]:
    """Read a list of ids, one per line."""
    ids = [text.strip() for _, text in text_lines(path, "a list of ids")]
    try:
        return as_ids(ids, "the list").tolist()
    except InputError as error:
        raise FileError(path, str(error)) from None


def is_score_npy(path: PathLike) -> bool:
    """Tell whether a name is that of an npy file with lists of enrolments and tests beside it."""
    return str(path).lower().endswith(".npy") and all(file.is_file() for file in score_id_files(path))


def score_id_files(path: PathLike) -> tuple[Path, Path]:
    """Return the names of the lists of enrolments and tests that belong to a score matrix in npy."""
    stem = Path(path).with_suffix("")
    return Path(f"{stem}.enroll_ids"), Path(f"{stem}.test_ids")


class ArrayCache:
    """Arrays on disk that are found again by what they were made from.

    Files are npz archives without pickles. They appear when they are complete, so that several processes may share a
    cache; a file that is damaged counts as absent and is written again.

    Parameters
    ----------
    directory
        Is created if there is none.

    Examples
    --------
    >>> import tempfile
    >>> cache = ArrayCache(tempfile.mkdtemp())
    >>> recipe = {"file": "a.wav", "size": 1234, "rate": 16000}
    >>> cache.get(recipe) is None
    True
    >>> cache.put(recipe, {"frames": np.zeros((3, 2))})
    >>> cache.get(recipe)["frames"].shape
    (3, 2)
    >>> cache.get({**recipe, "rate": 8000}) is None
    True
    """

    def __init__(self, directory: PathLike) -> None:
        self.directory = Path(directory)
        with writing(directory):
            self.directory.mkdir(parents=True, exist_ok=True)

    def path(self, recipe: object) -> Path:
        """Return the file for a recipe: numbers, texts, lists and dictionaries that say how arrays are made."""
        text = json.dumps(recipe, sort_keys=True, ensure_ascii=True, allow_nan=False)
        return self.directory / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.npz"

    def get(self, recipe: object) -> dict[str, npt.NDArray[Any]] | None:
        """Return the arrays that were made by a recipe, None if they are not there."""
        try:
            with stored_arrays(self.path(recipe)) as arrays:
                return dict(arrays)
        except FileError:
            return None

    def put(self, recipe: object, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Keep arrays of numbers or text; what was there for the recipe is replaced."""
        write_members({name: np.asarray(values) for name, values in arrays.items()}, self.path(recipe))
