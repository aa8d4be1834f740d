"""The one elimination: the posterior of hidden variables whose precision couples two sides in any way.

    Lambda = [[A, C], [C', B]]

A has a D x D block for each row of the scores, B one for each column, and C one for each pair that has a score. The
larger side (here the outer one) is eliminated, and the Schur complement of the smaller one is inverted. What couples a
pair is said by its label (`LabelCouplings`), by the labels of few pairs among many (`ListedCouplings`, sparse), or by
weights of its own (`WeightCouplings`). Letters as in docs/math.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore.errors import InputError
from evenscore.tables import UNKNOWN

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Elimination", "LabelCouplings", "ListedCouplings", "Part", "WeightCouplings"]

Array = np.ndarray
_CHUNK = 1 << 23  # numbers in the largest temporary array
_LARGEST = 40_000  # rows of a Schur complement: 12 GB


@dataclass(frozen=True, kw_only=True, eq=False)
class DensePart:
    """Some outer elements and what couples them with all inner ones: C, and X = D_out^-1 C."""

    at: slice
    C: Float[Array, "n ed fd"]
    X: Float[Array, "n ed fd"]
    size: tuple[int, int, int]  #: outer elements, inner elements, and D
    key: Array | None  #: labels of the pairs

    @classmethod
    def of(cls, at: slice, blocks: Array, inverse: Array, key: Array | None = None) -> DensePart:
        """Make it of a D x D block for each pair, n x e x f x D x D."""
        n, size, n_in, dim = blocks.shape[:4]
        C = blocks.transpose(0, 1, 3, 2, 4).reshape(n, size, dim, n_in * dim)
        flat = (n, size * dim, n_in * dim)
        return cls(at=at, C=C.reshape(flat), X=(inverse @ C).reshape(flat), size=(size, n_in, dim), key=key)

    def gram(self) -> Array:
        """Return C' X."""
        return self.C.transpose(0, 2, 1) @ self.X

    def to_inner(self, outer: Array) -> Array:
        """Return X' times values of the outer elements."""
        return self.X.transpose(0, 2, 1) @ outer.reshape(*self.X.shape[:2], outer.shape[3])

    def to_outer(self, inner: Array) -> Array:
        """Return X times values of the inner elements."""
        return (self.X @ inner).reshape(len(inner), self.size[0], self.size[2], inner.shape[2])

    def pairs(self, S_inv: Array) -> Array:
        """Return X S^-1 at the pairs, which is minus the covariance of the outer and the inner element."""
        size, n_in, dim = self.size
        return (self.X @ S_inv).reshape(len(S_inv), size, dim, n_in, dim).transpose(0, 1, 3, 2, 4)

    def spread(self, pairs: Array) -> Array:
        """Return X S^-1 X' of each outer element, given X S^-1 at the pairs."""
        size, n_in, dim = self.size
        shape = (len(pairs), size, dim, n_in * dim)
        return pairs.transpose(0, 1, 3, 2, 4).reshape(shape) @ self.X.reshape(shape).transpose(0, 1, 3, 2)

    def sum_pairs(self, pairs: Array, label: int) -> Array:
        """Sum values of the pairs that have a label."""
        there = (self.key == label).astype(float)  # type: ignore[union-attr]
        total: Array = np.einsum("nefdg,nef->dg", pairs, there, optimize=True)
        return total


