"""Walking over many vectors in float64 without a float64 copy of all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["chunk_slices", "float64_chunks"]

_NUMBERS = 1 << 20  # per chunk: 8 MB, small enough for the cache, large enough for the matrix product


def chunk_slices(vectors: npt.NDArray[Any]) -> list[slice]:
    """Return slices that cover the rows, a chunk each."""
    size = max(_NUMBERS // max(vectors.shape[1], 1), 1)
    return [slice(first, min(first + size, len(vectors))) for first in range(0, len(vectors), size)]


def float64_chunks(vectors: npt.NDArray[Any]) -> Iterator[tuple[slice, npt.NDArray[np.float64]]]:
    """Yield slices of the rows with their vectors in float64.

    A chunk of float32 vectors lives in one buffer that the next chunk overwrites; float64 vectors are not copied.
    """
    slices = chunk_slices(vectors)
    if vectors.dtype == np.float64:
        yield from ((part, vectors[part]) for part in slices)
        return
    buffer = np.empty((slices[0].stop if slices else 0, vectors.shape[1]))
    for part in slices:
        chunk = buffer[: part.stop - part.start]
        np.copyto(chunk, vectors[part])
        yield part, chunk
