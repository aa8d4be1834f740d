"""Opening what is read, and writing so that no file is ever half-written.

Errors of the operating system become one sentence with the path (`FileError`).
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import BinaryIO, cast

from evenscore.errors import FileError

__all__ = ["PathLike", "atomic_output", "check_memory", "open_input", "reading", "spooled", "text_lines", "writing"]

PathLike = str | os.PathLike[str]

_BOM = b"\xef\xbb\xbf"
_COPY_SIZE = 1 << 20


@contextmanager
def reading(path: PathLike) -> Iterator[None]:
    """Turn what goes wrong while a file is read into a `FileError`."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FileError(path, f"the gzip data is truncated or damaged ({error}); copy the file again") from None
    except MemoryError:
        raise FileError(path, "it needs more memory than there is; read a part of it, or convert it to zarr") from None
    except OSError as error:
        problems = {
            errno.ENOENT: "there is no such file; check the name",
            errno.EISDIR: "this is a directory, but a file is expected",
            errno.EACCES: "no permission to read it; change its mode or owner",
        }
        raise FileError(path, problems.get(error.errno or 0, f"it cannot be read: {error.strerror or error}")) from None


@contextmanager
def writing(path: PathLike) -> Iterator[None]:
    """Turn what goes wrong while a file is written into a `FileError`."""
    try:
        yield
    except BrokenPipeError:  # whoever reads standard output has seen enough
        raise
    except OSError as error:
        full = "the disk is full; nothing was written, free some space and try again"
        problems = {
            errno.ENOENT: "its directory does not exist; create it first",
            errno.EISDIR: "this is a directory; name a file in it",
            errno.EACCES: "no permission to write there; choose another place",
            **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), full),
        }
        problem = problems.get(error.errno or 0, f"it cannot be written: {error.strerror or error}")
        raise FileError("<stdout>" if str(path) == "-" else path, problem) from None


def check_memory(path: PathLike, size: int) -> None:
    """Refuse data of so many bytes if they are more than the memory that is free, as far as the system tells."""
    with suppress(OSError), open("/proc/meminfo", "rb") as stream:
        free = re.search(rb"MemAvailable: *(\d+)", stream.read())
        if free is not None and size >> 10 > int(free[1]):
            raise FileError(path, f"it unpacks to {size / 2**30:.1f} GB, but less memory is free; give a part of it")


class _GzipReader(gzip.GzipFile):
    """Unpacks only as long as there is memory for what is unpacked once more; a gigabyte may be a megabyte of gzip."""

    def read(self, size: int | None = -1) -> bytes:
        check_memory(self.name, self.tell())
        return super().read(_COPY_SIZE if size is None or size < 0 else size)


@contextmanager
def open_input(path: PathLike) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, without a byte-order mark; gzip is recognized, ``-`` is standard input."""
    with reading(path), nullcontext(sys.stdin.buffer) if str(path) == "-" else open(path, "rb") as raw:
        # Standard input may be anything that has `read`.
        start = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, raw))
        if start.peek(2)[:2] == b"\x1f\x8b":
            start = io.BufferedReader(cast(io.RawIOBase, _GzipReader(str(path), "rb", fileobj=start)), _COPY_SIZE)
        if start.peek(3)[:3] == _BOM:
            start.read(3)
        yield cast(BinaryIO, start)


@contextmanager
def spooled(path: PathLike) -> Iterator[PathLike]:
    """Give a path that can be opened several times: the path itself, or a copy of standard input or of a pipe.

    An error that names the copy is raised again with the name of the input.
    """
    with reading(path):
        mode = stat.S_IFIFO if str(path) == "-" else os.stat(path).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        yield path
        return
    with tempfile.NamedTemporaryFile(prefix="evenscore-") as copy:
        with open_input(path) as stream:
            shutil.copyfileobj(stream, copy, _COPY_SIZE)
            copy.flush()
        try:
            yield copy.name
        except FileError as error:
            if error.path != copy.name:
                raise
            raise FileError(path, error.problem, line=error.line, part=error.part) from None


def text_lines(path: PathLike, longest: int = 1 << 26) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file that are not blank, with their numbers, without spaces at either end."""
    with open_input(path) as stream:
        for number, line in enumerate(iter(lambda: stream.readline(longest + 1), b""), 1):
            if len(line) > longest or b"\0" in line:
                raise FileError(path, "this is binary data (or UTF-16), but text is expected", line=number)
            try:
                text = line.decode().strip(" \t\r\n")
            except UnicodeDecodeError as error:
                problem = f"byte 0x{line[error.start]:02x} is not UTF-8; convert the file"
                raise FileError(path, problem, line=number) from None
            if text:
                yield number, text


@contextmanager
def atomic_output(path: PathLike) -> Iterator[BinaryIO]:
    """Open a file for writing bytes that appears under its name only when everything is written.

    A name that ends in ``.gz`` is compressed; ``-`` is standard output. On an error the temporary file is removed, and
    a file that was there before stays as it was. A link stays a link: the file that it points to is written.
    """
    with writing(path):
        if str(path) == "-":
            yield cast(BinaryIO, sys.stdout.buffer)
            sys.stdout.buffer.flush()
            return
        target = os.path.realpath(path)
        mode = os.stat(target).st_mode if os.path.exists(target) else None
        if mode is not None and stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "")
        if mode is not None and not stat.S_ISREG(mode):  # a device such as /dev/null: there is nothing to rename
            with open(target, "wb") as device:
                yield device
            return
        folder, name = os.path.split(target)
        temporary = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(6)}.tmp")
        raw = open(temporary, "xb")  # noqa: SIM115
        try:
            with raw:
                packed = gzip.GzipFile("", "wb", 6, raw, mtime=0) if str(path).endswith(".gz") else nullcontext(raw)
                with packed as stream:
                    yield cast(BinaryIO, stream)
                raw.flush()
                os.fsync(raw.fileno())
            if mode is not None:
                os.chmod(temporary, stat.S_IMODE(mode))
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
