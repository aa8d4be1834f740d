"""Tiles: the rectangles of a score matrix that are read, worked on and written at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenscore.errors import InputError

__all__ = ["TILE_BYTES", "Tile", "spans", "tile_grid"]

#: A tile is about this large: far above the cost of starting a task, and small enough (below 32 MB) that the allocator
#: keeps its memory for the next one. Larger ones get theirs from the system each time, which clears it, at a price.
TILE_BYTES = 1 << 24


@dataclass(frozen=True)
class Tile:
    """Rows and columns of a matrix, and which of all tiles it is."""

    number: int
    rows: slice
    columns: slice

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.rows.stop - self.rows.start, self.columns.stop - self.columns.start

    def __str__(self) -> str:
        rows, columns = (f"{part.start} to {part.stop - 1}" for part in (self.rows, self.columns))
        return f"chunk {self.number} (rows {rows}, columns {columns})"


def tile_grid(
    shape: tuple[int, int], stored: tuple[int, int], dtype: np.dtype[Any], nbytes: float = TILE_BYTES
) -> list[Tile]:
    """Cover a matrix with tiles of about this size, each of whole stored chunks, row by row.

    Examples
    --------
    >>> [tile.shape for tile in tile_grid((5, 4), (2, 4), np.dtype(float), nbytes=64)]
    [(2, 4), (2, 4), (1, 4)]
    """
    if not nbytes > 0:
        raise InputError(f"tiles of {nbytes} bytes make no sense; give a size above 0")
    room = max(int(nbytes // dtype.itemsize), 1)
    rows, columns = (max(min(size, whole), 1) for size, whole in zip(stored, shape, strict=True))
    columns = min(columns * max(room // (rows * columns), 1), max(shape[1], 1))
    if columns == shape[1]:
        rows *= max(room // (rows * columns), 1)
    parts = [(i, j) for i in spans(shape[0], rows) for j in spans(shape[1], columns)]
    return [Tile(number, i, j) for number, (i, j) in enumerate(parts)]


def spans(size: int, step: int) -> list[slice]:
    """Cut a range into slices of one length; the last may be shorter.

    Examples
    --------
    >>> spans(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + step, size)) for start in range(0, size, max(step, 1))]
