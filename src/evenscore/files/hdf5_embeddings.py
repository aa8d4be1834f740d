"""Embeddings in HDF5: one matrix with a list of ids, or one vector per id.

The first form has the arrays of `named_arrays`: ``embeddings`` (n x d), ``ids``, and where they are known ``speakers``
('' if unknown) and further columns; this is what is written. In the second form every dataset is a vector, and its path
in the file is the id (``id10270/x6uYqmx31kE/00001.wav``).
"""

from __future__ import annotations

import numpy as np

from evenscore.errors import FileError, InputError
from evenscore.files.bosaris import spelling_of
from evenscore.files.checks import listed
from evenscore.files.formats import ReadOptions
from evenscore.files.hdf5 import Datasets, create_hdf5, open_hdf5, write_texts
from evenscore.files.named_arrays import from_arrays, to_arrays
from evenscore.files.streams import PathLike
from evenscore.tables import Embeddings

__all__ = ["hdf5_format", "read_hdf5_embeddings", "write_hdf5_embeddings"]


def hdf5_format(path: PathLike) -> str:
    """Return the name of the format of an HDF5 file, which its datasets decide."""
    with open_hdf5(path) as file:
        return spelling_of(file) or "hdf5"


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
