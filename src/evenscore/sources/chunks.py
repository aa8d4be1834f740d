"""Walking over many vectors in float64 without a float64 copy of all of them, on all cores.

The chunks, and the order in which their sums are added up, depend on the vectors alone, and so do the last digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.threads import in_parallel, one_thread_per_product

__all__ = ["each_chunk", "float64_chunks", "gram", "sum_of_chunks"]

_NUMBERS = 1 << 20  # per chunk: 8 MB, small enough for the cache, large enough for the matrix product
_SUMS = 16  # at most as many are made side by side


def each_chunk(vectors: npt.NDArray[Any], task: Callable[[slice, npt.NDArray[np.float64]], None]) -> None:
    """Call the task with slices of the rows and their vectors in float64; it writes where no other chunk writes."""
    slices = _slices(vectors)

    def work(first: int, last: int) -> None:
        for part, chunk in float64_chunks(vectors, slices[first:last]):
            task(part, chunk)

    with one_thread_per_product():
        in_parallel(work, len(slices), _NUMBERS if len(slices) > 1 else 0)


def sum_of_chunks(
    vectors: npt.NDArray[Any],
    shape: tuple[int, ...],
    value: Callable[[slice, npt.NDArray[np.float64]], npt.NDArray[Any]],
) -> npt.NDArray[np.float64]:
    """Return the sum of an array of this shape that is made of each chunk; see `each_chunk`.

    Examples
    --------
    >>> sum_of_chunks(np.array([[1.0, 2.0], [3.0, 4.0]]), (2,), lambda part, chunk: chunk.sum(axis=0))
    array([4., 6.])
    """
    slices = _slices(vectors)
    sums = np.zeros((min(len(slices), _SUMS), *shape))

    def work(first: int, last: int) -> None:
        for number in range(first, last):
            for part, chunk in float64_chunks(vectors, slices[number::_SUMS]):
                sums[number] += value(part, chunk)

    with one_thread_per_product():
        in_parallel(work, len(sums), _NUMBERS if len(sums) > 1 else 0)
    return np.asarray(sums.sum(axis=0))


def gram(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return V'V of many vectors V."""
    return sum_of_chunks(vectors, (vectors.shape[1], vectors.shape[1]), lambda _, chunk: chunk.T @ chunk)


def _slices(vectors: npt.NDArray[Any]) -> list[slice]:
    """Return slices that cover the rows, a chunk each."""
    size = max(_NUMBERS // max(vectors.shape[1], 1), 1)
    return [slice(first, min(first + size, len(vectors))) for first in range(0, len(vectors), size)]


def float64_chunks(
    vectors: npt.NDArray[Any], slices: Sequence[slice] | None = None
) -> Iterator[tuple[slice, npt.NDArray[np.float64]]]:
    """Yield slices of the rows, all or these, with their vectors in float64.

    A chunk of float32 vectors lives in one buffer that the next chunk overwrites; float64 vectors are not copied.
    """
    slices = _slices(vectors) if slices is None else slices
    if vectors.dtype == np.float64:
        yield from ((part, vectors[part]) for part in slices)
        return
    buffer = np.empty((max((part.stop - part.start for part in slices), default=0), vectors.shape[1]))
    for part in slices:
        chunk = buffer[: part.stop - part.start]
        np.copyto(chunk, vectors[part])
        yield part, chunk
