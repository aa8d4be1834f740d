"""The posterior for any pattern of labels and missing pairs: exceptions to a background, component by component.

Inside a component the larger side is eliminated, and the Schur complement of the smaller one is inverted. The
background, if there is one, is a correction of rank 2D (Woodbury). Letters and equation numbers as in docs/math.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenscore.model.block_posterior import Couplings, background_correction, couplings, marginal
from evenscore.model.listed_posterior import eliminate_listed
from evenscore.model.moments import Moments, SideMoments
from evenscore.model.parameters import ScoreModel
from evenscore.model.patterns import Component, Exceptions
from evenscore.tables import NONTARGET, TARGET, UNKNOWN

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["ComponentPosterior", "ComponentStatistics", "component_posterior", "expect_components", "solve_speakers"]

Array = np.ndarray
_CHUNK = 1 << 22  # numbers in the largest temporary array
_LARGE = 200  # size of the Schur complement from which sparse couplings pay


@dataclass(frozen=True, kw_only=True, eq=False)
class ComponentStatistics:
    """Sums of standardized scores per class, row and column, and the pattern they come from."""

    pattern: Exceptions
    batches: list[Component]
    rows: Float[Array, "2 k"]
    columns: Float[Array, "2 l"]
    row_counts: Float[Array, "2 k"]
    column_counts: Float[Array, "2 l"]
    squares: Float[Array, "2"]
    center: Float[Array, "2"]
    scale: float


@dataclass(frozen=True, kw_only=True, eq=False)
class ComponentPosterior:
    """Posterior of every hidden variable: means, covariances, and the sums of covariances that EM needs."""

    x: Float[Array, "k d r"]  #: Lambda^-1 gamma, for each gamma that was given
    y: Float[Array, "l d r"]
    x_covariance: Float[Array, "k d d"]
    y_covariance: Float[Array, "l d d"]
    cross: dict[int, Float[Array, "d d"]]  #: sums of <x_i y_j'> over the listed pairs of each label
    all_pairs: Float[Array, "p p"]  #: expectation of the products of (sum of x, sum of y)
    explained: float  #: gamma' Lambda^-1 gamma
    log_det: float


@dataclass(frozen=True, kw_only=True, eq=False)
class _Solved:
    """Solutions of P [mean, V] = [gamma, U] for a batch of components, with covariances; P has no background."""

    x: Float[Array, "n k d r"]
    y: Float[Array, "n l d r"]
    x_covariance: Float[Array, "n k d d"]
    y_covariance: Float[Array, "n l d d"]
    cross: dict[int, Float[Array, "d d"]]
    log_det: float


def component_posterior(
    model: ScoreModel,
    pattern: Exceptions,
    batches: list[Component],
    gamma_x: Float[Array, "k d r"],
    gamma_y: Float[Array, "l d r"],
    row_counts: Float[Array, "2 k"],
    column_counts: Float[Array, "2 l"],
) -> ComponentPosterior:
    """Return the posterior for a pattern and the precision-weighted means gamma of its rows and columns.

    Further columns of gamma are solved for too; what EM needs (`cross`, `all_pairs`, `explained`) is for the first.
    """
    terms, dim = couplings(model), model.dim
    A = np.eye(dim) + np.einsum("hk,hde->kde", row_counts, terms.a)  # (E1)
    B = np.eye(dim) + np.einsum("hk,hde->kde", column_counts, terms.b)
    selector = np.eye(2 * dim)
    rhs_x = np.concatenate([gamma_x, np.broadcast_to(selector[:dim], (len(A), dim, 2 * dim))], axis=2)
    rhs_y = np.concatenate([gamma_y, np.broadcast_to(selector[dim:], (len(B), dim, 2 * dim))], axis=2)
    x, y = np.empty_like(rhs_x), np.empty_like(rhs_y)
    x_cov, y_cov = np.empty_like(A), np.empty_like(B)
    labels = (TARGET, UNKNOWN if pattern.background else NONTARGET)
    cross = {label: np.zeros((dim, dim)) for label in labels}
    log_det = 0.0
    table = _exception_couplings(terms, pattern.background)
    for batch in batches:
        solved = _solve_batch(batch, table, labels, A, B, rhs_x, rhs_y)
        x[batch.rows], y[batch.columns] = solved.x, solved.y
        x_cov[batch.rows], y_cov[batch.columns] = solved.x_covariance, solved.y_covariance
        for label, value in solved.cross.items():
            cross[label] += value
        log_det += solved.log_det
    return _with_background(pattern, terms, gamma_x, gamma_y, x, y, x_cov, y_cov, cross, log_det)


def solve_speakers(
    batches: list[Component], terms: Couplings, A: Float[Array, "k d d"], B: Float[Array, "l d d"]
) -> tuple[Float[Array, "k d p"], Float[Array, "l d p"]]:
    """Return V = P^-1 U for components of a non-target background; ``A``, ``B``: the diagonal of P."""
    dim = A.shape[1]
    selector = np.eye(2 * dim)
    rhs_x = np.broadcast_to(selector[:dim], (len(A), dim, 2 * dim))
    rhs_y = np.broadcast_to(selector[dim:], (len(B), dim, 2 * dim))
    x, y = np.empty_like(rhs_x), np.empty_like(rhs_y)
    table = _exception_couplings(terms, has_background=True)
    for batch in batches:
        solved = _solve_batch(batch, table, (), A, B, rhs_x, rhs_y)
        x[batch.rows], y[batch.columns] = solved.x, solved.y
    return x, y


def _exception_couplings(terms: Couplings, has_background: bool) -> Float[Array, "3 d d"]:
    """Return what a pair of label 0, 1, -1 (in this order of index) adds to the coupling of its row and column."""
    zero = np.zeros_like(terms.c[0])
    table = np.stack([terms.c[0], terms.c[1], zero])
    return table - terms.c[0] if has_background else table


def _solve_batch(
    batch: Component,
    table: Float[Array, "3 d d"],
    labels: tuple[int, ...],
    A: Float[Array, "k d d"],
    B: Float[Array, "l d d"],
    rhs_x: Float[Array, "k d r"],
    rhs_y: Float[Array, "l d r"],
) -> _Solved:
    """Solve a batch of components of one size, the larger side eliminated."""
    rows = (A[batch.rows], rhs_x[batch.rows])
    columns = (B[batch.columns], rhs_y[batch.columns])
    n_components, n_rows, n_columns = batch.key.shape
    # Without a background P is a precision itself, so a large, sparse component can be done by Cholesky.
    listed = NONTARGET in labels and n_components == 1 and min(n_rows, n_columns) * A.shape[1] >= _LARGE
    eliminate = eliminate_listed if listed else _eliminate
    if n_rows >= n_columns:
        outer, inner, out_cov, in_cov, cross, log_det = eliminate(batch.key, table, labels, *rows, *columns)
        return _Solved(x=outer, y=inner, x_covariance=out_cov, y_covariance=in_cov, cross=cross, log_det=log_det)
    key, turned = batch.key.transpose(0, 2, 1), table.transpose(0, 2, 1)
    outer, inner, out_cov, in_cov, cross, log_det = eliminate(key, turned, labels, *columns, *rows)
    cross = {label: value.T for label, value in cross.items()}
    return _Solved(x=inner, y=outer, x_covariance=in_cov, y_covariance=out_cov, cross=cross, log_det=log_det)


def _eliminate(
    key: Array,
    table: Float[Array, "3 d d"],
    labels: tuple[int, ...],
    D_out: Float[Array, "n e d d"],
    rhs_out: Float[Array, "n e d r"],
    D_in: Float[Array, "n f d d"],
    rhs_in: Float[Array, "n f d r"],
) -> tuple[Array, Array, Array, Array, dict[int, Array], float]:
    """Eliminate the outer side of [[D_out, C], [C', D_in]]: solutions, covariances, cross sums, log-determinant."""
    n, n_in, dim = D_in.shape[:3]
    width, n_rhs = n_in * dim, rhs_in.shape[3]
    inverse = np.linalg.inv(D_out)
    S = np.zeros((n, width, width))
    at = np.arange(n_in)[:, None] * dim + np.arange(dim)
    S[:, at[:, :, None], at[:, None, :]] = D_in
    rest = rhs_in.reshape(n, width, n_rhs).copy()
    for part, C, X in _coupling_chunks(key, table, inverse):
        S -= C.transpose(0, 2, 1) @ X
        rest -= X.transpose(0, 2, 1) @ rhs_out[:, part].reshape(n, X.shape[1], n_rhs)
    S_inv = np.linalg.inv(S)
    S_inv = (S_inv + S_inv.transpose(0, 2, 1)) / 2
    inner = S_inv @ rest
    outer = inverse @ rhs_out
    out_cov = inverse.copy()
    cross = {label: np.zeros((dim, dim)) for label in labels}
    for part, _, X in _coupling_chunks(key, table, inverse):
        outer[:, part] -= (X @ inner).reshape(outer[:, part].shape)
        size = part.stop - part.start
        XS = (X @ S_inv).reshape(n, size, dim, width)
        out_cov[:, part] += XS @ X.reshape(n, size, dim, width).transpose(0, 1, 3, 2)
        pairs = -XS.reshape(n, size, dim, n_in, dim)
        for label in cross:
            cross[label] += np.einsum("nedfg,nef->dg", pairs, (key[:, part] == label).astype(float), optimize=True)
    log_det = float(np.linalg.slogdet(D_out)[1].sum() + np.linalg.slogdet(S)[1].sum())
    in_cov = S_inv[:, at[:, :, None], at[:, None, :]]
    return outer, inner.reshape(rhs_in.shape), out_cov, in_cov, cross, log_det


def _coupling_chunks(
    key: Array, table: Float[Array, "3 d d"], inverse: Float[Array, "n e d d"]
) -> Iterator[tuple[slice, Array, Array]]:
    """Yield parts of the outer side with their couplings C and D_out^-1 C, never more than a chunk at once."""
    n, n_out, n_in = key.shape
    dim = table.shape[1]
    step = max(1, _CHUNK // max(n * n_in * dim * dim, 1))
    for start in range(0, n_out, step):
        part = slice(start, min(start + step, n_out))
        size, width = part.stop - start, n_in * dim
        C = table[key[:, part]].transpose(0, 1, 3, 2, 4).reshape(n, size, dim, width)
        X = inverse[:, part] @ C
        yield part, C.reshape(n, size * dim, width), X.reshape(n, size * dim, width)


def _with_background(
    pattern: Exceptions,
    terms: Couplings,
    gamma_x: Float[Array, "k d g"],
    gamma_y: Float[Array, "l d g"],
    x: Float[Array, "k d r"],
    y: Float[Array, "l d r"],
    x_cov: Float[Array, "k d d"],
    y_cov: Float[Array, "l d d"],
    cross: dict[int, Float[Array, "d d"]],
    log_det: float,
) -> ComponentPosterior:
    """Correct the solutions for the background U M U' (E4) and finish the sums."""
    n_gamma = gamma_x.shape[2]
    Vx, Vy = x[:, :, n_gamma:], y[:, :, n_gamma:]  # V = P^-1 U
    x, y = x[:, :, :n_gamma], y[:, :, :n_gamma]
    W = np.concatenate([Vx.sum(axis=0), Vy.sum(axis=0)])
    T, more = background_correction(terms, W) if pattern.background else (np.zeros_like(W), 0.0)
    t = np.concatenate([x.sum(axis=0), y.sum(axis=0)])
    mean_x, mean_y = x - Vx @ (T @ t), y - Vy @ (T @ t)
    first_x, first_y = mean_x[:, :, 0], mean_y[:, :, 0]
    explained = np.vdot(gamma_x[:, :, 0], first_x) + np.vdot(gamma_y[:, :, 0], first_y)
    VxT, VyT = Vx @ T, Vy @ T
    everything = np.concatenate([first_x.sum(axis=0), first_y.sum(axis=0)])
    whole = {}
    for label, covariance in cross.items():
        listed = pattern.labels == label
        i, j = pattern.rows[listed], pattern.columns[listed]
        whole[label] = covariance + _sum_pairs(first_x, first_y, i, j) - _sum_pairs(VxT, Vy, i, j)
    return ComponentPosterior(
        x=mean_x,
        y=mean_y,
        x_covariance=x_cov - VxT @ Vx.transpose(0, 2, 1),
        y_covariance=y_cov - VyT @ Vy.transpose(0, 2, 1),
        cross=whole,
        all_pairs=W - W @ T @ W + np.outer(everything, everything),
        explained=float(explained),
        log_det=log_det + more,
    )


def _sum_pairs(left: Array, right: Array, i: Array, j: Array) -> Float[Array, "d d"]:
    """Return the sum of left_i right_j' over pairs, where both are n x d (x r)."""
    from scipy.sparse import csr_array

    links = csr_array((np.ones(len(i)), (i, j)), shape=(len(left), len(right)))
    summed = links @ right.reshape(len(right), right.size // max(len(right), 1))
    deep = (len(left), left.shape[1], left[0].size // max(left.shape[1], 1) if len(left) else 1)
    product: Array = np.einsum("kdr,ker->de", left.reshape(deep), summed.reshape(deep), optimize=True)
    return product


def expect_components(model: ScoreModel, stats: ComponentStatistics) -> Moments:
    """Return the expected statistics and the log-likelihood of a matrix with any pattern, in standardized units."""
    gamma_x = ((stats.rows - model.mu[:, None] * stats.row_counts) / model.sigma2[:, None]).T @ model.alpha  # (E2)
    gamma_y = ((stats.columns - model.mu[:, None] * stats.column_counts) / model.sigma2[:, None]).T @ model.beta
    post = component_posterior(
        model,
        stats.pattern,
        stats.batches,
        gamma_x[:, :, None],
        gamma_y[:, :, None],
        stats.row_counts,
        stats.column_counts,
    )
    dim = model.dim
    x, y = slice(1, 1 + dim), slice(1 + dim, 1 + 2 * dim)
    mean_x, mean_y = post.x[:, :, 0], post.y[:, :, 0]
    xx = post.x_covariance + mean_x[:, :, None] * mean_x[:, None, :]
    yy = post.y_covariance + mean_y[:, :, None] * mean_y[:, None, :]
    if stats.pattern.background:
        nontarget = post.all_pairs[:dim, dim:] - post.cross[TARGET] - post.cross[UNKNOWN]
    else:
        nontarget = post.cross[NONTARGET]
    ww = np.empty((2, 1 + 2 * dim, 1 + 2 * dim))
    sw = np.empty((2, 1 + 2 * dim))
    count = stats.row_counts.sum(axis=1)
    ww[:, 0, 0] = count
    ww[:, 0, x] = ww[:, x, 0] = stats.row_counts @ mean_x
    ww[:, 0, y] = ww[:, y, 0] = stats.column_counts @ mean_y
    ww[:, x, x] = np.einsum("hk,kde->hde", stats.row_counts, xx)
    ww[:, y, y] = np.einsum("hk,kde->hde", stats.column_counts, yy)
    ww[:, x, y] = np.stack([nontarget, post.cross[TARGET]])
    ww[:, y, x] = ww[:, x, y].transpose(0, 2, 1)
    sw[:, 0] = stats.rows.sum(axis=1)
    sw[:, x] = stats.rows @ mean_x
    sw[:, y] = stats.columns @ mean_y
    return Moments(
        ww=ww,
        sw=sw,
        ss=stats.squares,
        enroll=SideMoments(count=float(len(xx)), first=mean_x.sum(axis=0), second=xx.sum(axis=0)),
        test=SideMoments(count=float(len(yy)), first=mean_y.sum(axis=0), second=yy.sum(axis=0)),
        log_likelihood=marginal(model, count, stats.squares, sw[:, 0], post.explained, post.log_det),
    )
