"""The E-step for complete matrices with speaker blocks: exact, at a cost that does not depend on their size.

The letters and the equation numbers are those of docs/math.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenscore.model.moments import Moments, SideMoments
from evenscore.model.parameters import ScoreModel
from evenscore.model.shapes import ShapeStatistics

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = [
    "Couplings",
    "GroupPrecisions",
    "background",
    "background_correction",
    "couplings",
    "expect_blocks",
    "group_precisions",
    "marginal",
]

Array = np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class Couplings:
    """What one score of each class adds to the precision of x_i (a), of y_j (b) and between them (c)."""

    a: Float[Array, "2 d d"]
    b: Float[Array, "2 d d"]
    c: Float[Array, "2 d d"]
    alpha_precision: Float[Array, "2 d"]  #: alpha_h / sigma_h^2
    beta_precision: Float[Array, "2 d"]  #: beta_h / sigma_h^2


def couplings(model: ScoreModel) -> Couplings:
    """Return the terms (E1) of the posterior's precision."""
    alpha, beta = model.alpha / model.sigma2[:, None], model.beta / model.sigma2[:, None]
    return Couplings(
        a=alpha[:, :, None] * model.alpha[:, None, :],
        b=beta[:, :, None] * model.beta[:, None, :],
        c=alpha[:, :, None] * model.beta[:, None, :],
        alpha_precision=alpha,
        beta_precision=beta,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupPrecisions:
    """Precision of the scaled group means (xi, eta) = (sqrt(K_g) mean x, sqrt(L_g) mean y), one block per shape.

    This is P, the posterior precision without the background U M U' that couples all groups.
    """

    A_inv: Float[Array, "s d d"]
    B_inv: Float[Array, "s d d"]
    P_inv: Float[Array, "s p p"]
    root: Float[Array, "s p"]  #: U: sqrt(K_g) for x, sqrt(L_g) for y
    W: Float[Array, "p p"]  #: U' P^-1 U
    log_det: float


def group_precisions(
    terms: Couplings,
    n_enroll: Array,
    n_test: Array,
    n_groups: Float[Array, " s"],
    n_rows: float | int,
    n_columns: float | int,
) -> GroupPrecisions:
    """Factorize the groups' part (E3) of the posterior precision of a matrix of the given size."""
    dim = terms.a.shape[1]
    identity = np.eye(dim)
    k, size = n_enroll.astype(float)[:, None, None], n_test.astype(float)[:, None, None]
    A = identity + np.where(k > 0, size * terms.a[1] + (n_columns - size) * terms.a[0], 0.0)
    B = identity + np.where(size > 0, k * terms.b[1] + (n_rows - k) * terms.b[0], 0.0)
    P = np.empty((len(k), 2 * dim, 2 * dim))
    P[:, :dim, :dim] = A
    P[:, dim:, dim:] = B
    P[:, :dim, dim:] = np.sqrt(k * size) * (terms.c[1] - terms.c[0])
    P[:, dim:, :dim] = P[:, :dim, dim:].transpose(0, 2, 1)
    root = np.repeat(np.sqrt(np.concatenate([k[:, :, 0], size[:, :, 0]], axis=1)), dim, axis=1)
    P_inv = np.linalg.inv(P)
    P_inv[:, :dim, :dim] *= k > 0  # a speaker without enrolments has no xi: its place is only held
    P_inv[:, dim:, dim:] *= size > 0
    spare = np.maximum(k[:, 0, 0] - 1, 0) * np.linalg.slogdet(A)[1]
    spare += np.maximum(size[:, 0, 0] - 1, 0) * np.linalg.slogdet(B)[1]
    return GroupPrecisions(
        A_inv=np.linalg.inv(A),
        B_inv=np.linalg.inv(B),
        P_inv=P_inv,
        root=root,
        W=np.einsum("s,sp,spq,sq->pq", n_groups, root, P_inv, root),
        log_det=float(n_groups @ (spare + np.linalg.slogdet(P)[1])),  # (E5), without the background
    )


def background_correction(terms: Couplings, W: Float[Array, "p p"]) -> tuple[Float[Array, "p p"], float]:
    """Return T = (I + M W)^-1 M of Woodbury's identity (E4), and what the background adds to log|Lambda| (E5)."""
    M = background(terms)
    inner = np.eye(len(M)) + M @ W
    return np.linalg.solve(inner, M), float(np.linalg.slogdet(inner)[1])


def background(terms: Couplings) -> Float[Array, "p p"]:
    """Return M, the coupling of every row with every column as if all pairs were non-targets."""
    zero = np.zeros_like(terms.c[0])
    return np.block([[zero, terms.c[0]], [terms.c[0].T, zero]])


def evidence(model: ScoreModel, terms: Couplings, stats: ShapeStatistics) -> Float[Array, "s p 4"]:
    """Return the maps from phi_g to the precision-weighted mean (gamma) of (xi, eta), (E6)."""
    dim = model.dim
    k, size = stats.n_enroll.astype(float)[:, None], stats.n_test.astype(float)[:, None]
    gamma = np.zeros((len(k), 2 * dim, 4))
    ap, bp = terms.alpha_precision, terms.beta_precision
    gamma[:, :dim, 0] = -np.sqrt(k) * (size * model.mu[1] * ap[1] + (stats.n_columns - size) * model.mu[0] * ap[0])
    gamma[:, dim:, 0] = -np.sqrt(size) * (k * model.mu[1] * bp[1] + (stats.n_rows - k) * model.mu[0] * bp[0])
    per_row, per_column = _inverse_root(k), _inverse_root(size)
    gamma[:, :dim, 1], gamma[:, :dim, 2] = per_row * ap[1], per_row * ap[0]
    gamma[:, dim:, 1], gamma[:, dim:, 3] = per_column * bp[1], per_column * bp[0]
    return gamma


def _inverse_root(sizes: Float[Array, "s 1"]) -> Float[Array, "s 1"]:
    return np.where(sizes > 0, 1 / np.sqrt(np.maximum(sizes, 1)), 0.0)


def expect_blocks(model: ScoreModel, stats: ShapeStatistics) -> Moments:
    """Return the expected statistics and the log-likelihood of complete matrices; all in standardized units."""
    dim = model.dim
    x, y = slice(0, dim), slice(dim, 2 * dim)
    terms = couplings(model)
    post = group_precisions(terms, stats.n_enroll, stats.n_test, stats.n_groups, stats.n_rows, stats.n_columns)
    T, log_det = background_correction(terms, post.W)
    gamma = evidence(model, terms, stats)
    P_gamma = post.P_inv @ gamma
    t = np.einsum("sp,spf,bsf->bp", post.root, P_gamma, stats.phi[:, :, :, 0])
    P_root = post.P_inv * post.root[:, None, :]
    mean = np.repeat(P_gamma[None], len(t), axis=0)  # (E7): posterior mean of (xi, eta) is mean @ phi_g
    mean[:, :, :, 0] -= np.einsum("spq,bq->bsp", P_root, t @ T.T)
    covariance = post.P_inv - P_root @ T @ P_root.transpose(0, 2, 1)
    by_matrix = mean @ stats.phi  # sum over groups of <xi, eta> phi'
    first = by_matrix.sum(axis=0)
    n_matrices = len(t)
    second = np.einsum("bspf,bsqf->spq", by_matrix, mean) + n_matrices * stats.n_groups[:, None, None] * covariance

    k, size = stats.n_enroll.astype(float), stats.n_test.astype(float)
    row_dev = post.A_inv @ terms.alpha_precision.T  # (E8): deviations from the group means
    column_dev = post.B_inv @ terms.beta_precision.T
    row_sum, column_sum = row_dev @ stats.row_scatter, column_dev @ stats.column_scatter
    spare_rows = (n_matrices * stats.n_groups * np.maximum(k - 1, 0))[:, None, None]
    spare_columns = (n_matrices * stats.n_groups * np.maximum(size - 1, 0))[:, None, None]
    xx = second[:, x, x] + row_sum @ row_dev.transpose(0, 2, 1) + spare_rows * post.A_inv
    yy = second[:, y, y] + column_sum @ column_dev.transpose(0, 2, 1) + spare_columns * post.B_inv

    x_sum, y_sum = np.sqrt(k)[:, None] * first[:, x, 0], np.sqrt(size)[:, None] * first[:, y, 0]
    everything = np.einsum("sp,bsp->bp", post.root, by_matrix[:, :, :, 0])
    all_pairs = n_matrices * (post.W - post.W @ T @ post.W) + everything.T @ everything
    target_xy = np.einsum("s,sde->de", np.sqrt(k * size), second[:, x, y])
    cross = np.stack([all_pairs[x, y] - target_xy, target_xy])
    row_share = np.stack([stats.n_columns - size, size])  # scores of each class in a row of this shape
    column_share = np.stack([stats.n_rows - k, k])

    ww = np.empty((2, 1 + 2 * dim, 1 + 2 * dim))
    sw = np.empty((2, 1 + 2 * dim))
    at_x, at_y = slice(1, 1 + dim), slice(1 + dim, 1 + 2 * dim)
    ww[:, 0, 0] = stats.count
    sw[:, 0] = stats.total
    ww[:, 0, at_x] = ww[:, at_x, 0] = row_share @ x_sum
    ww[:, 0, at_y] = ww[:, at_y, 0] = column_share @ y_sum
    ww[:, at_x, at_x] = np.einsum("hs,sde->hde", row_share, xx)
    ww[:, at_y, at_y] = np.einsum("hs,sde->hde", column_share, yy)
    ww[:, at_x, at_y] = cross
    ww[:, at_y, at_x] = cross.transpose(0, 2, 1)
    per_row, per_column = _inverse_root(k[:, None]), _inverse_root(size[:, None])
    for h, (row_phi, column_phi) in enumerate(((2, 3), (1, 1))):
        sw[h, at_x] = (per_row * first[:, x, row_phi] + row_sum[:, :, h]).sum(axis=0)
        sw[h, at_y] = (per_column * first[:, y, column_phi] + column_sum[:, :, h]).sum(axis=0)

    explained = (
        np.einsum("sfg,bsfg->", gamma.transpose(0, 2, 1) @ P_gamma, stats.phi)
        - np.einsum("bp,pq,bq->", t, T, t)
        + np.einsum("hd,sdh->", terms.alpha_precision, row_sum)
        + np.einsum("hd,sdh->", terms.beta_precision, column_sum)
    )
    return Moments(
        ww=ww,
        sw=sw,
        ss=stats.squares,
        enroll=SideMoments(count=float(n_matrices * stats.n_rows), first=x_sum.sum(axis=0), second=xx.sum(axis=0)),
        test=SideMoments(count=float(n_matrices * stats.n_columns), first=y_sum.sum(axis=0), second=yy.sum(axis=0)),
        log_likelihood=marginal(
            model, stats.count, stats.squares, stats.total, explained, n_matrices * (post.log_det + log_det)
        ),
    )


def marginal(
    model: ScoreModel,
    count: Float[Array, "2"],
    squares: Float[Array, "2"],
    total: Float[Array, "2"],
    explained: float,
    log_det: float,
) -> float:
    """Return the paper's log-marginal from the sums of each class, gamma' Lambda^-1 gamma and log|Lambda|, (E13)."""
    residual = squares - 2 * model.mu * total + count * model.mu**2
    alone = residual / model.sigma2 + count * np.log(2 * np.pi * model.sigma2)
    return float(-0.5 * alone.sum() + 0.5 * explained - 0.5 * log_det)
