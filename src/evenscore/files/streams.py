"""Opening what is read, and writing so that nothing half-written is ever left behind.

`open_input` takes a path or ``-``, plain or gzip. `atomic_output` hands out a temporary file beside the target and
renames it when all went well. `reading`, `parsing` and `writing` turn the errors of the system and of libraries into
one clear sentence (`FileError`).
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from evenscore.errors import FileError, InputError
from evenscore.memory import memory_size, refuse_bomb, refuse_too_large

__all__ = [
    "TRIAL_BYTES",
    "ZARR_MARKS",
    "PathLike",
    "atomic_directory",
    "atomic_output",
    "atomic_pair",
    "listed",
    "local_file",
    "memory_room",
    "open_input",
    "parsing",
    "reading",
    "refuse_larger_than_memory",
    "spooled",
    "writing",
]

TRIAL_BYTES = 55  #: that work on a trial takes in memory: evaluate took 54 and calibrate 50 for one in float32
_ROOM = 0.25  # of the memory, for work that could be done chunk by chunk

PathLike = str | os.PathLike[str]

ZARR_MARKS = ("zarr.json", ".zgroup", ".zarray")  #: one of these stands in the directory of a zarr store

_GZIP_MAGIC = b"\x1f\x8b"
_COPY_SIZE = 1 << 20
_HARMLESS_COPY = 5e8  # bytes
_HARMLESS_TEXT = 64e6  # bytes: what they say takes ten times as much memory, and seconds


@contextmanager
def reading(path: PathLike) -> Iterator[None]:
    """Turn what goes wrong while a file is read into a `FileError`."""
    try:
        yield
    except FileError:
        raise
    except FileNotFoundError:
        raise FileError(path, "there is no such file; check the name") from None
    except IsADirectoryError:
        raise FileError(path, "this is a directory, but a file is expected") from None
    except PermissionError:
        raise FileError(path, "no permission to read it; change its mode or owner") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FileError(path, f"the gzip data is cut off or damaged ({error}); copy the file again") from None
    except MemoryError:
        raise FileError(path, "it needs more memory than there is; read a part of it, or convert it to zarr") from None
    except OSError as error:
        raise FileError(path, f"it cannot be read: {error.strerror or error}") from None


@contextmanager
def parsing(path: PathLike, what: str, part: str | None = None) -> Iterator[None]:
    """Turn whatever goes wrong while a file of the kind ``what`` is read into a `FileError`.

    Libraries raise nearly any exception on damaged data, so all are caught here, at the border to them.
    """
    with reading(path):
        try:
            yield
        except InputError as error:
            raise FileError(path, str(error), part=part) from None
        except (FileError, OSError, MemoryError):
            raise
        except (EOFError, zlib.error) as error:
            raise FileError(path, f"the data is cut off or damaged ({error}); copy the file again", part=part) from None
        except Exception as error:
            first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise FileError(
                path, f"it is not {what}, or it is damaged ({first_line}); copy or write it again", part=part
            ) from None


@contextmanager
def writing(path: PathLike) -> Iterator[None]:
    """Turn what goes wrong while a file is written into a `FileError`."""
    try:
        yield
    except FileError:
        raise
    except FileNotFoundError:
        raise FileError(path, "its directory does not exist; create it first") from None
    except IsADirectoryError:
        raise FileError(path, "this is a directory; name a file in it") from None
    except PermissionError:
        raise FileError(path, "no permission to write there; choose another place") from None
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise FileError(path, "the disk is full; nothing was written, free some space and try again") from None
        raise FileError(path, f"it cannot be written: {error.strerror or error}") from None


class _Counted:
    """A stream of packed bytes, and how many were read."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw, self.size = raw, 0

    def read(self, size: int = -1) -> bytes:
        data = self._raw.read(size)
        self.size += len(data)
        return data


class _Unpacked(io.RawIOBase):
    """The content of a gzip stream, as long as it is not a bomb."""

    def __init__(self, raw: IO[bytes], path: PathLike, harmless: float) -> None:
        self._packed, self._size = _Counted(raw), 0
        self._content = gzip.GzipFile(fileobj=self._packed, mode="rb")  # type: ignore[call-overload]
        self._path, self._harmless = path, harmless

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        size: int = self._content.readinto(buffer)
        self._size += size
        try:
            refuse_bomb(self._packed.size, self._size, harmless=self._harmless)
        except InputError as error:
            raise FileError(self._path, str(error)) from None
        return size


@contextmanager
def open_input(path: PathLike, *, harmless: float = _HARMLESS_TEXT) -> Iterator[BinaryIO]:
    """Open a file for reading bytes; gzip is recognized by its first bytes, ``-`` is standard input.

    See `refuse_bomb` for what gzip may unpack to, and for what is ``harmless``.
    """
    with reading(path), ExitStack() as opened:
        raw: IO[bytes] = sys.stdin.buffer if _is_standard(path) else opened.enter_context(open(path, "rb"))
        if not isinstance(raw, io.BufferedReader):  # standard input may be anything that has `read`
            raw = io.BufferedReader(raw)  # type: ignore[type-var]
            opened.callback(raw.detach)
        if raw.peek(2)[:2] == _GZIP_MAGIC:
            yield cast(BinaryIO, io.BufferedReader(_Unpacked(raw, path, harmless), _COPY_SIZE))
        else:
            yield cast(BinaryIO, raw)


@contextmanager
def local_file(path: PathLike) -> Iterator[Path]:
    """Give a plain, seekable file with the content: the file itself, or a temporary copy of gzip or a pipe."""
    with reading(path):
        if not _is_stream(path):
            with open(path, "rb") as raw:
                packed = raw.read(2) == _GZIP_MAGIC
            if not packed:
                yield Path(path)
                return
        with tempfile.NamedTemporaryFile(prefix="evenscore-") as copy:
            with open_input(path, harmless=_HARMLESS_COPY) as source:
                shutil.copyfileobj(source, copy, _COPY_SIZE)
            copy.flush()
            yield Path(copy.name)


