"""The posterior for any pattern of labels and missing pairs: exceptions to a background, component by component.

Each component is solved by elimination. The background, if there is one, is a correction of rank 2D (Woodbury).
Letters and equation numbers as in docs/math.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenscore.model.elimination import Elimination, LabelCouplings, ListedCouplings, Part
from evenscore.model.moments import HiddenSide, Moments, sum_moments
from evenscore.model.parameters import ScoreModel
from evenscore.model.patterns import Component, Exceptions
from evenscore.model.precision import (
    PrecisionTerms,
    background_correction,
    diagonal_blocks,
    evidence_of_sums,
    marginal,
    precision_terms,
)
from evenscore.model.sums import ClassSums
from evenscore.tables import NONTARGET, TARGET, UNKNOWN

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["PatternPrecision", "PatternStatistics", "expect_pattern"]

Array = np.ndarray
_LARGE = 200  # size of the Schur complement from which sparse couplings pay


@dataclass(frozen=True, kw_only=True, eq=False)
class PatternStatistics:
    """Sums of standardized scores per class, row and column, and the pattern they come from."""

    pattern: Exceptions
    batches: list[Component]
    sums: ClassSums
    center: Float[Array, "2"]
    scale: float

    @property
    def count(self) -> Float[Array, "2"]:
        """Number of scores of each class."""
        return self.sums.count

    @property
    def squares(self) -> Float[Array, "2"]:
        """Sum of squares of each class."""
        return self.sums.squares


@dataclass(frozen=True, kw_only=True, eq=False)
class _Solved:
    """Lambda^-1 gamma for each gamma that was given, and the parts of Woodbury's identity."""

    x: Float[Array, "k d r"]
    y: Float[Array, "l d r"]
    Vx: Float[Array, "k d p"]  #: V = P^-1 U
    Vy: Float[Array, "l d p"]
    W: Float[Array, "p p"]
    T: Float[Array, "p p"]
    log_det: float  #: what the background adds to log|Lambda|


