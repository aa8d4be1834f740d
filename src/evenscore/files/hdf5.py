"""HDF5 files opened with care, and embeddings in them; `bosaris` has the scores.

Files are read in a process of its own (`hdf5_process`). Nothing outside the file is ever touched: external links,
external storage and virtual datasets are refused. A declared size is checked against the memory, and against what the
file stores, before anything is allocated.

Embeddings are one matrix with a list of ids (the arrays of `named_arrays`, which is what is written), or every dataset
is a vector, and its path in the file is the id (``id10270/x6uYqmx31kE/00001.wav``).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import FileError, InputError
from evenscore.files.hdf5_process import DatasetReader, open_datasets
from evenscore.files.named_arrays import StoredArrays, from_arrays, to_arrays, utf8
from evenscore.files.registry import ReadOptions
from evenscore.files.streams import (
    PathLike,
    atomic_output,
    listed,
    local_file,
    parsing,
    writing,
)
from evenscore.tables import Embeddings

__all__ = ["Datasets", "create_hdf5", "open_hdf5", "read_hdf5_embeddings", "write_hdf5_embeddings", "write_texts"]


class Datasets(StoredArrays):
    """The datasets of a file by path, without the leading slash.

    Text comes as a one-dimensional object array of strings, even where it is a matrix of one row or column (MATLAB).
    """

    def __init__(self, reader: DatasetReader, names: Iterable[str], path: PathLike) -> None:
        self._reader = reader
        super().__init__(path, "an HDF5 file", {name: name for name in names})

    def read_at(self, place: str, name: str) -> npt.NDArray[Any]:
        """Read a dataset."""
        array: npt.NDArray[Any] = self._reader.ask(self.path, "read", place)
        return array

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape that a dataset declares, without reading it."""
        return tuple(self._reader.ask(self.path, "describe", name)[0])

    def is_text(self, name: str) -> bool:
        """Tell whether a dataset holds text."""
        return bool(self._reader.ask(self.path, "describe", name)[1])


@contextmanager
def open_hdf5(path: PathLike) -> Iterator[Datasets]:
    """Open a file for reading; gzip around it and standard input go through a temporary copy."""
    with local_file(path) as copy, open_datasets(copy, path) as (reader, names), parsing(path, "an HDF5 file"):
        yield Datasets(reader, names, path)


@contextmanager
def create_hdf5(path: PathLike) -> Iterator[Any]:
    """Create a file that appears under its name only when everything is written."""
    import h5py

    with atomic_output(path) as stream, writing(path):
        name = getattr(stream, "name", None)
        if str(path) != "-" and isinstance(name, str) and Path(name).is_file():
            with h5py.File(name, "w") as file:  # the temporary file itself: large data is written once
                yield file
            return
        with tempfile.TemporaryDirectory(prefix="evenscore-") as folder:
            with h5py.File(os.path.join(folder, "copy.h5"), "w") as file:
                yield file
            with open(os.path.join(folder, "copy.h5"), "rb") as copy:
                shutil.copyfileobj(copy, stream, 1 << 20)


def write_texts(file: Any, name: str, texts: npt.NDArray[np.object_], path: PathLike) -> None:
    """Write text as UTF-8 of fixed length, the form that MATLAB, SIDEKIT and h5py all read."""
    import h5py

    encoded = utf8(texts, path, name)
    lost = next((text for text in encoded if text.endswith(b"\0")), None)
    if lost is not None:
        raise FileError(path, f"{lost.decode()!r} ends in a null character, which HDF5 drops; rename it", part=name)
    length = max(map(len, encoded), default=0)
    file.create_dataset(name, data=np.array(encoded, dtype=h5py.string_dtype("utf-8", max(length, 1))))


def read_hdf5_embeddings(path: PathLike, options: ReadOptions) -> Embeddings:
    """Read embeddings in either form."""
    with open_hdf5(path) as file:
        if _is_one_vector_per_id(file):
            return _vectors_by_id(file, path)
        table = from_arrays(file, path, options)
        if not isinstance(table, Embeddings):
            raise FileError(path, "it holds scores or trials, but embeddings are expected; give a file of those")
        return table


def write_hdf5_embeddings(table: Embeddings, path: PathLike) -> None:
    """Write one matrix with a list of ids."""
    arrays = to_arrays(table, path)
    with create_hdf5(path) as file:
        for name, values in arrays.items():
            if values.dtype == object:
                write_texts(file, name, values, path)
            else:
                file.create_dataset(name, data=values)


def _is_one_vector_per_id(file: Datasets) -> bool:
    """Tell whether all datasets are vectors of numbers of one length (a row or column of a matrix counts)."""
    if "embeddings" in file and "ids" in file:
        return False
    sizes = set()
    for name in file:
        shape = file.shape(name)
        if len(shape) not in (1, 2) or (len(shape) == 2 and 1 not in shape) or file.is_text(name):
            return False
        sizes.add(int(np.prod(shape)))
    return len(sizes) == 1


def _vectors_by_id(file: Datasets, path: PathLike) -> Embeddings:
    vectors = [file[name].reshape(-1) for name in file]
    kind = np.result_type(*vectors)
    if kind.kind != "f":
        raise FileError(path, f"found {listed(file)} with whole numbers, but vectors of real numbers are expected")
    try:
        return Embeddings(list(file), np.stack(vectors).astype(kind, copy=False))
    except InputError as error:
        raise FileError(path, str(error)) from None
