"""Variational EM of the score model where some labels are hidden: q(h_ij) for each of them, times a joint q(x, y).

Every score counts in each class by a weight of its own, so there is no structure left to use but the elimination of one
side. Every step raises the bound or leaves it as it is. Equation numbers as in docs/adaptation.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from evenscore.errors import InputError
from evenscore.log_odds import expit
from evenscore.model.adapt_data import DenseScores
from evenscore.model.elimination import Elimination, Part, WeightCouplings
from evenscore.model.em import m_step
from evenscore.model.moments import HiddenSide, Moments, SideMoments, sum_moments
from evenscore.model.parameters import ScoreModel
from evenscore.model.precision import diagonal_blocks, evidence_of_sums, precision_terms
from evenscore.model.sums import ClassSums
from evenscore.tables import NONTARGET, TARGET

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = [
    "Anchor",
    "HiddenLabels",
    "WeightedPosterior",
    "affine_step",
    "bound",
    "expected_squares",
    "full_step",
    "infer_labels",
    "infer_location",
    "initial",
    "weighted_moments",
    "weighted_posterior",
]

_LOST = 1e-14  # share of the squares that is no variance, but what rounding left
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Anchor:
    """A model that holds the parameters as `strength` imaginary scores of each class would, (A6)."""

    model: ScoreModel
    strength: float

    @property
    def moments(self) -> Moments:
        """Expected statistics of the imaginary scores."""
        weights = np.concatenate([self.model.mu[:, None], self.model.alpha, self.model.beta], axis=1)
        nobody = SideMoments(count=0.0, first=np.zeros(self.model.dim), second=np.zeros((self.model.dim,) * 2))
        return Moments(
            ww=np.tile(self.strength * np.eye(weights.shape[1]), (2, 1, 1)),
            sw=self.strength * weights,
            ss=self.strength * ((weights**2).sum(axis=1) + self.model.sigma2),
            enroll=nobody,
            test=nobody,
            log_likelihood=0.0,
        )

    def penalty(self, model: ScoreModel) -> float:
        """Return strength times the divergence of the model's scores from the anchor's, given x and y."""
        moved = (model.mu - self.model.mu) ** 2
        moved = moved + ((model.alpha - self.model.alpha) ** 2 + (model.beta - self.model.beta) ** 2).sum(axis=1)
        ratio = self.model.sigma2 / model.sigma2
        return 0.5 * self.strength * float((ratio + moved / model.sigma2 - 1 - np.log(ratio)).sum())


@dataclass(frozen=True, kw_only=True, eq=False)
class HiddenLabels:
    """What is believed about the labels and hidden variables of one matrix."""

    data: DenseScores
    p_target: Float[Array, "k l"]  #: probability of a target; 0 or 1 where the label is known
    squares: Float[Array, "2 k l"]  #: expected squared residual of every score in each class
    divergence: float  #: of q(x, y) from its prior
    post: WeightedPosterior | None = None  #: q(x, y), once it was inferred

    @property
    def weights(self) -> Float[Array, "2 k l"]:
        """How much a score counts in each class."""
        return np.stack([1 - self.p_target, self.p_target]) * self.data.present

    @property
    def moments(self) -> Moments:
        """The sums that the parameters are fitted to."""
        assert self.post is not None  # noqa: S101
        return weighted_moments(self.data.scores, self.post, self.weights)


def initial(data: DenseScores, prior: float) -> HiddenLabels:
    """Return the belief before any score was looked at."""
    known = (data.key == TARGET).astype(float)
    return HiddenLabels(
        data=data,
        p_target=np.where(data.hidden, prior, known),
        squares=np.zeros((2, *data.scores.shape)),
        divergence=0.0,
    )


def start_from_scores(model: ScoreModel, state: HiddenLabels, prior: float) -> HiddenLabels:
    """Take the labels from each score alone, as if it were a trial without cohort; a start, no step of the bound."""
    nontarget, target = state.data.log_densities(model)
    return replace(state, p_target=_responsibilities(state, target - nontarget, prior))


def _responsibilities(state: HiddenLabels, llr: Float[Array, "k l"], prior: float) -> Float[Array, "k l"]:
    posterior = expit(llr + np.log(prior) - np.log1p(-prior))
    return np.where(state.data.hidden, posterior, state.p_target)


def infer_location(model: ScoreModel, state: HiddenLabels) -> HiddenLabels:
    """Set q(x, y) to its optimum: a score counts in each class by its probability, (A3)."""
    post = weighted_posterior(model, state.data.scores, state.weights)
    return replace(
        state,
        divergence=post.divergence,
        squares=np.stack([expected_squares(model, state.data.scores, post, h) for h in (NONTARGET, TARGET)]),
        post=post,
    )


def infer_labels(model: ScoreModel, state: HiddenLabels, prior: float) -> HiddenLabels:
    """Set q(h_ij) of every hidden label to its optimum, (A2)."""
    half = 0.5 * (state.squares / model.sigma2[:, None, None] + np.log(model.sigma2)[:, None, None])
    return replace(state, p_target=_responsibilities(state, half[NONTARGET] - half[TARGET], prior))


def bound(model: ScoreModel, states: Sequence[HiddenLabels], prior: float, anchor: Anchor | None = None) -> float:
    """Return the lower bound of the log-likelihood, less the anchor's penalty, (A1)."""
    from scipy.special import xlogy

    total = 0.0 if anchor is None else -anchor.penalty(model)
    for state in states:
        fit = state.squares / model.sigma2[:, None, None] + np.log(2 * np.pi * model.sigma2)[:, None, None]
        p = state.p_target[state.data.hidden]
        labels = p * np.log(prior) + (1 - p) * np.log1p(-prior) - xlogy(p, p) - xlogy(1 - p, 1 - p)
        total += float(-0.5 * (state.weights * fit).sum() + labels.sum() - state.divergence)
    return total


def pooled(states: Sequence[HiddenLabels]) -> Moments:
    """Return the moments of all matrices together."""
    total = states[0].moments
    for state in states[1:]:
        total = total + state.moments
    return total


def full_step(moments: Moments, anchor: Anchor) -> ScoreModel:
    """Maximize over all parameters: the regression (E9), (E10) with the anchor's imaginary scores among the others."""
    return m_step(moments + anchor.moments, min_divergence=False)


def affine_step(base: ScoreModel, moments: Moments) -> tuple[float, float]:
    """Return (scale, shift) that maximize the bound when the scores are scale * s + shift with s from `base`, (A5)."""
    theta = np.concatenate([base.mu[:, None], base.alpha, base.beta], axis=1)
    precision = 1 / base.sigma2
    n = float(moments.ww[:, 0, 0].sum())
    weight = precision @ moments.ww[:, 0, 0]
    first = precision @ moments.sw[:, 0]
    square = precision @ moments.ss
    product = precision @ (theta * moments.sw).sum(axis=1)
    level = precision @ (theta * moments.ww[:, 0]).sum(axis=1)
    a = square - first**2 / weight
    b = product - first * level / weight
    if not a > _LOST * square:
        raise InputError("the scores vary by less than their digits can tell, so that there is nothing to adapt to")
    root = np.hypot(b, 2 * np.sqrt(a * n))
    inverse = (b + root) / (2 * a) if b > 0 else 2 * n / (root - b)  # 1 / scale, in the way that loses no digits
    offset = (level - inverse * first) / weight  # - shift / scale
    return float(1 / inverse), float(-offset / inverse)
