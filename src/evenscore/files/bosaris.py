"""BOSARIS HDF5 files: Scores, Ndx (which trials there are) and Key, and the spellings of other programs.

====================  ========================================  ==================================================
program               ids of the rows, of the columns           matrices, rows x columns
====================  ========================================  ==================================================
BOSARIS               ``ID/row_ids``, ``ID/column_ids``         Scores: ``scores``, ``score_mask``;
                                                                Ndx: ``trial_mask`` (unsigned, 1 = a trial);
                                                                Key: ``trial_mask`` (+1 target, -1 non-target, 0 no
                                                                trial) and ``file_format`` "2.0", or, in old files,
                                                                ``target_mask`` and ``nontarget_mask``
SIDEKIT               ``modelset``, ``segset``                  the same, without ``file_format``
DCA-PLDA              ``enroll_ids`` or ``train_ids``,          ``scores``, or ``trial_mask`` as in a Key
                      ``test_ids``
PyBOSARIS             ``model_names``, ``test_names``           ``score_mat``; ``trial_mask``; ``tar_mask``,
                                                                ``non_mask``
====================  ========================================  ==================================================

Only BOSARIS' own names are written. Scores and Key can stand in one file, which BOSARIS reads as either: so are scores
with labels written. Trials whose class is not known, which a Key cannot say, go to a further mask ``unknown_mask``
that other programs ignore. A matrix that MATLAB wrote transposed is recognized by its shape.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import FileError
from evenscore.files.hdf5 import Datasets, create_hdf5, open_hdf5, write_texts
from evenscore.files.named_arrays import ids_of, listed_scores
from evenscore.files.registry import ReadOptions
from evenscore.files.streams import PathLike, listed
from evenscore.memory import free_memory
from evenscore.tables import NONTARGET, TARGET, UNKNOWN, ScoreMatrix, TrialList
from evenscore.tables.arrays import no_score
from evenscore.tables.ids import Ids

__all__ = ["hdf5_format", "read_bosaris", "write_bosaris", "write_bosaris_old_key"]

Mask = npt.NDArray[np.bool_]

_SPELLINGS = {
    "bosaris": (("ID/row_ids", "ID/column_ids"),),
    "sidekit": (("modelset", "segset"),),
    "dca-plda": (("enroll_ids", "test_ids"), ("train_ids", "test_ids")),
    "pybosaris": (("model_names", "test_names"),),
}


def spelling_of(names: Iterable[str]) -> str | None:
    """Return which program's names the datasets have, or None if they are none of these."""
    found = set(names)
    for program, pairs in _SPELLINGS.items():
        if any(found.issuperset(pair) for pair in pairs):
            return program
    return None


def hdf5_format(path: PathLike) -> str:
    """Return the name of the format of an HDF5 file, which its datasets decide."""
    with open_hdf5(path) as file:
        return spelling_of(file) or "hdf5"


def read_bosaris(path: PathLike, options: ReadOptions) -> ScoreMatrix | TrialList:
    """Read Scores as a matrix (with a Key in the same file: as labelled trials), Ndx and Key as lists of trials."""
    with open_hdf5(path) as file:
        rows, columns = _ids(file, path)
        reader = _Matrices(file, path, (len(rows), len(columns)))
        key = reader.key()
        score_name = next((name for name in ("scores", "score_mat") if name in file), None)
        if score_name is None:
            if key is None:
                raise FileError(path, f"there is neither scores nor trial_mask, only {listed(file)}", part="scores")
            trials, labels = key
            row, column = np.nonzero(trials)
            return TrialList(rows, columns, row, column, labels=None if labels is None else labels[row, column])
        scores, scored = reader.scores(score_name, rows, columns, options)
        if key is None or key[1] is None:
            if options.accepts_infinite and np.isinf(scores[scored]).any():
                return listed_scores(scores, scored, rows, columns)
            return ScoreMatrix(scores, rows, columns, missing=None if scored.all() else ~scored)
        row, column = np.nonzero(scored)
        return TrialList(
            rows,
            columns,
            row,
            column,
            scores=scores[row, column],
            labels=key[1][row, column],
            allow_infinite=options.accepts_infinite,
        )


