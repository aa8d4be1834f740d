"""The E-step for complete matrices with speaker blocks: exact, at a cost that does not depend on their size.

The letters and the equation numbers are those of docs/math.md. In the paper the posterior is equation (11), with the
elements of its precision and the marginal likelihood below it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenscore.model.moments import Moments, SideMoments, regressors
from evenscore.model.parameters import ScoreModel
from evenscore.model.patterns import ShapeStatistics
from evenscore.model.precision import PrecisionTerms, background_correction, marginal, precision_terms

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["GroupPrecisions", "evidence_of_groups", "expect_blocks", "group_precisions", "inverse_root"]

Array = np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupPrecisions:
    """Precision of the scaled group means (xi, eta) = (sqrt(K_g) mean x, sqrt(L_g) mean y), one block per shape.

    This is P, the posterior precision without the background U M U' that couples all groups.
    """

    Q_inv: Float[Array, "s p p"]  #: of the deviations from the group means, x and y of one utterance together
    P_inv: Float[Array, "s p p"]
    root: Float[Array, "s p"]  #: U: sqrt(K_g) for x, sqrt(L_g) for y
    W: Float[Array, "p p"]  #: U' P^-1 U
    log_det: float


def group_precisions(
    terms: PrecisionTerms,
    n_enroll: Array,
    n_test: Array,
    n_groups: Float[Array, " s"],
    n_rows: float | int,
    n_columns: float | int,
    paired: npt.NDArray[np.bool_] | None = None,
) -> GroupPrecisions:
    """Factorize the groups' part (E3) of the posterior precision of a matrix of the given size.

    In ``paired`` shapes, each row has no score with the column of its own utterance (E14).
    """
    dim = terms.a.shape[1]
    identity = np.eye(dim)
    k, size = n_enroll.astype(float)[:, None, None], n_test.astype(float)[:, None, None]
    own = np.zeros_like(k) if paired is None else paired.astype(float)[:, None, None]
    A = identity + np.where(k > 0, (size - own) * terms.a[1] + (n_columns - size) * terms.a[0], 0.0)
    B = identity + np.where(size > 0, (k - own) * terms.b[1] + (n_rows - k) * terms.b[0], 0.0)
    P = _coupled(A, B, np.sqrt(k * size) * (terms.c[1] - terms.c[0]) - own * terms.c[1])
    Q = _coupled(A, B, -own * terms.c[1])
    root = np.repeat(np.sqrt(np.concatenate([k[:, :, 0], size[:, :, 0]], axis=1)), dim, axis=1)
    P_inv = np.linalg.inv(P)
    P_inv[:, :dim, :dim] *= k > 0  # a speaker without enrolments has no xi: its place is only held
    P_inv[:, dim:, dim:] *= size > 0
    log_A = np.linalg.slogdet(A)[1]
    spare = np.maximum(k[:, 0, 0] - 1, 0) * log_A
    spare += np.maximum(size[:, 0, 0] - 1, 0) * (np.linalg.slogdet(Q)[1] - log_A)
    return GroupPrecisions(
        Q_inv=np.linalg.inv(Q),
        P_inv=P_inv,
        root=root,
        W=np.einsum("s,sp,spq,sq->pq", n_groups, root, P_inv, root),
        log_det=float(n_groups @ (spare + np.linalg.slogdet(P)[1])),  # (E5), without the background
    )


def _coupled(A: Float[Array, "s d d"], B: Float[Array, "s d d"], C: Float[Array, "s d d"]) -> Float[Array, "s p p"]:
    """Return [[A, C], [C', B]] of each shape."""
    C = np.broadcast_to(C, A.shape)
    above, below = np.concatenate([A, C], axis=2), np.concatenate([C.transpose(0, 2, 1), B], axis=2)
    return np.concatenate([above, below], axis=1)


def evidence_of_groups(
    terms: PrecisionTerms,
    mu: Float[Array, "2"],
    n_enroll: Array,
    n_test: Array,
    n_rows: float | int,
    n_columns: float | int,
    paired: npt.NDArray[np.bool_] | None = None,
) -> Float[Array, "s p 4"]:
    """Return the maps from phi_g to the precision-weighted mean (gamma) of (xi, eta), (E6)."""
    dim = terms.a.shape[1]
    k, size = n_enroll.astype(float)[:, None], n_test.astype(float)[:, None]
    own = np.zeros_like(k) if paired is None else paired.astype(float)[:, None]
    gamma = np.zeros((len(k), 2 * dim, 4))
    ap, bp = terms.alpha_precision, terms.beta_precision
    gamma[:, :dim, 0] = -np.sqrt(k) * ((size - own) * mu[1] * ap[1] + (n_columns - size) * mu[0] * ap[0])
    gamma[:, dim:, 0] = -np.sqrt(size) * ((k - own) * mu[1] * bp[1] + (n_rows - k) * mu[0] * bp[0])
    per_row, per_column = inverse_root(n_enroll), inverse_root(n_test)
    gamma[:, :dim, 1], gamma[:, :dim, 2] = per_row * ap[1], per_row * ap[0]
    gamma[:, dim:, 1], gamma[:, dim:, 3] = per_column * bp[1], per_column * bp[0]
    return gamma


def inverse_root(sizes: Array) -> Float[Array, "s 1"]:
    """Return 1 / sqrt(size), 0 for nobody."""
    return np.where(sizes > 0, 1 / np.sqrt(np.maximum(sizes, 1)), 0.0)[:, None]


@dataclass(frozen=True, kw_only=True, eq=False)
class _GroupMeans:
    """Expectations of the scaled group means (xi, eta), summed over the groups of each shape and over the matrices."""

    first: Float[Array, "s p 4"]  #: sum of <xi, eta> phi'
    second: Float[Array, "s p p"]  #: sum of <(xi, eta)(xi, eta)'>
    all_pairs: Float[Array, "p p"]  #: the same of sum_g U_g (xi, eta)_g, over the matrices
    explained: float  #: their part of gamma' Lambda^-1 gamma


def _group_means(
    post: GroupPrecisions, T: Float[Array, "p p"], gamma: Float[Array, "s p 4"], stats: ShapeStatistics
) -> _GroupMeans:
    """Return the posterior of the group means, (E4) and (E7)."""
    P_gamma = post.P_inv @ gamma
    t = np.einsum("sp,spf,bsf->bp", post.root, P_gamma, stats.phi[:, :, :, 0])
    P_root = post.P_inv * post.root[:, None, :]
    mean = np.repeat(P_gamma[None], len(t), axis=0)  # (E7): posterior mean of (xi, eta) is mean @ phi_g
    mean[:, :, :, 0] -= np.einsum("spq,bq->bsp", P_root, t @ T.T)
    covariance = post.P_inv - P_root @ T @ P_root.transpose(0, 2, 1)  # (E4)
    by_matrix = mean @ stats.phi  # sum over groups of <xi, eta> phi'
    everything = np.einsum("sp,bsp->bp", post.root, by_matrix[:, :, :, 0])
    return _GroupMeans(
        first=by_matrix.sum(axis=0),
        second=np.einsum("bspf,bsqf->spq", by_matrix, mean) + len(t) * stats.n_groups[:, None, None] * covariance,
        all_pairs=len(t) * (post.W - post.W @ T @ post.W) + everything.T @ everything,
        explained=float(
            np.einsum("sfg,bsfg->", gamma.transpose(0, 2, 1) @ P_gamma, stats.phi) - np.einsum("bp,pq,bq->", t, T, t)
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Deviations:
    """Expectations of the deviations from the group means, of x and y, summed over the groups of each shape."""

    sums: Float[Array, "s p 4"]  #: of <deviation> times the sums of scores: of rows per class, of columns per class
    second: Float[Array, "s p p"]  #: of <deviation deviation'>
    explained: float  #: their part of gamma' Lambda^-1 gamma


def _deviations(post: GroupPrecisions, terms: PrecisionTerms, stats: ShapeStatistics) -> _Deviations:
    """Return the posterior of the deviations (E8); those of rows and columns know of each other if paired (E14)."""
    dim = terms.a.shape[1]
    evidence = np.zeros((2 * dim, 4))
    evidence[:dim, :2], evidence[dim:, 2:] = terms.alpha_precision.T, terms.beta_precision.T
    scatter = _coupled(stats.row_scatter, stats.column_scatter, stats.pair_scatter)
    weights = post.Q_inv @ evidence
    sums = weights @ scatter
    rows, columns = (len(stats.phi) * stats.n_groups * np.maximum(n - 1, 0) for n in (stats.n_enroll, stats.n_test))
    spare = np.repeat(np.repeat([[rows, rows], [rows, columns]], dim, axis=0), dim, axis=1).transpose(2, 0, 1)
    return _Deviations(
        sums=sums,
        second=sums @ weights.transpose(0, 2, 1) + spare * post.Q_inv,
        explained=float(np.einsum("pf,spf->", evidence, sums)),
    )


def expect_blocks(model: ScoreModel, stats: ShapeStatistics) -> Moments:
    """Return the expected statistics and the log-likelihood of complete matrices; all in standardized units."""
    dim, n_matrices = model.dim, len(stats.phi)
    x, y = slice(0, dim), slice(dim, 2 * dim)
    terms = precision_terms(model)  # (E1)
    matrix = (stats.n_rows, stats.n_columns, stats.paired)
    post = group_precisions(terms, stats.n_enroll, stats.n_test, stats.n_groups, *matrix)  # (E3)
    T, log_det = background_correction(terms, post.W)  # (E4), (E5)
    gamma = evidence_of_groups(terms, model.mu, stats.n_enroll, stats.n_test, *matrix)  # (E6)
    groups = _group_means(post, T, gamma, stats)
    deviations = _deviations(post, terms, stats)
    k, size, own = (n.astype(float) for n in (stats.n_enroll, stats.n_test, stats.paired))
    second = groups.second + deviations.second  # sum of <(x_i, y_i)(x_i, y_i)'>
    xx, yy = second[:, x, x], second[:, y, y]
    x_sum, y_sum = np.sqrt(k)[:, None] * groups.first[:, x, 0], np.sqrt(size)[:, None] * groups.first[:, y, 0]
    same_speaker = np.einsum("s,sde->de", np.sqrt(k * size), groups.second[:, x, y])
    itself = np.einsum("s,sde->de", own, second[:, x, y])
    cross = np.stack([groups.all_pairs[x, y] - same_speaker, same_speaker - itself])
    row_share = np.stack([stats.n_columns - size, size - own])  # scores of each class in a row of this shape
    column_share = np.stack([stats.n_rows - k, k - own])

    # What the regression (E9) of the scores on w = (1, x, y) needs; phi has the sums of non-targets and of targets.
    row_sums = (inverse_root(k)[:, :, None] * groups.first[:, x, [2, 1]] + deviations.sums[:, x, :2]).sum(axis=0).T
    column_sums = (
        (inverse_root(size)[:, :, None] * groups.first[:, y, [3, 1]] + deviations.sums[:, y, 2:]).sum(axis=0).T
    )
    in_x = (row_share @ x_sum, np.einsum("hs,sde->hde", row_share, xx), row_sums)
    in_y = (column_share @ y_sum, np.einsum("hs,sde->hde", column_share, yy), column_sums)
    ww, sw = regressors(stats.count, stats.total, in_x, in_y, cross)

    explained = groups.explained + deviations.explained
    log_dets = n_matrices * (post.log_det + log_det)
    return Moments(
        ww=ww,
        sw=sw,
        ss=stats.squares,
        enroll=SideMoments(count=float(n_matrices * stats.n_rows), first=x_sum.sum(axis=0), second=xx.sum(axis=0)),
        test=SideMoments(count=float(n_matrices * stats.n_columns), first=y_sum.sum(axis=0), second=yy.sum(axis=0)),
        log_likelihood=marginal(model, stats.count, stats.squares, stats.total, explained, log_dets),  # (E13)
    )
