"""The posterior of the hidden variables when every score has a precision of its own in each class.

This is what the score model's E-step becomes as soon as scores do not count alike, because a score belongs to each
class with some probability (adaptation without labels). There is no structure left to use, so the larger side is
eliminated and the Schur complement of the smaller one is factorized. Letters and equation numbers as in docs/math.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenscore.model.moments import Moments, SideMoments
from evenscore.model.parameters import ScoreModel

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["WeightedPosterior", "expected_squares", "weighted_moments", "weighted_posterior"]

Array = np.ndarray
_CHUNK = 1 << 22  # numbers in the largest temporary array


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightedPosterior:
    """Gaussian posterior of all hidden variables of one matrix."""

    x: Float[Array, "k d"]  #: means
    y: Float[Array, "l d"]
    x_covariance: Float[Array, "k d d"]
    y_covariance: Float[Array, "l d d"]
    cross: Float[Array, "k l d d"]  #: covariance of x_i and y_j
    log_det: float  #: of the precision

    @property
    def divergence(self) -> float:
        """Kullback-Leibler divergence of this posterior from the prior N(0, I)."""
        spread = sum(np.trace(c, axis1=1, axis2=2).sum() for c in (self.x_covariance, self.y_covariance))
        return 0.5 * float(spread + np.vdot(self.x, self.x) + np.vdot(self.y, self.y) - self.size + self.log_det)

    @property
    def size(self) -> int:
        """Number of hidden variables, over both sides and all dimensions."""
        return self.x.size + self.y.size


def weighted_posterior(
    model: ScoreModel,
    scores: Float[Array, "k l"],
    precision: Float[Array, "2 k l"],
    prior_x: Float[Array, "k d"] | None = None,
    prior_y: Float[Array, "l d"] | None = None,
) -> WeightedPosterior:
    """Return the posterior under the model's means and loadings; `precision` takes the place of 1 / sigma_h^2.

    Where the precision is 0 in both classes, the score has no influence, but it must be finite. The priors of the
    hidden variables are N(prior_x, I) and N(prior_y, I), where these means are given.
    """
    dim = model.dim
    n_rows, n_columns = scores.shape
    gamma_x = np.zeros((n_rows, dim)) if prior_x is None else prior_x.copy()
    gamma_y = np.zeros((n_columns, dim)) if prior_y is None else prior_y.copy()
    A, B = np.tile(np.eye(dim), (n_rows, 1, 1)), np.tile(np.eye(dim), (n_columns, 1, 1))
    for h in range(2):
        weighted = precision[h] * (scores - model.mu[h])
        gamma_x += np.outer(weighted.sum(axis=1), model.alpha[h])  # (E2)
        gamma_y += np.outer(weighted.sum(axis=0), model.beta[h])
        A += precision[h].sum(axis=1)[:, None, None] * np.outer(model.alpha[h], model.alpha[h])  # (E1)
        B += precision[h].sum(axis=0)[:, None, None] * np.outer(model.beta[h], model.beta[h])
    c = model.alpha[:, :, None] * model.beta[:, None, :]
    if n_rows <= n_columns:
        turned = precision.transpose(0, 2, 1), c.transpose(0, 2, 1)
        y, x, y_cov, x_cov, cross, log_det = _eliminate(*turned, B, gamma_y, A, gamma_x)
        cross = cross.transpose(1, 0, 3, 2)
    else:
        x, y, x_cov, y_cov, cross, log_det = _eliminate(precision, c, A, gamma_x, B, gamma_y)
    return WeightedPosterior(x=x, y=y, x_covariance=x_cov, y_covariance=y_cov, cross=cross, log_det=log_det)


def _eliminate(
    precision: Float[Array, "2 e f"],
    c: Float[Array, "2 d d"],
    D_out: Float[Array, "e d d"],
    rhs_out: Float[Array, "e d"],
    D_in: Float[Array, "f d d"],
    rhs_in: Float[Array, "f d"],
) -> tuple[Array, Array, Array, Array, Array, float]:
    """Eliminate the outer side: means and covariances of both sides, those between them, the log-determinant."""
    n_out, n_in, dim = len(D_out), len(D_in), D_in.shape[1]
    width = n_in * dim
    inverse = np.linalg.inv(D_out)
    S = np.zeros((width, width))
    at = np.arange(width).reshape(n_in, dim)
    S[at[:, :, None], at[:, None, :]] = D_in
    rest = rhs_in.reshape(width).copy()
    for part, C, X in _couplings(precision, c, inverse):
        S -= C.T @ X
        rest -= X.T @ rhs_out[part].reshape(-1)
    factor = np.linalg.cholesky(S)
    root = np.linalg.inv(factor)
    S_inv = root.T @ root
    inner = S_inv @ rest
    outer, out_cov = np.einsum("eij,ej->ei", inverse, rhs_out), inverse.copy()
    cross = np.empty((n_out, n_in, dim, dim))
    for part, _, X in _couplings(precision, c, inverse):
        size = part.stop - part.start
        outer[part] -= (X @ inner).reshape(size, dim)
        XS = X @ S_inv
        out_cov[part] += XS.reshape(size, dim, width) @ X.reshape(size, dim, width).transpose(0, 2, 1)
        cross[part] = -XS.reshape(size, dim, n_in, dim).transpose(0, 2, 1, 3)
    log_det = float(np.linalg.slogdet(D_out)[1].sum() + 2 * np.log(np.diag(factor)).sum())
    in_cov = S_inv[at[:, :, None], at[:, None, :]]
    return outer, inner.reshape(n_in, dim), out_cov, in_cov, cross, log_det


def _couplings(
    precision: Float[Array, "2 e f"], c: Float[Array, "2 d d"], inverse: Float[Array, "e d d"]
) -> Iterator[tuple[slice, Array, Array]]:
    """Yield parts of the outer side with their couplings C to the inner side, and D_out^-1 C."""
    _, n_out, n_in = precision.shape
    dim = c.shape[1]
    step = max(1, _CHUNK // max(n_in * dim * dim, 1))
    for start in range(0, n_out, step):
        part = slice(start, min(start + step, n_out))
        size = part.stop - start
        C = np.moveaxis(precision[:, part], 0, -1).reshape(size * n_in, 2) @ c.reshape(2, dim * dim)
        C = C.reshape(size, n_in, dim, dim).transpose(0, 2, 1, 3).reshape(size, dim, n_in * dim)
        X = inverse[part] @ C
        yield part, C.reshape(size * dim, n_in * dim), X.reshape(size * dim, n_in * dim)


def expected_squares(
    model: ScoreModel, scores: Float[Array, "k l"], post: WeightedPosterior, h: int
) -> Float[Array, "k l"]:
    """Return the expectation of (s_ij - mu_h - alpha_h'x_i - beta_h'y_j)^2 for every pair."""
    alpha, beta = model.alpha[h], model.beta[h]
    residual = scores - model.mu[h] - (post.x @ alpha)[:, None] - post.y @ beta
    spread = (post.cross.reshape(scores.size, -1) @ np.outer(2 * alpha, beta).ravel()).reshape(scores.shape)
    spread += (post.x_covariance @ alpha @ alpha)[:, None]
    spread += post.y_covariance @ beta @ beta
    squares: Float[Array, "k l"] = residual**2 + spread
    return squares


def weighted_moments(
    scores: Float[Array, "k l"], post: WeightedPosterior, weights: Float[Array, "2 k l"], bound: float = 0.0
) -> Moments:
    """Return the M-step's sums where score ij counts `weights[h, i, j]` times in class h."""
    dim = post.x.shape[1]
    x, y = slice(1, 1 + dim), slice(1 + dim, 1 + 2 * dim)
    xx = post.x_covariance + post.x[:, :, None] * post.x[:, None, :]
    yy = post.y_covariance + post.y[:, :, None] * post.y[:, None, :]
    rows, columns = weights.sum(axis=2), weights.sum(axis=1)
    scored = weights * scores
    ww, sw = np.empty((2, 1 + 2 * dim, 1 + 2 * dim)), np.empty((2, 1 + 2 * dim))
    ww[:, 0, 0] = rows.sum(axis=1)
    ww[:, 0, x] = ww[:, x, 0] = rows @ post.x
    ww[:, 0, y] = ww[:, y, 0] = columns @ post.y
    ww[:, x, x] = np.einsum("hk,kde->hde", rows, xx)
    ww[:, y, y] = np.einsum("hk,kde->hde", columns, yy)
    flat = weights.reshape(2, scores.size) @ post.cross.reshape(scores.size, dim * dim)
    ww[:, x, y] = flat.reshape(2, dim, dim) + post.x.T @ weights @ post.y
    ww[:, y, x] = ww[:, x, y].transpose(0, 2, 1)
    sw[:, 0] = scored.sum(axis=(1, 2))
    sw[:, x] = scored.sum(axis=2) @ post.x
    sw[:, y] = scored.sum(axis=1) @ post.y
    return Moments(
        ww=ww,
        sw=sw,
        ss=(scored * scores).sum(axis=(1, 2)),
        enroll=SideMoments(count=float(len(xx)), first=post.x.sum(axis=0), second=xx.sum(axis=0)),
        test=SideMoments(count=float(len(yy)), first=post.y.sum(axis=0), second=yy.sum(axis=0)),
        log_likelihood=bound,
    )