def write_bosaris(table: ScoreMatrix | TrialList, path: PathLike) -> None:
    """Write Scores, Ndx or Key, or Scores with a Key, as the table has scores and labels; measures are left out."""
    _write(table, path, old_key=False)


def write_bosaris_old_key(table: ScoreMatrix | TrialList, path: PathLike) -> None:
    """Write the same with the two masks of the first version of the Key."""
    _write(table, path, old_key=True)


class _Matrices:
    """Reads the matrices of one file, in the orientation that its ids ask for."""

    def __init__(self, file: Datasets, path: PathLike, shape: tuple[int, int]) -> None:
        self.file = file
        self.path = path
        self.shape = shape

    def matrix(self, name: str) -> npt.NDArray[Any]:
        declared = self.file.shape(name)
        if declared not in (self.shape, self.shape[::-1]):
            problem = f"shape {declared} does not fit {self.shape[0]} row ids and {self.shape[1]} column ids"
            raise FileError(self.path, f"{problem}; write the file again", part=name)
        values = self.file[name]
        if values.dtype.kind not in "biuf":
            raise FileError(self.path, "it holds text, but a matrix of numbers is expected", part=name)
        return values if declared == self.shape else values.T

    def whole_numbers(self, name: str, low: int, high: int) -> npt.NDArray[Any]:
        """Return a matrix that has only whole numbers from ``low`` to ``high``."""
        values = self.matrix(name)
        if values.dtype.kind != "f":  # the extremes tell all, without a temporary of the size of the matrix
            odd = [extreme for extreme in (values.min(initial=0), values.max(initial=0)) if not low <= extreme <= high]
        else:
            odd = values[~np.isin(values, range(low, high + 1))].tolist()
        if odd:
            problem = f"it holds {odd[0]}, but only {', '.join(map(str, range(low, high + 1)))} are expected"
            raise FileError(self.path, f"{problem}; write the file again", part=name)
        return values

    def mask(self, name: str) -> Mask:
        return self.whole_numbers(name, 0, 1).astype(bool)

    def key(self) -> tuple[Mask, npt.NDArray[np.int8] | None] | None:
        """Return which pairs are trials, and their labels if this is a Key."""
        old = next(
            (pair for pair in (("target_mask", "nontarget_mask"), ("tar_mask", "non_mask")) if self._has(pair)), None
        )
        if old is not None:
            target, nontarget = self.mask(old[0]), self.mask(old[1])
            if (target & nontarget).any():
                raise FileError(self.path, "a trial is both target and non-target; correct the key", part=old[0])
        elif "trial_mask" in self.file:
            values = self.whole_numbers("trial_mask", -1, 1)
            target, nontarget = values > 0, values < 0
            if not nontarget.any() and "file_format" not in self.file and "unknown_mask" not in self.file:
                return target, None  # Ndx; SIDEKIT's is signed too, so the type cannot tell
        else:
            return None
        unknown = self.mask("unknown_mask") if "unknown_mask" in self.file else np.zeros(self.shape, dtype=bool)
        labels = np.full(self.shape, UNKNOWN, dtype=np.int8)
        labels[target] = TARGET
        labels[nontarget] = NONTARGET
        return target | nontarget | unknown, labels

    def scores(self, name: str, rows: Ids, columns: Ids, options: ReadOptions) -> tuple[npt.NDArray[Any], Mask]:
        """Return the scores, and which of them count."""
        scores = self.matrix(name)
        scored = self.mask("score_mask") if "score_mask" in self.file else np.ones(self.shape, dtype=bool)
        if scores.dtype.kind == "f":
            bad = scored & ~options.usable(scores)
            if options.missing == "skip":
                scored = scored & ~bad
            elif bad.any():
                i, j = np.argwhere(bad)[0]
                problem = f"the score of ({rows[i]!r}, {columns[j]!r}) {no_score(scores[i, j])}"
                raise FileError(self.path, f"{problem}; drop the trial, or read it with missing='skip'", part=name)
        return scores, scored

    def _has(self, pair: tuple[str, str]) -> bool:
        found = [name for name in pair if name in self.file]
        if len(found) == 1:
            other = pair[0] if found[0] == pair[1] else pair[1]
            raise FileError(self.path, f"there is {found[0]}, but this dataset is missing; add it", part=other)
        return bool(found)


