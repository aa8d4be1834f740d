"""Variational EM of the location-scale model: q(x, y) is jointly Gaussian, q(u_i) and q(v_j) are Gaussians.

Every function here raises the bound or leaves it as it is. Scores are standardized. Equation numbers as in
docs/location-scale.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from evenscore.location_scale.parameters import LocationScaleModel
from evenscore.location_scale.scales import ClassSquares, ScalePosterior, fit_loadings, update_scales
from evenscore.model.dense_scores import DenseScores
from evenscore.model.moments import m_step
from evenscore.model.parameters import ScoreModel
from evenscore.model.weighted_posterior import (
    WeightedPosterior,
    expected_squares,
    weighted_moments,
    weighted_posterior,
)

__all__ = [
    "MatrixPosterior",
    "bound",
    "infer_location",
    "infer_scales",
    "initial",
    "maximize_location",
    "maximize_scale",
]

Array = np.ndarray
_CLASSES = (0, 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class MatrixPosterior:
    """What is believed about the hidden variables of one matrix."""

    data: DenseScores
    members: Float[Array, "2 k l"]  #: 1 where a score belongs to the class
    location: WeightedPosterior | None
    divergence: float  #: of q(x, y) from its prior
    squares: Float[Array, "k l"]  #: expected squared residual of every score under its own class, 0 where there is none
    rows: ScalePosterior
    columns: ScalePosterior


def initial(data: DenseScores) -> MatrixPosterior:
    """Return the state before anything is inferred: the log-scales have their priors."""
    return MatrixPosterior(
        data=data,
        members=np.stack([data.of_class(h) for h in _CLASSES]).astype(float),
        location=None,
        divergence=0.0,
        squares=np.zeros(data.scores.shape),
        rows=ScalePosterior.prior(data.scores.shape[0]),
        columns=ScalePosterior.prior(data.scores.shape[1]),
    )


def precision_of(model: LocationScaleModel, state: MatrixPosterior) -> Float[Array, "2 k l"]:
    """Return the expected precision of every score in its class, 0 in the other, (V1)."""
    rows = state.rows.precision(model.c) / model.location.sigma2[:, None]
    columns = state.columns.precision(model.d)
    return state.members * rows[:, :, None] * columns[:, None, :]


def _squares(location: ScoreModel, state: MatrixPosterior) -> Float[Array, "k l"]:
    assert state.location is not None  # noqa: S101
    total = np.zeros(state.squares.shape)
    for h in _CLASSES:
        if state.members[h].any():
            total += state.members[h] * expected_squares(location, state.data.scores, state.location, h)
    return total


def infer_location(model: LocationScaleModel, state: MatrixPosterior) -> MatrixPosterior:
    """Set q(x, y) to its optimum: the score model's posterior, with a precision for every score."""
    post = weighted_posterior(model.location, state.data.scores, precision_of(model, state))
    state = replace(state, location=post, divergence=post.divergence)
    return replace(state, squares=_squares(model.location, state))


def infer_scales(model: LocationScaleModel, state: MatrixPosterior) -> MatrixPosterior:
    """Raise the bound over all q(u_i), then over all q(v_j)."""
    masked = state.members * state.squares
    sigma2 = model.location.sigma2[:, None]
    if model.c.any():
        weighted = np.einsum("hkl,hl->hk", masked, state.columns.precision(model.d)) / sigma2
        state = replace(state, rows=update_scales(state.rows, model.c, state.members.sum(axis=2), weighted))
    if model.d.any():
        weighted = np.einsum("hkl,hk->hl", masked, state.rows.precision(model.c)) / sigma2
        state = replace(state, columns=update_scales(state.columns, model.d, state.members.sum(axis=1), weighted))
    return state


