"""A table of scores: an axis of enrolments, an axis of tests, and a source of tiles.

In memory it is one tile (`ScoreMatrix`, `TrialList`); in files, Dask arrays and embeddings it is many (`LazyScores`),
each read or made when somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.tables.arrays import hashed
from evenscore.tables.axis import Axis, SpeakersLike
from evenscore.tables.ids import Ids, IdsLike
from evenscore.tables.tile import TILE_BYTES, Cuts, Grid, Layout, Place, Tile

__all__ = ["Array", "LazyScores", "Listed", "Mapped", "ScoreTable", "Source", "Taken"]

Function = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
Table = TypeVar("Table", bound="ScoreTable")


@runtime_checkable
class Source(Protocol):
    """Where tiles come from. It travels to other machines, so it holds names, not open files."""

    def read(self, place: Place) -> Tile:
        """Return the tile of a place: any rectangle of a matrix, any run of trials of a list."""

    def identity(self) -> str:
        """Return a text that changes when the scores change."""


class ScoreTable:
    """Scores of trials, wherever they are: in memory, in files, in a Dask array, in embeddings.

    Attributes
    ----------
    enroll_axis, test_axis
        Ids of enrolments and tests, with their speakers and facts where these are known.
    dtype
        float32 or float64.
    source
        Where tiles come from.
    layout
        How it is cut into places: a matrix into rectangles, a list into runs of trials.

    Examples
    --------
    >>> from evenscore import ScoreMatrix
    >>> scores: ScoreTable = ScoreMatrix([[1.5, -2.0], [0.5, 3.0]], ["e1", "e2"], ["t1", "t2"])
    >>> [scores.read(place).scores.tolist() for place in scores.in_tiles(16, (1, 2)).places()]
    [[[1.5, -2.0]], [[0.5, 3.0]]]
    """

    enroll_axis: Axis
    test_axis: Axis
    dtype: np.dtype[Any]
    source: Source
    layout: Layout
    is_in_memory = False  #: whether all scores are in memory

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        from evenscore.tables.preview import preview

        return preview(self)

    @property
    def enroll_ids(self) -> Ids:
        """Ids of the enrolments."""
        return self.enroll_axis.ids

    @property
    def test_ids(self) -> Ids:
        """Ids of the tests."""
        return self.test_axis.ids

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of enrolments and of tests."""
        return len(self.enroll_axis), len(self.test_axis)

    @property
    def listed(self) -> bool:
        """Whether it is a list of trials; else every enrolment meets every test."""
        return self.layout.listed

    @property
    def size(self) -> int:
        """Number of trials; the missing ones of a matrix count."""
        return self.layout.size if isinstance(self.layout, Cuts) else self.shape[0] * self.shape[1]

    @property
    def nbytes(self) -> int:
        """Bytes that all scores would take in memory; those of a list with the places and labels of its trials."""
        return self.size * (self.dtype.itemsize + (16 if self.listed else 0))

    @property
    def own_labels(self) -> bool:
        """Whether the trials of a list bring labels with them."""
        return self.listed and self.size > 0 and self.source.read(Place(0, slice(0, 1))).labels is not None

    @property
    def numbers(self) -> object:
        """What holds the scores, as long as the table lives: one object for all tables that share them.

        A source may be made anew whenever it is asked for, so that its ``id`` would soon be that of another one.
        """
        return self.source

    def places(self) -> list[Place]:
        """Return places that cover the table."""
        return self.layout.places()

    def read(self, place: Place) -> Tile:
        """Return the tile of a place."""
        return self.source.read(place)

    @property
    def tile(self) -> Tile:
        """All scores of a table that is in memory: it is one tile."""
        return self.read(*self.places())

    def pair_at(self, tile: Tile, at: int) -> tuple[str, str]:
        """Return the ids of one of the scores of a tile, counted row by row."""
        row, column = tile.position(at)
        return self.enroll_ids[row], self.test_ids[column]

    def identity(self) -> str:
        """Return a text that changes when the scores or their ids change."""
        return hashed(self.source.identity(), self.enroll_ids, self.test_ids, str(self.dtype))

    def with_source(self, source: Source, **changed: Any) -> LazyScores:
        """Return a table of the same trials whose tiles come from another source; ``changed`` are other fields."""
        fields = {name: getattr(self, name) for name in ("enroll_axis", "test_axis", "dtype", "layout")}
        return LazyScores(**(fields | {"source": source} | changed))

    def map(self, function: Function, identity: str) -> LazyScores:
        """Return scores that a function changes one by one when they are read.

        Parameters
        ----------
        function
            Takes and gives an array; on a cluster it travels to the workers.
        identity
            A text that changes when the function does, for runs that are continued.
        """
        from evenscore.tables.door import looked_through

        return looked_through(self.with_source(Mapped(self.source, function, identity)))

    def in_tiles(self, nbytes: float = TILE_BYTES, stored: tuple[int, int] | None = None) -> LazyScores:
        """Return the same scores cut into tiles of about this size, a matrix into whole chunks of ``stored``."""
        if self.listed:
            return self.with_source(self.source, layout=Cuts.of(self.size) if self.is_in_memory else self.layout)
        known = {"stored": self.layout.stored} if isinstance(self.layout, Grid) else {}
        chosen: Any = known if stored is None else {"stored": stored}
        return self.with_source(self.source, layout=Grid(self.shape, self.dtype.itemsize, tile_bytes=nbytes, **chosen))

    def in_memory(self) -> Any:
        """Return all scores in memory, as a `ScoreMatrix` or a `TrialList`."""
        raise NotImplementedError

    def with_axes(self: Table, enroll_axis: Axis, test_axis: Axis) -> Table:
        """Return the same scores with axes of the same ids, which may know more about them."""
        if enroll_axis is self.enroll_axis and test_axis is self.test_axis:
            return self
        result = copy(self)
        object.__setattr__(result, "enroll_axis", enroll_axis)
        object.__setattr__(result, "test_axis", test_axis)
        return result

    def with_speakers(self: Table, enroll: SpeakersLike | None = None, test: SpeakersLike | None = None) -> Table:
        """Return the same scores with speakers of the enrolments and tests; None leaves a side as it is.

        Examples
        --------
        >>> from evenscore import ScoreMatrix
        >>> scores = ScoreMatrix([[1.5, -2.0]], ["e1"], ["t1", "t2"])
        >>> scores.with_speakers(["ann"], {"t1": "ann", "t2": "bob"}).test_axis.speakers
        array(['ann', 'bob'], dtype=object)
        """
        return self.with_axes(
            self.enroll_axis if enroll is None else self.enroll_axis.with_speakers(enroll, "enroll_speakers"),
            self.test_axis if test is None else self.test_axis.with_speakers(test, "test_speakers"),
        )

    def take(self: Table, rows: Any = None, columns: Any = None) -> Table:
        """Return the rows and columns of a matrix at these positions, in this order; None takes all."""
        raise NotImplementedError

    def align(self: Table, enroll: IdsLike | Axis, test: IdsLike | Axis) -> Table:
        """Return the scores of exactly these ids in this order; what these axes know, the result knows, too."""
        from evenscore.tables.axis import as_axis

        rows, columns = as_axis(enroll, "enroll_ids"), as_axis(test, "test_ids")
        sides = (
            (rows, self.enroll_axis, "enrolment", self.test_axis),
            (columns, self.test_axis, "test", self.enroll_axis),
        )
        at = [
            None if wanted.same_ids(own) else own.positions(wanted.ids, what, "the scores", other)
            for wanted, own, what, other in sides
        ]
        found = self if at[0] is None and at[1] is None else self.take(*at)
        axes = rows.knowing(found.enroll_axis), columns.knowing(found.test_axis)
        return found.with_axes(*axes)

    def block(self, rows: slice, columns: slice) -> npt.NDArray[Any]:
        """Return the scores of some rows and columns of a matrix, given by slices without a step; NaN is missing."""
        at = (
            _within(part, size, side)
            for part, size, side in zip((rows, columns), self.shape, ("rows", "columns"), strict=True)
        )
        return self.source.read(Place(0, *at)).scores


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LazyScores(ScoreTable):
    """Scores that stay where they are: tiles are read or made when they are needed.

    Examples
    --------
    >>> from evenscore import ScoreMatrix
    >>> scores = ScoreMatrix([[1.5, -2.0], [0.5, 3.0]], ["e1", "e2"], ["t1", "t2"]).in_tiles()
    >>> scores
    LazyScores(2 enrolments x 2 tests, float64, 1 tiles)
    >>> scores.block(slice(1, 2), slice(0, 2))
    array([[0.5, 3. ]])
    """

    enroll_axis: Axis
    test_axis: Axis
    dtype: np.dtype[Any]
    source: Source
    layout: Layout

    def in_memory(self) -> Any:
        """Return all scores in memory, as a `ScoreMatrix` or a `TrialList`."""
        from evenscore.tables.score_matrix import ScoreMatrix
        from evenscore.tables.trial_list import TrialList

        tiles = [(place, self.source.read(place)) for place in self.places()] if self.listed else None
        if tiles is not None:
            return TrialList.of_tiles(self.enroll_axis, self.test_axis, [tile for _, tile in tiles], self.dtype)
        return ScoreMatrix.of_tiles(self)

    def take(self, rows: Any = None, columns: Any = None) -> LazyScores:
        """Return the rows and columns of a matrix at these positions, in this order; nothing is read for it."""
        row, column = _positions(rows, self.shape[0], "rows"), _positions(columns, self.shape[1], "columns")
        assert not isinstance(self.layout, Cuts)  # noqa: S101
        layout = replace(self.layout, shape=(len(row), len(column)))
        return replace(
            self,
            enroll_axis=self.enroll_axis if rows is None else self.enroll_axis.take(row),
            test_axis=self.test_axis if columns is None else self.test_axis.take(column),
            source=Taken(self.source, row, column),
            layout=layout,
        )

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        if self.listed:
            return f"LazyScores({self.size} trials, {len(self.places())} chunks)"
        k, size = self.shape
        return f"LazyScores({k} enrolments x {size} tests, {self.dtype}, {len(self.places())} tiles)"


