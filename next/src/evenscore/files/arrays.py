"""Tables as named arrays, which npz archives and zarr stores hold, and score matrices in npy files.

=============  =====================================================================================================
score matrix   ``scores`` (K x L, NaN where a pair has no score), ``enroll_ids`` (K), ``test_ids`` (L); with ``labels``
               (K x L) it is read as a list of trials
trial list     ``enroll_ids``, ``test_ids`` (each id once), ``enroll_index``, ``test_index`` (positions of each trial's
               ids), and where they are known ``scores``, ``labels`` (1, 0, -1) and ``measure:<column>``
npy            a score matrix ``name.npy`` with one id per line in ``name.enroll_ids`` and ``name.test_ids``
=============  =====================================================================================================
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import Labels
from evenscore.data.score_matrix import LARGEST_SCORE, ScoreMatrix, first_bad_score
from evenscore.data.side import Side
from evenscore.data.trial_list import TrialList
from evenscore.errors import FileError, InputError, quoted
from evenscore.files.formats import ReadOptions
from evenscore.files.streams import PathLike, atomic_output, open_input, reading, text_lines
from evenscore.files.text_output import refuse_unwritable
from evenscore.large import CHUNKS, is_dask

__all__ = ["StoredScores", "from_arrays", "parsing", "read_npy", "read_npz", "to_arrays", "write_npy", "write_npz"]

Array = npt.NDArray[Any]

_COLUMN = "measure:"
#: What other programs call these arrays; our own names come first.
_NAMES = {
    "scores": ("scores", "score_mat", "scoremat"),
    "enroll_ids": ("enroll_ids", "model_ids", "train_ids", "row_ids", "modelset", "model_names"),
    "test_ids": ("test_ids", "segment_ids", "column_ids", "segset", "test_names"),
}


@contextmanager
def parsing(path: PathLike, what: str) -> Iterator[None]:
    """Turn whatever goes wrong while a file is read into a `FileError`: libraries raise anything on damaged data."""
    with reading(path):
        try:
            yield
        except (FileError, OSError, MemoryError):
            raise
        except InputError as error:
            raise FileError(path, str(error)) from None
        except Exception as error:
            first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise FileError(path, f"it is not {what}, or it is damaged ({first_line}); write it again") from None


def to_arrays(table: ScoreMatrix | TrialList) -> dict[str, Any]:
    """Return the arrays that hold a table; ids are object arrays of text."""
    sides: dict[str, Any] = {"enroll_ids": table.enroll_ids, "test_ids": table.test_ids}
    if isinstance(table, ScoreMatrix):
        return {"scores": table.scores, **sides}
    trials = {"enroll_index": table.rows, "test_index": table.cols, "scores": table.scores, "labels": table.labels}
    columns = {_COLUMN + name: values for name, values in table.columns.items()}
    return sides | {name: values for name, values in (trials | columns).items() if values is not None}


def from_arrays(arrays: Mapping[str, Any], path: PathLike, options: ReadOptions) -> ScoreMatrix | TrialList:
    """Return the table that named arrays hold; the names of the arrays decide which."""
    found = {what: next((arrays[name] for name in names if name in arrays), None) for what, names in _NAMES.items()}
    if found["enroll_ids"] is None or found["test_ids"] is None:
        held = quoted(arrays, 6) or "nothing"
        raise FileError(path, f"found {held}, but expected 'scores', 'enroll_ids' and 'test_ids'; rename the arrays")
    enroll, test = Side(found["enroll_ids"], name="enroll_ids"), Side(found["test_ids"], name="test_ids")
    scores, labels = found["scores"], arrays.get("labels")
    if "enroll_index" in arrays and "test_index" in arrays:
        columns = {name.removeprefix(_COLUMN): arrays[name] for name in arrays if name.startswith(_COLUMN)}
        rows, cols = np.asarray(arrays["enroll_index"]), np.asarray(arrays["test_index"])
        return _listed(enroll, test, rows, cols, scores, labels, columns, options)
    for name, array in (("scores", scores), ("labels", labels)):
        if array is not None and array.shape != (len(enroll), len(test)):
            problem = f"shape {array.shape} does not fit the {len(enroll)} enrolments and {len(test)} tests"
            raise FileError(path, f"{problem}; make them agree", part=name)
    if scores is None and labels is None:
        raise FileError(path, "there are ids but no scores; add the array", part="scores")
    if labels is None and is_dask(scores):
        return ScoreMatrix.trusted(scores, enroll, test)
    if scores is not None and labels is None:
        bad = np.isinf(scores)
        if options.infinite == "error" or not bad.any():
            keep = options.missing == "error" or not bad.any()
            return ScoreMatrix(scores if keep else np.where(bad, np.nan, scores), enroll, test)
    rows, cols = np.nonzero(np.ones((len(enroll), len(test)), bool) if scores is None else ~np.isnan(scores))
    key = None if labels is None else Labels.from_key(labels).pairs(rows, cols)
    return _listed(enroll, test, rows, cols, None if scores is None else scores[rows, cols], key, {}, options)


def _listed(
    enroll: Side,
    test: Side,
    rows: Array,
    cols: Array,
    scores: Array | None,
    labels: Array | None,
    columns: dict[str, Array],
    options: ReadOptions,
) -> TrialList:
    """Return a list of trials; missing scores are treated as the options say."""
    infinite = options.infinite == "accept"
    if options.missing == "skip" and scores is not None and rows.shape == scores.shape:
        keep = ~np.isnan(scores) if infinite else np.isfinite(scores)
        rows, cols, scores = rows[keep], cols[keep], scores[keep]
        labels = None if labels is None else labels[keep]
        columns = {name: values[keep] for name, values in columns.items()}
    return TrialList.from_codes(enroll, test, rows, cols, scores, labels, columns, infinite=infinite)


def read_npz(path: PathLike, format: str, options: ReadOptions) -> ScoreMatrix | TrialList:
    """Read a score matrix or a list of trials from an archive of NumPy arrays, without pickles."""
    with open_input(path) as stream, parsing(path, "an npz file"), np.load(stream, allow_pickle=False) as archive:
        return from_arrays({name: archive[name] for name in archive.files}, path, options)


def write_npz(table: ScoreMatrix | TrialList, path: PathLike, format: str) -> None:
    """Write a table as an archive of NumPy arrays."""
    arrays = to_arrays(table.compute() if isinstance(table, ScoreMatrix) else table)
    refuse_unwritable((*table.enroll_ids, *table.test_ids), "")
    with atomic_output(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        for name, values in arrays.items():
            text = values.dtype == object
            packing = zipfile.ZIP_DEFLATED if text else zipfile.ZIP_STORED
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = packing
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values.astype(str) if text else values, allow_pickle=False)


class StoredScores:
    """A score matrix in a file, which each task opens for itself: what is sent to a worker is the path.

    Parameters
    ----------
    path
        The file, for messages.
    open_array
        A function of a module that opens the file as an array that can be sliced.
    """

    def __init__(self, path: PathLike, open_array: Callable[[str], Any]) -> None:
        self.path, self.open_array = os.path.abspath(path), open_array
        array = open_array(self.path)
        self.shape, self.ndim = array.shape, array.ndim
        native = np.dtype(array.dtype).newbyteorder("=")
        self.dtype = native if native in (np.float32, np.float64) else np.dtype(np.float64)
        if self.ndim != 2 or native.kind not in "fiu":
            raise FileError(path, f"it is {array.dtype} of shape {self.shape}, but a matrix of numbers is expected")

    def __getitem__(self, at: tuple[slice, slice]) -> Array:
        with parsing(self.path, "an array of scores"):
            part = np.array(self.open_array(self.path)[at], self.dtype, order="C")
        bad = first_bad_score(part)
        if bad is not None:
            i, j = np.unravel_index(bad, part.shape)
            where = f"the score in row {at[0].start + i + 1}, column {at[1].start + j + 1}"
            raise FileError(
                self.path, f"{where} is {part[i, j]}, but must be NaN or below {LARGEST_SCORE:g}; write NaN"
            )
        return part

    def as_dask(self, chunks: tuple[int, int], changed: object) -> Any:
        """Return a dask array whose name is the same as long as the file is the same (``changed`` says when it was).

        Many small chunks are read together.
        """
        import dask.array as da
        from dask.base import tokenize

        most = CHUNKS[0] * CHUNKS[1]
        cols = chunks[1] * max(1, min(CHUNKS[1], most // chunks[0]) // chunks[1])
        rows = chunks[0] * max(1, most // cols // chunks[0])
        size = min(rows, max(self.shape[0], 1)), min(cols, max(self.shape[1], 1))
        name = f"scores-{tokenize(self.path, self.shape, size, changed)}"
        return da.from_array(self, size, name=name, inline_array=True, asarray=False, meta=np.empty((0, 0), self.dtype))


def _open_npy(path: str) -> Array:
    return np.load(path, mmap_mode="r", allow_pickle=False)


def read_npy(path: PathLike, format: str, options: ReadOptions) -> ScoreMatrix:
    """Open the score matrix of an npy file with two lists of ids beside it, as a dask array."""
    lists = [Path(path).with_suffix(f".{side}_ids") for side in ("enroll", "test")]
    for file in lists:
        if not file.is_file():
            raise FileError(path, f"a score matrix in npy needs its ids, but there is no {file}; write one id per line")
    with parsing(path, "an npy file"):
        enroll, test = (Side([text for _, text in text_lines(file)], name=file.name) for file in lists)
        stored = StoredScores(path, _open_npy)
        if stored.shape != (len(enroll), len(test)):
            problem = f"shape {stored.shape} does not fit the {len(enroll)} enrolments and {len(test)} tests beside it"
            raise FileError(path, f"{problem}; make them agree")
        return ScoreMatrix.trusted(stored.as_dask(CHUNKS, os.stat(path).st_mtime_ns), enroll, test)


def write_npy(table: ScoreMatrix | TrialList, path: PathLike, format: str) -> None:
    """Write a score matrix, rows at a time, and its ids to two files beside it."""
    matrix = table.to_matrix() if isinstance(table, TrialList) else table
    if str(path) == "-" or str(path).endswith(".gz"):
        raise InputError("an npy file needs its ids in files beside it; write it to a plain file, or choose npz")
    refuse_unwritable((*matrix.enroll_ids, *matrix.test_ids), "")
    for side, ids in (("enroll", matrix.enroll_ids), ("test", matrix.test_ids)):
        if any(name != name.strip() or len(name.splitlines()) > 1 for name in ids):
            raise InputError("ids with spaces at an end or line breaks cannot be written one per line; choose npz")
        with atomic_output(Path(path).with_suffix(f".{side}_ids")) as stream:
            stream.writelines(f"{name}\n".encode() for name in ids)
    header = {"descr": matrix.scores.dtype.str, "fortran_order": False, "shape": matrix.shape}
    with atomic_output(path) as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        for start in range(0, matrix.shape[0], CHUNKS[0]):
            stream.write(np.ascontiguousarray(matrix.scores[start : start + CHUNKS[0]]).data)
