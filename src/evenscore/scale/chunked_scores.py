"""Score matrices that are not in memory: tiles of them are read or computed when they are needed."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.model.statistics import LabelledSums
from evenscore.progress import Progress, silent
from evenscore.scale.tiles import TILE_BYTES, Tile, tile_grid
from evenscore.tables import Labels, ScoreMatrix, TrialList
from evenscore.tables.arrays import as_scores
from evenscore.tables.ids import Ids, IdsLike, as_ids, positions

if TYPE_CHECKING:
    from evenscore.metrics.summary import ScoreSummary

__all__ = ["ChunkedScores", "InMemory", "Rearranged", "TileReader", "as_chunked", "hashed"]

_MANY_TILES, _SMALL_TILE = 64, 1 << 22
_ROWS, _COLUMNS = 1024, 4096  # of a stored chunk, where the data has none of its own


@runtime_checkable
class TileReader(Protocol):
    """Gives the scores of some rows and columns. It travels to other machines, so it holds names, not open files."""

    def read(self, rows: slice, columns: slice) -> npt.NDArray[Any]:
        """Return a tile, NaN where a pair is missing."""

    def identity(self) -> str:
        """Return a text that changes when the scores change."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ChunkedScores:
    """A K x L score matrix that stays where it is: in files, in a Dask array, or in embeddings.

    Give it to `fit_score_model` with labels, or to `normalize` within `ChunkedBlocks`; read it with `block`.
    `open_chunked_scores` opens files, `as_chunked` takes arrays, `score_chunks` makes it from embeddings, and
    `write_chunks` writes it, tile by tile.

    Attributes
    ----------
    enroll_ids, test_ids
        Ids of rows and columns.
    dtype
        float32 or float64.
    reader
        Where tiles come from.
    stored
        Rows and columns of what is stored together; tiles are made of whole such chunks.
    tile_bytes
        About how large a tile is.

    Examples
    --------
    >>> scores = as_chunked(ScoreMatrix([[1.5, -2.0], [0.5, 3.0]], ["e1", "e2"], ["t1", "t2"]))
    >>> scores
    ChunkedScores(2 enrolments x 2 tests, float64, 1 tiles)
    >>> scores.block(slice(1, 2), slice(0, 2))
    array([[0.5, 3. ]])
    """

    enroll_ids: Ids
    test_ids: Ids
    dtype: np.dtype[Any]
    reader: TileReader
    stored: tuple[int, int] = (_ROWS, _COLUMNS)
    tile_bytes: float = TILE_BYTES

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of enrolments and of tests."""
        return len(self.enroll_ids), len(self.test_ids)

    @property
    def nbytes(self) -> int:
        """Bytes that the whole matrix would take."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    def tiles(self) -> list[Tile]:
        """Return tiles that cover the matrix, row by row."""
        return tile_grid(self.shape, self.stored, self.dtype, self._tile_size)

    def whole_rows(self) -> list[Tile]:
        """Return tiles that are as wide as the matrix."""
        return tile_grid(self.shape, (self._fitting(0), self.shape[1]), self.dtype, self._tile_size)

    def whole_columns(self) -> list[Tile]:
        """Return tiles that are as high as the matrix."""
        return tile_grid(self.shape, (self.shape[0], self._fitting(1)), self.dtype, self._tile_size)

    @property
    def _tile_size(self) -> float:
        """Bytes of a tile: smaller ones where there would be few, so that many workers have something to do."""
        return min(self.tile_bytes, max(self.nbytes / _MANY_TILES, _SMALL_TILE))

    def _fitting(self, axis: int) -> int:
        """Return how many rows (or columns) of a stored chunk make whole rows (columns) that fit into a tile."""
        most = int(self._tile_size // max(self.shape[1 - axis] * self.dtype.itemsize, 1))
        return max(min(self.stored[axis], most), 1)

    def block(self, rows: slice, columns: slice) -> npt.NDArray[Any]:
        """Return the scores of some rows and columns, given by slices without a step; NaN is missing."""
        return self.reader.read(_within(rows, self.shape[0], "rows"), _within(columns, self.shape[1], "columns"))

    def matrix(self) -> ScoreMatrix:
        """Return all scores in memory."""
        whole = np.empty(self.shape, dtype=self.dtype)
        for tile in self.tiles():
            whole[tile.rows, tile.columns] = self.reader.read(tile.rows, tile.columns)
        return ScoreMatrix(whole, self.enroll_ids, self.test_ids, missing="nan")

    def align(self, enroll_ids: IdsLike, test_ids: IdsLike) -> ChunkedScores:
        """Return the scores of exactly these ids in this order; nothing is read for it."""
        rows, columns = as_ids(enroll_ids, "enroll_ids"), as_ids(test_ids, "test_ids")
        if np.array_equal(rows, self.enroll_ids) and np.array_equal(columns, self.test_ids):
            return self
        return self.take(
            positions(self.enroll_ids, rows, "enrolment", "the scores"),
            positions(self.test_ids, columns, "test", "the scores"),
        )

    def take(self, rows: npt.ArrayLike | None = None, columns: npt.ArrayLike | None = None) -> ChunkedScores:
        """Return the rows and columns at these positions, in this order; None takes all. Nothing is read for it."""
        row, column = _places(rows, self.shape[0], "rows"), _places(columns, self.shape[1], "columns")
        reader = Rearranged(self.reader, row, column)
        return replace(self, enroll_ids=self.enroll_ids[row], test_ids=self.test_ids[column], reader=reader)

    def identity(self) -> str:
        """Return a text that changes when the scores or their ids change."""
        return hashed(self.reader.identity(), self.enroll_ids, self.test_ids, str(self.dtype))

    def with_tiles(self, nbytes: float) -> ChunkedScores:
        """Return the same scores in tiles of about another size."""
        return replace(self, tile_bytes=nbytes)

    def summarize(self, labels: Labels | TrialList | None = None, **options: Any) -> ScoreSummary:
        """Count the scores for all metrics at once, see `summarize_chunks`."""
        from evenscore.scale.passes import summarize_chunks

        return summarize_chunks(self, labels, **options)

    def summarize_unlabelled(self) -> ScoreSummary:
        """Count the scores whatever their labels."""
        from evenscore.scale.passes import count_unlabelled

        return count_unlabelled(self)

    def labelled_sums(
        self, labels: Labels | None, *, client: Any = None, progress: Progress = silent
    ) -> list[LabelledSums]:
        """Return the sums that training needs, in one pass over the tiles.

        Parameters
        ----------
        labels
            Labels of the pairs.
        client
            A `distributed.Client` whose workers do it; None does it here.
        progress
            Called with ``"summing scores"`` and the fraction done.
        """
        from evenscore.scale.tile_sums import label_tiles

        return [label_tiles(self, labels, client=client, progress=progress)]

    def __repr__(self) -> str:
        k, size = self.shape
        return f"ChunkedScores({k} enrolments x {size} tests, {self.dtype}, {len(self.tiles())} tiles)"


def as_chunked(scores: Any, enroll_ids: IdsLike | None = None, test_ids: IdsLike | None = None) -> ChunkedScores:
    """Return scores as `ChunkedScores`.

    Parameters
    ----------
    scores
        A `ScoreMatrix`, a NumPy or Dask array, scores of embeddings (`Bilinear`), or `ChunkedScores`.
    enroll_ids, test_ids
        Ids of rows and columns; only arrays need them.

    Examples
    --------
    >>> as_chunked(np.zeros((2, 3)), ["e1", "e2"], ["t1", "t2", "t3"]).shape
    (2, 3)
    """
    bilinear = hasattr(scores, "left") and hasattr(scores, "right")
    if isinstance(scores, ChunkedScores | ScoreMatrix) or bilinear:
        if enroll_ids is not None or test_ids is not None:
            raise InputError("these scores have ids of their own; leave out enroll_ids and test_ids, or call `align`")
    elif isinstance(scores, str | os.PathLike):
        raise InputError(f"{str(scores)!r} is a name, but scores are expected; open the file with open_chunked_scores")
    elif isinstance(scores, TrialList):
        raise InputError("a list of trials is no matrix; make one with its to_matrix(), or call ChunkedTrials.of")
    elif scores is None:
        raise InputError("there are no scores; give a score matrix, an array or scores of embeddings")
    if isinstance(scores, ChunkedScores):
        return scores
    if isinstance(scores, ScoreMatrix):
        return ChunkedScores(
            enroll_ids=scores.enroll_ids,
            test_ids=scores.test_ids,
            dtype=scores.scores.dtype,
            reader=InMemory(scores.scores),
        )
    if bilinear:
        from evenscore.scale.embeddings import ScoredPairs

        return ChunkedScores(
            enroll_ids=scores.enroll_ids, test_ids=scores.test_ids, dtype=scores.dtype, reader=ScoredPairs(scores)
        )
    if enroll_ids is None or test_ids is None:
        raise InputError("an array of scores has no ids; give them: as_chunked(scores, enroll_ids, test_ids)")
    if hasattr(scores, "dask"):
        from evenscore.scale.dask_arrays import chunked_dask_array

        return chunked_dask_array(scores, enroll_ids, test_ids)
    array = as_scores(scores, "scores", ndim=2)
    return ChunkedScores(
        enroll_ids=as_ids(enroll_ids, "enroll_ids", array.shape[0]),
        test_ids=as_ids(test_ids, "test_ids", array.shape[1]),
        dtype=array.dtype,
        reader=InMemory(array),
    )


def _within(part: slice, size: int, side: str) -> slice:
    """Return a slice of what is there, as Python cuts a list."""
    if not isinstance(part, slice) or part.step not in (None, 1):
        raise InputError(f"{side} are {part}, but must be a slice without a step, such as slice(0, 10)")
    start, stop, _ = part.indices(size)
    return slice(start, max(start, stop))


def _places(chosen: npt.ArrayLike | None, size: int, side: str) -> npt.NDArray[np.intp]:
    """Return positions, which may be given by a mask, or from the end as negative numbers, as for an array."""
    everyone = np.arange(size)
    if chosen is None:
        return everyone
    wanted = np.asarray(chosen)
    try:
        return everyone[wanted if wanted.size else wanted.astype(np.intp)]
    except IndexError as error:
        raise InputError(f"{side} cannot be taken: {error}; give positions below {size}, or a mask") from None


def hashed(*parts: object) -> str:
    """Return a short text that stands for arrays, texts and numbers.

    Examples
    --------
    >>> hashed("a", np.zeros(2)) == hashed("a", np.zeros(2)), hashed("a") == hashed("b")
    (True, False)
    """
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray) and part.dtype != object:
            digest.update(f"{part.dtype.str}{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(repr(part.tolist() if isinstance(part, np.ndarray) else part).encode())
        digest.update(b"\0")
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class InMemory:
    """Scores in an array."""

    scores: npt.NDArray[Any]

    def read(self, rows: slice, columns: slice) -> npt.NDArray[Any]:
        """Return a tile, without a copy."""
        return self.scores[rows, columns]

    def identity(self) -> str:
        """Return a hash of the scores."""
        return hashed(self.scores)


@dataclass(frozen=True, eq=False)
class Rearranged:
    """Some rows and columns of another reader, in another order."""

    reader: TileReader
    rows: npt.NDArray[np.intp]
    columns: npt.NDArray[np.intp]

    def read(self, rows: slice, columns: slice) -> npt.NDArray[Any]:
        """Return a tile; runs of neighbours are read at once."""
        row, column = self.rows[rows], self.columns[columns]
        if not row.size or not column.size:
            return self.reader.read(slice(0, 0), slice(0, 0)).reshape(row.size, column.size)
        left, right = int(column.min()), int(column.max()) + 1
        order = np.argsort(row, kind="stable")
        ends = np.flatnonzero(np.diff(row[order]) != 1) + 1
        out: npt.NDArray[Any] | None = None
        for run in np.split(order, ends):
            first = int(row[run[0]])
            part = self.reader.read(slice(first, first + len(run)), slice(left, right))
            if out is None:
                out = np.empty((row.size, column.size), dtype=part.dtype)
            out[run] = part[:, column - left]
        assert out is not None  # noqa: S101
        return out

    def identity(self) -> str:
        """Return the other reader's identity, and a hash of the order."""
        return hashed(self.reader.identity(), self.rows, self.columns)
