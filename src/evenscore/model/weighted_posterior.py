"""The posterior of the hidden variables when every score counts in each class by a weight of its own.

This is what the score model's E-step becomes when a score belongs to each class with some probability (adaptation
without labels). There is no structure left to use but the elimination of one side. Equation numbers as in docs/math.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenscore.model.elimination import Elimination, Part, WeightCouplings
from evenscore.model.moments import HiddenSide, Moments, sum_moments
from evenscore.model.parameters import ScoreModel
from evenscore.model.precision import diagonal_blocks, evidence_of_sums, precision_terms
from evenscore.model.sums import ClassSums

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["WeightedPosterior", "expected_squares", "weighted_moments", "weighted_posterior"]

Array = np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightedPosterior:
    """Gaussian posterior of all hidden variables of one matrix."""

    x: HiddenSide
    y: HiddenSide
    cross: Float[Array, "k l d d"]  #: covariance of x_i and y_j
    log_det: float  #: of the precision

    @property
    def divergence(self) -> float:
        """Kullback-Leibler divergence of this posterior from the prior N(0, I)."""
        size = self.x.mean.size + self.y.mean.size
        spread = sum(np.trace(side.second, axis1=1, axis2=2).sum() for side in (self.x, self.y))
        return 0.5 * float(spread - size + self.log_det)


def weighted_posterior(
    model: ScoreModel, scores: Float[Array, "k l"], weights: Float[Array, "2 k l"]
) -> WeightedPosterior:
    """Return the posterior where score ij counts `weights[h, i, j]` times in class h; scores must be finite."""
    sums, terms, dim = _weighted_sums(scores, weights), precision_terms(model), model.dim
    A, B = diagonal_blocks(terms, sums.row_counts, sums.column_counts)
    elimination = Elimination(WeightCouplings(weights=weights, c=terms.c), A[None], B[None], definite=True)
    gamma_x, gamma_y = evidence_of_sums(model, sums)
    x, y = elimination.solve(gamma_x[None, :, :, None], gamma_y[None, :, :, None])
    cross = np.empty((*scores.shape, dim, dim))
    by_outer = cross.swapaxes(0, 1) if elimination.turned else cross

    def keep(part: Part, pairs: Array) -> None:
        by_outer[part.at] = pairs[0]

    x_covariance, y_covariance = elimination.covariances(keep)
    return WeightedPosterior(
        x=HiddenSide(mean=x[0, :, :, 0], covariance=x_covariance[0]),
        y=HiddenSide(mean=y[0, :, :, 0], covariance=y_covariance[0]),
        cross=cross,
        log_det=elimination.log_det,
    )


def _weighted_sums(scores: Float[Array, "k l"], weights: Float[Array, "2 k l"]) -> ClassSums:
    scored = weights * scores
    return ClassSums(
        center=0.0,
        rows=scored.sum(axis=2),
        columns=scored.sum(axis=1),
        squares=(scored * scores).sum(axis=(1, 2)),
        row_counts=weights.sum(axis=2),
        column_counts=weights.sum(axis=1),
    )


def expected_squares(
    model: ScoreModel, scores: Float[Array, "k l"], post: WeightedPosterior, h: int
) -> Float[Array, "k l"]:
    """Return the expectation of (s_ij - mu_h - alpha_h'x_i - beta_h'y_j)^2 for every pair."""
    alpha, beta = model.alpha[h], model.beta[h]
    residual = scores - model.mu[h] - (post.x.mean @ alpha)[:, None] - post.y.mean @ beta
    spread = (post.cross.reshape(scores.size, -1) @ np.outer(2 * alpha, beta).ravel()).reshape(scores.shape)
    spread += (post.x.covariance @ alpha @ alpha)[:, None]
    spread += post.y.covariance @ beta @ beta
    squares: Float[Array, "k l"] = residual**2 + spread
    return squares


def weighted_moments(scores: Float[Array, "k l"], post: WeightedPosterior, weights: Float[Array, "2 k l"]) -> Moments:
    """Return the M-step's sums where score ij counts `weights[h, i, j]` times in class h."""
    dim = post.x.mean.shape[1]
    flat = weights.reshape(2, scores.size) @ post.cross.reshape(scores.size, dim * dim)
    cross = flat.reshape(2, dim, dim) + post.x.mean.T @ weights @ post.y.mean
    return sum_moments(_weighted_sums(scores, weights), post.x, post.y, cross, log_likelihood=0.0)