def _go_on(batch: Component, elimination: Elimination) -> None:
    """Do nothing more with a component that was solved."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PatternPrecision:
    """The posterior precision Lambda = P + U M U' of a pattern: P falls into components, U M U' is the background."""

    terms: PrecisionTerms
    background: bool
    batches: list[Component]
    A: Float[Array, "k d d"]  #: what P has on its diagonal
    B: Float[Array, "l d d"]

    @classmethod
    def of(
        cls,
        model: ScoreModel,
        background: bool,
        batches: list[Component],
        row_counts: Float[Array, "2 k"],
        column_counts: Float[Array, "2 l"],
    ) -> PatternPrecision:
        """Make it of the numbers of scores of each class in all rows and columns."""
        terms = precision_terms(model)
        A, B = diagonal_blocks(terms, row_counts, column_counts)
        return cls(terms=terms, background=background, batches=batches, A=A, B=B)

    def _eliminations(self) -> Iterator[tuple[Component, Elimination]]:
        dim, c = self.A.shape[1], self.terms.c
        table = np.stack([c[NONTARGET], c[TARGET], np.zeros((dim, dim))])
        table = table - c[NONTARGET] if self.background else table
        for batch in self.batches:
            n_components, n_rows, n_columns = batch.key.shape
            # Without a background P is a precision itself, so a large, sparse component can be done by Cholesky.
            listed = not self.background and n_components == 1 and min(n_rows, n_columns) * dim >= _LARGE
            linked = (ListedCouplings if listed else LabelCouplings)(key=batch.key, table=table)
            yield batch, Elimination(linked, self.A[batch.rows], self.B[batch.columns], definite=listed)

    def solve_components(
        self,
        rhs_x: Float[Array, "k d r"],
        rhs_y: Float[Array, "l d r"],
        each: Callable[[Component, Elimination], None] = _go_on,
    ) -> tuple[Float[Array, "k d q"], Float[Array, "l d q"]]:
        """Return P^-1 times the right-hand side and, behind it, V = P^-1 U; ``each`` is shown every component."""
        dim = self.A.shape[1]
        U = np.eye(2 * dim)
        rhs_x = np.concatenate([rhs_x, np.broadcast_to(U[:dim], (len(self.A), dim, 2 * dim))], axis=2)
        rhs_y = np.concatenate([rhs_y, np.broadcast_to(U[dim:], (len(self.B), dim, 2 * dim))], axis=2)
        x, y = np.empty_like(rhs_x), np.empty_like(rhs_y)
        for batch, elimination in self._eliminations():
            x[batch.rows], y[batch.columns] = elimination.solve(rhs_x[batch.rows], rhs_y[batch.columns])
            each(batch, elimination)
        return x, y

    def solve(
        self,
        gamma_x: Float[Array, "k d r"],
        gamma_y: Float[Array, "l d r"],
        each: Callable[[Component, Elimination], None] = _go_on,
    ) -> _Solved:
        """Return Lambda^-1 gamma, for each gamma that is given: posterior means, (E4), (E5)."""
        n_gamma = gamma_x.shape[2]
        x, y = self.solve_components(gamma_x, gamma_y, each)
        Vx, Vy = x[:, :, n_gamma:], y[:, :, n_gamma:]
        x, y = x[:, :, :n_gamma], y[:, :, :n_gamma]
        W = np.concatenate([Vx.sum(axis=0), Vy.sum(axis=0)])
        T, more = background_correction(self.terms, W) if self.background else (np.zeros_like(W), 0.0)
        Tt = T @ np.concatenate([x.sum(axis=0), y.sum(axis=0)])
        return _Solved(x=x - Vx @ Tt, y=y - Vy @ Tt, Vx=Vx, Vy=Vy, W=W, T=T, log_det=more)


def expect_pattern(model: ScoreModel, stats: PatternStatistics) -> Moments:
    """Return the expected statistics and the log-likelihood of a matrix with any pattern, in standardized units."""
    dim, sums, pattern = model.dim, stats.sums, stats.pattern
    gamma_x, gamma_y = evidence_of_sums(model, sums)
    precision = PatternPrecision.of(model, pattern.background, stats.batches, sums.row_counts, sums.column_counts)
    x_cov, y_cov = np.empty_like(precision.A), np.empty_like(precision.B)
    labels = (TARGET, UNKNOWN if pattern.background else NONTARGET)  # of the listed pairs
    cross = {label: np.zeros((dim, dim)) for label in labels}
    log_dets = []

    def add(part: Part, pairs: Array) -> None:
        for label in labels:
            cross[label] += part.sum_pairs(pairs, label)

    def covariances(batch: Component, elimination: Elimination) -> None:
        x_cov[batch.rows], y_cov[batch.columns] = elimination.covariances(add)
        log_dets.append(elimination.log_det)

    post = precision.solve(gamma_x[:, :, None], gamma_y[:, :, None], covariances)
    VxT, VyT = post.Vx @ post.T, post.Vy @ post.T
    x = HiddenSide(mean=post.x[:, :, 0], covariance=x_cov - VxT @ post.Vx.transpose(0, 2, 1))
    y = HiddenSide(mean=post.y[:, :, 0], covariance=y_cov - VyT @ post.Vy.transpose(0, 2, 1))
    for label in labels:
        listed = pattern.labels == label
        i, j = pattern.rows[listed], pattern.columns[listed]
        cross[label] += _sum_pairs(x.mean, y.mean, i, j) - _sum_pairs(VxT, post.Vy, i, j)
    if pattern.background:  # all pairs, but for the listed ones
        all_pairs = (post.W - post.W @ post.T @ post.W)[:dim, dim:]
        nontarget = all_pairs + np.outer(x.mean.sum(axis=0), y.mean.sum(axis=0)) - cross[TARGET] - cross[UNKNOWN]
    else:
        nontarget = cross[NONTARGET]
    explained = float(np.vdot(gamma_x, x.mean) + np.vdot(gamma_y, y.mean))
    likelihood = marginal(model, sums.count, sums.squares, sums.total, explained, sum(log_dets) + post.log_det)
    return sum_moments(sums, x, y, np.stack([nontarget, cross[TARGET]]), likelihood)


def _sum_pairs(left: Array, right: Array, i: Array, j: Array) -> Float[Array, "d d"]:
    """Return the sum of left_i right_j' over pairs, where both are n x d (x r)."""
    from scipy.sparse import csr_array

    links = csr_array((np.ones(len(i)), (i, j)), shape=(len(left), len(right)))
    summed = links @ right.reshape(len(right), right.size // max(len(right), 1))
    deep = (len(left), left.shape[1], left[0].size // max(left.shape[1], 1) if len(left) else 1)
    product: Array = np.einsum("kdr,ker->de", left.reshape(deep), summed.reshape(deep), optimize=True)
    return product
