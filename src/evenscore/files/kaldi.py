r"""Kaldi's files of vectors: archives (ark, binary and text), lists of places in them (scp), and PLDA.

A binary object is ``\0B``, its type (``FV``, ``DV``: vector of float, of double; ``FM``, ``DM``: matrix) and a space,
each size as ``\4`` and four bytes, and the numbers, all little-endian; in text, numbers stand in brackets, with a row
of a matrix on each line. An archive is a sequence of ids and objects. Commands in an scp are refused, never run.
"""

from __future__ import annotations

import math
import mmap
import os
import re
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from evenscore.data.embeddings import Embeddings
from evenscore.errors import FileError, InputError
from evenscore.files.arrays import Array, parsing
from evenscore.files.formats import ReadOptions
from evenscore.files.streams import PathLike, atomic_output, open_input, text_lines
from evenscore.files.text import refuse_unwritable

__all__ = ["read_ark", "read_plda", "read_scp", "write"]

_TYPES = {b"FV ": ("<f4", 1), b"DV ": ("<f8", 1), b"FM ": ("<f4", 2), b"DM ": ("<f8", 2)}
_KEY = re.compile(rb"\s*(\S{1,65536})[ \t]")


def read_ark(path: PathLike, format: str, options: ReadOptions) -> Embeddings:
    """Read an archive, binary or text."""
    with open_input(path) as stream, parsing(path, "a Kaldi archive"):
        data, ids, vectors, at = stream.read(), [], [], 0
        while key := _KEY.match(data, at):
            ids.append(key[1].decode())
            found, at = _object(data, key.end(), path, ids[-1])
            vectors.append(found)
        if not ids or data[at : at + 100].strip():
            raise FileError(path, f"expected an id and a vector at byte {at}; this is no archive, or it is damaged")
        return _embeddings(path, ids, vectors)


def read_scp(path: PathLike, format: str, options: ReadOptions) -> Embeddings:
    """Read the vectors that an scp points to; archives are found from the working directory, or beside the scp."""
    archives: dict[str, mmap.mmap] = {}
    ids, vectors = [], []
    for number, line in text_lines(path):
        entry = re.fullmatch(r"([^ \t]+)[ \t]+([^|]+?)(?::(\d+))?", line)
        if entry is None or entry[2].endswith("]") or entry[2] == "-":
            remedy = "commands are never run and ranges not read: copy the vectors first"
            raise FileError(path, f"expected an id and file.ark:offset, found {line[:60]!r}; {remedy}", line=number)
        with parsing(path, "a list of places in an archive"):
            if entry[2] not in archives:
                archive = next(filter(Path.is_file, (Path(entry[2]), Path(path).parent / entry[2])), None)
                if archive is None:
                    raise FileError(path, f"there is no archive {entry[2]!r}; go to where it was written", line=number)
                with open(archive, "rb") as raw:
                    archives[entry[2]] = mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ)
            found, _ = _object(archives[entry[2]], int(entry[3] or 0), path, entry[1])
        ids.append(entry[1])
        vectors.append(found.copy())
    return _embeddings(path, ids, vectors)


def read_plda(path: PathLike) -> tuple[Array, Array, Array]:
    """Return mean, transform and psi of a PLDA of Kaldi.

    In the coordinates transform (x - mean), the covariance within speakers is I, and that between them diag(psi).
    """
    with open_input(path) as stream, parsing(path, "a PLDA of Kaldi"):
        data, parts = stream.read(), []
        at, binary = data.index(b"<Plda> ") + 7, data.startswith(b"\0B")
        for part in ("mean", "transform", "psi"):
            found, at = _object(data, at, path, part, binary)
            parts.append(found.squeeze() if part != "transform" else found)
        mean, transform, psi = parts
        if mean.ndim != 1 or mean.shape != psi.shape or transform.shape != 2 * mean.shape:
            raise FileError(path, "the sizes of its mean, transform and psi do not agree; write it again")
        return mean, transform, psi


def _object(data: Any, at: int, path: PathLike, part: str, binary: bool = False) -> tuple[Array, int]:
    """Return the vector or matrix at a place, and where it ends; a size that does not fit is refused."""
    if not binary and data[at : at + 2] == b"\0B":
        at += 2
    elif not binary:
        text = re.compile(rb"\s*\[([^\]\[]*)\][ \t]*\n?").match(data, at)
        if text is None:
            raise FileError(path, "expected numbers in brackets, or a binary vector; copy the file again", part=part)
        rows = [[float(number) for number in line.split()] for line in text[1].splitlines() if line.strip()]
        return np.array(rows if len(rows) > 1 else rows[0]), text.end()
    dtype, n_sizes = _TYPES.get(data[at : at + 3], ("", 0))
    start = at + 3 + 5 * n_sizes
    sizes = [data[place : place + 5] for place in range(at + 3, start, 5)]
    if not dtype or any(size[:1] != b"\4" or len(size) < 5 for size in sizes):
        found = bytes(data[at : at + 3])
        raise FileError(path, f"expected a vector of type FV or DV, found {found!r}; use copy-vector", part=part)
    shape = [int.from_bytes(size[1:], "little") for size in sizes]
    end = start + math.prod(shape) * np.dtype(dtype).itemsize
    if end > len(data) or end == start:
        raise FileError(path, f"its size {shape} does not fit; the file is damaged, copy it again", part=part)
    return np.frombuffer(data, dtype, math.prod(shape), start).reshape(shape), end


def _embeddings(path: PathLike, ids: list[str], vectors: Sequence[Array]) -> Embeddings:
    for name, vector in zip(ids, vectors, strict=True):
        if vector.size != vector.shape[-1] or vector.size != vectors[0].size:
            problem = f"it has shape {vector.shape}, but {vectors[0].size} components are expected; keep one kind"
            raise FileError(path, problem, part=name)
    with parsing(path, "a file of vectors"):
        return Embeddings(ids, np.stack([vector.reshape(-1) for vector in vectors]))


def write(table: Embeddings, path: PathLike, format: str) -> None:
    """Write an archive, binary or text, or an scp with the archive ``name.ark`` beside it."""
    if str(path) == "-" and format == "kaldi-scp":
        raise InputError("an scp needs an archive beside it; write it to a file, or choose kaldi-ark")
    if not table.dim:
        raise InputError("the vectors have no components, which an archive cannot hold; choose npz")
    refuse_unwritable(table.ids, " \t\v\f")
    archive = Path(str(path).removesuffix(".gz")).with_suffix(".ark") if format == "kaldi-scp" else path
    kind, places = b"FV" if table.vectors.dtype == np.float32 else b"DV", []
    head, at = b" \0B" + kind + b" \4" + table.dim.to_bytes(4, "little"), 0
    with ExitStack() as files:  # an scp appears after its archive
        listed = files.enter_context(atomic_output(path)) if format == "kaldi-scp" else None
        stream = files.enter_context(atomic_output(archive))
        for name, vector in zip(table.ids.tolist(), table.vectors, strict=True):
            places.append(f"{name} {archive}:{at + len(name.encode()) + 1}\n".encode())
            if format == "kaldi-ark-text":
                at += stream.write(f"{name}  [ {' '.join(map(str, vector))} ]\n".encode())
            else:
                at += stream.write(name.encode() + head + vector.astype(_TYPES[kind + b" "][0]).tobytes())
        if listed is not None:
            listed.writelines(places)
            Path(os.path.realpath(path)).unlink(missing_ok=True)  # an old one never points into the new archive
