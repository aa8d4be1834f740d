"""Compiled loops: each is compiled once for each type of scores, on first use, and kept for later runs.

numba compiles a function anew for every combination of types and memory layouts that it meets. So a `loop` states what
it takes, and gets nothing else: arrays in C order that it only reads, and arrays that it writes.

Loading numba takes longer than NumPy needs for a million scores. So what a command does with `few` scores is
written in NumPy, and only more than that is given to a loop; modules with loops are imported where they are used.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numpy as np

__all__ = ["FEW", "LOOPS", "REORDER", "announced", "few", "inner", "loop", "reordering"]

FEW = 1 << 20  #: so many numbers NumPy handles in less time than numba needs to load

#: What a loop that adds up may ask for: sums may be reordered, so that they vectorize, but NaN must stay NaN, as it
#: marks what is missing. Loops that write each element by itself need no order, and their last digit must not depend
#: on the compiler's, so they do not ask for it.
REORDER = frozenset({"reassoc", "nsz", "contract", "arcp"})

F = TypeVar("F", bound=Callable[..., Any])

_DTYPES = {"D": "float64", "S": "float32", "I": "int64", "J": "int32", "K": "int8", "B": "bool", "U": "uint32"}
_PATIENCE = 0.8  # seconds; loading what was compiled takes less, so whoever waits longer waits for the compiler
_SCALARS = {"int": "int64", "float": "float64", "bool": "boolean"}

#: All loops of the modules that were imported.
LOOPS: list[Loop] = []


def few(*sizes: int) -> bool:
    """Tell whether the product of these sizes is so small that NumPy does the work before numba is loaded.

    Examples
    --------
    >>> few(100, 1000), few(10_000, 10_000)
    (True, False)
    """
    return math.prod(sizes) <= FEW


class Loop:
    """A function that is compiled for float32 scores, for float64 scores, or for both, and for nothing else."""

    def __init__(self, function: Callable[..., Any], signature: str, reorder: bool) -> None:
        from numba import njit

        read, _, written = signature.partition("->")
        self.arguments = [(name, False) for name in read.split()] + [(name, True) for name in written.split()]
        self._vectors = [at for at, (name, out) in enumerate(self.arguments) if name.endswith("1") and not out]
        self._scores = next((at for at, (name, _) in enumerate(self.arguments) if name.startswith("F")), None)
        self._dispatcher = njit(
            cache=True, nogil=True, error_model="numpy", fastmath=set(REORDER) if reorder else False
        )(function)
        self._lock = threading.Lock()
        self._ready: set[str] = set()
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        LOOPS.append(self)

    def __call__(self, *arguments: Any) -> Any:
        kind = "" if self._scores is None else arguments[self._scores].dtype.char
        if kind not in self._ready:
            self.prepare(kind)
        for at in self._vectors:  # often a column of a table; matrices are for the caller to see to, once
            if not arguments[at].flags.c_contiguous:
                given = (*arguments[:at], np.ascontiguousarray(arguments[at]), *arguments[at + 1 :])
                return self(*given)
        return self._dispatcher(*arguments)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The types of scores that it can be compiled for: ``f`` and ``d``, or one without a name."""
        return ("",) if self._scores is None else ("f", "d")

    def prepare(self, kind: str) -> None:
        """Load what an earlier run has compiled, or compile it now."""
        if kind not in self.kinds:
            raise TypeError(f"{self.__name__} takes scores in float32 or float64, not those of type {kind!r}")
        with self._lock:
            if kind not in self._ready:
                types = tuple(_numba_type(name, kind, written) for name, written in self.arguments)
                self._dispatcher.disable_compile(False)
                with _waiting():
                    self._dispatcher.compile(types)
                self._dispatcher.disable_compile()
                self._ready.add(kind)


def loop(signature: str, *, reorder: bool = False) -> Callable[[Callable[..., Any]], Loop]:
    """Compile a function when it is first called; the signature says what it reads ``->`` and what it writes.

    Each word is the type of an argument: ``int``, ``float``, ``bool``, or a letter and the number of dimensions of an
    array. ``F`` is the type of the scores, float32 or float64, the same in all arguments; ``D`` is float64, ``S``
    float32, ``I`` int64, ``J`` int32, ``K`` int8 (labels), ``U`` uint32, ``B`` bool.

    So a loop that multiplies begins ::

        @loop("F1 float -> D1")
        def scale(scores, factor, out):
    """
    return lambda function: Loop(function, signature, reorder)


def inner(function: F) -> F:
    """Compile a function that only loops call; it becomes a part of theirs."""
    return _compiled_inside(function, fastmath=False)


def reordering(function: F) -> F:
    """Do the same with a function that adds up, where the compiler may reorder."""
    return _compiled_inside(function, fastmath=set(REORDER))


def _compiled_inside(function: F, fastmath: Any) -> F:
    from numba import njit

    return cast(F, njit(nogil=True, error_model="numpy", fastmath=fastmath)(function))


_listeners: list[Callable[[], None]] = []


@contextmanager
def announced(tell: Callable[[], None]) -> Iterator[None]:
    """Have a function called, once and in a thread of its own, as soon as compilation keeps people waiting."""
    _listeners.append(tell)
    try:
        yield
    finally:
        if tell in _listeners:
            _listeners.remove(tell)


def _tell() -> None:
    while _listeners:
        _listeners.pop()()


@contextmanager
def _waiting() -> Iterator[None]:
    timer = threading.Timer(_PATIENCE, _tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _numba_type(name: str, kind: str, written: bool) -> Any:
    from numba import from_dtype, types

    if name in _SCALARS:
        return getattr(types, _SCALARS[name])
    letter, dimensions = name[0], int(name[1:])
    dtype = from_dtype(np.dtype(kind if letter == "F" else _DTYPES[letter]))
    return types.Array(dtype, dimensions, "C", readonly=not written)