@contextmanager
def spooled(path: PathLike) -> Iterator[PathLike]:
    """Give a path that can be opened several times: the path itself, or a temporary copy of standard input or a pipe.

    An error that names the copy is raised again with the name of the input.
    """
    if not _is_stream(path):
        yield path
        return
    with tempfile.NamedTemporaryFile(prefix="evenscore-") as copy:
        with reading(path), ExitStack() as opened:
            raw: IO[bytes] = sys.stdin.buffer if _is_standard(path) else opened.enter_context(open(path, "rb"))
            shutil.copyfileobj(raw, copy, _COPY_SIZE)
            copy.flush()
        try:
            yield copy.name
        except FileError as error:
            if error.path != copy.name:
                raise
            raise FileError(path, error.problem, line=error.line, part=error.part) from None


@contextmanager
def atomic_output(path: PathLike) -> Iterator[BinaryIO]:
    """Open a file for writing bytes that appears under its name only when everything is written.

    A name that ends in ``.gz`` is packed; ``-`` is standard output. On an error the temporary file is removed and a
    file that was there before stays as it was. A link stays a link: the file that it points to is written.
    """
    if _is_standard(path):
        with writing("<stdout>"):
            yield cast(BinaryIO, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        return
    with writing(path):
        if Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir()):  # such as /dev/null
            with open(path, "wb") as device:  # there is nothing to rename
                yield device
            return
        with _new_files(path) as (stream,):
            yield stream


@contextmanager
def atomic_pair(path: PathLike, beside: PathLike) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Like `atomic_output`, for a file that is read together with another one beside it.

    While the two are replaced there is none of the first name, so that it never goes with what belongs to another one.
    """
    with writing(path):
        if Path(path).exists() and not Path(path).is_file():
            raise FileError(path, "this is no plain file, but another one is needed beside it; name a new file")
        if os.path.realpath(path) == os.path.realpath(beside):
            raise FileError(path, "the file beside it would have the same name; give it another ending")
        with _new_files(path, beside) as (stream, other):
            yield stream, other


@contextmanager
def _new_files(*paths: PathLike) -> Iterator[list[BinaryIO]]:
    """Give a file for each path; they get their names when all of them are written, the first one last."""
    from evenscore.files.working_files import temporary_file

    targets = [Path(os.path.realpath(path)) for path in paths]
    if any(target.is_dir() for target in targets):
        raise IsADirectoryError
    with ExitStack() as opened:
        files = [opened.enter_context(temporary_file(target)) for target in targets]
        with ExitStack() as packing:
            packed = [
                packing.enter_context(_packed(raw)) if str(path).endswith(".gz") else raw
                for path, (_, raw) in zip(paths, files, strict=True)
            ]
            yield packed
        for _, raw in files:
            raw.flush()
            os.fsync(raw.fileno())
        for target in targets[:-1]:
            target.unlink(missing_ok=True)
        for (temporary, _), target in reversed([*zip(files, targets, strict=True)]):
            os.replace(temporary, target)


@contextmanager
def atomic_directory(path: PathLike) -> Iterator[Path]:
    """Like `atomic_output`, for formats that are a directory: it takes the place of the old one when all is written.

    Only a directory that is empty or holds a zarr store is replaced, so that a wrong name never costs other files.
    """
    from evenscore.files.working_files import put_in_place, temporary_directory

    target = Path(os.path.realpath(path))
    with writing(path):
        if target.exists() and not target.is_dir():
            raise FileError(path, "a file of this name exists, but the format is a directory; choose another name")
        if target.exists() and any(target.iterdir()) and not any((target / mark).exists() for mark in ZARR_MARKS):
            raise FileError(path, "a directory with other files has this name; choose another one")
        with temporary_directory(target) as temporary:
            yield temporary
            put_in_place(temporary, target)


def memory_room(limit: float | None = None) -> float:
    """Return how many bytes the work may take in memory: a quarter of a limit, else of this machine's memory.

    What takes more is done chunk by chunk. What the work takes is `TRIAL_BYTES` for each trial, however small its file.
    """
    return _ROOM * (memory_size() if limit is None else limit)


def refuse_larger_than_memory(path: PathLike, nbytes: int, part: str | None = None) -> None:
    """Refuse data whose declared size does not fit into the memory that is free, before anything is allocated."""
    try:
        refuse_too_large(nbytes, "the data", "the file is damaged, or a larger machine is needed")
    except InputError as error:
        raise FileError(path, str(error), part=part) from None


def listed(names: Iterable[str]) -> str:
    """Return the names found in a file for a message, at most six of them."""
    found = list(names)
    if not found:
        return "nothing"
    return ", ".join(found[:6]) + (f" and {len(found) - 6} more" if len(found) > 6 else "")


def _is_standard(path: PathLike) -> bool:
    return str(path) == "-"


def _is_stream(path: PathLike) -> bool:
    """Tell whether the input can be read only once: standard input, or a pipe such as ``<(zcat ...)``."""
    if _is_standard(path):
        return True
    with reading(path):
        mode = os.stat(path).st_mode
        return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@contextmanager
def _packed(raw: IO[bytes]) -> Iterator[BinaryIO]:
    stream = gzip.GzipFile("", "wb", 6, raw, mtime=0)
    try:
        yield cast(BinaryIO, stream)
    except BaseException:
        with suppress(Exception):  # what is left in it does not matter any more
            stream.close()
        raise
    stream.close()
