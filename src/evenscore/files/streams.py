"""Opening what is read, and writing so that nothing half-written is ever left behind.

`open_input` takes a path or ``-``, plain or gzip. `atomic_output` hands out a temporary file beside the target and
renames it when all went well. Both turn the operating system's errors into one clear sentence (`FileError`).
"""

from __future__ import annotations

import errno
import gzip
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, cast

from evenscore.errors import FileError

__all__ = ["PathLike", "atomic_directory", "atomic_output", "local_file", "open_input", "reading", "spooled", "writing"]

PathLike = str | os.PathLike[str]

_GZIP_MAGIC = b"\x1f\x8b"


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


@contextmanager
def open_input(path: PathLike) -> Iterator[BinaryIO]:
    """Open a file for reading bytes; gzip is recognized by its first bytes, ``-`` is standard input."""
    with reading(path):
        raw = sys.stdin.buffer if str(path) == "-" else open(path, "rb")  # noqa: SIM115
        try:
            buffered = raw if hasattr(raw, "peek") else None
            head = buffered.peek(2)[:2] if buffered is not None else b""
            if head == _GZIP_MAGIC:
                with gzip.open(raw, "rb") as unpacked:
                    yield cast(BinaryIO, unpacked)
            else:
                yield cast(BinaryIO, raw)
        finally:
            if raw is not sys.stdin.buffer:
                raw.close()


@contextmanager
def local_file(path: PathLike) -> Iterator[Path]:
    """Give a plain, seekable file with the content: the file itself, or a temporary copy of gzip or standard input."""
    with reading(path):
        if str(path) != "-":
            with open(path, "rb") as raw:
                packed = raw.read(2) == _GZIP_MAGIC
            if not packed:
                yield Path(path)
                return
        with tempfile.NamedTemporaryFile(prefix="evenscore-") as copy:
            with open_input(path) as source:
                shutil.copyfileobj(source, copy, 1 << 20)
            copy.flush()
            yield Path(copy.name)


@contextmanager
def spooled(path: PathLike) -> Iterator[PathLike]:
    """Give a path that can be opened several times: the path itself, or a temporary copy of standard input.

    In errors that name the copy, standard input is named instead.
    """
    if str(path) != "-":
        yield path
        return
    with tempfile.NamedTemporaryFile(prefix="evenscore-") as copy:
        with reading(path):
            shutil.copyfileobj(sys.stdin.buffer, copy, 1 << 20)
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
    file that was there before stays as it was.
    """
    if str(path) == "-":
        yield cast(BinaryIO, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    with writing(path):
        if target.is_dir():
            raise IsADirectoryError
        if (
            target.exists() and not target.is_file()
        ):  # a device or a pipe, such as /dev/null: there is nothing to rename
            with open(target, "wb") as device:
                yield device
            return
        with _temporary_beside(target) as temporary:
            with open(temporary, "wb") as raw:
                packed = target.suffix == ".gz"
                stream: IO[bytes] = gzip.GzipFile("", "wb", 6, raw, mtime=0) if packed else raw  # type: ignore[assignment]
                yield cast(BinaryIO, stream)
                if packed:
                    stream.close()
                raw.flush()
                os.fsync(raw.fileno())
            os.replace(temporary, target)


@contextmanager
def atomic_directory(path: PathLike) -> Iterator[Path]:
    """Like `atomic_output`, for formats that are a directory: it takes the place of the old one when all is written."""
    target = Path(path)
    with writing(path):
        if target.exists() and not target.is_dir():
            raise FileError(path, "a file of this name exists, but the format is a directory; choose another name")
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
        try:
            yield temporary
            if target.exists():
                shutil.rmtree(target)
            os.replace(temporary, target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _temporary_beside(target: Path) -> Iterator[Path]:
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