@dataclass(frozen=True, kw_only=True, eq=False)
class SparsePart:
    """The same where few pairs are coupled, which are listed; n = 1."""

    at: slice
    i: Array  #: outer element of each listed pair, from 0
    j: Array
    labels: Array
    blocks: Float[Array, "p d d"]  #: the pairs' blocks of X
    C: Any
    X: Any

    def gram(self) -> Array:
        """Return C' X."""
        return (self.C.T @ self.X).toarray()[None]

    def to_inner(self, outer: Array) -> Array:
        """Return X' times values of the outer elements."""
        return (self.X.T @ outer.reshape(self.X.shape[0], outer.shape[3]))[None]

    def to_outer(self, inner: Array) -> Array:
        """Return X times values of the inner elements."""
        return (self.X @ inner[0]).reshape(1, -1, self.blocks.shape[1], inner.shape[2])

    def pairs(self, S_inv: Array) -> Array:
        """Return X S^-1 at the pairs, which is minus the covariance of the outer and the inner element."""
        dim = self.blocks.shape[1]
        reach: Array = (self.X @ S_inv[0]).reshape(-1, dim, S_inv.shape[1] // dim, dim)
        return reach[self.i, :, self.j, :]

    def spread(self, pairs: Array) -> Array:
        """Return X S^-1 X' of each outer element, given X S^-1 at the pairs."""
        dim = self.blocks.shape[1]
        spread = np.zeros((1, self.at.stop - self.at.start, dim, dim))
        np.add.at(spread[0], self.i, pairs @ self.blocks.transpose(0, 2, 1))
        return spread

    def sum_pairs(self, pairs: Array, label: int) -> Array:
        """Sum values of the pairs that have a label."""
        total: Array = pairs[self.labels == label].sum(axis=0)
        return total


Part = DensePart | SparsePart


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelCouplings:
    """A pair of label 0, 1 or -1 (in this order of index) is coupled by what the table says."""

    key: Array  # n x K x L
    table: Float[Array, "3 d d"]

    @property
    def turned(self) -> LabelCouplings:
        """The same with rows and columns exchanged."""
        return replace(self, key=self.key.transpose(0, 2, 1), table=self.table.transpose(0, 2, 1))

    def part(self, at: slice, inverse: Float[Array, "n e d d"]) -> Part:
        """Return the couplings of some rows; ``inverse`` is the inverse of their own blocks."""
        key = self.key[:, at]
        return DensePart.of(at, self.table[key], inverse, key)


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightCouplings:
    """A pair is coupled by the sum over classes of c_h times its own weight in the class."""

    weights: Float[Array, "2 k l"]
    c: Float[Array, "2 d d"]

    @property
    def turned(self) -> WeightCouplings:
        """The same with rows and columns exchanged."""
        return WeightCouplings(weights=self.weights.transpose(0, 2, 1), c=self.c.transpose(0, 2, 1))

    def part(self, at: slice, inverse: Float[Array, "1 e d d"]) -> DensePart:
        """Return the couplings of some rows; ``inverse`` is the inverse of their own blocks."""
        weights, dim = self.weights[:, at], self.c.shape[1]
        blocks = np.moveaxis(weights, 0, -1).reshape(weights[0].size, 2) @ self.c.reshape(2, dim * dim)
        return DensePart.of(at, blocks.reshape(1, *weights.shape[1:], dim, dim), inverse)


@dataclass(frozen=True, kw_only=True, eq=False)
class ListedCouplings(LabelCouplings):
    """By label, too, for one matrix most of whose pairs have no score and are not coupled: the others are listed."""

    def __post_init__(self) -> None:
        n_out, n_in = sorted(self.key.shape[1:], reverse=True)
        if n_in * self.table.shape[1] > _LARGEST:
            raise InputError(
                f"the trials link {n_out} x {n_in} enrolments and tests into one system, which is too large to solve; "
                "train on a matrix of fewer enrolments or tests, or on several separate lists"
            )

    def part(self, at: slice, inverse: Float[Array, "1 e d d"]) -> SparsePart:
        """Return the couplings of some rows; ``inverse`` is the inverse of their own blocks."""
        key = self.key[0, at]
        i, j = np.nonzero(key != UNKNOWN)
        blocks = self.table[key[i, j]]
        reached = inverse[0, i] @ blocks
        sparse = [_sparse_blocks(values, i, j, key.shape) for values in (blocks, reached)]
        return SparsePart(at=at, i=i, j=j, labels=key[i, j], blocks=reached, C=sparse[0], X=sparse[1])


def _sparse_blocks(blocks: Float[Array, "p d d"], i: Array, j: Array, shape: tuple[int, ...]) -> Any:
    """Return a sparse matrix with a D x D block at each pair."""
    from scipy.sparse import coo_array

    dim = blocks.shape[1]
    a, b = np.indices((dim, dim))
    rows, columns = ((index[:, None, None] * dim + place).reshape(-1) for index, place in ((i, a), (j, b)))
    return coo_array((blocks.reshape(-1), (rows, columns)), shape=(shape[0] * dim, shape[1] * dim)).tocsr()


PairCouplings = LabelCouplings | WeightCouplings


class Elimination:
    """The inverse of a precision [[A, C], [C', B]], or of n of them.

    ``definite`` says that it is a precision for certain, and not one from which a background was taken away.
    """

    def __init__(
        self, couplings: PairCouplings, A: Float[Array, "n k d d"], B: Float[Array, "n l d d"], *, definite: bool
    ) -> None:
        self.turned = A.shape[1] < B.shape[1]
        self._couplings = couplings.turned if self.turned else couplings
        D_out, D_in = self._sides(A, B)
        n, n_in, dim = D_in.shape[:3]
        step = max(1, _CHUNK // max(n * n_in * dim * dim, 1))
        n_out = D_out.shape[1]
        self._spans = [slice(start, min(start + step, n_out)) for start in range(0, n_out, step)]
        self._inverse = np.linalg.inv(D_out)
        self._only = self._part(self._spans[0]) if len(self._spans) == 1 else None
        self._at = np.arange(n_in * dim).reshape(n_in, dim)
        S = np.zeros((n, n_in * dim, n_in * dim))
        S[:, self._at[:, :, None], self._at[:, None, :]] = D_in
        for part in self._parts():
            S -= part.gram()
        self._S_inv, log_det = _inverse(S, definite)
        self.log_det = log_det + float(np.linalg.slogdet(D_out)[1].sum())

    def _sides(self, rows: Array, columns: Array) -> tuple[Array, Array]:
        """Exchange rows and columns for outer and inner elements, or the other way round."""
        return (columns, rows) if self.turned else (rows, columns)

    def _part(self, at: slice) -> Part:
        return self._couplings.part(at, self._inverse[:, at])

    def _parts(self) -> Iterator[Part]:
        """Yield the outer side part by part, so that no array is larger than a chunk; a single part is kept."""
        yield from map(self._part, self._spans) if self._only is None else [self._only]

    def solve(
        self, gamma_x: Float[Array, "n k d r"], gamma_y: Float[Array, "n l d r"]
    ) -> tuple[Float[Array, "n k d r"], Float[Array, "n l d r"]]:
        """Return the inverse times gamma: the posterior means, for each gamma that is given."""
        outer, inner = self._sides(gamma_x, gamma_y)
        rest = inner.reshape(*self._S_inv.shape[:2], inner.shape[3]).copy()
        for part in self._parts():
            rest -= part.to_inner(outer[:, part.at])
        inner_mean = self._S_inv @ rest
        outer_mean = self._inverse @ outer
        for part in self._parts():
            outer_mean[:, part.at] -= part.to_outer(inner_mean)
        return self._sides(outer_mean, inner_mean.reshape(inner.shape))

    def covariances(
        self, between: Callable[[Part, Array], None]
    ) -> tuple[Float[Array, "n k d d"], Float[Array, "n l d d"]]:
        """Return the covariance of each hidden variable; ``between`` is shown those of x_i and y_j, part by part."""
        outer = self._inverse.copy()
        for part in self._parts():
            pairs = part.pairs(self._S_inv)
            outer[:, part.at] += part.spread(pairs)
            between(part, -(pairs.swapaxes(-1, -2) if self.turned else pairs))
        return self._sides(outer, self._S_inv[:, self._at[:, :, None], self._at[:, None, :]])


def _inverse(S: Float[Array, "n w w"], definite: bool) -> tuple[Float[Array, "n w w"], float]:
    """Return the inverses of symmetric matrices, which are overwritten, and the sum of their log-determinants."""
    if not definite or len(S) > 1 or not S.size:
        inverse = np.linalg.inv(S)
        return (inverse + inverse.transpose(0, 2, 1)) / 2, float(np.linalg.slogdet(S)[1].sum())
    from scipy.linalg.lapack import dpotrf, dpotri

    factor, failed = dpotrf(S[0].T, lower=True, overwrite_a=True)
    if failed:
        raise np.linalg.LinAlgError("the posterior precision is not positive definite")
    log_det = 2.0 * float(np.log(np.diag(factor)).sum())
    lower = np.tril(dpotri(factor, lower=True, overwrite_c=True)[0])
    return (lower + np.tril(lower, -1).T)[None], log_det
