"""Compiled loops and matrix products on all cores: they let go of the interpreter lock, so threads are enough."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ContextDecorator, contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["BLAS_THREADS", "alone", "in_parallel", "one_thread_per_product", "product", "thread_count"]

# Below this much work a thread costs more than it saves.
_SMALL = 1 << 16
_TINY_PRODUCT = 1 << 16  # multiplications that BLAS does in one thread anyway
_ROWS, _COLUMNS = 512, 1024  # of a piece of a product: large enough for BLAS to be at its best

BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  #: environment variables that BLAS reads when it is loaded

_this_thread = threading.local()


def thread_count() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache(maxsize=1)
def _pool(_process: int) -> ThreadPoolExecutor:
    # One pool per process: a pool that was made before a fork has no threads in the child.
    return ThreadPoolExecutor(thread_count(), thread_name_prefix="evenscore", initializer=_mark)


def _mark() -> None:
    _this_thread.works = True


@contextmanager
def alone() -> Iterator[None]:
    """Let this thread do the work of `in_parallel` by itself, as where other processes keep the other cores busy."""
    before = getattr(_this_thread, "works", False)
    _this_thread.works = True
    try:
        yield
    finally:
        _this_thread.works = before


def in_parallel(task: Callable[[int, int], None], size: int, work_each: int = 1) -> None:
    """Call ``task(start, stop)`` on pieces of ``range(size)``, on all cores if the work is worth it.

    A task that calls this itself does its work alone: all cores are busy with its like.

    Parameters
    ----------
    task
        Works on one piece, and writes where no other piece writes.
    size
        Number of items.
    work_each
        About how many elementary steps one item takes.
    """
    if size * work_each < _SMALL or getattr(_this_thread, "works", False):
        task(0, size)
        return
    pieces = min(size, 4 * thread_count())  # a few per core, so that a slow one does not hold up the rest
    bounds = [size * piece // pieces for piece in range(pieces + 1)]
    list(_pool(os.getpid()).map(task, bounds[:-1], bounds[1:]))


def one_thread_per_product() -> _OneThreadPerProduct:
    """Keep BLAS from starting threads of its own, here or, as a decorator, in a function.

    Its last digits depend on their number, they get in the way of ours, and most products are too small for them. Large
    ones are shared out by `product`.
    """
    return _limited


def product(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return ``left @ right`` of two matrices, on all cores, in pieces that depend on the shapes alone.

    The last digits depend on how a product is cut into pieces: left to BLAS, on the number of its threads.
    """
    import numpy as np  # the command line looks at this module before BLAS is loaded

    (rows, inner), columns = left.shape, right.shape[1]
    if rows * inner * columns < _TINY_PRODUCT:
        return np.asarray(left @ right)
    pieces = [
        (slice(row, row + _ROWS), slice(column, column + _COLUMNS))
        for row in range(0, rows, _ROWS)
        for column in range(0, columns, _COLUMNS)
    ]
    out = np.empty((rows, columns), dtype=np.result_type(left, right))

    def work(first: int, last: int) -> None:
        for row, column in pieces[first:last]:
            np.matmul(left[row], right[:, column], out=out[row, column])

    with one_thread_per_product():
        in_parallel(work, len(pieces), inner * _ROWS)
    return out


class _OneThreadPerProduct(ContextDecorator):
    """The limit is one for the whole process: the first thread sets it, the last that is done lifts it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before: list[tuple[Any, int]] = []  # what is limited, and how many threads it had

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                self._before = [(library, library.num_threads) for library in _blas(len(sys.modules))]
                _set_threads([(library, 1) for library, _ in self._before])
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                _set_threads(self._before)


_limited = _OneThreadPerProduct()


def _set_threads(counts: Iterable[tuple[Any, int]]) -> None:
    for library, count in counts:
        # Since release 3.8 the thread that has set a number first is the only one that can: neither may we be kept out,
        # nor keep out others.
        let_go = getattr(library, "clear_controlling_thread", lambda force: None)
        let_go(force=True)
        library.set_num_threads(count)
        let_go(force=True)


@lru_cache(maxsize=1)
def _blas(_modules: int) -> list[Any]:
    # The libraries that are loaded by now; whoever is imported later may bring one of its own, as scipy does.
    if all(os.environ.get(name) == "1" for name in BLAS_THREADS):
        return []
    try:
        from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]
    except ImportError:  # products then wait for each other, which costs time but nothing else
        return []
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)
