"""Variational EM of the location-scale model: q(x, y) is jointly Gaussian, q(u_i) and q(v_j) are Gaussians.

Every function here raises the bound or leaves it as it is. Scores are standardized. Equation numbers as in
docs/location-scale.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

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

if TYPE_CHECKING:
    from jaxtyping import Float

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
class LocationSide:
    """Posterior of the hidden variables that move the means, on one side: means, and the sum of covariances."""

    mean: Float[Array, "k d"]
    spread: Float[Array, "d d"]

    def divergence(self, scales: ScalePosterior, f: Float[Array, " d"]) -> float:
        """Return the part of this side in the divergence from N(u_i f, I), but for determinant and size."""
        apart = self.mean - np.outer(scales.mean, f)
        return 0.5 * float(np.vdot(apart, apart) + (f @ f) * scales.variance.sum() + np.trace(self.spread))

    def moved(self, center: Float[Array, " d"], factor: Float[Array, "d d"]) -> LocationSide:
        """Return the posterior of L^-1 (x - center)."""
        inverse = np.linalg.inv(factor)
        return LocationSide(mean=(self.mean - center) @ inverse.T, spread=inverse @ self.spread @ inverse.T)


@dataclass(frozen=True, kw_only=True, eq=False)
class MatrixPosterior:
    """What is believed about the hidden variables of one matrix."""

    data: DenseScores
    members: Float[Array, "2 k l"]  #: 1 where a score belongs to the class
    post: WeightedPosterior | None  #: of x and y, if it is fresh
    x: LocationSide
    y: LocationSide
    log_det: float  #: of the precision of x and y
    squares: Float[Array, "k l"]  #: expected squared residual of every score under its own class, 0 where there is none
    rows: ScalePosterior
    columns: ScalePosterior

    def divergence(self, model: LocationScaleModel) -> float:
        """Kullback-Leibler divergence of all posteriors from their priors."""
        apart = self.x.divergence(self.rows, model.f) + self.y.divergence(self.columns, model.g)
        size = self.x.mean.size + self.y.mean.size
        return apart + 0.5 * (self.log_det - size) + self.rows.divergence + self.columns.divergence


def initial(data: DenseScores, dim: int) -> MatrixPosterior:
    """Return the state before anything is inferred: everything has its prior."""
    n_rows, n_columns = data.scores.shape
    return MatrixPosterior(
        data=data,
        members=np.stack([data.of_class(h) for h in _CLASSES]).astype(float),
        post=None,
        x=LocationSide(mean=np.zeros((n_rows, dim)), spread=n_rows * np.eye(dim)),
        y=LocationSide(mean=np.zeros((n_columns, dim)), spread=n_columns * np.eye(dim)),
        log_det=0.0,
        squares=np.zeros(data.scores.shape),
        rows=ScalePosterior.prior(n_rows),
        columns=ScalePosterior.prior(n_columns),
    )


def precision_of(model: LocationScaleModel, state: MatrixPosterior) -> Float[Array, "2 k l"]:
    """Return the expected precision of every score in its class, 0 in the other, (V1)."""
    rows = state.rows.precision(model.c) / model.location.sigma2[:, None]
    columns = state.columns.precision(model.d)
    return state.members * rows[:, :, None] * columns[:, None, :]


def _squares(location: ScoreModel, state: MatrixPosterior) -> Float[Array, "k l"]:
    assert state.post is not None  # noqa: S101
    total = np.zeros(state.squares.shape)
    for h in _CLASSES:
        if state.members[h].any():
            total += state.members[h] * expected_squares(location, state.data.scores, state.post, h)
    return total


def infer_location(model: LocationScaleModel, state: MatrixPosterior) -> MatrixPosterior:
    """Set q(x, y) to its optimum: the score model's posterior, with a precision for every score."""
    priors = np.outer(state.rows.mean, model.f), np.outer(state.columns.mean, model.g)
    post = weighted_posterior(model.location, state.data.scores, precision_of(model, state), *priors)
    state = replace(
        state,
        post=post,
        x=LocationSide(mean=post.x, spread=post.x_covariance.sum(axis=0)),
        y=LocationSide(mean=post.y, spread=post.y_covariance.sum(axis=0)),
        log_det=post.log_det,
    )
    return replace(state, squares=_squares(model.location, state))


def infer_scales(model: LocationScaleModel, state: MatrixPosterior) -> MatrixPosterior:
    """Raise the bound over all q(u_i), then over all q(v_j)."""
    masked = state.members * state.squares
    sigma2 = model.location.sigma2[:, None]
    if model.c.any() or model.f.any():
        weighted = np.einsum("hkl,hl->hk", masked, state.columns.precision(model.d)) / sigma2
        pull, grip = state.x.mean @ model.f, float(model.f @ model.f)
        rows = update_scales(state.rows, model.c, state.members.sum(axis=2), weighted, pull, grip)
        state = replace(state, rows=rows)
    if model.d.any() or model.g.any():
        weighted = np.einsum("hkl,hk->hl", masked, state.rows.precision(model.c)) / sigma2
        pull, grip = state.y.mean @ model.g, float(model.g @ model.g)
        columns = update_scales(state.columns, model.d, state.members.sum(axis=1), weighted, pull, grip)
        state = replace(state, columns=columns)
    return state


