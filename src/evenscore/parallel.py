"""Work on blocks of rows on all cores: NumPy and compiled loops release the interpreter lock, so threads are enough."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

__all__ = ["Progress", "one_blas_thread", "run_blocks", "thread_count"]

_SMALL = 1 << 16  # scores; below this much work a thread costs more than it saves
_inside = threading.local()

Progress = Callable[[int, int], None]  #: what long work calls with the steps that are done and all steps


def thread_count() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_blocks(work: Callable[[slice], object], n_rows: int, row_size: int, block_size: int) -> None:
    """Call ``work(slice)`` on blocks of rows with about ``block_size`` scores each, on all cores.

    Within a task of this function or of Dask, blocks follow one another in the thread that asks for them.

    Examples
    --------
    >>> blocks = []
    >>> run_blocks(blocks.append, n_rows=5, row_size=10, block_size=20)
    >>> blocks
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, block_size // max(row_size, 1))
    blocks = [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
    with one_blas_thread():
        if len(blocks) < 2 or n_rows * row_size < _SMALL or getattr(_inside, "busy", False):
            for block in blocks:
                work(block)
        else:
            list(_pool(os.getpid()).map(work, blocks))


@lru_cache(maxsize=1)
def _pool(_process: int) -> ThreadPoolExecutor:
    # One pool per process: a pool that was made before a fork has no threads in the child.
    return ThreadPoolExecutor(
        thread_count(), thread_name_prefix="evenscore", initializer=setattr, initargs=(_inside, "busy", True)
    )


@contextmanager
def busy_thread() -> Iterator[None]:
    """Keep `run_blocks` from starting threads inside: the caller is one of many that keep all cores busy."""
    before, _inside.busy = getattr(_inside, "busy", False), True
    try:
        yield
    finally:
        _inside.busy = before


_lock, _users = threading.Lock(), 0
_libraries: list[tuple[Any, int]] = []  # BLAS libraries and the number of threads that each had


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread: its threads would compete with ours, and most products are too small for them.

    The limit is one for the whole process. The first thread that asks for it sets it, the last one lifts it.
    """
    global _users, _libraries
    if getattr(_inside, "one_blas_thread", False):  # this thread has asked for it already
        yield
        return
    with _lock:
        if _users == 0 and os.environ.get("OPENBLAS_NUM_THREADS") != "1":
            _libraries = [(library, library.num_threads) for library in _blas("scipy.linalg" in sys.modules)]
            _set_threads([(library, 1) for library, _ in _libraries])
        _users += 1
    _inside.one_blas_thread = True
    try:
        yield
    finally:
        _inside.one_blas_thread = False
        with _lock:
            _users -= 1
            if _users == 0:
                _set_threads(_libraries)


@lru_cache(maxsize=2)
def _blas(_scipy_loaded: bool) -> list[Any]:  # SciPy brings a BLAS of its own
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def _set_threads(counts: list[tuple[Any, int]]) -> None:
    for library, count in counts:
        # threadpoolctl 3.8 lets only the thread that first set a number change it again, unless it is released.
        release = getattr(library, "clear_controlling_thread", lambda force: None)
        release(force=True)
        library.set_num_threads(count)
        release(force=True)
