"""What an EM iteration needs of the scores: sums of the classes of a pattern, laid out by type of component.

Components with the same sizes and labels are of one *type* and need one factorization. Posterior means are linear in
the sums of a component, so of all components of a type only the products of their sums are kept. An iteration then
costs the same for 10^4 and for 10^12 scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import NONTARGET
from evenscore.model.layout import Batch, lay_out
from evenscore.model.pattern import Pattern, find_pattern
from evenscore.model.sums import ClassSums

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

__all__ = ["Statistics", "Types", "collect"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Types:
    """T types of components with R row elements and C column elements: scaled class means, or deviations from them."""

    coupling: Float[np.ndarray, "2 t r c"]  #: how strongly scores of each class couple two elements, see `Batch`
    row_n: Float[np.ndarray, "t r 2"]  #: scores of each class that a member has
    col_n: Float[np.ndarray, "t c 2"]
    row_u: Float[np.ndarray, "t r"]  #: root of the number of members; 0 for deviations, which add up to nothing
    col_u: Float[np.ndarray, "t c"]
    row_count: Float[np.ndarray, "t r"]  #: how many such elements there are
    col_count: Float[np.ndarray, "t c"]
    number: Float[np.ndarray, " t"]  #: how many components there are
    matrix: Int[np.ndarray, " t"]  #: the matrix that has them
    phi: Float[np.ndarray, "t p f"]  #: root of the sum of phi phi', with phi = (1, 2 sums per row, 2 sums per column)


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sums of one or more matrices in standard units, (s - center of the class) / scale, so that no digits are lost."""

    types: list[Types]
    background: Bool[np.ndarray, " b"]  #: whether non-targets are the background of a matrix (else nothing is)
    hidden: Float[np.ndarray, "2"]  #: rows and columns, of all matrices
    seen: Float[np.ndarray, "2"]  #: those that have scores
    count: Float[np.ndarray, "2"]  #: scores of each class
    total: Float[np.ndarray, "2"]
    squares: Float[np.ndarray, "2"]
    center: Float[np.ndarray, "2"]
    scale: float
    transposed: bool  #: rows are tests
    most_targets: Float[np.ndarray, "2"]  #: most target scores that a row has, and a column

    @property
    def log_units(self) -> float:
        """What the log-likelihood of the scores is less than that of the standardized scores."""
        return float(self.count.sum() * np.log(self.scale))


def collect(sums: Sequence[ClassSums]) -> Statistics:
    """Lay the sums of one or more matrices out by type, in common units."""
    transposed = sum(s.labels.shape[0] for s in sums) < sum(s.labels.shape[1] for s in sums)
    sums = [s.T for s in sums] if transposed else sums  # the longer side is eliminated first
    counts = [s.labels.counts() for s in sums]
    number = [rows.sum(0) for rows, _ in counts]
    offset = [s.center - sums[0].center for s in sums]
    count = np.sum(number, 0)
    total = np.sum([s.rows.sum(0) + n * o for s, n, o in zip(sums, number, offset, strict=True)], 0)
    center = total / np.maximum(count, 1)
    square = np.zeros(2)
    for s, n, o in zip(sums, number, offset, strict=True):
        square += s.squares - 2 * (center - o) * s.rows.sum(0) + n * (center - o) ** 2
    square = np.maximum(square, 0.0)
    scale = float(np.sqrt(square.sum() / max(count.sum(), 1)))
    scale = scale if scale > 1e-12 * abs(center).max() else 1.0  # else all scores of a class are equal
    groups: dict[tuple[int, int], list[Types]] = {}
    total = np.zeros(2)
    for b, (s, (row_n, col_n), o) in enumerate(zip(sums, counts, offset, strict=True)):
        rows, cols = (s.rows - row_n * (center - o)) / scale, (s.cols - col_n * (center - o)) / scale
        total += rows.sum(0)
        for types in _types_of_matrix(b, find_pattern(s.labels), rows, cols):
            groups.setdefault(types.coupling.shape[2:], []).append(types)  # type: ignore[arg-type]
    return Statistics(
        types=[_joined(parts) for parts in groups.values()],
        background=np.array([s.labels.background == NONTARGET for s in sums]),
        hidden=np.sum([s.labels.shape for s in sums], 0).astype(float),
        seen=np.sum([[(n.sum(1) > 0).sum() for n in both] for both in counts], 0).astype(float),
        count=count,
        total=total,
        squares=square / scale**2,
        center=center + sums[0].center,
        scale=scale,
        transposed=transposed,
        most_targets=np.max([[n[:, 1].max(initial=0) for n in both] for both in counts], 0),
    )