def maximize_location(
    model: LocationScaleModel, states: Sequence[MatrixPosterior]
) -> tuple[LocationScaleModel, list[MatrixPosterior]]:
    """Regress the scores on (1, x, y) with their expected precisions as weights, and fit the prior of x and y."""
    total = None
    for state in states:
        assert state.location is not None  # noqa: S101
        moments = weighted_moments(state.data.scores, state.location, precision_of(model, state))
        total = moments if total is None else total + moments
    assert total is not None  # noqa: S101
    plain = m_step(total, min_divergence=False)
    plain = ScoreModel(mu=plain.mu, alpha=plain.alpha, beta=plain.beta, sigma2=model.location.sigma2)
    states = [replace(state, squares=_squares(plain, state)) for state in states]
    fitted = m_step(total)  # the same regression, then the prior is absorbed: residuals stay as they are
    location = ScoreModel(mu=fitted.mu, alpha=fitted.alpha, beta=fitted.beta, sigma2=model.location.sigma2)
    saved = _saved_divergence(total.enroll.count, total.enroll.first, total.enroll.second)
    saved += _saved_divergence(total.test.count, total.test.first, total.test.second)
    share = saved / len(states)  # only the sum over matrices matters
    states = [replace(state, location=None, divergence=state.divergence - share) for state in states]
    return LocationScaleModel(location, c=model.c, d=model.d), states


def _saved_divergence(count: float, first: Float[Array, " d"], second: Float[Array, "d d"]) -> float:
    """Return by how much the divergence falls when the prior becomes the pooled posterior (minimum divergence)."""
    mean = first / count
    covariance = second / count - np.outer(mean, mean)
    before = np.trace(second) - count * len(first)
    return 0.5 * float(before - count * np.linalg.slogdet(covariance)[1])


def maximize_scale(
    model: LocationScaleModel, states: Sequence[MatrixPosterior]
) -> tuple[LocationScaleModel, list[MatrixPosterior]]:
    """Fit the variances and the loadings of the log-scales, then the prior of the log-scales."""
    log_variance, c, d = np.log(model.location.sigma2), model.c.copy(), model.d.copy()
    for h in _CLASSES:
        parts = [
            ClassSquares(
                squares=state.members[h] * state.squares,
                row_counts=state.members[h].sum(axis=1),
                column_counts=state.members[h].sum(axis=0),
                rows=state.rows,
                columns=state.columns,
            )
            for state in states
        ]
        log_variance[h], c[h], d[h] = fit_loadings(parts, log_variance[h], c[h], d[h])
    rows, shift, c = _standard([state.rows for state in states], c)
    columns, more, d = _standard([state.columns for state in states], d)
    old = model.location
    sigma2 = np.exp(log_variance + shift + more)
    location = ScoreModel(mu=old.mu, alpha=old.alpha, beta=old.beta, sigma2=sigma2)
    states = [replace(state, rows=u, columns=v) for state, u, v in zip(states, rows, columns, strict=True)]
    return LocationScaleModel(location, c=c, d=d), states


def _standard(
    sides: list[ScalePosterior], loading: Float[Array, "2"]
) -> tuple[list[ScalePosterior], Float[Array, "2"], Float[Array, "2"]]:
    """Move the pooled posterior of the log-scales to N(0, 1): posteriors, what log sigma^2 gains, new loadings."""
    mean = np.concatenate([side.mean for side in sides])
    variance = np.concatenate([side.variance for side in sides])
    center = mean.mean()
    width = np.sqrt(mean.var() + variance.mean())
    moved = [ScalePosterior(mean=(s.mean - center) / width, variance=s.variance / width**2) for s in sides]
    return moved, loading * center, loading * width


def bound(model: LocationScaleModel, states: Sequence[MatrixPosterior]) -> float:
    """Return the lower bound of the log-likelihood, (V1)."""
    total = 0.0
    for state in states:
        plain = np.log(2 * np.pi * model.location.sigma2)[:, None, None] + model.d[:, None, None] * state.columns.mean
        plain = plain + model.c[:, None, None] * state.rows.mean[:, None]
        total -= 0.5 * float((state.members * plain).sum() + (precision_of(model, state) * state.squares).sum())
        total -= state.divergence + state.rows.divergence + state.columns.divergence
    return total
