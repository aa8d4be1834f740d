"""How much memory there is, and how much of it is free: what would take more is refused before it is allocated."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path

from evenscore.errors import InputError

__all__ = ["free_memory", "memory_size", "refuse_bomb", "refuse_too_large"]

_NOT_WORTH_A_LOOK = 1 << 20  # bytes
_GROUP = Path("/sys/fs/cgroup")  # of a container, which has less than the machine


def memory_size() -> float:
    """Return the size of this machine's memory in bytes, infinity where the system does not tell."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else math.inf
    return min(size, _of_group("memory.max"))


def free_memory() -> float:
    """Return how many bytes can be had now, which programs and files beside this one decide, too."""
    free = memory_size()
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = min(free, 1024 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1]))
    left = _of_group("memory.max") - _of_group("memory.current", math.nan)
    return min(free, left) if left >= 0 else free


def _of_group(name: str, unknown: float = math.inf) -> float:
    with suppress(OSError, ValueError):
        return float((_GROUP / name).read_text())  # "max" where there is no limit
    return unknown


def refuse_too_large(nbytes: float, what: str, remedy: str) -> None:
    """Refuse to make what does not fit into the memory that is free.

    Examples
    --------
    >>> refuse_too_large(1e18, "a matrix of 10^6 x 10^11 scores", "take fewer")
    Traceback (most recent call last):
    evenscore.errors.InputError: a matrix of 10^6 x 10^11 scores takes 1000000000 GB, but only ... are free; take fewer
    """
    if nbytes < _NOT_WORTH_A_LOOK:
        return
    free = free_memory()
    if nbytes > free:
        sizes = f"{nbytes / 1e9:.{0 if nbytes > 1e10 else 1}f} GB, but only {free / 1e9:.1f} GB of memory are free"
        raise InputError(f"{what} takes {sizes}; {remedy}")


def refuse_bomb(packed: float, unpacked: float, *, harmless: float = 1e9, most: float = 100) -> None:
    """Refuse what unpacks to far more than it is, as long as that is more than a ``harmless`` number of bytes.

    ``most`` is how many times its size it may have: text of trials has reached 40. Masks and numbers of enrolments may
    pack to a thousandth, and are read if they are not huge. What is huge, too, is more likely made to fill memory and
    time; whoever knows better can unpack it, which shows its size.

    Examples
    --------
    >>> refuse_bomb(1e6, 9e8)
    >>> refuse_bomb(3e6, 3e9)
    Traceback (most recent call last):
    evenscore.errors.InputError: 0.003 GB unpack to 3.0 GB or more, which scores hardly do, so it may be made ...
    """
    if unpacked > harmless and unpacked > most * packed:
        sizes = f"{packed / 1e9:.3f} GB unpack to {unpacked / 1e9:.1f} GB or more"
        raise InputError(
            f"{sizes}, which scores hardly do, so it may be made to fill the memory; if you trust it, write it unpacked"
        )
