"""Tiles: the scores that are read, worked on and written at a time, and the places where they stand.

A place of a matrix is a rectangle of it; a place of a list is a run of its trials. What is in memory is one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError

__all__ = ["TILE_BYTES", "Cuts", "Grid", "Layout", "Place", "Tile", "Whole", "spans"]

#: A tile is about this large: far above the cost of starting a task, and small enough (below 32 MB) that the allocator
#: keeps its memory for the next one. Larger ones get theirs from the system each time, which clears it, at a price.
TILE_BYTES = 1 << 24

_MANY_TILES, _SMALL_TILE = 64, 1 << 22
_ROWS, _COLUMNS = 1024, 4096  # of a stored chunk, where the data has none of its own
_TRIALS = 1 << 20  # of a list that are read at a time, where the data has no chunks of its own

At: TypeAlias = slice | npt.NDArray[np.integer[Any]]  #: where the elements of a side stand on its axis


@dataclass(frozen=True)
class Place:
    """Where a tile stands: rows and columns of a matrix, or trials of a list; and which of all places it is."""

    number: int
    rows: slice  #: of a matrix, or trials of a list
    columns: Any = None  #: a slice; None: of a list

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of rows and columns, or of trials."""
        parts = (self.rows,) if self.columns is None else (self.rows, self.columns)
        return tuple(part.stop - part.start for part in parts)

    def __str__(self) -> str:
        if self.columns is None:
            return f"chunk {self.number} (trials {self.rows.start} to {self.rows.stop - 1})"
        rows, columns = (f"{part.start} to {part.stop - 1}" for part in (self.rows, self.columns))
        return f"chunk {self.number} (rows {rows}, columns {columns})"


