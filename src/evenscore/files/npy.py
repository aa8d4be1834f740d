"""npy files: a matrix of embeddings, with the ids in a text file beside it, one per line and row.

The ids are in the file that is named (``ReadOptions.ids``), else in ``name.npy.ids``, ``name.ids``, ``name.npy.txt`` or
``name.txt``; ``name.ids`` is what is written. Speakers and columns have no place here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evenscore.errors import FileError, InputError
from evenscore.files.checks import parsing
from evenscore.files.formats import ReadOptions
from evenscore.files.npz import check_npy_header
from evenscore.files.streams import PathLike, atomic_output, local_file
from evenscore.files.text.chunks import text_lines
from evenscore.tables import Embeddings
from evenscore.tables.ids import as_ids

__all__ = ["is_score_npy", "read_ids", "read_npy", "score_id_files", "write_npy"]


def read_npy(path: PathLike, options: ReadOptions) -> Embeddings:
    """Read a matrix of embeddings and the list of their ids."""
    if options.kind == "scores":
        problem = "a score matrix in npy needs its ids; write them to files of the same name, one per line,"
        raise FileError(path, f"{problem} that end in .enroll_ids and .test_ids")
    with local_file(path) as file, parsing(path, "an npy file"), open(file, "rb") as stream:
        check_npy_header(stream, file.stat().st_size, path, None)
        stream.seek(0)
        vectors = np.lib.format.read_array(stream, allow_pickle=False)
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
    for name in table.ids.tolist():
        if name != name.strip() or len(name.splitlines()) > 1:
            raise FileError(path, f"the id {name!r} cannot stand on a line of its own; rename it, or choose npz")
    with atomic_output(_stem(path).with_suffix(".ids")) as stream:
        stream.write("".join(f"{name}\n" for name in table.ids.tolist()).encode())
    with atomic_output(path) as stream:
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