@dataclass(frozen=True, eq=False)
class Array:
    """Scores of a matrix in an array."""

    scores: npt.NDArray[Any]
    n_missing: int | None = None

    def read(self, place: Place) -> Tile:
        """Return a tile, without a copy."""
        whole = place.shape == self.scores.shape
        known = self.n_missing if whole or not self.n_missing else None
        return Tile(self.scores[place.rows, place.columns], place.rows, place.columns, n_missing=known)

    def identity(self) -> str:
        """Return a hash of the scores."""
        return hashed(self.scores)


@dataclass(frozen=True, eq=False)
class Listed:
    """Trials of a list in memory."""

    trials: Tile

    def read(self, place: Place) -> Tile:
        """Return some trials, without a copy."""
        whole, at = self.trials, place.rows
        if place.shape == whole.scores.shape:
            return whole
        labels = None if whole.labels is None else whole.labels[at]
        measures = {name: values[at] for name, values in whole.measures.items()}
        return Tile(whole.scores[at], whole.rows[at], whole.columns[at], labels, measures=measures)

    def identity(self) -> str:
        """Return a hash of pairs, scores and labels."""
        whole = self.trials
        return hashed(whole.rows, whole.columns, whole.scores, whole.labels, *whole.measures.values())


@dataclass(frozen=True, eq=False)
class Mapped:
    """Another source, whose scores are changed one by one."""

    source: Source
    function: Function
    name: str

    def read(self, place: Place) -> Tile:
        """Return a tile of changed scores, in whatever type they come."""
        tile = self.source.read(place)
        changed = np.asarray(self.function(tile.scores))
        if changed.shape != tile.scores.shape:
            raise InputError(
                f"the function made scores of shape {changed.shape} of those of shape {tile.scores.shape}; it must "
                "change each of them by itself"
            )
        return tile.with_scores(changed)

    def identity(self) -> str:
        """Return the other source's identity, and that of the function."""
        return hashed(self.source.identity(), self.name)


