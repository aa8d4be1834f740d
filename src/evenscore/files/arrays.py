"""Tables as named arrays, which npz archives, zarr stores and HDF5 files hold, and matrices in npy files.

=============  =====================================================================================================
score matrix   ``scores`` (K x L, NaN where a pair has no score), ``enroll_ids`` (K), ``test_ids`` (L); with ``labels``
               (K x L) it is read as a list of trials
trial list     ``enroll_ids``, ``test_ids`` (each id once), ``enroll_index``, ``test_index`` (positions of each trial's
               ids), and where they are known ``scores``, ``labels`` (1, 0, -1) and ``measure:<column>``
embeddings     ``embeddings`` (n x d), ``ids``, and where they are known ``speakers`` and further columns; a vector for
               each id, called by it, is read, too
npy            a score matrix ``name.npy`` with one id per line in ``name.enroll_ids`` and ``name.test_ids``, or
               embeddings with their ids in ``name.ids``
=============  =====================================================================================================
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.data.embeddings import Embeddings
from evenscore.data.labels import Labels
from evenscore.data.score_matrix import LARGEST_SCORE, ScoreMatrix, first_bad_score
from evenscore.data.side import Side
from evenscore.data.trial_list import TrialList
from evenscore.errors import FileError, InputError, quoted
from evenscore.files.formats import ReadOptions
from evenscore.files.streams import PathLike, atomic_output, check_memory, open_input, reading, text_lines
from evenscore.files.text import refuse_unwritable
from evenscore.large import CHUNKS, is_dask

__all__ = [
    *("Array", "StoredScores", "from_arrays", "parsing", "read_archive", "read_npy", "read_npz", "to_arrays"),
    *("write_archive", "write_npy", "write_npz"),
]

Array = npt.NDArray[Any]
_COLUMN = "measure:"
_open_npy = partial(np.load, mmap_mode="r", allow_pickle=False)
#: What other programs call these arrays; our own names come first.
_NAMES = {
    "scores": ("scores", "score_mat", "scoremat"),
    "enroll_ids": ("enroll_ids", "model_ids", "train_ids", "row_ids", "modelset", "model_names"),
    "test_ids": ("test_ids", "segment_ids", "column_ids", "segset", "test_names"),
    "embeddings": ("embeddings", "vectors", "embedding", "xvectors", "data", "x", "X"),
    "ids": ("ids", "utt_ids", "utts", "utt", "keys", "names"),
    "speakers": ("speakers", "speaker_ids", "spk_ids", "speaker", "spk"),
}


@contextmanager
def parsing(path: PathLike, what: str) -> Iterator[None]:
    """Turn whatever goes wrong while a file is read into a `FileError`: libraries raise anything on damaged data."""
    with reading(path):
        try:
            yield
        except (FileError, OSError, MemoryError, ImportError):
            raise
        except InputError as error:
            raise FileError(path, str(error)) from None
        except Exception as error:
            first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise FileError(path, f"it is not {what}, or it is damaged ({first_line}); write it again") from None


def to_arrays(table: ScoreMatrix | TrialList | Embeddings) -> dict[str, Any]:
    """Return the arrays that hold a table; ids are object arrays of text. Names must be valid text, and no paths."""
    for name in table.columns:
        if not name.isprintable() or not name.strip(". ") or "/" in name or "\\" in name:
            raise InputError(f"{name!r} cannot be the name of a further column; rename it")
    if table.kind == "embeddings":
        refuse_unwritable(table.ids, "")
        texts = {name: values for name, values in table.columns.items() if values.dtype.kind not in "biuf"}
        texts |= {} if table.speakers is None else {"speakers": table.speakers}
        texts = {name: np.array([value or "" for value in values.tolist()], object) for name, values in texts.items()}
        return {**table.columns, **texts, "embeddings": table.vectors, "ids": table.ids}
    refuse_unwritable((*table.enroll_ids, *table.test_ids), "")
    sides: dict[str, Any] = {"enroll_ids": table.enroll_ids, "test_ids": table.test_ids}
    if table.rows is None:
        return {"scores": table.scores, **sides}
    trials = {"enroll_index": table.rows, "test_index": table.cols, "scores": table.scores, "labels": table.labels}
    columns = {_COLUMN + name: values for name, values in table.columns.items()}
    return sides | {name: values for name, values in (trials | columns).items() if values is not None}


def from_arrays(
    arrays: Mapping[str, Any], path: PathLike, options: ReadOptions
) -> ScoreMatrix | TrialList | Embeddings:
    """Return the table that named arrays hold; the names of the arrays decide which."""
    present = {what: [arrays[name] for name in names if name in arrays] for what, names in _NAMES.items()}
    found: dict[str, Any] = {what: values[0] if values else None for what, values in present.items()}
    if found["enroll_ids"] is None or found["test_ids"] is None:
        return _embeddings(arrays, found, path)
    enroll, test = Side(found["enroll_ids"], name="enroll_ids"), Side(found["test_ids"], name="test_ids")
    scores, labels, columns = found["scores"], arrays.get("labels"), {}
    infinite = options.infinite == "accept"
    if "enroll_index" in arrays and "test_index" in arrays:
        columns = {name.removeprefix(_COLUMN): arrays[name] for name in arrays if name.startswith(_COLUMN)}
        rows, cols = np.asarray(arrays["enroll_index"]), np.asarray(arrays["test_index"])
    else:
        for name, array in (("scores", scores), ("labels", labels)):
            if array is not None and array.shape != (len(enroll), len(test)):
                problem = f"shape {array.shape} does not fit the {len(enroll)} enrolments and {len(test)} tests"
                raise FileError(path, f"{problem}; make them agree", part=name)
        if scores is None and labels is None:
            raise FileError(path, "there are ids but no scores; add the array", part="scores")
        if labels is None and is_dask(scores):
            return ScoreMatrix.trusted(scores, enroll, test)
        if labels is None and not (infinite and np.isinf(scores).any()):
            skip = options.missing == "skip" and np.isinf(scores).any()
            return ScoreMatrix(np.where(np.isinf(scores), np.nan, scores) if skip else scores, enroll, test)
        rows, cols = np.nonzero(np.ones((len(enroll), len(test)), bool) if scores is None else ~np.isnan(scores))
        labels = None if labels is None else Labels.from_key(labels).pairs(rows, cols)
        scores = None if scores is None else np.asarray(scores)[rows, cols]
    if options.missing == "skip" and scores is not None and rows.shape == scores.shape:
        keep = ~np.isnan(scores) if infinite else np.isfinite(scores)
        rows, cols, scores = rows[keep], cols[keep], scores[keep]
        labels = None if labels is None else labels[keep]
        columns = {name: values[keep] for name, values in columns.items()}
    return TrialList.from_codes(enroll, test, rows, cols, scores, labels, columns, infinite=infinite)


def _embeddings(arrays: Mapping[str, Any], found: Mapping[str, Any], path: PathLike) -> Embeddings:
    """Return a matrix of embeddings, or vectors that are called by their ids."""
    vectors, ids = found["embeddings"], found["ids"]
    if vectors is not None and ids is not None:
        known = {name for what in ("embeddings", "ids", "speakers") for name in _NAMES[what]}
        columns = {name: values for name, values in arrays.items() if np.shape(values) == (len(vectors),)}
        further = {name: values for name, values in columns.items() if name not in known}
        return Embeddings(ids, vectors, found["speakers"], further)
    by_id = {name: values for name, values in arrays.items() if np.size(values) == max(np.shape(values), default=0) > 1}
    real = all(np.asarray(vector).dtype.kind == "f" for vector in by_id.values())
    if not by_id or len(by_id) < len(arrays) or not real or len({np.size(vector) for vector in by_id.values()}) > 1:
        expected = "expected 'scores', 'enroll_ids' and 'test_ids', or 'embeddings' and 'ids'; rename the arrays"
        raise FileError(path, f"found {quoted(arrays, 6) or 'nothing'}, but {expected}")
    return Embeddings(list(by_id), np.stack([np.reshape(vector, -1) for vector in by_id.values()]))


def read_npz(path: PathLike, format: str, options: ReadOptions) -> ScoreMatrix | TrialList | Embeddings:
    """Read a score matrix, a list of trials or embeddings from an archive of NumPy arrays, without pickles."""
    with parsing(path, "an npz file"):
        return from_arrays(read_archive(path), path, options)


def read_archive(path: PathLike) -> dict[str, Array]:
    """Return the arrays of an npz file."""
    with open_input(path) as stream, parsing(path, "an npz file"), np.load(stream, allow_pickle=False) as archive:
        check_memory(path, sum(member.file_size for member in archive.zip.infolist()))
        return {name: archive[name] for name in archive.files}


def write_npz(table: ScoreMatrix | TrialList | Embeddings, path: PathLike, format: str) -> None:
    """Write a table as an archive of NumPy arrays."""
    write_archive({name: np.asarray(values) for name, values in to_arrays(table).items()}, path)


def write_archive(arrays: Mapping[str, Array], path: PathLike) -> None:
    """Write arrays to an npz file; text is compressed."""
    if str(path).endswith(".gz"):
        raise InputError("an npz file is an archive already; leave out .gz")
    with atomic_output(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        for name, values in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED if values.dtype == object else zipfile.ZIP_STORED
            with archive.open(entry, "w", force_zip64=True) as member:
                stored = values.astype(str) if values.dtype == object else values
                np.lib.format.write_array(member, stored, allow_pickle=False)


class StoredScores:
    """A score matrix in a file, which each task opens for itself by ``open_array``, so that only paths are sent."""

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
            limit = f"but must be NaN or below {LARGEST_SCORE:g}; write NaN"
            raise FileError(self.path, f"{where} is {part[i, j]}, {limit}")
        return part

    def as_dask(self, chunks: tuple[int, int], changed: object) -> Any:
        """Return a dask array whose name is the same as long as the file is the same (``changed`` says when it was).

        Many small chunks are read together.
        """
        try:
            import dask.array as da
            from dask.base import tokenize
        except ImportError:
            raise FileError(self.path, "a matrix in zarr or npy needs dask: pip install 'evenscore[zarr]'") from None
        most = CHUNKS[0] * CHUNKS[1]
        cols = chunks[1] * max(1, min(CHUNKS[1], most // chunks[0]) // chunks[1])
        rows = chunks[0] * max(1, most // cols // chunks[0])
        size = min(rows, max(self.shape[0], 1)), min(cols, max(self.shape[1], 1))
        name = f"scores-{tokenize(self.path, self.shape, size, changed)}"
        return da.from_array(self, size, name=name, inline_array=True, asarray=False, meta=np.empty((0, 0), self.dtype))


def read_npy(path: PathLike, format: str, options: ReadOptions) -> ScoreMatrix | Embeddings:
    """Open the score matrix of an npy file as a dask array, or read embeddings; lists of ids beside it tell which."""
    name = Path(path)
    lists = [name.with_suffix(f".{side}_ids") for side in ("enroll", "test")]
    with parsing(path, "an npy file"):
        if not all(file.is_file() for file in lists):
            beside = (name.with_suffix(".ids"), Path(f"{name}.ids"), name.with_suffix(".txt"), Path(f"{name}.txt"))
            ids = next((file for file in beside if file.is_file()), None)
            if ids is None or options.kind == "scores":
                needs = "its ids in files beside it, one per line: .enroll_ids and .test_ids of scores, .ids of vectors"
                raise FileError(path, f"a matrix in npy needs {needs}")
            return Embeddings([text for _, text in text_lines(ids)], np.array(_open_npy(str(path))))
        enroll, test = (Side([text for _, text in text_lines(file)], name=file.name) for file in lists)
        stored = StoredScores(path, _open_npy)
        if stored.shape != (len(enroll), len(test)):
            problem = f"shape {stored.shape} does not fit the {len(enroll)} enrolments and {len(test)} tests beside it"
            raise FileError(path, f"{problem}; make them agree")
        return ScoreMatrix.trusted(stored.as_dask(CHUNKS, os.stat(path).st_mtime_ns), enroll, test)


def write_npy(table: ScoreMatrix | TrialList | Embeddings, path: PathLike, format: str) -> None:
    """Write a matrix, rows at a time, and its ids to files beside it."""
    if str(path) == "-" or str(path).endswith(".gz"):
        raise InputError("an npy file needs its ids in files beside it; write it to a plain file, or choose npz")
    if table.kind == "embeddings":
        matrix, lists = table.vectors, {".ids": table.ids}
    else:
        table = table.to_matrix()
        matrix, lists = table.scores, {".enroll_ids": table.enroll_ids, ".test_ids": table.test_ids}
    for ids in lists.values():
        refuse_unwritable(ids, "")
        odd = [name for name in ids if name != name.strip(" \t")]
        if odd:
            raise InputError(f"the id {odd[0]!r} has spaces at an end, which its list loses; rename it, or write npz")
    header = {"descr": matrix.dtype.str, "fortran_order": False, "shape": matrix.shape}
    with ExitStack() as files:  # the matrix appears after its ids
        stream = files.enter_context(atomic_output(path))
        for ending, ids in lists.items():
            beside = files.enter_context(atomic_output(Path(path).with_suffix(ending)))
            beside.writelines(f"{name}\n".encode() for name in ids)
        np.lib.format.write_array_header_1_0(stream, header)
        for start in range(0, matrix.shape[0], CHUNKS[0]):
            stream.write(np.ascontiguousarray(matrix[start : start + CHUNKS[0]]).data)
        Path(os.path.realpath(path)).unlink(missing_ok=True)  # an old matrix never stands beside new ids
        for ending in (".enroll_ids", ".test_ids") if ".ids" in lists else ():  # of old scores
            Path(path).with_suffix(ending).unlink(missing_ok=True)
