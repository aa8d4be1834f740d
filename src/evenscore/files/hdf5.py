"""HDF5 files opened with care, and embeddings in them; `bosaris` has the scores.

Nothing outside the file is ever touched: external links, external storage and virtual datasets are refused. A
declared size is checked against the memory, and against what the file stores, before anything is allocated.

Embeddings are one matrix with a list of ids (the arrays of `named_arrays`, which is what is written), or every dataset
is a vector, and its path in the file is the id (``id10270/x6uYqmx31kE/00001.wav``).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import FileError, InputError
from evenscore.files.named_arrays import StoredArrays, from_arrays, to_arrays, utf8
from evenscore.files.registry import ReadOptions
from evenscore.files.streams import (
    PathLike,
    atomic_output,
    listed,
    local_file,
    parsing,
    refuse_larger_than_memory,
    writing,
)
from evenscore.tables import Embeddings

__all__ = ["Datasets", "create_hdf5", "open_hdf5", "read_hdf5_embeddings", "write_hdf5_embeddings", "write_texts"]

# Below this size a dataset may be declared without being stored; above, deflate packs at most about 1032 to 1.
_SMALL = 1 << 28
_MOST_PACKED = 1100
_TEXTS_AT_A_TIME = 4096


class Datasets(StoredArrays):
    """The datasets of a file by path, without the leading slash.

    Text comes as a one-dimensional object array of strings, even where it is a matrix of one row or column (MATLAB).
    """

    def __init__(self, file: Any, path: PathLike) -> None:
        import h5py

        self._file = file
        names: dict[str, str] = {}

        def visit(name: str, link: Any) -> str | None:
            if isinstance(link, h5py.ExternalLink):
                return name
            if isinstance(link, h5py.HardLink) and file.get(name, getclass=True) is h5py.Dataset:
                names[name] = name
            return None

        external = file.visititems_links(visit)
        if external is not None:
            raise FileError(path, "this is a link to another file, which is not followed; copy the data", part=external)
        super().__init__(path, "an HDF5 file", names)

    def read_at(self, place: str, name: str) -> npt.NDArray[Any]:
        """Read a dataset."""
        import h5py

        with _library_errors(self.path, name):
            dataset = self._file[place]
            self._refuse_unsafe(dataset, name)
            if h5py.check_string_dtype(dataset.dtype) is not None:
                return self._texts(dataset, name)
            array: npt.NDArray[Any] = dataset[()]
            return array

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape that a dataset declares, without reading it."""
        with parsing(self.path, "an HDF5 file", part=name), _library_errors(self.path, name):
            return tuple(self._file[name].shape or ())

    def is_text(self, name: str) -> bool:
        """Tell whether a dataset holds text."""
        import h5py

        with parsing(self.path, "an HDF5 file", part=name), _library_errors(self.path, name):
            return h5py.check_string_dtype(self._file[name].dtype) is not None

    def _refuse_unsafe(self, dataset: Any, name: str) -> None:
        import h5py

        if dataset.is_virtual or dataset.external:
            problem = "its data lies in other files, which are not followed; copy it into one file (h5repack)"
            raise FileError(self.path, problem, part=name)
        if dataset.shape is None or dataset.shape == ():
            raise FileError(self.path, "it is a single value, but an array is expected", part=name)
        text = h5py.check_string_dtype(dataset.dtype)
        if text is None and (dataset.dtype.hasobject or dataset.dtype.kind not in "biuf"):
            problem = f"it has type {dataset.dtype}, but only numbers and text are read; write it again"
            raise FileError(self.path, problem, part=name)
        refuse_larger_than_memory(self.path, dataset.nbytes, part=name)
        stored = dataset.id.get_storage_size()
        if dataset.nbytes > _SMALL and dataset.nbytes > _MOST_PACKED * stored:
            problem = f"it declares {dataset.nbytes} bytes, but only {stored} are stored; the file is damaged"
            raise FileError(self.path, problem, part=name)

    def _texts(self, dataset: Any, name: str) -> npt.NDArray[np.object_]:
        """Read text in parts, so that a few long texts named often cannot fill the memory unseen."""
        if dataset.ndim > 2 or (dataset.ndim == 2 and 1 not in dataset.shape):
            raise FileError(self.path, f"shape {dataset.shape} is not that of a list of text", part=name)
        by_column = dataset.ndim == 2 and dataset.shape[0] == 1
        texts = np.empty(dataset.size, dtype=object)
        total = 0
        for start in range(0, len(texts), _TEXTS_AT_A_TIME):
            part = slice(start, start + _TEXTS_AT_A_TIME)
            block = np.asarray(dataset[:, part] if by_column else dataset[part]).reshape(-1).tolist()
            total += sum(map(len, block))
            refuse_larger_than_memory(self.path, total, part=name)
            texts[part] = [self._decoded(text, name) for text in block]
        return texts

    def _decoded(self, text: bytes, name: str) -> str:
        try:
            return text.decode()
        except UnicodeDecodeError:
            raise FileError(self.path, f"{text[:40]!r} is not valid UTF-8; write it again", part=name) from None


@contextmanager
def open_hdf5(path: PathLike) -> Iterator[Datasets]:
    """Open a file for reading; gzip around it and standard input go through a temporary copy."""
    import h5py

    with local_file(path) as copy, parsing(path, "an HDF5 file"), _library_errors(path), h5py.File(copy, "r") as file:
        yield Datasets(file, path)


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


@contextmanager
def _library_errors(path: PathLike, part: str | None = None) -> Iterator[None]:
    """Say what HDF5's OSError means: a damaged file, and not a problem of the system."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            raise
        problem = f"it is not an HDF5 file, or it is cut off or damaged ({error}); copy it again"
        raise FileError(path, problem, part=part) from None


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
