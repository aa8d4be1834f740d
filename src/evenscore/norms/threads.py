"""Compiled loops and matrix products on all cores: they let go of the interpreter lock, so threads are enough."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import Any

__all__ = ["alone", "in_parallel", "one_thread_per_product", "thread_count"]

# Below this much work a thread costs more than it saves.
_SMALL = 1 << 16

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


def one_thread_per_product() -> AbstractContextManager[Any]:
    """Keep matrix products from starting threads of their own, while several of them run side by side."""
    controller = _blas()
    return nullcontext() if controller is None else controller.limit(limits=1, user_api="blas")


@lru_cache(maxsize=1)
def _blas() -> Any:
    try:
        from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]
    except ImportError:  # products then wait for each other, which costs time but nothing else
        return None
    return ThreadpoolController()