def _types_of_matrix(
    matrix: int, pattern: Pattern, rows: Float[np.ndarray, "k 2"], cols: Float[np.ndarray, "l 2"]
) -> list[Types]:
    """Return the types of a matrix: of class means by batch, and of deviations from them."""
    layout = lay_out(pattern)
    row_mean = _class_sums(rows, pattern.row_class) / pattern.row_size[:, None]
    col_mean = _class_sums(cols, pattern.col_class) / pattern.col_size[:, None]
    row_dev, col_dev = rows - row_mean[pattern.row_class], cols - col_mean[pattern.col_class]
    with_partner = np.where(pattern.partner[:, None] >= 0, col_dev[pattern.partner], 0.0)
    row_scatter = _class_products(row_dev, row_dev, pattern.row_class)
    col_scatter = _class_products(col_dev, col_dev, pattern.col_class)
    cross_scatter = _class_products(row_dev, with_partner, pattern.row_class)
    found = []
    for number, batch in enumerate(layout.batches):
        (G, R), C = batch.row_size.shape, batch.col_size.shape[1]
        in_rows, in_cols = layout.row_place[0] == number, layout.col_place[0] == number
        row_at, col_at = tuple(layout.row_place[1:, in_rows]), tuple(layout.col_place[1:, in_cols])
        row_sums, col_sums, scatter = np.zeros((G, R, 2)), np.zeros((G, C, 2)), np.zeros((G, R, 4, 4))
        row_sums[row_at] = row_mean[in_rows] * np.sqrt(pattern.row_size[in_rows])[:, None]
        col_sums[col_at] = col_mean[in_cols] * np.sqrt(pattern.col_size[in_cols])[:, None]
        scatter[row_at[0], row_at[1], :2, :2] = row_scatter[in_rows]
        scatter[row_at[0], row_at[1], :2, 2:] = cross_scatter[in_rows]
        scatter[row_at[0], row_at[1], 2:, :2] = cross_scatter[in_rows].swapaxes(1, 2)
        scatter[col_at[0], col_at[1], 2:, 2:] = col_scatter[in_cols]
        phi = np.concatenate([np.ones((G, 1)), row_sums.reshape(G, 2 * R), col_sums.reshape(G, 2 * C)], axis=1)
        found += _types_of_batch(matrix, batch, phi, scatter)
    return found


def _class_sums(values: Float[np.ndarray, "k 2"], of: Int[np.ndarray, " k"]) -> Float[np.ndarray, "r 2"]:
    return np.stack([np.bincount(of, values[:, h]) for h in (0, 1)], 1)


def _class_products(
    left: Float[np.ndarray, "k 2"], right: Float[np.ndarray, "k 2"], of: Int[np.ndarray, " k"]
) -> Float[np.ndarray, "r 2 2"]:
    """Return the sums of left right' over the members of each class."""
    sums = [np.bincount(of, left[:, g] * right[:, h]) for g in (0, 1) for h in (0, 1)]
    return np.stack(sums, 1).reshape(-1, 2, 2)


def _types_of_batch(
    matrix: int, batch: Batch, phi: Float[np.ndarray, "g f"], scatter: Float[np.ndarray, "g r 4 4"]
) -> list[Types]:
    """Find equal components, and compress what is kept of each type."""
    G = len(phi)
    kind = [batch.row_size, batch.col_size, batch.label.reshape(G, -1), batch.own]
    _, first, of, number = np.unique(
        np.concatenate(kind, 1), axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(of.ravel(), kind="stable")
    ends = np.cumsum(number)
    phis = np.split(phi[order], ends[:-1])
    phis = [np.linalg.qr(p, mode="r") if len(p) > p.shape[1] else p for p in phis]  # has the same products
    scatter = np.add.reduceat(scatter[order], ends - number, axis=0)
    one = Batch(*(getattr(batch, name)[first] for name in ("row_size", "col_size", "row_n", "col_n", "label", "own")), batch.background)  # fmt: skip
    means = Types(
        coupling=one.coupling(),
        row_n=one.row_n,
        col_n=one.col_n,
        row_u=np.sqrt(one.row_size),
        col_u=np.sqrt(one.col_size),
        row_count=number[:, None] * (one.row_size > 0),
        col_count=number[:, None] * (one.col_size > 0),
        number=number.astype(float),
        matrix=np.full(len(number), matrix),
        phi=_padded(phis),
    )
    return [means, *_deviations(matrix, one, number, scatter)]


def _deviations(
    matrix: int, batch: Batch, number: Int[np.ndarray, " t"], scatter: Float[np.ndarray, "t r 4 4"]
) -> list[Types]:
    """Return deviations within row class r and column class r as components with one element each side, (E8)."""
    (T, R), C = batch.row_size.shape, batch.col_size.shape[1]

    def one_each(columns: Array) -> Array:  # a column class for every row class, and its own component
        wide = np.zeros((T, R, *columns.shape[2:]))
        wide[:, :C] = columns
        return wide.reshape(T * R, 1, *columns.shape[2:])

    row_count = (number[:, None] * np.maximum(batch.row_size - 1, 0)).reshape(T * R, 1)
    col_count = one_each(number[:, None] * np.maximum(batch.col_size - 1, 0))
    at = np.flatnonzero(row_count + col_count)
    if not len(at):
        return []
    values, vectors = np.linalg.eigh(scatter.reshape(T * R, 4, 4)[at])
    phi = np.zeros((len(at), 4, 5))
    phi[:, :, 1:] = np.sqrt(np.maximum(values, 0))[:, :, None] * vectors.swapaxes(1, 2)
    own = np.stack([one_each(part)[at][..., None] for part in batch.own_coupling()])
    none, row_n, col_n = np.zeros((len(at), 1)), batch.row_n.reshape(T * R, 1, 2)[at], one_each(batch.col_n)[at]
    counts = row_count[at], col_count[at]
    return [Types(own, row_n, col_n, none, none, *counts, col_count[at, 0], np.full(len(at), matrix), phi)]


def _padded(phis: Sequence[Array]) -> Array:
    found = np.zeros((len(phis), max(map(len, phis)), phis[0].shape[1]))
    for n, phi in enumerate(phis):
        found[n, : len(phi)] = phi
    return found


def _joined(parts: list[Types]) -> Types:
    """Put all types with the same numbers of elements together."""
    names = ("row_n", "col_n", "row_u", "col_u", "row_count", "col_count", "number", "matrix")
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    coupling = np.concatenate([part.coupling for part in parts], axis=1)
    return Types(coupling=coupling, phi=_padded([phi for part in parts for phi in part.phi]), **arrays)
