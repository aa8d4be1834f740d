"""zarr stores: directories with the arrays of `arrays`, in chunks that are read and written one by one.

Text (ids) is a group with two arrays, ``utf8`` (all texts, joined, as bytes) and ``offsets`` (where each begins, and
the end of the last). Stores are written in zarr's format 3, or in format 2 by zarr 2, which Python 3.10 has; both are
read. A chunk of scores that is absent means missing scores.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from evenscore.data.embeddings import Embeddings
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.trial_list import TrialList
from evenscore.errors import FileError
from evenscore.files.arrays import StoredScores, from_arrays, parsing, to_arrays
from evenscore.files.formats import ReadOptions
from evenscore.files.streams import PathLike, check_memory, writing
from evenscore.large import CHUNKS, is_dask, regular_chunks, store

__all__ = ["read", "write"]

_METADATA = ("zarr.json", ".zgroup", ".zarray")
_VALUES_PER_CHUNK = CHUNKS[0] * CHUNKS[1]


def read(path: PathLike, format: str, options: ReadOptions) -> ScoreMatrix | TrialList | Embeddings:
    """Open a score matrix as a dask array, or read a list of trials or embeddings."""
    folder = Path(path)
    with parsing(path, "a zarr store"):
        if not any((folder / name).is_file() for name in _METADATA):
            raise FileError(path, "it is not a zarr store: a directory with zarr.json or .zgroup; check the name")
        group = _open(path, "r")
        arrays: dict[str, Any] = {}
        for name in sorted(child.name for child in folder.iterdir() if child.is_dir()):
            if (folder / name / "utf8").is_dir():
                arrays[name] = _texts(group, folder, name)
            elif metadata := [file for one in _METADATA if (file := folder / name / one).is_file()]:
                array = _safe(group, folder, name)
                if name == "scores" and array.ndim == 2:
                    changed = metadata[0].stat().st_mtime_ns, metadata[0].stat().st_ino
                    chunks = getattr(array, "shards", None) or array.chunks
                    arrays[name] = StoredScores(path, _open_scores).as_dask(chunks, changed)
                else:
                    arrays[name.replace("measure.", "measure:")] = np.asarray(array[...])
        return from_arrays(arrays, path, options)


def _open(path: PathLike, mode: Literal["r", "r+", "w-"]) -> Any:
    """Open a store by its own metadata, not by consolidated ones, which are not what is checked for safety."""
    try:
        import zarr
    except ImportError:
        raise FileError(path, "a zarr store needs the package zarr: pip install 'evenscore[zarr]'") from None
    of_zarr_3 = {"use_consolidated": False} if mode != "w-" else {"zarr_format": 3}
    return zarr.open_group(str(path), mode=mode, **(of_zarr_3 if hasattr(zarr, "create_array") else {}))


def _safe(group: Any, folder: Path, name: str) -> Any:
    """Return an array; zarr finds decoders by name, and that of pickles is refused before it is opened."""
    for metadata in _METADATA:
        file = folder / name / metadata
        if file.is_file() and b"pickle" in file.read_bytes():
            raise FileError(folder, "it holds pickled objects, which can run any code; write numbers", part=name)
    array = group[name]
    if array.dtype.kind not in "biufU":
        raise FileError(folder, f"it has type {array.dtype}, but only numbers and text are read", part=name)
    chunks = getattr(array, "shards", None) or array.chunks
    sizes = chunks if name == "scores" and array.ndim == 2 else map(max, array.shape, chunks)
    check_memory(folder, math.prod(sizes) * array.dtype.itemsize)
    return array


def _texts(group: Any, folder: Path, name: str) -> list[str]:
    joined, offsets = (np.asarray(_safe(group, folder, f"{name}/{part}")[...]) for part in ("utf8", "offsets"))
    data, ends = joined.tobytes(), offsets.tolist()
    if joined.dtype != np.uint8 or not ends or ends[0] != 0 or ends[-1] != len(data) or (np.diff(ends) < 0).any():
        raise FileError(folder, "its offsets do not fit its bytes; the store is damaged", part=name)
    return [data[start:end].decode() for start, end in pairwise(ends)]


def _open_scores(path: str) -> Any:
    """Open the array of scores, for each task anew."""
    return _safe(_open(path, "r"), Path(path), "scores")


def write(table: ScoreMatrix | TrialList | Embeddings, path: PathLike, format: str) -> None:
    """Write a store, which appears under its name when it is complete.

    Until then it is ``path.partial``; what an interrupted run of the same computation left there is not computed again.
    """
    target = Path(os.path.realpath(path))
    partial = target.with_name(target.name + ".partial")
    if str(path) == "-":
        raise FileError("<stdout>", "a zarr store is a directory; give it a name, or choose npz")
    with writing(path), _alone(target, path):
        for place in (target, partial):  # nothing but a zarr store or an empty directory is replaced
            names = os.listdir(place) if place.is_dir() else []
            if place.is_file() or (names and not any(name.endswith((*_METADATA, ".partial")) for name in names)):
                raise FileError(path, f"{place.name} is a file, or a directory with other files; choose another name")
        arrays, scores = to_arrays(table), None
        if is_dask(arrays.get("scores")):
            arrays["scores"] = scores = regular_chunks(arrays["scores"])
        group = None
        with suppress(Exception):  # a store that is not there or damaged is begun anew
            begun = _open(partial, "r+")
            group = begun if scores is not None and begun.attrs.get("computation") == scores.name else None
        if group is None:
            shutil.rmtree(partial, ignore_errors=True)
            group = _open(partial, "w-")
            for name, values in arrays.items():
                _create(group, name.replace("measure:", "measure."), values)
            group.attrs["computation"] = "" if scores is None else scores.name  # from here on it can be continued
        if scores is not None:
            folder = partial / "scores"
            chunk = "c/{}/{}" if (folder / "zarr.json").is_file() else "{}.{}"
            store(scores, group["scores"], lambda i, j: (folder / chunk.format(i, j)).is_file())
            for left in folder.glob("**/*.partial"):  # by a worker that was stopped
                left.unlink()
        old = target.with_name(f".{target.name}.{os.getpid()}.old")
        if target.exists():
            target.rename(old)
        partial.rename(target)
        shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _alone(target: Path, path: PathLike) -> Iterator[None]:
    """Refuse to write a store that another run is writing."""
    import fcntl

    lock = target.with_name(f".{target.name}.lock")
    with open(lock, "wb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.stat(lock).st_ino != os.fstat(stream.fileno()).st_ino:  # a run that has ended removed what is locked
                raise BlockingIOError
        except (BlockingIOError, FileNotFoundError):
            raise FileError(path, "another run is writing it; wait for it, or choose another name") from None
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def _create(group: Any, name: str, values: Any) -> None:
    """Create an array; that of a dask array has no chunks yet. Text becomes a group of two arrays."""
    if values.dtype == object:
        encoded = [text.encode() for text in values.tolist()]
        texts = group.create_group(name)
        _create(texts, "utf8", np.frombuffer(b"".join(encoded), np.uint8))
        _create(texts, "offsets", np.cumsum([0, *map(len, encoded)], dtype=np.int64))
        return
    chunks = CHUNKS if values.ndim == 2 else (_VALUES_PER_CHUNK,)
    chunks = values.chunksize if is_dask(values) else tuple(map(min, chunks, values.shape))
    floating = values.dtype.kind == "f"
    how = {"shape": values.shape, "chunks": tuple(max(size, 1) for size in chunks), "dtype": values.dtype}
    how["fill_value"] = np.nan if floating else {"i": -1, "u": 255}[values.dtype.kind]
    if hasattr(group, "create_array"):
        from zarr.codecs import Crc32cCodec

        checksum = {"compressors": [Crc32cCodec()]} if floating else {}
        array = group.create_array(name, **how, **checksum, config={"write_empty_chunks": True})
    else:
        array = group.create_dataset(name, **how, compressor=None, write_empty_chunks=True)
    if values.size and not is_dask(values):
        array[...] = values
