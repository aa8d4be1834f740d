"""What every binary reader needs to fail well: errors of libraries as `FileError`, and sizes checked before use."""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from evenscore.errors import FileError, InputError
from evenscore.files.streams import PathLike, reading

__all__ = ["listed", "memory_size", "parsing", "refuse_larger_than_memory", "unholdable"]


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


def memory_size() -> float:
    """Return the size of this machine's memory in bytes, infinity where the system does not tell."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else math.inf


def refuse_larger_than_memory(path: PathLike, nbytes: int, part: str | None = None) -> None:
    """Refuse data whose declared size does not fit into this machine's memory, before anything is allocated."""
    memory = memory_size()
    if nbytes > memory:
        size = f"{nbytes / 1e9:.0f} GB, more than the {memory / 1e9:.0f} GB of memory of this machine"
        raise FileError(path, f"the data takes {size}; the file is damaged, or a larger machine is needed", part=part)


def unholdable(path: PathLike, table: object, format: str, kinds: Sequence[str]) -> FileError:
    """Return the error for a table that a format cannot hold."""
    names = {"ScoreMatrix": "a score matrix", "TrialList": "a list of trials", "Embeddings": "embeddings"}
    names |= {"LazyScores": "scores that are not in memory (`write_table` writes them)"}
    names |= {"dict": "a map of speakers", "speakers": "a map from utterance to speaker"}
    *others, last = (names.get(kind, kind) for kind in kinds)
    what = f"{', '.join(others)} and {last}" if others else last
    kind = type(table).__name__
    return FileError(path, f"the format {format} holds {what}, not {names.get(kind, kind)}; choose another format")


def listed(names: Iterable[str]) -> str:
    """Return the names found in a file for a message, at most six of them."""
    found = list(names)
    if not found:
        return "nothing"
    return ", ".join(found[:6]) + (f" and {len(found) - 6} more" if len(found) > 6 else "")
