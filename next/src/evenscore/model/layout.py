"""Components of a pattern side by side in arrays, so that one call of LAPACK factorizes all of one size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import NONTARGET, TARGET
from evenscore.model.pattern import Pattern

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["Batch", "Layout", "lay_out"]

Index = npt.NDArray[np.intp]
_ONE_BATCH = 1 << 14  # pairs of classes up to which one batch takes less time than several
_PADDED = 8  # up to so many classes, components are padded to a power of two


@dataclass(frozen=True, eq=False)
class Batch:
    """G components with R row classes and C column classes, R >= C; a class that a component lacks has no members.

    A class of n exchangeable members is represented by their mean times sqrt(n), which has the prior of one member;
    their deviations from it are independent of everything else, but for those of a matched class.
    """

    row_size: Float[np.ndarray, "g r"]
    col_size: Float[np.ndarray, "g c"]
    row_n: Float[np.ndarray, "g r 2"]  #: scores of each label that a member has
    col_n: Float[np.ndarray, "g c 2"]
    label: Int[np.ndarray, "g r c"]
    own: Int[np.ndarray, "g c"]  #: label of the matched pairs of slots 0..C; that of all pairs if they are not matched
    background: int

    def coupling(self) -> Float[np.ndarray, "2 g r c"]:
        """Return how strongly scores of each class couple two scaled means, beyond the background."""
        whole = np.sqrt(self.row_size[:, :, None] * self.col_size[:, None])
        weight = np.stack([(self.label == h) * whole for h in (NONTARGET, TARGET)])
        same = np.arange(self.col_size.shape[1])
        weight[:, :, same, same] += self.own_coupling()
        weight[NONTARGET] -= whole * (self.background == NONTARGET)
        return weight

    def own_coupling(self) -> Float[np.ndarray, "2 g c"]:
        """Return how many scores of each class a matched pair has more than other pairs of its classes."""
        others = np.einsum("grr->gr", self.label[:, : self.own.shape[1]])
        return np.stack([(self.own == h) * 1.0 - (others == h) for h in (NONTARGET, TARGET)])


@dataclass(frozen=True, eq=False)
class Layout:
    """Where each class stands: its batch, its component there, and its slot in the component."""

    row_place: Int[np.ndarray, "3 r"]
    col_place: Int[np.ndarray, "3 c"]
    batches: list[Batch]


def lay_out(pattern: Pattern, ordered: bool = True) -> Layout:
    """Place components with about as many classes in one batch; if ``ordered``, so that equal ones can be found."""
    matched = np.flatnonzero(pattern.match >= 0)
    col_matched = np.zeros(len(pattern.col_size), bool)
    col_matched[pattern.match[matched]] = True
    row_keys, col_keys = _sort_keys(pattern) if ordered else ((), ())
    row_slot = _place(pattern.row_component, pattern.match < 0, *row_keys)
    col_slot = _place(pattern.col_component, ~col_matched, *col_keys)
    col_slot[pattern.match[matched]] = row_slot[matched]
    n_components = max(pattern.row_component.max(initial=-1), pattern.col_component.max(initial=-1)) + 1
    sizes = np.stack(
        [np.bincount(p, minlength=n_components) for p in (pattern.row_component, pattern.col_component)], 1
    )
    small = sizes <= _PADDED
    sizes[small] = 1 << np.ceil(np.log2(np.maximum(sizes[small], 1))).astype(int)
    sizes[:, 0] = sizes.max(1)
    if not ordered and sizes.size and len(sizes) * sizes.max() ** 2 < _ONE_BATCH:
        sizes[:] = sizes.max(0)
    _, first, batch = np.unique(sizes @ [1 << 32, 1], return_index=True, return_inverse=True)
    shapes, component = sizes[first], _place(batch)
    row_place = np.stack([batch[pattern.row_component], component[pattern.row_component], row_slot])
    col_place = np.stack([batch[pattern.col_component], component[pattern.col_component], col_slot])
    numbers = np.bincount(batch, minlength=len(shapes))
    batches = [_batch(pattern, n, (numbers[n], *shapes[n]), row_place, col_place) for n in range(len(shapes))]
    return Layout(row_place, col_place, batches)


Keys = tuple[npt.NDArray[np.uint64], ...]


def _sort_keys(pattern: Pattern) -> tuple[Keys, Keys]:
    """Return numbers that order the classes of a component: from sizes and labels only, so that equal ones look equal."""
    factor = np.array([11400714819323198485, 1, 14029467366897019727], np.uint64)
    row_key, col_key = 3 * pattern.row_size.astype(np.uint64), 3 * pattern.col_size.astype(np.uint64)
    np.add.at(row_key, pattern.a, pattern.col_size[pattern.b].astype(np.uint64) * factor[pattern.label])
    np.add.at(col_key, pattern.b, pattern.row_size[pattern.a].astype(np.uint64) * factor[pattern.label])
    matched = pattern.match >= 0
    row_key[matched] += col_key[pattern.match[matched]] * factor[2] + factor[pattern.own[matched]]
    return (row_key,), (col_key,)


def _place(group: Index, *keys: npt.NDArray[np.generic]) -> Index:
    """Return the position of each element within its group, in the order of the keys."""
    order = np.lexsort((*keys[::-1], group))
    start = np.concatenate([[0], np.cumsum(np.bincount(group))])
    place = np.empty(len(group), np.intp)
    place[order] = np.arange(len(group)) - start[group[order]]
    return place


def _batch(pattern: Pattern, number: int, shape: tuple[int, int, int], row_place: Index, col_place: Index) -> Batch:
    """Return the components of a batch, G x R x C."""
    G, R, C = shape
    in_rows, in_cols = row_place[0] == number, col_place[0] == number
    row_at, col_at = tuple(row_place[1:, in_rows]), tuple(col_place[1:, in_cols])
    row_size, col_size, row_n, col_n = np.zeros((G, R)), np.zeros((G, C)), np.zeros((G, R, 2)), np.zeros((G, C, 2))
    row_size[row_at], col_size[col_at] = pattern.row_size[in_rows], pattern.col_size[in_cols]
    row_n[row_at], col_n[col_at] = pattern.row_n[in_rows], pattern.col_n[in_cols]
    label = np.full((G, R, C), pattern.background, np.int8)
    here = in_rows[pattern.a]
    a, b = pattern.a[here], pattern.b[here]
    label[row_place[1, a], row_place[2, a], col_place[2, b]] = pattern.label[here]
    own = np.einsum("grr->gr", label[:, :C]).copy()
    matched = in_rows & (pattern.match >= 0)
    own[row_place[1, matched], row_place[2, matched]] = pattern.own[matched]
    return Batch(row_size, col_size, row_n, col_n, label, own, pattern.background)
