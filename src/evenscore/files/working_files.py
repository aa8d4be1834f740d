"""Files and directories that are worked on under another name, beside the one that they get in the end.

Their names cannot be guessed, nobody follows a link that stands there already, and they are locked as long as somebody
works on them. What a killed run has left behind nobody locks: the next run on the same output removes it.
"""

from __future__ import annotations

import base64
import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, cast

from evenscore.errors import FileError

__all__ = [
    "held",
    "new_directory",
    "only_run",
    "put_in_place",
    "remove_left",
    "take_away",
    "temporary_directory",
    "temporary_file",
]

_ATTEMPTS = 100
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOUND = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_AT_HERE, _EXCHANGE = -100, 2  # of Linux


@contextmanager
def temporary_file(target: Path, *, tidy: bool = True) -> Iterator[tuple[Path, BinaryIO]]:
    """Give a new file beside the target, open for writing; who is done with it renames it while it is open.

    What killed runs have left of the same target is removed, if it shall be tidy.
    """
    if tidy:
        remove_left(target)
    path, handle = _created(target, lambda path: os.open(path, _NEW_FILE, 0o666))
    try:
        with open(handle, "wb") as stream:
            yield path, cast(BinaryIO, stream)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


@contextmanager
def temporary_directory(target: Path) -> Iterator[Path]:
    """Give a new directory beside the target; whatever has its name at the end is removed."""
    remove_left(target)
    path, handle = new_directory(target)
    try:
        yield path
    finally:
        _remove(path)
        os.close(handle)


def new_directory(target: Path) -> tuple[Path, int]:
    """Return a new directory beside the target, and the handle that locks it until it is closed, under any name."""

    def made(path: Path) -> int:
        path.mkdir()
        return os.open(path, _FOUND)

    return _created(target, made)


def held(directory: Path, path: str | os.PathLike[str]) -> int:
    """Lock a directory, and return the handle to close; it is a `FileError` of ``path`` if another run has it."""
    handle = os.open(directory, os.O_RDONLY)
    if _locks(handle) is False:
        os.close(handle)
        raise FileError(path, "another run is writing it; wait until that has ended, or choose another name")
    return handle


@contextmanager
def only_run(directory: Path, path: str | os.PathLike[str]) -> Iterator[None]:
    """Keep other runs from writing to a directory."""
    handle = held(directory, path)
    try:
        yield
    finally:
        os.close(handle)


def remove_left(target: Path) -> None:
    """Remove what killed runs have left of a target, as far as that can be told and is allowed."""
    left = re.compile(re.escape(f".{target.name}.") + r"[a-z2-7]{8}\.part")
    with suppress(OSError):
        for name in filter(left.fullmatch, os.listdir(target.parent)):
            with suppress(OSError):
                _remove_if_left(target.with_name(name))


def put_in_place(new: Path, target: Path) -> None:
    """Give a directory its final name, in one step where the system can; what had this name takes the other."""
    if not os.path.lexists(target):
        os.replace(new, target)
    elif not _exchanged(new, target):
        aside = _hidden(target, "old")
        os.replace(target, aside)
        os.replace(new, target)
        os.replace(aside, new)


def take_away(directory: Path, target: Path) -> None:
    """Remove a directory at once for whoever looks for its name; what cannot be removed goes with the next run."""
    aside = _hidden(target, "part")
    os.replace(directory, aside)
    _remove(aside)


def _remove(directory: Path) -> None:
    for _ in range(2):  # once more if something fails, which may pass
        shutil.rmtree(directory, ignore_errors=True)


def _hidden(target: Path, ending: str) -> Path:
    chance = base64.b32encode(os.urandom(5)).decode().lower()
    return target.with_name(f".{target.name}.{chance}.{ending}")


def _created(target: Path, make: Callable[[Path], int]) -> tuple[Path, int]:
    for attempts_left in reversed(range(_ATTEMPTS)):
        path = _hidden(target, "part")
        try:
            handle = make(path)
        except (FileExistsError, FileNotFoundError):
            if not attempts_left:
                raise
            continue
        if _locks(handle) is not False and _names(path, handle):
            return path, handle
        os.close(handle)  # another run took it for left in the moment before it was locked
    raise FileError(target, "other runs keep taking away its temporary files; choose another name")


def _remove_if_left(path: Path) -> None:
    handle = os.open(path, _FOUND)
    try:
        if _locks(handle):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    finally:
        os.close(handle)


def _names(path: Path, handle: int) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.lstat(path), os.fstat(handle))
    return False


def _locks(handle: int) -> bool | None:
    """Lock what a handle stands for; None where there are no locks, False if somebody has it."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # a system or a file system without them, where nothing is ever taken for left
        return None
    return True


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two names, which Linux can; tell whether that was done."""
    call = _renameat2()
    if call is None:
        return False
    import ctypes

    if call(_AT_HERE, os.fsencode(one), _AT_HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    why = ctypes.get_errno()
    if why in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    raise OSError(why, os.strerror(why), str(other))


@cache
def _renameat2() -> Any:
    import ctypes

    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