def _ids(file: Datasets, path: PathLike) -> tuple[Ids, Ids]:
    program = spelling_of(file)
    if program is None:
        for first, second in (pair for pairs in _SPELLINGS.values() for pair in pairs):
            for here, other in ((first, second), (second, first)):
                if here in file:
                    raise FileError(path, f"there is {here}, but this dataset is missing; add it", part=other)
        problem = f"expected the ids of rows and columns, found {listed(file)}; this is no BOSARIS file"
        raise FileError(path, problem, part="ID/row_ids")
    pair = next(pair for pair in _SPELLINGS[program] if pair[0] in file and pair[1] in file)
    rows, columns = (ids_of(file[name], path, name) for name in pair)
    return rows, columns


def _write(table: ScoreMatrix | TrialList, path: PathLike, *, old_key: bool) -> None:
    rows, columns = table.enroll_ids, table.test_ids
    if isinstance(table, ScoreMatrix):
        matrices = _scores_matrices(table)
    elif 8 * len(rows) * len(columns) > free_memory():
        problem = f"matrices of {len(rows)} x {len(columns)} pairs do not fit into memory"
        raise FileError(path, f"{problem}; choose a format in long form, such as parquet")
    else:
        matrices = _trial_matrices(table, old_key=old_key)
    with create_hdf5(path) as file:
        for name, values in matrices.items():
            packed = {"compression": "gzip", "compression_opts": 1} if values.dtype.kind != "f" and values.size else {}
            file.create_dataset(name, data=values, **packed)
        if "trial_mask" in matrices and matrices["trial_mask"].dtype == np.int8:
            file.create_dataset("file_format", data="2.0")
        write_texts(file, "ID/row_ids", rows, path)
        write_texts(file, "ID/column_ids", columns, path)


def _scores_matrices(table: ScoreMatrix) -> dict[str, npt.NDArray[Any]]:
    scores = (
        np.where(table.missing, np.array(0, dtype=table.scores.dtype), table.scores)
        if table.n_missing
        else table.scores
    )
    return {"scores": scores, "score_mask": (~table.missing).astype(np.uint8)}


def _trial_matrices(table: TrialList, *, old_key: bool) -> dict[str, npt.NDArray[Any]]:
    at = (table.enroll_index, table.test_index)
    shape = (len(table.enroll_ids), len(table.test_ids))
    matrices = {} if table.scores is None else _scores_matrices(table.to_matrix())
    if table.labels is None:
        if table.scores is None:
            matrices["trial_mask"] = np.zeros(shape, dtype=np.uint8)
            matrices["trial_mask"][at] = 1
        return matrices
    target, nontarget, unknown = (np.zeros(shape, dtype=np.uint8) for _ in range(3))
    for mask, label in ((target, TARGET), (nontarget, NONTARGET), (unknown, UNKNOWN)):
        mask[at] = table.labels == label
    if old_key:
        matrices |= {"target_mask": target, "nontarget_mask": nontarget}
    else:
        matrices["trial_mask"] = target.astype(np.int8) - nontarget.astype(np.int8)
    if unknown.any():
        matrices["unknown_mask"] = unknown
    return matrices
