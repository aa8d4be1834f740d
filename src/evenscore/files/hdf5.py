"""HDF5: Scores, Ndx and Key of BOSARIS and of programs that spell them otherwise, and embeddings.

The library trusts what a file says: a wrong byte can end the process, or let it ask for any time and memory. So a file
is read by another process with limits, which copies its datasets to an npz file. Links to other files are not followed.

A Key is ``trial_mask`` (1 target, -1 non-target, 0 no trial) with ``file_format``, or ``target_mask`` and
``nontarget_mask``; an Ndx is ``trial_mask`` (1 or 0). Scores with labels are written as Scores and Key in one file;
trials of unknown class are in a further ``unknown_mask``. A matrix that MATLAB transposed is known by its shape.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.data.embeddings import Embeddings
from evenscore.data.labels import NONTARGET, TARGET, UNKNOWN
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.trial_list import TrialList
from evenscore.errors import FileError, InputError
from evenscore.files.arrays import Array, from_arrays, parsing, read_archive, to_arrays, write_archive
from evenscore.files.formats import ReadOptions
from evenscore.files.streams import PathLike, atomic_output, open_input, spooled

__all__ = ["copy_datasets", "read", "write"]

_SIDES = (
    *(("ID/row_ids", "ID/column_ids"), ("modelset", "segset"), ("model_names", "test_names")),
    *(("enroll_ids", "test_ids"), ("train_ids", "test_ids")),
)
_NO_TRIAL = UNKNOWN - 1
_MASKS = (("target_mask", "nontarget_mask"), ("tar_mask", "non_mask"))
_SECONDS, _BYTES_PER_SECOND = 20, 5_000_000  # of processor time
_PROGRAM = "import sys; sys.path[:] = sys.argv[3:]; import evenscore.files.hdf5 as h; h.copy_datasets(*sys.argv[1:3])"


def _datasets(path: PathLike) -> dict[str, Array]:
    """Return all datasets of a file by name, as another process reads them."""
    with spooled(path) as local, tempfile.TemporaryDirectory(prefix="evenscore-") as folder:
        target = os.path.join(folder, "datasets.npz")
        command = [sys.executable, "-c", _PROGRAM, os.path.abspath(local), target, *sys.path]
        done = subprocess.run(command, capture_output=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})  # noqa: S603
        if done.returncode == 0:
            return read_archive(target)
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        cause = lines[-1] if lines and done.returncode > 0 else "reading it needs too much time or memory"
        raise FileError(path, f"it is not an HDF5 file, or it is damaged ({cause}); copy it again")


def copy_datasets(path: str, target: str) -> None:
    """Copy the datasets of numbers and text to an npz file; this runs in another process, and limits itself."""
    import h5py

    with suppress(ImportError, ValueError, OSError):  # where the system has no limits
        import resource

        seconds = _SECONDS + os.path.getsize(path) // _BYTES_PER_SECOND
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    arrays: dict[str, Array] = {}

    def copy(name: str, item: Any) -> None:
        if not isinstance(item, h5py.Dataset) or item.shape is None:
            return
        if item.is_virtual or item.external:
            sys.exit(f"the data of {name} is in another file, which is not opened")
        if h5py.check_string_dtype(item.dtype) is not None:
            arrays[name] = np.array(item.asstr()[()], object).reshape(-1)
        elif item.dtype.kind in "biuf":
            arrays[name] = item[()] if item.ndim else np.array(item[()])

    with open_input(path) as stream, h5py.File(io.BytesIO(stream.read()) if path.endswith(".gz") else path) as file:
        file.visititems(copy)  # soft and external links are not visited
    write_archive(arrays, target)


def read(path: PathLike, format: str, options: ReadOptions) -> ScoreMatrix | TrialList | Embeddings:
    """Read Scores as a matrix, Scores with a Key, Ndx and Key as lists of trials; or embeddings."""
    arrays = _datasets(path)
    with parsing(path, "an HDF5 file"):
        sides = next((pair for pair in _SIDES if {*pair} <= arrays.keys()), None)
        if sides is None:
            return from_arrays(arrays, path, options)
        found: dict[str, Any] = {"enroll_ids": arrays[sides[0]], "test_ids": arrays[sides[1]]}
        shape, matrices = (len(found["enroll_ids"]), len(found["test_ids"])), {}
        for name, values in arrays.items():
            if values.ndim == 2:
                if values.shape not in (shape, shape[::-1]):
                    raise FileError(path, f"shape {values.shape} does not fit {shape[0]} x {shape[1]} ids", part=name)
                matrices[name] = values if values.shape == shape else values.T
        scores, labels = matrices.get("scores", matrices.get("score_mat")), _labels(matrices, "file_format" in arrays)
        if scores is None and labels is None:
            raise FileError(path, f"there are ids, but neither scores nor masks, only {', '.join(arrays)}")
        listed = labels > _NO_TRIAL if labels is not None else np.ones(shape, bool)
        if scores is not None:
            listed = matrices.get("score_mask", np.ones(shape)) > 0
            found["scores"] = np.where(listed, scores, np.nan).astype(np.result_type(scores, np.float32), copy=False)
            if labels is None or (labels <= UNKNOWN).all():
                return from_arrays(found, path, options)
            found["scores"] = scores[listed]
        if labels is not None and (labels > UNKNOWN).any():
            found["labels"] = np.maximum(labels[listed], UNKNOWN)
        found["enroll_index"], found["test_index"] = np.nonzero(listed)
        return from_arrays(found, path, options)


def _labels(matrices: Mapping[str, Array], is_key: bool) -> Array | None:
    """Return the label of each pair; the trials of an Ndx are unknown."""
    masks = next(([matrices[name] > 0 for name in pair] for pair in _MASKS if {*pair} <= matrices.keys()), None)
    if masks is None:
        if "trial_mask" not in matrices:
            return None
        masks = [matrices["trial_mask"] > 0, matrices["trial_mask"] < 0]
        if not is_key and "unknown_mask" not in matrices and not masks[1].any():
            return np.where(masks[0], UNKNOWN, _NO_TRIAL).astype(np.int8)
    if (masks[0] & masks[1]).any():
        raise InputError("a trial is both target and non-target; correct the key")
    masks.append(matrices.get("unknown_mask", np.zeros_like(masks[0])) > 0)
    return np.select(masks, [TARGET, NONTARGET, UNKNOWN], _NO_TRIAL).astype(np.int8)


def write(table: ScoreMatrix | TrialList | Embeddings, path: PathLike, format: str) -> None:
    """Write Scores, Ndx, Key, or Scores with a Key, as the table has scores and labels; or embeddings."""
    import h5py

    arrays = to_arrays(table)
    if table.kind != "embeddings":
        arrays = _matrices(table.to_trials(), format)
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        for name, values in arrays.items():
            if values.dtype == object:
                encoded = [text.encode() for text in values.tolist()]
                values = np.array(encoded, h5py.string_dtype("utf-8", max(map(len, encoded), default=1) or 1))
            packed = {"compression": "gzip", "compression_opts": 1} if values.dtype.kind in "iu" and values.size else {}
            file.create_dataset(name, data=values, **packed)
        if "trial_mask" in arrays and arrays["trial_mask"].dtype == np.int8:
            file["file_format"] = "2.0"
    with atomic_output(path) as stream:
        stream.write(buffer.getbuffer())


def _matrices(trials: TrialList, format: str) -> dict[str, Array]:
    """Return the matrices of BOSARIS by name."""

    def matrix(values: Any, dtype: npt.DTypeLike = np.uint8) -> Array:
        out = np.zeros(trials.shape, dtype)
        out[trials.rows, trials.cols] = values
        return out

    arrays: dict[str, Array] = {"ID/row_ids": trials.enroll_ids, "ID/column_ids": trials.test_ids}
    if trials.scores is not None:
        arrays |= {"scores": matrix(trials.scores, trials.scores.dtype), "score_mask": matrix(1)}
    elif trials.labels is None:
        arrays["trial_mask"] = matrix(1)
    if trials.labels is not None:
        target, nontarget, unknown = (matrix(trials.labels == label) for label in (TARGET, NONTARGET, UNKNOWN))
        key = {"trial_mask": target.astype(np.int8) - nontarget.astype(np.int8)}
        arrays |= {"target_mask": target, "nontarget_mask": nontarget} if format == "bosaris-old-key" else key
        arrays |= {"unknown_mask": unknown} if unknown.any() else {}
    return arrays