@dataclass(frozen=True, eq=False)
class Taken:
    """Some rows and columns of another source, in another order."""

    source: Source
    rows: npt.NDArray[np.intp]
    columns: npt.NDArray[np.intp]

    def read(self, place: Place) -> Tile:
        """Return a tile; runs of neighbours are read at once."""
        row, column = self.rows[place.rows], self.columns[place.columns]
        if not row.size or not column.size:
            nothing = self.source.read(Place(0, slice(0, 0), slice(0, 0))).scores
            return Tile(nothing.reshape(row.size, column.size), place.rows, place.columns)
        left, right = int(column.min()), int(column.max()) + 1
        order = np.argsort(row, kind="stable")
        ends = np.flatnonzero(np.diff(row[order]) != 1) + 1
        out: npt.NDArray[Any] | None = None
        for run in np.split(order, ends):
            first = int(row[run[0]])
            part = self.source.read(Place(0, slice(first, first + len(run)), slice(left, right))).scores
            if out is None:
                out = np.empty((row.size, column.size), dtype=part.dtype)
            out[run] = part[:, column - left]
        assert out is not None  # noqa: S101
        return Tile(out, place.rows, place.columns)

    def identity(self) -> str:
        """Return the other source's identity, and a hash of the order."""
        return hashed(self.source.identity(), self.rows, self.columns)


def _within(part: slice, size: int, side: str) -> slice:
    """Return a slice of what is there, as Python cuts a list."""
    if not isinstance(part, slice) or part.step not in (None, 1):
        raise InputError(f"{side} are {part}, but must be a slice without a step, such as slice(0, 10)")
    start, stop, _ = part.indices(size)
    return slice(start, max(start, stop))


def _positions(chosen: npt.ArrayLike | None, size: int, side: str) -> npt.NDArray[np.intp]:
    """Return positions, which may be given by a mask, or from the end as negative numbers, as for an array."""
    everyone = np.arange(size)
    if chosen is None:
        return everyone
    wanted = np.asarray(chosen)
    try:
        return everyone[wanted if wanted.size else wanted.astype(np.intp)]
    except IndexError as error:
        raise InputError(f"{side} cannot be taken: {error}; give positions below {size}, or a mask") from None
