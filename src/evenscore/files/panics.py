"""Keeps what a library writes to standard error when it fails from the user, who gets the error in one sentence.

Threads of polars that stop over a damaged file (a *panic*) write several lines there themselves, past Python. Standard
error belongs to the process, so this is done where the process is ours: on the command line.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

__all__ = ["hide_panics", "panics_unseen"]

_STANDARD_ERROR = 2
_LATE = 0.03  # seconds


class _Kept:
    """Standard error while anybody keeps it: several threads may, and the last one gives it back."""

    def __init__(self) -> None:
        self.wanted = False
        self._lock = threading.Lock()
        self._users = 0
        self._failed = False
        self._saved = -1
        self._text: IO[bytes]

    def begin(self) -> None:
        import tempfile

        with self._lock:
            self._users += 1
            if self._users > 1:
                return
            self._saved, self._failed = -1, False
            with suppress(OSError):  # there may be none
                self._saved = os.dup(_STANDARD_ERROR)
                self._text = tempfile.TemporaryFile()  # noqa: SIM115
                os.dup2(self._text.fileno(), _STANDARD_ERROR)

    def end(self, failed: bool) -> None:
        import shutil

        with self._lock:
            self._users -= 1
            self._failed |= failed
            if self._users or self._saved < 0:
                return
            if self._failed and os.fstat(self._text.fileno()).st_size:
                time.sleep(_LATE)  # other threads may still be at it
            os.dup2(self._saved, _STANDARD_ERROR)
            with self._text, open(self._saved, "wb", 0) as shown:
                self._text.seek(0)
                if not self._failed:  # what others had to say meanwhile
                    shutil.copyfileobj(self._text, shown)


_kept = _Kept()


def hide_panics() -> None:
    """Say that the process is ours, and nobody else's words get lost."""
    _kept.wanted = True


@contextmanager
def panics_unseen(*failures: type[BaseException]) -> Iterator[None]:
    """Keep standard error, if the process is ours, and show it afterwards unless it ended in one of these failures."""
    if not _kept.wanted:
        yield
        return
    _kept.begin()
    failed = False
    try:
        yield
    except failures:
        failed = True
        raise
    finally:
        _kept.end(failed)
