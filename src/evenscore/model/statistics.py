"""What an EM iteration needs of the scores: sums of the classes of a pattern, laid out by type of component.

A class of n exchangeable members is represented by their mean times sqrt(n), which has the prior of one member; their
deviations from it are independent of everything else, but for those of a matched class. Components with the same sizes
and labels are of one *type* and need one factorization. Posterior means are linear in the sums of a component, so only
products of the sums of all components of a type are kept: an iteration costs the same for 10^4 and 10^12 scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import NONTARGET, TARGET
from evenscore.model.pattern import LABEL_FACTOR, Array, Index, Pattern, find_pattern
from evenscore.model.sums import ClassSums

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

__all__ = ["Layout", "Statistics", "Types", "collect", "lay_out"]

_ONE_BATCH = 1 << 14  # pairs of classes up to which one batch takes less time than several


@dataclass(frozen=True, eq=False, kw_only=True)
class Types:
    """T types of components with R row elements and C column elements: scaled class means, or deviations from them.

    In a complete matrix where targets are pairs of one speaker, R = C = 1: a component is the mean of a speaker's K_g
    rows and that of its L_g columns, with row_u = sqrt(K_g), col_u = sqrt(L_g) and couplings of -+ sqrt(K_g L_g), (E5).
    """

    coupling: Float[np.ndarray, "2 t r c"]  #: how strongly scores of each class couple two elements, see `Layout`
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
    transposed: bool  #: rows are tests, since there are more of them; so the model is that of transposed scores
    most_targets: Float[np.ndarray, "2"]  #: most target scores that a row has, and a column
    log_units: float  #: what the log-likelihood of the scores is less than that of the standardized scores


def collect(sums: Sequence[ClassSums]) -> Statistics:
    """Lay the sums of one or more matrices out by type, in common units."""
    hidden = np.sum([s.labels.shape for s in sums], 0).astype(float)
    transposed = bool(hidden[0] < hidden[1])
    sums = [s.T for s in sums] if transposed else sums  # the longer side is eliminated first
    count = np.sum([s.counts[0].sum(0) for s in sums], 0)
    total = np.sum([s.rows.sum(0) + s.counts[0].sum(0) * s.center for s in sums], 0)
    center = total / np.maximum(count, 1)
    sums = [s.moved(center) for s in sums]
    squares = np.maximum(np.sum([s.squares for s in sums], 0), 0.0)
    scale = float(np.sqrt(squares.sum() / max(count.sum(), 1)))
    scale = scale if scale > 1e-12 * abs(center).max() else 1.0  # else all scores of a class are equal
    groups: dict[tuple[int, ...], list[Types]] = {}
    for b, s in enumerate(sums):
        for types in _types_of_matrix(b, find_pattern(s.labels), s.rows / scale, s.cols / scale):
            groups.setdefault(types.coupling.shape[2:], []).append(types)
    return Statistics(
        types=[_joined(parts) for parts in groups.values()],
        background=np.array([s.labels.background == NONTARGET for s in sums]),
        hidden=hidden[::-1] if transposed else hidden,
        seen=np.sum([[(n.sum(1) > 0).sum() for n in s.counts] for s in sums], 0).astype(float),
        count=count,
        total=np.sum([s.rows.sum(0) for s in sums], 0) / scale,
        squares=squares / scale**2,
        center=center,
        scale=scale,
        transposed=transposed,
        most_targets=np.max([[n[:, 1].max(initial=0) for n in s.counts] for s in sums], 0),
        log_units=float(count.sum() * np.log(scale)),
    )


@dataclass(frozen=True, eq=False)
class Layout:
    """Components of a pattern side by side in batches, so that one call of LAPACK factorizes all of one size.

    Batch n has G components with R row slots and C column slots, R >= C. Matched classes have the same slot. Slots that
    a component lacks have size 0.
    """

    pattern: Pattern
    shapes: list[tuple[int, int, int]]  #: (G, R, C) of each batch
    row_place: Int[np.ndarray, "3 r"]  #: batch, component and slot of each row class
    col_place: Int[np.ndarray, "3 c"]

    def rows(self, n: int, values: npt.NDArray[np.generic]) -> Array:
        """Return the values of row classes in the slots of batch n, G x R."""
        at, place = self.row_place[0] == n, np.zeros((*self.shapes[n][:2], *values.shape[1:]))
        place[self.row_place[1, at], self.row_place[2, at]] = values[at]
        return place

    def cols(self, n: int, values: npt.NDArray[np.generic]) -> Array:
        """Return the values of column classes in the slots of batch n, G x C."""
        at, place = self.col_place[0] == n, np.zeros((*self.shapes[n][::2], *values.shape[1:]))
        place[self.col_place[1, at], self.col_place[2, at]] = values[at]
        return place

    def coupling(self, n: int, row_u: Array, col_u: Array) -> tuple[Array, Array]:
        """Return how strongly scores of each class couple scaled means of batch n beyond the background.

        2 x G x R x C; and how many scores a matched pair has more than other pairs of its classes, 2 x G x C.
        """
        pattern, whole = self.pattern, row_u[:, :, None] * col_u[:, None]
        label = np.full(self.shapes[n], pattern.background, np.int8)
        here = self.row_place[0, pattern.a] == n
        a, b = pattern.a[here], pattern.b[here]
        label[self.row_place[1, a], self.row_place[2, a], self.col_place[2, b]] = pattern.label[here]
        slots = np.arange(self.shapes[n][2])
        others = label[:, slots, slots]
        matched = (self.row_place[0] == n) & (pattern.match >= 0)
        own_label = others.copy()
        own_label[self.row_place[1, matched], self.row_place[2, matched]] = pattern.own[matched]
        own = np.stack([(own_label == h) * 1.0 - (others == h) for h in (NONTARGET, TARGET)])
        weight = np.stack([(label == h) * whole for h in (NONTARGET, TARGET)])
        weight[:, :, slots, slots] += own
        weight[NONTARGET] -= whole * (pattern.background == NONTARGET)
        return weight, own


def lay_out(pattern: Pattern, ordered: bool = True) -> Layout:
    """Place components with about as many classes in one batch; if ``ordered``, so that equal ones look equal."""
    matched = np.flatnonzero(pattern.match >= 0)
    col_matched = np.zeros(len(pattern.col_size), bool)
    col_matched[pattern.match[matched]] = True
    row_keys: list[Array] = [pattern.match < 0]
    col_keys: list[Array] = [~col_matched]
    if ordered:  # numbers that follow from sizes and labels only
        row_key, col_key = 3 * pattern.row_size.astype(np.uint64), 3 * pattern.col_size.astype(np.uint64)
        np.add.at(row_key, pattern.a, pattern.col_size[pattern.b].astype(np.uint64) * LABEL_FACTOR[pattern.label])
        np.add.at(col_key, pattern.b, pattern.row_size[pattern.a].astype(np.uint64) * LABEL_FACTOR[pattern.label])
        row_key[matched] += col_key[pattern.match[matched]] * LABEL_FACTOR[2] + LABEL_FACTOR[pattern.own[matched]]
        row_keys, col_keys = [*row_keys, row_key], [*col_keys, col_key]
    row_slot, col_slot = _position(pattern.row_component, *row_keys), _position(pattern.col_component, *col_keys)
    col_slot[pattern.match[matched]] = row_slot[matched]
    n_components = max(pattern.row_component.max(initial=-1), pattern.col_component.max(initial=-1)) + 1
    sides = pattern.row_component, pattern.col_component
    sizes = np.stack([np.bincount(of, minlength=n_components) for of in sides], 1)
    sizes = np.where(sizes <= 8, 1 << np.ceil(np.log2(np.maximum(sizes, 1))).astype(int), sizes)  # fewer batches
    sizes[:, 0] = sizes.max(1)
    if not ordered and sizes.size and len(sizes) * sizes.max() ** 2 < _ONE_BATCH:
        sizes[:] = sizes.max(0)
    _, first, batch, number = np.unique(sizes @ [1 << 32, 1], True, True, True)
    component = _position(batch)
    shapes = [(int(g), int(r), int(c)) for g, (r, c) in zip(number, sizes[first], strict=True)]
    row_place = np.stack([batch[pattern.row_component], component[pattern.row_component], row_slot])
    col_place = np.stack([batch[pattern.col_component], component[pattern.col_component], col_slot])
    return Layout(pattern, shapes, row_place, col_place)


def _position(group: Index, *keys: npt.NDArray[np.generic]) -> Index:
    """Return the position of each element within its group, in the order of the keys."""
    order = np.lexsort((*keys[::-1], group))
    start = np.concatenate([[0], np.cumsum(np.bincount(group))])
    place = np.empty(len(group), np.intp)
    place[order] = np.arange(len(group)) - start[group[order]]
    return place


def _types_of_matrix(matrix: int, pattern: Pattern, rows: Array, cols: Array) -> list[Types]:
    """Return the types of a matrix, of which ``rows`` and ``cols`` are sums by class of label: see `Types`."""
    layout, found = lay_out(pattern), []
    row_u, col_u = np.sqrt(pattern.row_size), np.sqrt(pattern.col_size)
    row_sums = _by_class(rows, pattern.row_class) / row_u[:, None]
    col_sums = _by_class(cols, pattern.col_class) / col_u[:, None]
    row_deviations = rows - (row_sums / row_u[:, None])[pattern.row_class]
    col_deviations = cols - (col_sums / col_u[:, None])[pattern.col_class]
    scatters = _scatters(pattern, row_deviations, col_deviations)
    for n, (G, R, C) in enumerate(layout.shapes):
        u, v = layout.rows(n, row_u), layout.cols(n, col_u)
        coupling, own = layout.coupling(n, u, v)
        sums = layout.rows(n, row_sums).reshape(G, 2 * R), layout.cols(n, col_sums).reshape(G, 2 * C)
        phi = np.concatenate([np.ones((G, 1)), *sums], axis=1)
        # Components of one type have the same sizes and couplings.
        kind = np.concatenate([u, v, *(part.reshape(G, -1) for part in (*coupling, *own))], 1)
        _, first, of, number = np.unique(kind, axis=0, return_index=True, return_inverse=True, return_counts=True)
        order, ends = np.argsort(of.ravel(), kind="stable"), np.cumsum(number)
        phis = np.split(phi[order], ends[:-1])
        phis = [np.asarray(np.linalg.qr(p, mode="r")) if len(p) > p.shape[1] else p for p in phis]  # the same products
        scatter = np.add.reduceat(_scatter_of_batch(layout, n, *scatters)[order], ends - number, axis=0)
        means = Types(
            coupling=coupling[:, first],
            row_n=layout.rows(n, pattern.row_n)[first],
            col_n=layout.cols(n, pattern.col_n)[first],
            row_u=u[first],
            col_u=v[first],
            row_count=number[:, None] * (u[first] > 0),
            col_count=number[:, None] * (v[first] > 0),
            number=number.astype(float),
            matrix=np.full(len(number), matrix),
            phi=_padded(phis),
        )
        found += [means, *_deviations(means, own[:, first], scatter)]
    return found


def _scatters(pattern: Pattern, rows: Array, cols: Array) -> tuple[Array, Array, Array]:
    """Return the scatter of deviations in each row class, with those of matched columns, and in each column class."""
    partners = np.where(pattern.partner[:, None] >= 0, cols[pattern.partner], 0.0)
    of_rows = _by_class(rows[:, :, None] * rows[:, None], pattern.row_class)
    of_both = _by_class(rows[:, :, None] * partners[:, None], pattern.row_class)
    return of_rows, of_both, _by_class(cols[:, :, None] * cols[:, None], pattern.col_class)


def _scatter_of_batch(layout: Layout, n: int, of_rows: Array, of_both: Array, of_cols: Array) -> Array:
    """Return the scatter in the slots of a batch, of two sums of a row and two of its column: G x R x 4 x 4."""
    G, R, C = layout.shapes[n]
    scatter = np.zeros((G, R, 4, 4))
    scatter[:, :, :2, :2], scatter[:, :, :2, 2:] = layout.rows(n, of_rows), layout.rows(n, of_both)
    scatter[:, :, 2:, :2] = scatter[:, :, :2, 2:].swapaxes(2, 3)
    scatter[:, :C, 2:, 2:] = layout.cols(n, of_cols)
    return scatter


def _by_class(values: Array, of: Index) -> Array:
    """Return the sums of values over the members of each class."""
    columns = values.reshape(len(values), -1).T
    return np.stack([np.bincount(of, column) for column in columns], 1).reshape(-1, *values.shape[1:])


def _deviations(means: Types, own: Array, scatter: Array) -> list[Types]:
    """Return deviations within row class r and column class r as components with one element each side, (E8)."""
    (T, R), C = means.row_u.shape, means.col_u.shape[1]

    def one_each(columns: Array) -> Array:  # a column class for every row class, and its own component
        wide = np.zeros((T, R, *columns.shape[2:]))
        wide[:, :C] = columns
        return wide.reshape(T * R, 1, *columns.shape[2:])

    number = means.number[:, None]
    row_count = (number * np.maximum(means.row_u**2 - 1, 0).round()).reshape(T * R, 1)
    col_count = one_each(number * np.maximum(means.col_u**2 - 1, 0).round())
    at = np.flatnonzero(row_count + col_count)
    if not len(at):
        return []
    values, vectors = np.linalg.eigh(scatter.reshape(T * R, 4, 4)[at])
    phi = np.zeros((len(at), 4, 5))
    phi[:, :, 1:] = np.sqrt(np.maximum(values, 0))[:, :, None] * vectors.swapaxes(1, 2)
    deviations = Types(
        coupling=np.stack([one_each(part)[at][..., None] for part in own]),
        row_n=means.row_n.reshape(T * R, 1, 2)[at],
        col_n=one_each(means.col_n)[at],
        row_u=np.zeros((len(at), 1)),
        col_u=np.zeros((len(at), 1)),
        row_count=row_count[at],
        col_count=col_count[at],
        number=col_count[at, 0],
        matrix=np.repeat(means.matrix, R)[at],
        phi=phi,
    )
    return [deviations]


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
