r"""Embeddings in Kaldi archives: ark (binary and text) and scp.

A binary entry is the id, a space, ``\0B``, the type (``FV``, ``DV``: vectors of float, double; ``FM``, ``DM``:
matrices, of which only those with one row are embeddings), a space, then each size as ``\4`` and four bytes, then the
numbers, all little-endian. A text entry is the id and the numbers in brackets. An scp line is an id and where its
vector is, ``file:offset``. Archives hold no speakers; those are written as utt2spk.

The entries are parsed here and not by kaldiio, which runs commands in an scp (``gunzip -c x |``), opens pickles in an
ark, and trusts the sizes it finds: here nothing is ever run, and no size is believed that does not fit into the file.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from evenscore.errors import FileError
from evenscore.files.registry import ReadOptions
from evenscore.files.streams import PathLike, atomic_output, atomic_pair, local_file, open_input, parsing, reading
from evenscore.files.text.line_ids import refuse_odd_ids
from evenscore.tables import Embeddings

__all__ = ["read_ark", "read_scp", "write_ark", "write_ark_text", "write_scp"]

_BINARY = b"\0B"
_TYPES = {b"FV": "<f4", b"DV": "<f8", b"FM": "<f4", b"DM": "<f8"}
_LONGEST_ID = 1 << 16
_LONGEST_LINE = 1 << 24
_RANGE = re.compile(r"\[[\d:, ]*\]$")


class _Place(NamedTuple):
    """Where the numbers of a vector are, and as what type."""

    offset: int
    dtype: str
    dim: int


def read_ark(path: PathLike, options: ReadOptions) -> Embeddings:
    """Read an archive, binary or text; all vectors must have the same number of components."""
    with local_file(path) as file, parsing(path, "a Kaldi archive"), _mapped(file, path) as data:
        space = data.find(b" ", 0, _LONGEST_ID)
        if data[space + 1 : space + 3] == _BINARY:
            return _read_binary(data, path)
        return _read_text(data, path)


def read_scp(path: PathLike, options: ReadOptions) -> Embeddings:
    """Read the vectors that an scp file points to; paths are relative to the working directory, else to the scp."""
    with open_input(path) as stream, parsing(path, "a Kaldi scp file"):
        lines = stream.read().removeprefix(b"\xef\xbb\xbf").splitlines()
        entries = [(number, *_scp_entry(line, number, path)) for number, line in enumerate(lines, 1) if line.strip()]
        if not entries:
            raise FileError(path, "the file is empty; expected lines of an id and `file.ark:offset`")
        vectors: list[npt.NDArray[Any]] = [np.empty(0)] * len(entries)
        by_archive: dict[str, list[int]] = {}
        for place, (_, _, archive, _) in enumerate(entries):
            by_archive.setdefault(archive, []).append(place)
        for archive, places in by_archive.items():
            number = entries[places[0]][0]
            with _archive_beside(archive, path, number) as data:
                for place in places:
                    number, key, _, offset = entries[place]
                    vectors[place] = _vector_at(data, offset, key, archive, path, number)
        return _embeddings([key for _, key, _, _ in entries], vectors, path)


def write_ark(table: Embeddings, path: PathLike) -> None:
    """Write a binary archive, float32 as FV and float64 as DV."""
    _check_ids(table, path)
    with atomic_output(path) as stream:
        _write_binary(table, stream)


def write_scp(table: Embeddings, path: PathLike) -> None:
    """Write an scp file, and beside it the binary archive that it points to, with the same name but ``.ark``."""
    _check_ids(table, path)
    if str(path) == "-":
        raise FileError("<stdout>", "an scp needs an archive beside it; write it to a file, or write an ark")
    archive = Path(str(path).removesuffix(".gz")).with_suffix(".ark")
    with atomic_pair(path, archive) as (stream, beside):
        offsets = _write_binary(table, beside)
        for key, offset in zip(table.ids.tolist(), offsets, strict=True):
            stream.write(f"{key} {archive}:{offset}\n".encode())


def write_ark_text(table: Embeddings, path: PathLike) -> None:
    """Write a text archive with as many digits as it takes to read back the same numbers."""
    _check_ids(table, path)
    number = "%.9g" if table.vectors.dtype == np.float32 else "%.17g"
    line = "%s  [ " + " ".join([number] * table.dim) + " ]\n"
    with atomic_output(path) as stream:
        for key, vector in zip(table.ids.tolist(), table.vectors, strict=True):
            stream.write((line % (key, *vector.tolist())).encode())


@contextmanager
def _mapped(file: Path, path: PathLike) -> Iterator[mmap.mmap]:
    if file.stat().st_size == 0:
        raise FileError(path, "the file is empty; expected vectors with their ids")
    with open(file, "rb") as raw, mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data


def _read_binary(data: mmap.mmap, path: PathLike) -> Embeddings:
    size = len(data)
    ids: list[str] = []
    places: list[_Place] = []
    at = 0
    while at < size:
        space = data.find(b" ", at, at + _LONGEST_ID)
        if space < 0:
            after = f" after {ids[-1]!r}" if ids else ""
            raise FileError(path, f"expected an id and a space{after}, found {data[at : at + 20]!r}; copy it again")
        key = _decoded(data[at:space], path)
        place = _header_at(data, space + 1, key, path)
        ids.append(key)
        places.append(place)
        at = place.offset + place.dim * int(place.dtype[-1])
    kind = max(place.dtype for place in places)  # double if any vector is
    vectors = np.empty((len(ids), places[0].dim), dtype=kind)
    for row, (offset, dtype, dim) in enumerate(places):
        if dim != vectors.shape[1]:
            raise _wrong_size(ids[row], dim, vectors.shape[1], path)
        vectors[row] = np.frombuffer(data, dtype, dim, offset)
    return _embeddings(ids, vectors, path)


def _header_at(data: mmap.mmap, at: int, key: str, path: PathLike, line: int | None = None) -> _Place:
    """Return where the numbers of a binary entry are, having made sure that they are all there."""
    head = data[at : at + 20]
    kind, sizes = head[2:4], head[5:]
    if not head.startswith(_BINARY) or kind not in _TYPES or head[4:5] != b" ":
        problem = f"expected a vector (type FV or DV), found {head[:8]!r}; write it again with Kaldi's copy-vector"
        raise FileError(path, problem, line=line, part=key)
    shape = [sizes] if kind[1:] == b"V" else [sizes[:5], sizes[5:]]
    if any(len(text) < 5 or text[:1] != b"\4" for text in shape):
        raise FileError(path, "its size is cut off or damaged; copy the file again", line=line, part=key)
    counts = [struct.unpack_from("<i", text, 1)[0] for text in shape]
    if len(counts) == 2 and counts[0] != 1:
        problem = f"this is a matrix of {counts[0]} x {counts[1]}, but a vector is expected; average its rows"
        raise FileError(path, problem, line=line, part=key)
    place = _Place(at + 5 + 5 * len(counts), _TYPES[kind], counts[-1])
    needed, left = place.dim * int(place.dtype[-1]), len(data) - place.offset
    if place.dim < 1 or needed > left:
        problem = f"the vector has {place.dim} components ({needed} bytes), but {max(left, 0)} bytes are left"
        raise FileError(path, f"{problem}; the file is cut off or damaged, copy it again", line=line, part=key)
    return place


def _read_text(data: mmap.mmap, path: PathLike) -> Embeddings:
    ids: list[str] = []
    vectors: list[npt.NDArray[Any]] = []
    pending, started = b"", 0
    for number, line in enumerate(_lines(data, path), 1):
        if not pending and not line.strip():
            continue
        started = started if pending else number
        pending += line
        if number == started and b"]" not in line and line.rstrip().endswith(b"["):
            continue  # a matrix of one row has its numbers on the line after the bracket
        key, *numbers = pending.split(None, 1)
        ids.append(_decoded(key, path, started))
        vectors.append(_text_vector(b"".join(numbers), path, started, None))
        if vectors[-1].size != vectors[0].size:
            raise _wrong_size(ids[-1], vectors[-1].size, vectors[0].size, path, started)
        pending = b""
    if pending:
        raise FileError(path, "the closing bracket is missing; the file is cut off, copy it again", line=started)
    if not ids:
        raise FileError(path, "there are only blank lines; expected vectors with their ids")
    return _embeddings(ids, vectors, path)


def _lines(data: mmap.mmap, path: PathLike) -> Iterator[bytes]:
    at, number = 0, 1
    while at < len(data):
        end = data.find(b"\n", at, at + _LONGEST_LINE) + 1
        if not end and len(data) - at > _LONGEST_LINE:
            raise FileError(path, f"the line has more than {_LONGEST_LINE} bytes; this is no text archive", line=number)
        yield data[at : end or len(data)]
        at, number = end or len(data), number + 1


def _text_vector(text: bytes, path: PathLike, line: int, part: str | None) -> npt.NDArray[np.float64]:
    words = text.split()
    if len(words) < 3 or words[0] != b"[" or words[-1] != b"]":
        problem = f"expected an id and a vector in brackets, `id [ 1.5 2.5 ]`, found {text[:30]!r}"
        raise FileError(path, problem, line=line, part=part)
    try:
        numbers = np.array(list(map(float, words[1:-1])))
    except ValueError as error:
        raise FileError(path, f"{error}; expected numbers between the brackets", line=line, part=part) from None
    if b"_" in text:  # Python reads 1_000, nobody else does
        raise FileError(path, "a number has an underscore; expected plain numbers", line=line, part=part)
    return numbers


def _scp_entry(line: bytes, number: int, path: PathLike) -> tuple[str, str, int]:
    """Return id, archive and offset of one line; commands are refused, never run."""
    words = [_decoded(word, path, number) for word in line.strip().split(None, 1)]
    if len(words) != 2:
        raise FileError(path, f"expected an id and `file.ark:offset`, found {line[:60]!r}", line=number)
    key, where = words
    if where.startswith("|") or where.endswith("|") or where == "-":
        problem = f"{where[:60]!r} is a command, which is never run; run it yourself and point to the file it makes"
        raise FileError(path, problem, line=number)
    if _RANGE.search(where):
        raise FileError(path, f"the range in {where[-60:]!r} is not supported; copy the vectors first", line=number)
    archive, colon, offset = where.rpartition(":")
    if colon and offset.isascii() and offset.isdigit():
        return key, archive, int(offset)
    return key, where, 0


@contextmanager
def _archive_beside(archive: str, path: PathLike, line: int) -> Iterator[mmap.mmap]:
    """Open an archive named in an scp: relative to the working directory as Kaldi does, else beside the scp."""
    file = Path(archive)
    if not file.exists() and not file.is_absolute() and str(path) != "-":
        file = Path(path).parent / file
    if not file.is_file():
        problem = f"the archive {archive!r} is not there, or is not a file; go to where the scp was written, or edit it"
        raise FileError(path, problem, line=line)
    with reading(file), _mapped(file, file) as data:
        yield data


def _vector_at(data: mmap.mmap, offset: int, key: str, archive: str, path: PathLike, line: int) -> npt.NDArray[Any]:
    if offset >= len(data):
        problem = f"offset {offset} lies beyond the end of {archive!r} ({len(data)} bytes); write both files again"
        raise FileError(path, problem, line=line, part=key)
    if data[offset : offset + 2] != _BINARY and data[offset : offset + 20].lstrip().startswith(b"["):
        end = data.find(b"]", offset)
        return _text_vector(data[offset : end + 1], path, line, key)
    place = _header_at(data, offset, key, path, line)
    return np.frombuffer(data, place.dtype, place.dim, place.offset).copy()


def _embeddings(ids: list[str], vectors: Any, path: PathLike) -> Embeddings:
    if isinstance(vectors, list):
        for key, vector in zip(ids, vectors, strict=True):
            if vector.size != vectors[0].size:
                raise _wrong_size(key, vector.size, vectors[0].size, path)
        vectors = np.stack(vectors)
    return Embeddings(ids, vectors)


def _wrong_size(key: str, dim: int, expected: int, path: PathLike, line: int | None = None) -> FileError:
    problem = f"the vector has {dim} components, but the first one has {expected}; keep vectors of one kind in a file"
    return FileError(path, problem, part=key, line=line)


def _decoded(text: bytes, path: PathLike, line: int | None = None) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        problem = f"expected an id in UTF-8, found {text[:20]!r}; this is no Kaldi archive, or it is damaged"
        raise FileError(path, problem, line=line) from None


def _check_ids(table: Embeddings, path: PathLike) -> None:
    if table.dim == 0 and len(table):
        raise FileError(path, "the vectors have no components, for which archives have no place; write npz")
    refuse_odd_ids(table.ids.tolist(), path, " \t\v\f", "spaces, tabs or line ends")


def _write_binary(table: Embeddings, stream: BinaryIO) -> list[int]:
    """Write an archive, and return where the entry of each id begins, as an scp needs it."""
    kind = b"FV" if table.vectors.dtype == np.float32 else b"DV"
    head = b" " + _BINARY + kind + b" \4" + struct.pack("<i", table.dim)
    vectors = np.ascontiguousarray(table.vectors, dtype=_TYPES[kind])
    offsets = []
    at = 0
    for key, vector in zip(table.ids.tolist(), vectors, strict=True):
        name = key.encode()
        offsets.append(at + len(name) + 1)
        at += stream.write(name + head + vector.tobytes())
    return offsets
