"""zarr stores: directories with the arrays of `named_arrays`, in chunks that can be read and written one by one.

Written in zarr's format 3, or in format 2 where zarr 2 is installed, which reads no other; format 2 is always read.
Text (ids, speakers) is a group with two arrays, ``utf8`` (all texts, joined, as bytes) and ``offsets`` (where each
begins, and the end of the last). A chunk of scores that is not there means missing pairs (the fill value is NaN), so
scores can be filled in chunk by chunk.

zarr finds decoders by name and one of them is pickle; so the metadata is checked before zarr opens a store, and only
plain numbers with well-known compressors are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import FileError
from evenscore.files.named_arrays import StoredArrays, from_arrays, ids_of, to_arrays, utf8
from evenscore.files.registry import ArrayTable, ReadOptions, Table
from evenscore.files.streams import PathLike, atomic_directory, parsing, reading, refuse_larger_than_memory
from evenscore.files.zarr_chunks import fast_crc32c
from evenscore.files.zarr_metadata import ArrayMetadata, ZarrFormat, array_metadata, store_format
from evenscore.files.zarr_sizes import Packing, check_chunks
from evenscore.tables.ids import Ids

__all__ = ["StoredScores", "create_score_store", "open_store", "read_zarr", "write_zarr"]

_VALUES_PER_CHUNK = 1 << 22
_COLUMNS_PER_CHUNK = 4096
_CODECS = {
    *("blosc", "zstd", "zlib", "gzip", "bz2", "lz4", "lzma"),
    *("shuffle", "delta", "bitround", "crc32", "crc32c", "adler32", "fletcher32"),
    *("bytes", "transpose", "sharding_indexed"),
}
_TEXT = {"utf8", "offsets"}
_LAST_WRITES = 10.0  # seconds that writes which are under way may take when another one has failed


@dataclass(frozen=True)
class StoredScores:
    """A score matrix that stays on disk."""

    scores: Any  #: zarr array, K x L; a slice of it is read when it is asked for
    enroll_ids: Ids
    test_ids: Ids


def read_zarr(path: PathLike, options: ReadOptions) -> Table:
    """Read a score matrix, a list of trials or embeddings into memory; the names of the arrays decide which."""
    with _opened(path) as arrays:
        return from_arrays(arrays, path, options)


def open_store(path: PathLike) -> StoredScores:
    """Open a score matrix without reading its scores."""
    with _opened(path) as arrays:
        for name in ("scores", "enroll_ids", "test_ids"):
            if name not in arrays:
                raise FileError(path, "the array is missing; this store holds no score matrix", part=name)
        scores = arrays.lazy("scores")
        enroll_ids, test_ids = (ids_of(arrays[name], path, name) for name in ("enroll_ids", "test_ids"))
        if scores.dtype.kind not in "fiu" or scores.shape != (len(enroll_ids), len(test_ids)):
            problem = f"it is {scores.dtype} of shape {scores.shape}, but numbers of shape"
            raise FileError(path, f"{problem} {(len(enroll_ids), len(test_ids))} are expected", part="scores")
        return StoredScores(scores, enroll_ids, test_ids)


def write_zarr(table: ArrayTable, path: PathLike) -> None:
    """Write a table as a directory, which takes the place of an earlier one when all is written."""
    zarr = _library(path)
    arrays = to_arrays(table, path)
    if str(path) == "-":
        raise FileError("<stdout>", "a zarr store is a directory; give it a name, or choose npz")
    for name in arrays:
        if not name or name[0] == "." or set(name) & set("/\\"):
            raise FileError(path, f"an array cannot be called {name!r} in a store; rename it", part=name)
    with atomic_directory(path) as folder, _nothing_under_way(zarr):
        group = _new_group(zarr, folder)
        for name, values in arrays.items():
            if values.dtype.kind in "OU":
                _create_text(group.create_group(_on_disk(name)), values, path, name)
            else:
                _create(group, _on_disk(name), values)


def create_score_store(folder: Path, enroll_ids: Ids, test_ids: Ids, path: PathLike) -> None:
    """Write a store that has ids, but no scores yet; ``path`` is its name in an error."""
    zarr = _library(path)
    with _nothing_under_way(zarr):
        group = _new_group(zarr, folder)
        for name, ids in (("enroll_ids", enroll_ids), ("test_ids", test_ids)):
            _create_text(group.create_group(name), ids, path, name)


@contextmanager
def _nothing_under_way(zarr: Any) -> Iterator[None]:
    """Wait, if a write fails, until those have ended that zarr does beside it: they make anew what others remove."""
    try:
        yield
    except BaseException:
        if _has_format_3(zarr):
            import asyncio

            from zarr.core.sync import sync

            async def end_all() -> None:
                others = asyncio.all_tasks() - {asyncio.current_task()}
                if others:
                    await asyncio.wait(others, timeout=_LAST_WRITES)

            sync(end_all())
        raise


def _new_group(zarr: Any, folder: Path) -> Any:
    version = {"zarr_format": _written_format(zarr)} if _has_format_3(zarr) else {}
    return zarr.open_group(str(folder), mode="w-", **version)  # "w" would make the folder anew, which nobody has locked


def _has_format_3(zarr: Any) -> bool:
    return hasattr(zarr.Group, "create_array")  # zarr 3 or newer


def _written_format(zarr: Any) -> ZarrFormat:
    """Return the newest format that is written at full speed, which needs the checksum that comes with zarr 3."""
    return 3 if _has_format_3(zarr) and fast_crc32c() is not None else 2


def _library(path: PathLike) -> Any:
    try:
        import zarr
    except ImportError:
        problem = "a zarr store needs the package zarr; install it: pip install 'evenscore[zarr]'"
        raise FileError(path, problem) from None
    return zarr


def _on_disk(name: str) -> str:
    return name.replace("measure:", "measure.")  # some systems have no colon in file names


def _create(group: Any, name: str, values: npt.NDArray[Any]) -> None:
    """Create an array; a chunk of ids or indices that gets lost reads as something that no table accepts."""
    columns = min(values.shape[1], _COLUMNS_PER_CHUNK) if values.ndim == 2 else 1
    rows = max(1, min(len(values), _VALUES_PER_CHUNK // max(columns, 1)))
    how = {
        "shape": values.shape,
        "chunks": (rows, max(columns, 1))[: values.ndim],
        "dtype": values.dtype.newbyteorder("<"),  # the first releases of zarr 3 know no other
        "fill_value": {"f": np.nan, "i": -1, "u": 255, "b": False}[values.dtype.kind],
    }
    if hasattr(group, "create_array"):
        array = group.create_array(name, **how, **({"compressors": None} if values.dtype.kind == "f" else {}))
    else:
        array = group.create_dataset(name, **how, **({"compressor": None} if values.dtype.kind == "f" else {}))
    if values.size:
        array[...] = values


def _create_text(group: Any, texts: npt.NDArray[Any], path: PathLike, part: str) -> None:
    encoded = utf8(texts, path, part)
    _create(group, "utf8", np.frombuffer(b"".join(encoded), dtype=np.uint8))
    _create(group, "offsets", np.cumsum([0, *map(len, encoded)], dtype=np.int64))


@contextmanager
def _opened(path: PathLike) -> Iterator[_Arrays]:
    zarr = _library(path)
    with parsing(path, "a zarr store"):
        arrays = _checked_arrays(Path(path), path)
        how: dict[str, Any] = {}
        format = store_format(Path(path))
        if _has_format_3(zarr):  # what was checked is what is used, not a copy of it, nor what is in the other format
            how = {"zarr_format": format, "use_consolidated": False}
        elif format == 3:
            problem = "it is in zarr's format 3; install zarr 3 or newer, which needs Python 3.11, to read it"
            raise FileError(path, problem)
        yield _Arrays(zarr.open_group(str(path), mode="r", **how), arrays, path)


class _Arrays(StoredArrays):
    """The arrays of a store; a group of two arrays is text."""

    def __init__(self, group: Any, names: set[str], path: PathLike) -> None:
        texts = {name.rpartition("/")[0] for name in names if "/" in name}
        self._texts = {name for name in texts if {f"{name}/{part}" for part in _TEXT} <= names}
        found = [name for name in sorted(names) if "/" not in name] + sorted(self._texts)
        super().__init__(path, "a zarr store", {name.replace("measure.", "measure:"): name for name in found})
        self._group = group

    def read_at(self, place: str, name: str) -> npt.NDArray[Any]:
        return self._read_text(place) if place in self._texts else self._whole(place)

    def lazy(self, name: str) -> Any:
        """Return an array that is read by slices."""
        return self._group[self.places[name]]

    def _whole(self, name: str) -> npt.NDArray[Any]:
        array = self._group[name]
        size = int(np.prod(array.shape, dtype=object)) * array.dtype.itemsize
        refuse_larger_than_memory(self.path, size, part=name)
        folder = Path(self.path) / name
        metadata = array_metadata(folder, store_format(Path(self.path)), self.path, name)
        if metadata is not None:
            check_chunks(folder, metadata, self.path, name)
        return np.asarray(array[...])

    def _read_text(self, name: str) -> npt.NDArray[np.object_]:
        joined, offsets = self._whole(f"{name}/utf8"), self._whole(f"{name}/offsets")
        fits = joined.dtype == np.uint8 and offsets.dtype.kind == "i" and joined.ndim == offsets.ndim == 1
        if (
            not fits
            or not offsets.size
            or offsets[0] != 0
            or offsets[-1] != joined.size
            or (np.diff(offsets) < 0).any()
        ):
            raise FileError(self.path, "its offsets do not fit its bytes; the store is damaged", part=name)
        data, ends = joined.tobytes(), offsets.tolist()
        texts = np.empty(len(ends) - 1, dtype=object)
        texts[:] = [data[start:end].decode() for start, end in pairwise(ends)]
        return texts


def _checked_arrays(folder: Path, path: PathLike) -> set[str]:
    """Return the names of the arrays of a store, having checked what their metadata says, without zarr."""
    with reading(path):
        if not folder.is_dir():
            problem = (
                "it is a file, but a zarr store is a directory" if folder.exists() else "there is no such directory"
            )
            raise FileError(path, f"{problem}; check the name")
        format = store_format(folder)
        if format is None:
            raise FileError(path, "it is not a zarr store, as it has neither .zgroup nor zarr.json; check the name")
        if array_metadata(folder, format, path, "") is not None:
            raise FileError(path, "the store is a single array, but a group of arrays with ids is expected")
        names = set()
        for child in sorted(folder.iterdir()):
            for place in [child, *(child / part for part in sorted(_TEXT))]:
                name = place.relative_to(folder).as_posix()
                metadata = array_metadata(place, format, path, name)
                if metadata is not None:
                    _refuse_unsafe(metadata, path, name)
                    names.add(name)
        return names


def _refuse_unsafe(metadata: ArrayMetadata, path: PathLike, name: str) -> None:
    dtype = metadata.dtype
    if dtype.hasobject or dtype.kind not in "biufUS":
        raise FileError(path, f"it has type {metadata.data_type}, but only numbers are read (no objects)", part=name)
    for codec in metadata.all_codecs():
        if codec not in _CODECS:
            problem = f"it is packed with {codec!r}, which is not read for safety; pack it with zstd or blosc"
            raise FileError(path, problem, part=name)
    for shape in (metadata.shape, metadata.chunks):
        if not all(isinstance(size, int) and size >= 0 for size in shape):
            raise FileError(path, f"shape {list(shape)} makes no sense; the store is damaged", part=name)
    if any(size and not chunk for size, chunk in zip(metadata.shape, metadata.chunks, strict=True)):
        raise FileError(path, f"chunks {list(metadata.chunks)} make no sense; the store is damaged", part=name)
    refuse_larger_than_memory(path, int(np.prod(metadata.chunks, dtype=object)) * dtype.itemsize, part=name)
    Packing.of(metadata, path, name)
