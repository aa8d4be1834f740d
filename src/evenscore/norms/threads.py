"""Running compiled loops on all cores: they let go of the interpreter lock, so plain threads are enough."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

__all__ = ["in_parallel"]

# Below this much work a thread costs more than it saves.
_SMALL = 1 << 16


@lru_cache(maxsize=1)
def _pool(_process: int) -> tuple[ThreadPoolExecutor, int]:
    # One pool per process: a pool that was made before a fork has no threads in the child.
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return ThreadPoolExecutor(count, thread_name_prefix="evenscore"), count


def in_parallel(task: Callable[[int, int], None], size: int, work_each: int = 1) -> None:
    """Call ``task(start, stop)`` on pieces of ``range(size)``, on all cores if the work is worth it.

    Parameters
    ----------
    task
        Works on one piece, and writes where no other piece writes.
    size
        Number of items.
    work_each
        About how many elementary steps one item takes.
    """
    if size * work_each < _SMALL:
        task(0, size)
        return
    pool, count = _pool(os.getpid())
    pieces = min(size, 4 * count)  # a few per core, so that a slow one does not hold up the rest
    bounds = [size * piece // pieces for piece in range(pieces + 1)]
    list(pool.map(task, bounds[:-1], bounds[1:]))
