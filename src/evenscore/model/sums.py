"""Statistics of labelled scores: sums per class, row and column. They are additive, so chunks add up to the whole."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.compiled import few
from evenscore.tables import NONTARGET, TARGET, Labels, Tile

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["ClassSums", "group_order", "pilot", "place_in_group", "sum_blocks", "sum_by_key", "sum_tile"]

Array = np.ndarray

_PARTS = 16


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassSums:
    """Sums of (score - center) over the scores of a block, per class (non-target, target).

    The block starts at (row_start, column_start) of its matrix. Two blocks of one matrix add up to a block that
    covers both. Centring at a value near the scores keeps digits when the scores have a large offset.

    Examples
    --------
    >>> import numpy as np
    >>> scores, labels = np.array([[2.0, -1.0], [0.0, 3.0]]), Labels.from_speakers(["a", "b"], ["a", "b"])
    >>> sum_tile(Tile(scores, slice(0, 2), slice(0, 2)), labels, center=0.0).rows
    array([[-1.,  0.],
           [ 2.,  3.]])
    """

    center: float
    rows: Float[Array, "2 k"]  #: sums of the rows
    columns: Float[Array, "2 l"]  #: sums of the columns
    squares: Float[Array, "2"]  #: sums of squares
    row_counts: Float[Array, "2 k"]  #: numbers of scores in the rows
    column_counts: Float[Array, "2 l"]  #: numbers of scores in the columns
    row_start: int = 0
    column_start: int = 0

    @property
    def count(self) -> Float[Array, "2"]:
        """Number of scores of each class."""
        return self.row_counts.sum(axis=1)

    @property
    def total(self) -> Float[Array, "2"]:
        """Sum of each class."""
        return self.rows.sum(axis=1)

    def recentered(self, center: float) -> ClassSums:
        """Return the same sums less another centre."""
        shift = self.center - center
        if shift == 0:
            return self
        return replace(
            self,
            center=center,
            rows=self.rows + shift * self.row_counts,
            columns=self.columns + shift * self.column_counts,
            squares=self.squares + 2 * shift * self.total + shift**2 * self.count,
        )

    def standardized(self, center: Float[Array, "2"], scale: float) -> ClassSums:
        """Return the sums of (score - center of its class) / scale."""
        shift = center - self.center
        squares = self.squares - 2 * shift * self.total + shift**2 * self.count
        return replace(
            self,
            center=0.0,
            rows=(self.rows - shift[:, None] * self.row_counts) / scale,
            columns=(self.columns - shift[:, None] * self.column_counts) / scale,
            squares=np.maximum(squares, 0.0) / scale**2,
        )

    def __add__(self, other: ClassSums) -> ClassSums:
        other = other.recentered(self.center)
        row_start = min(self.row_start, other.row_start)
        column_start = min(self.column_start, other.column_start)
        n_rows = max(p.row_start + p.rows.shape[1] for p in (self, other)) - row_start
        n_columns = max(p.column_start + p.columns.shape[1] for p in (self, other)) - column_start

        def spread(name: str, start: str, first: int, size: int) -> Float[Array, "2 n"]:
            whole = np.zeros((2, size))
            for part in (self, other):
                values, at = getattr(part, name), getattr(part, start) - first
                whole[:, at : at + values.shape[1]] += values
            return whole

        return ClassSums(
            center=self.center,
            rows=spread("rows", "row_start", row_start, n_rows),
            columns=spread("columns", "column_start", column_start, n_columns),
            squares=self.squares + other.squares,
            row_counts=spread("row_counts", "row_start", row_start, n_rows),
            column_counts=spread("column_counts", "column_start", column_start, n_columns),
            row_start=row_start,
            column_start=column_start,
        )


def sum_tile(tile: Tile, labels: Labels, center: float | None = None) -> ClassSums:
    """Sum a tile of a matrix in one pass; NaN are missing pairs.

    Parameters
    ----------
    tile
        Scores, float32 or float64.
    labels
        Labels of the whole matrix.
    center
        Value near the scores; by default the first score.
    """
    center = pilot(tile.scores) if center is None else center
    place = {"row_start": tile.rows.start, "column_start": tile.columns.start}
    if labels.by_speaker and not labels.n_unknown:
        row_codes, column_codes, n_speakers = labels.speaker_codes
        sums = sum_blocks(tile.scores, row_codes[tile.rows], column_codes[tile.columns], n_speakers, center)
        if not np.isnan(sums.squares).any():
            return replace(sums, **place)
    return replace(sum_by_key(tile.scores, labels.of(tile), center), **place)


def sum_blocks(
    scores: npt.NDArray[Any],
    row_codes: npt.NDArray[np.intp],
    column_codes: npt.NDArray[np.intp],
    n_speakers: int,
    center: float,
) -> ClassSums:
    """Sum a complete block whose targets are the pairs of equal codes: everything, then the targets among it.

    If a score is missing, the squares are NaN.
    """
    if few(scores.size):
        sums = sum_by_key(scores, (row_codes[:, None] == column_codes).astype(np.int8), center)
        return sums if sums.count.sum() == scores.size else replace(sums, squares=np.full(2, np.nan))
    from evenscore.model.sum_kernels import add_targets, sum_rows
    from evenscore.threads import in_parallel

    n_rows, n_columns = scores.shape
    rows, columns, squares = np.zeros((2, n_rows)), np.zeros((2, n_columns)), np.zeros(2)
    n_parts = min(_PARTS, max(n_rows, 1))  # what threads share out, they add up in one order, on any number of cores
    by_part, squares_by_part = np.zeros((n_parts, n_columns)), np.zeros(n_parts)
    in_order = np.ascontiguousarray(scores)

    def work(start: int, stop: int) -> None:
        for part in range(start, stop):
            first, last = part * n_rows // n_parts, (part + 1) * n_rows // n_parts
            squares_by_part[part] = sum_rows(in_order, center, first, last, rows[0], by_part[part])

    in_parallel(work, n_parts, scores.size // n_parts)
    columns[0], squares[0] = by_part.sum(axis=0), squares_by_part.sum()
    row_order, row_bounds = group_order(row_codes, n_speakers)
    column_order, column_bounds = group_order(column_codes, n_speakers)
    squares[1] = add_targets(in_order, center, row_order, row_bounds, column_order, column_bounds, rows[1], columns[1])
    target_rows = np.diff(column_bounds)[row_codes].astype(float)
    target_columns = np.diff(row_bounds)[column_codes].astype(float)
    for values, targets in ((rows, target_rows), (columns, target_columns)):
        size = n_columns if values is rows else n_rows
        values[0] = np.where(targets < size, values[0] - values[1], 0.0)
    squares[0] = 0.0 if target_rows.sum() == scores.size else np.maximum(squares[0] - squares[1], 0.0)  # NaN stays
    return ClassSums(
        center=center,
        rows=rows,
        columns=columns,
        squares=squares,
        row_counts=np.stack([n_columns - target_rows, target_rows]),
        column_counts=np.stack([n_rows - target_columns, target_columns]),
    )


def sum_by_key(scores: npt.NDArray[Any], key: npt.NDArray[np.int8], center: float) -> ClassSums:
    """Sum a block by an explicit key (1 target, 0 non-target, -1 skipped)."""
    n_rows, n_columns = scores.shape
    rows, columns, squares = np.zeros((2, n_rows)), np.zeros((2, n_columns)), np.zeros(2)
    row_counts, column_counts = np.zeros((2, n_rows)), np.zeros((2, n_columns))
    if few(scores.size):
        centered = scores.astype(np.float64) - center
        for label in (NONTARGET, TARGET):
            there = (key == label) & ~np.isnan(centered)
            values = np.where(there, centered, 0.0)
            rows[label], columns[label], squares[label] = values.sum(axis=1), values.sum(axis=0), (values**2).sum()
            row_counts[label], column_counts[label] = there.sum(axis=1), there.sum(axis=0)
    else:
        from evenscore.model.sum_kernels import sum_labelled

        arrays = np.ascontiguousarray(scores), np.ascontiguousarray(key, dtype=np.int8)
        sum_labelled(*arrays, center, rows, columns, squares, row_counts, column_counts)
    return ClassSums(
        center=center,
        rows=rows,
        columns=columns,
        squares=squares,
        row_counts=row_counts,
        column_counts=column_counts,
    )


def group_order(codes: npt.NDArray[np.intp], n_groups: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return positions sorted by group, and where each group begins among them."""
    order = np.argsort(codes, kind="stable")
    bounds = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=n_groups))])
    return order, bounds.astype(np.intp)


def place_in_group(codes: npt.NDArray[np.intp], n_groups: int) -> npt.NDArray[np.intp]:
    """Give numbers from 0 to the elements of each group."""
    order, bounds = group_order(codes, n_groups)
    place = np.empty(len(codes), dtype=np.intp)
    place[order] = np.arange(len(codes)) - bounds[codes[order]]
    return place


def pilot(scores: npt.NDArray[Any]) -> float:
    """Return a value near the scores: the first that is there."""
    for row in scores:
        seen = row[~np.isnan(row)]
        if seen.size:
            return float(seen[0])
    return 0.0


def without_empty(sums: ClassSums) -> ClassSums:
    """Leave out rows and columns without any score: they say nothing about the parameters."""
    rows, columns = (sums.row_counts.sum(axis=0) > 0), (sums.column_counts.sum(axis=0) > 0)
    return replace(
        sums,
        rows=sums.rows[:, rows],
        columns=sums.columns[:, columns],
        row_counts=sums.row_counts[:, rows],
        column_counts=sums.column_counts[:, columns],
    )