def maximize_location(
    model: LocationScaleModel, states: Sequence[MatrixPosterior]
) -> tuple[LocationScaleModel, list[MatrixPosterior]]:
    """Regress the scores on (1, x, y) with their expected precisions as weights, then fit the priors of x and y."""
    total = None
    for state in states:
        assert state.post is not None  # noqa: S101
        moments = weighted_moments(state.data.scores, state.post, precision_of(model, state))
        total = moments if total is None else total + moments
    assert total is not None  # noqa: S101
    fitted = m_step(total, min_divergence=False)
    location = ScoreModel(mu=fitted.mu, alpha=fitted.alpha, beta=fitted.beta, sigma2=model.location.sigma2)
    states = [replace(state, squares=_squares(location, state)) for state in states]
    if not model.dim:
        return replace_location(model, location), list(states)
    k, root_x, f = _fit_prior([state.x for state in states], [state.rows for state in states])
    n, root_y, g = _fit_prior([state.y for state in states], [state.columns for state in states])
    location = ScoreModel(
        mu=location.mu + location.alpha @ k + location.beta @ n,  # residuals stay as they are
        alpha=location.alpha @ root_x,
        beta=location.beta @ root_y,
        sigma2=location.sigma2,
    )
    log_x, log_y = (2 * np.log(np.diag(root)).sum() for root in (root_x, root_y))
    moved = [
        replace(
            state,
            post=None,
            x=state.x.moved(k, root_x),
            y=state.y.moved(n, root_y),
            log_det=state.log_det + len(state.x.mean) * log_x + len(state.y.mean) * log_y,
        )
        for state in states
    ]
    return LocationScaleModel(location, c=model.c, d=model.d, f=f, g=g), moved


def replace_location(model: LocationScaleModel, location: ScoreModel) -> LocationScaleModel:
    """Return the model with another location part."""
    return LocationScaleModel(location, c=model.c, d=model.d, f=model.f, g=model.g)


def _fit_prior(
    sides: list[LocationSide], scales: list[ScalePosterior]
) -> tuple[Float[Array, " d"], Float[Array, "d d"], Float[Array, " d"]]:
    """Fit x = k + F u + noise to the pooled posteriors (minimum divergence): k, root of the noise, and f, (V5)."""
    x, u = np.concatenate([side.mean for side in sides]), np.concatenate([side.mean for side in scales])
    spread = sum(side.spread for side in sides) + x.T @ x
    count, first = len(u), u.sum()
    square = float((u**2).sum() + sum(side.variance.sum() for side in scales))
    products = np.stack([x.sum(axis=0), u @ x])
    k, F = np.linalg.solve(np.array([[count, first], [first, square]]), products)
    noise = (spread - np.outer(k, products[0]) - np.outer(F, products[1])) / count
    root = np.linalg.cholesky((noise + noise.T) / 2)
    return k, root, np.linalg.solve(root, F)


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
    rows, u = _standard([state.rows for state in states])
    columns, v = _standard([state.columns for state in states])
    old = model.location
    k, n = model.f * u[0], model.g * v[0]  # x has lost this much of its mean
    location = ScoreModel(
        mu=old.mu + old.alpha @ k + old.beta @ n,
        alpha=old.alpha,
        beta=old.beta,
        sigma2=np.exp(log_variance + c * u[0] + d * v[0]),
    )
    same = np.eye(model.dim)
    moved = [
        replace(state, post=None, rows=row, columns=column, x=state.x.moved(k, same), y=state.y.moved(n, same))
        for state, row, column in zip(states, rows, columns, strict=True)
    ]
    return LocationScaleModel(location, c=c * u[1], d=d * v[1], f=model.f * u[1], g=model.g * v[1]), moved


def _standard(sides: list[ScalePosterior]) -> tuple[list[ScalePosterior], tuple[float, float]]:
    """Move the pooled posterior of the log-scales to N(0, 1); return the old centre and width, too."""
    mean = np.concatenate([side.mean for side in sides])
    variance = np.concatenate([side.variance for side in sides])
    center = float(mean.mean())
    width = float(np.sqrt(mean.var() + variance.mean()))
    moved = [ScalePosterior(mean=(s.mean - center) / width, variance=s.variance / width**2) for s in sides]
    return moved, (center, width)


def bound(model: LocationScaleModel, states: Sequence[MatrixPosterior]) -> float:
    """Return the lower bound of the log-likelihood, (V1)."""
    total = 0.0
    for state in states:
        plain = np.log(2 * np.pi * model.location.sigma2)[:, None, None] + model.d[:, None, None] * state.columns.mean
        plain = plain + model.c[:, None, None] * state.rows.mean[:, None]
        total -= 0.5 * float((state.members * plain).sum() + (precision_of(model, state) * state.squares).sum())
        total -= state.divergence(model)
    return total