@dataclass(frozen=True, eq=False)
class Tile:
    """Scores of some trials, and where their enrolments and tests stand on the axes of their table.

    Attributes
    ----------
    scores
        Of a matrix with two dimensions, NaN where a pair is missing; of a list with one.
    rows, columns
        Of a matrix the slices of both axes; of a list the place of each trial's enrolment and test.
    labels
        That the trials of a list bring with them, if they do.
    n_missing
        How many scores are NaN, where that is known.
    measures
        Further numbers of the trials of a list, by name.

    Examples
    --------
    >>> enroll, test = np.array([1.0, 2.0]), np.array([10.0, 20.0, 30.0])
    >>> sum(Tile(np.zeros((2, 2)), slice(0, 2), slice(1, 3)).pair(enroll, test))
    array([[21., 31.],
           [22., 32.]])
    >>> sum(Tile(np.zeros(2), np.array([1, 0]), np.array([2, 2])).pair(enroll, test))
    array([32., 31.])
    """

    scores: npt.NDArray[Any]
    rows: Any
    columns: Any
    labels: npt.NDArray[np.int8] | None = None
    n_missing: int | None = None
    measures: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    @property
    def listed(self) -> bool:
        """Whether these are trials of a list, not a rectangle of a matrix."""
        return not isinstance(self.rows, slice)

    def pair(self, enroll: npt.NDArray[Any], test: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return numbers of all enrolments and of all tests so that they meet the scores of this tile.

        This is all that a matrix and a list differ in: there each enrolment meets each test, here two of them meet.
        """
        rows, columns = enroll[self.rows], test[self.columns]
        return (rows, columns) if self.listed else (rows[:, None], columns[None, :])

    def with_scores(self, scores: npt.NDArray[Any], n_missing: int | None = None) -> Tile:
        """Return other scores of the same trials."""
        return replace(self, scores=scores, n_missing=n_missing)

    def select(self, which: npt.NDArray[np.bool_]) -> Tile:
        """Return some trials of a list; in a matrix, the others become missing."""
        if not self.listed:
            return self.with_scores(np.where(which, self.scores, np.array(np.nan, dtype=self.scores.dtype)))
        labels = None if self.labels is None else self.labels[which]
        measures = {name: values[which] for name, values in self.measures.items()}
        return Tile(self.scores[which], self.rows[which], self.columns[which], labels, measures=measures)

    def position(self, at: int) -> tuple[int, int]:
        """Return where the enrolment and the test of one of the scores, counted row by row, stand on the axes."""
        if self.listed:
            return int(self.rows[at]), int(self.columns[at])
        row, column = divmod(at, self.scores.shape[1])
        return self.rows.start + row, self.columns.start + column


@dataclass(frozen=True)
class Grid:
    """How a matrix is cut into tiles: rectangles of whole stored chunks, row by row."""

    shape: tuple[int, int]
    itemsize: int
    stored: tuple[int, int] = (_ROWS, _COLUMNS)  #: rows and columns of what is stored together
    tile_bytes: float = TILE_BYTES  #: about how large a tile is

    listed = False

    def places(self) -> list[Place]:
        """Return places that cover the matrix.

        Examples
        --------
        >>> [place.shape for place in Grid((5, 4), 8, stored=(2, 4), tile_bytes=64).places()]
        [(2, 4), (2, 4), (1, 4)]
        """
        return self._cut(self.stored)

    def whole_rows(self) -> list[Place]:
        """Return places that are as wide as the matrix."""
        return self._cut((self._fitting(0), self.shape[1]))

    def whole_columns(self) -> list[Place]:
        """Return places that are as high as the matrix."""
        return self._cut((self.shape[0], self._fitting(1)))

    def _fitting(self, axis: int) -> int:
        """Return how many rows (or columns) of a stored chunk make whole rows (columns) that fit into a tile."""
        most = int(self._bytes // max(self.shape[1 - axis] * self.itemsize, 1))
        return max(min(self.stored[axis], most), 1)

    @property
    def _bytes(self) -> float:
        """Bytes of a tile: smaller ones where there would be few, so that many workers have something to do."""
        if not self.tile_bytes > 0:
            raise InputError(f"tiles of {self.tile_bytes} bytes make no sense; give a size above 0")
        return min(self.tile_bytes, max(self.shape[0] * self.shape[1] * self.itemsize / _MANY_TILES, _SMALL_TILE))

    def _cut(self, stored: tuple[int, int]) -> list[Place]:
        room = max(int(self._bytes // self.itemsize), 1)
        rows, columns = (max(min(size, whole), 1) for size, whole in zip(stored, self.shape, strict=True))
        columns = min(columns * max(room // (rows * columns), 1), max(self.shape[1], 1))
        if columns == self.shape[1]:
            rows *= max(room // (rows * columns), 1)
        parts = [(i, j) for i in spans(self.shape[0], rows) for j in spans(self.shape[1], columns)]
        return [Place(number, i, j) for number, (i, j) in enumerate(parts)]


@dataclass(frozen=True)
class Whole:
    """A matrix that is in memory: one tile, however it is looked at."""

    shape: tuple[int, int]

    listed = False

    def places(self) -> list[Place]:
        """Return the one place."""
        return [Place(0, slice(0, self.shape[0]), slice(0, self.shape[1]))]

    whole_rows = whole_columns = places


@dataclass(frozen=True)
class Cuts:
    """How a list is cut into runs of trials: where they begin, and the end of the last one."""

    bounds: tuple[int, ...]

    listed = True

    @classmethod
    def of(cls, size: int) -> Cuts:
        """Cut a number of trials into runs of the usual length."""
        return cls((0, *(part.stop for part in spans(size, _TRIALS))))

    @property
    def size(self) -> int:
        """Number of trials."""
        return self.bounds[-1]

    def places(self) -> list[Place]:
        """Return places that cover the list."""
        parts = zip(self.bounds[:-1], self.bounds[1:], strict=True)
        return [Place(number, slice(*part)) for number, part in enumerate(parts)]


Layout: TypeAlias = Grid | Whole | Cuts


def spans(size: int, step: int) -> list[slice]:
    """Cut a range into slices of one length; the last may be shorter.

    Examples
    --------
    >>> spans(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + step, size)) for start in range(0, size, max(step, 1))]
