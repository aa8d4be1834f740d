"""The posterior of the hidden variables, and the E-step, for any pattern of scores.

The posterior precision is Lambda = P + U M U'. P is block-diagonal over components, U'z = (sum x, sum y), and M couples
all rows with all columns as the background does. Letters and equations are those of docs/model/mathematics.md, which
also goes through a complete matrix step by step. `posterior` is the dense answer, for small matrices; training uses
`expect`, and scoring `factorize` and `solve`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import NONTARGET, TARGET, Labels
from evenscore.errors import InputError
from evenscore.model.parameters import ScoreModel
from evenscore.model.pattern import Array
from evenscore.model.statistics import Statistics, Types
from evenscore.model.sums import labelled_parts

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Factor", "HiddenPosterior", "Moments", "background_core", "expect", "factorize", "posterior", "solve"]

_LARGE = 128  # rows of a matrix that is worth a Cholesky factorization of its own, or a look at its zeros
_MOST = 20_000  # hidden numbers whose covariance fits into memory (3 GB)


class HiddenPosterior(NamedTuple):
    """Gaussian posterior of the hidden variables of a matrix."""

    enroll: Float[np.ndarray, "k d"]  #: means of x
    test: Float[np.ndarray, "l d"]  #: means of y
    covariance: Float[np.ndarray, "z z"]  #: of z = (x_1, ..., x_K, y_1, ..., y_L), which has (K + L) D elements


def posterior(model: ScoreModel, scores: Any, labels: Any = None) -> HiddenPosterior:
    """Return the posterior of all hidden variables, given labelled scores: the paper's z, its mean and covariance.

    The scores are a matrix with labels, or a labelled `TrialList`, as for `fit_score_model`; those that are NaN, or of
    unknown label, are not used.

    Examples
    --------
    >>> model = ScoreModel(mu=[0.0, 2.0], alpha=[[0.5], [0.5]], beta=[[0.1], [0.3]], sigma2=[1.0, 1.0])
    >>> found = posterior(model, np.array([[2.5, 0.1], [-0.4, 1.5]]), np.eye(2))
    >>> found.enroll.round(3), found.covariance.shape
    (array([[ 0.195],
           [-0.293]]), (4, 4))
    """
    from scipy.sparse import csr_array

    ((scores, known),) = labelled_parts(scores, labels)
    if known is None:
        scores, known = scores.to_matrix().scores, Labels.from_trials(scores)
    (K, L), D = known.shape, model.dim
    if (K + L) * D > _MOST:
        raise InputError(f"the posterior of {K} + {L} hidden variables does not fit into memory; take fewer of them")
    values = np.asarray(scores, dtype=float)
    i, j = np.nonzero(~np.isnan(values) & (known.matrix >= 0))
    h, columns = known.matrix[i, j], np.arange(D)
    # Every score is one row of a regression on z, whose noise has variance 1: s = mu + H z + noise.
    at = np.hstack([i[:, None] * D + columns, (K + j)[:, None] * D + columns])
    loadings = np.hstack([model.alpha, model.beta])[h] / np.sqrt(model.sigma2[h])[:, None]
    H = csr_array((loadings.ravel(), at.ravel(), np.arange(len(i) + 1) * 2 * D), (len(i), (K + L) * D))
    covariance = np.linalg.inv(np.eye((K + L) * D) + (H.T @ H).toarray())  # H'H adds up (E1)
    gamma = H.T @ ((values[i, j] - model.mu[h]) / np.sqrt(model.sigma2[h]))  # (E2)
    mean = (covariance @ gamma).reshape(K + L, D)
    return HiddenPosterior(mean[:K], mean[K:], covariance)


@dataclass(frozen=True, eq=False)
class Factor:
    """P of some components: row elements are eliminated, and the Schur complement S of the column elements inverted."""

    A_inv: Float[np.ndarray, "t r d d"]
    X: Float[np.ndarray, "t rd cd"]  #: A^-1 times what couples rows and columns
    S_inv: Float[np.ndarray, "t cd cd"]
    log_det_a: Float[np.ndarray, "t r"]
    log_det_s: Float[np.ndarray, " t"]
    row_pu: Float[np.ndarray, "t r d p"]  #: P^-1 U, p = 2 D
    col_pu: Float[np.ndarray, "t c d p"]
    UPU: Float[np.ndarray, "t p p"]  #: U' P^-1 U of each component
    mostly_zero: bool  #: whether X is that of one large component with few scores

    @cached_property
    def X_S(self) -> Float[np.ndarray, "t rd cd"]:  # noqa: N802
        """X S^-1, the covariance of row and column elements under P, negated."""
        return _product(self.X, self.S_inv, self.mostly_zero)


def factorize(model: ScoreModel, coupling: Array, row_n: Array, col_n: Array, row_u: Array, col_u: Array) -> Factor:
    """Eliminate the rows of components, (E5), and solve for U; the arrays are those of `Types`."""
    D, (T, R, C) = model.dim, coupling.shape[1:]
    a, b, c = model.score_precision()
    A = np.eye(D) + (row_n @ a.reshape(2, D * D)).reshape(T, R, D, D)  # (E5)
    B = np.eye(D) + (col_n @ b.reshape(2, D * D)).reshape(T, C, D, D)
    between = np.tensordot(coupling, c, (0, 0)).transpose(0, 1, 3, 2, 4).reshape(T, R, D, C * D)
    A_inv, log_det_a = _inverse(A)
    X = (A_inv @ between).reshape(T, R * D, C * D)
    mostly_zero = T == 1 and min(R, C) * D >= _LARGE and bool(8 * np.count_nonzero(coupling) < coupling.size)
    S = -_product(between.reshape(T, R * D, C * D).swapaxes(1, 2), X, mostly_zero)
    diagonal = np.arange(C)
    S.reshape(T, C, D, C, D)[:, diagonal, :, diagonal] += B.swapaxes(0, 1)
    S_inv, log_det_s = _inverse(S)
    # P^-1 U by the same elimination, where U has u_r I in the rows for x and u_c I in those for y
    row_U, col_U = np.zeros((T, R, D, 2 * D)), np.zeros((T, C, D, 2 * D))
    row_U[..., :D], col_U[..., D:] = row_u[..., None, None] * np.eye(D), col_u[..., None, None] * np.eye(D)
    col_pu = S_inv @ (col_U.reshape(T, C * D, 2 * D) - X.swapaxes(1, 2) @ row_U.reshape(T, R * D, 2 * D))
    row_pu = A_inv @ row_U - (X @ col_pu).reshape(T, R, D, 2 * D)
    col_pu = col_pu.reshape(T, C, D, 2 * D)
    UPU = np.concatenate([_sum(row_u, row_pu), _sum(col_u, col_pu)], axis=1)
    return Factor(A_inv, X, S_inv, log_det_a, log_det_s, row_pu, col_pu, UPU, mostly_zero)


def _sum(weights: Array, values: Array) -> Array:
    """Return the weighted sums over the second axis, for each of the first."""
    T, N, *shape = values.shape
    return (weights[:, None] @ values.reshape(T, N, int(np.prod(shape)))).reshape(T, *shape)


def _inverse(matrices: Array) -> tuple[Array, Array]:
    """Return the inverses of symmetric matrices, and their log-determinants."""
    if matrices.shape[-1] == 2:
        p, q, r = matrices[..., 0, 0], matrices[..., 0, 1], matrices[..., 1, 1]
        det = p * r - q * q
        return np.stack([r, -q, -q, p], -1).reshape(matrices.shape) / det[..., None, None], np.log(abs(det))
    if matrices.shape[-1] >= _LARGE:
        from scipy.linalg import lapack

        roots = [lapack.dpotrf(matrix, lower=1, clean=1) for matrix in matrices]
        if not any(info for _, info in roots):  # without its background, P need not be positive definite
            lower = np.stack([lapack.dpotri(root, lower=1)[0] for root, _ in roots])
            log_det = 2 * np.log(np.stack([np.diag(root) for root, _ in roots])).sum(1)
            return lower + np.tril(lower, -1).swapaxes(1, 2), log_det
    return np.linalg.inv(matrices), np.linalg.slogdet(matrices)[1]


def _product(left: Array, right: Array, mostly_zero: bool) -> Array:
    """Return the products of matrices."""
    if not mostly_zero:
        return left @ right
    from scipy.sparse import csr_array

    return (csr_array(left[0]) @ right[0])[None]


def solve(factor: Factor, row_g: Array, col_g: Array) -> tuple[Array, Array]:
    """Return P^-1 g for n vectors g of each component, T x n x R x D and T x n x C x D."""
    T, N, R, D = row_g.shape
    y = (col_g.reshape(T, N, col_g.shape[2] * D) - row_g.reshape(T, N, R * D) @ factor.X) @ factor.S_inv
    x = (factor.A_inv @ row_g.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)  # A_inv is symmetric
    return x - (y @ factor.X.swapaxes(1, 2)).reshape(row_g.shape), y.reshape(col_g.shape)


def background_core(model: ScoreModel, W: Array, background: npt.NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return (I + M W)^-1 M of (E3) and log |I + M W| of (E4) for each matrix; W is U' P^-1 U."""
    D, M, c = model.dim, np.zeros(W.shape), model.score_precision()[2][NONTARGET]
    M[background, :D, D:], M[background, D:, :D] = c, c.T
    I_MW = np.eye(2 * D) + M @ W
    return np.linalg.solve(I_MW, M), np.linalg.slogdet(I_MW)[1]


@dataclass(frozen=True, eq=False)
class Moments:
    """Expectations that the M-step needs: over the scores of each class, w = (1, x, y); over rows; over columns."""

    ww: Float[np.ndarray, "2 v v"]  #: sum of <w w'>
    sw: Float[np.ndarray, "2 v"]  #: sum of s <w>
    ss: Float[np.ndarray, "2"]  #: sum of s^2
    first: Float[np.ndarray, "2 d"]  #: sum of <x>, of <y>
    second: Float[np.ndarray, "2 d d"]  #: sum of <x x'>, of <y y'>
    number: Float[np.ndarray, "2"]  #: rows and columns that have scores
    log_likelihood: float = 0.0

    def add_side(self, side: int, n: Array, total: Array, square: Array, sums: Array, z: Array) -> None:
        """Add one side of some types: sums of <z> and <z z'> of each element, and what multiplies them."""
        (T, R, D), H = total.shape, n.reshape(-1, 2).T
        at = slice(1 + side * D, 1 + side * D + D)
        self.ww[:, 0, at] += H @ total.reshape(T * R, D)
        self.ww[:, at, at] += (H @ square.reshape(T * R, D * D)).reshape(2, D, D)
        self.sw[:, at] += sums.reshape(-1, 2).T @ z.reshape(sums.size // 2, D)
        self.first[side] += total.sum((0, 1))
        self.second[side] += square.sum((0, 1))


class _Solved(NamedTuple):
    """Some types with P^-1 gamma, gamma of (E6); one vector for each row of phi."""

    types: Types
    factor: Factor
    one: Float[np.ndarray, "t p"]
    row_sums: Float[np.ndarray, "t p r 2"]
    col_sums: Float[np.ndarray, "t p c 2"]
    x: Float[np.ndarray, "t p r d"]
    y: Float[np.ndarray, "t p c d"]
    explained: float  #: sum of gamma' P^-1 gamma


def _solve_types(model: ScoreModel, types: Types) -> _Solved:
    (T, P, _), (R, C), one = types.phi.shape, types.coupling.shape[2:], types.phi[:, :, 0]
    factor = factorize(model, types.coupling, types.row_n, types.col_n, types.row_u, types.col_u)
    row_sums = types.phi[:, :, 1 : 1 + 2 * R].reshape(T, P, R, 2)
    col_sums = types.phi[:, :, 1 + 2 * R :].reshape(T, P, C, 2)
    expected = one[:, :, None, None] * model.mu
    row_gamma = (row_sums - expected * (types.row_u[..., None] * types.row_n)[:, None]) / model.sigma2 @ model.alpha
    col_gamma = (col_sums - expected * (types.col_u[..., None] * types.col_n)[:, None]) / model.sigma2 @ model.beta
    x, y = solve(factor, row_gamma, col_gamma)  # (E6)
    explained = float(np.vdot(row_gamma, x) + np.vdot(col_gamma, y))
    return _Solved(types, factor, one, row_sums, col_sums, x, y, explained)


def expect(model: ScoreModel, stats: Statistics) -> Moments:
    """Return the moments of the hidden variables and the log-likelihood, in the units of the statistics: the E-step."""
    D = model.dim
    solved = [_solve_types(model, types) for types in stats.types]
    W, t = _background_sums(D, stats, solved)
    T, log_det = background_core(model, W, stats.background)  # (E3), (E4)
    Tt = (T @ t[:, :, None])[:, :, 0]
    moments = Moments(
        ww=np.zeros((2, 1 + 2 * D, 1 + 2 * D)),
        sw=np.zeros((2, 1 + 2 * D)),
        ss=stats.squares,
        first=np.zeros((2, D)),
        second=np.zeros((2, D, D)),
        number=stats.seen,
        log_likelihood=_log_likelihood(model, stats, solved, float(np.vdot(t, Tt)), float(log_det.sum())),
    )
    for s in solved:
        _add_types(moments, s, T[s.types.matrix], Tt[s.types.matrix])
    # <x y'> over all pairs of the background, of which the couplings are exceptions
    z = t - (W @ Tt[:, :, None])[:, :, 0]
    whole = z[:, :D, None] * z[:, None, D:] + (W - W @ T @ W)[:, :D, D:]
    moments.ww[NONTARGET, 1 : 1 + D, 1 + D :] += whole[stats.background].sum(0)
    moments.ww[:, 1 + D :, 1 : 1 + D] = moments.ww[:, 1 : 1 + D, 1 + D :].swapaxes(1, 2)
    moments.ww[:, 0, 0], moments.ww[:, 1:, 0], moments.sw[:, 0] = stats.count, moments.ww[:, 0, 1:], stats.total
    moments.second[:] -= (stats.hidden - stats.seen)[:, None, None] * np.eye(D)  # others stay at their prior
    return moments


def _background_sums(D: int, stats: Statistics, solved: list[_Solved]) -> tuple[Array, Array]:
    """Return W = U' P^-1 U and t = U' P^-1 gamma of each matrix."""
    n_matrices = len(stats.background)
    W, t = np.zeros((n_matrices, 2 * D, 2 * D)), np.zeros((n_matrices, 2 * D))
    for s in solved:
        of_rows, of_cols = _sum(s.types.row_u, _sum(s.one, s.x)), _sum(s.types.col_u, _sum(s.one, s.y))
        np.add.at(W, s.types.matrix, s.types.number[:, None, None] * s.factor.UPU)
        np.add.at(t, s.types.matrix, np.concatenate([of_rows, of_cols], axis=1))
    return W, t


def _log_likelihood(
    model: ScoreModel, stats: Statistics, solved: list[_Solved], shared: float, log_det: float
) -> float:
    """Return (E13); ``shared`` is t'T t and ``log_det`` log |I + M W|, what the background takes from both terms."""
    explained = sum(s.explained for s in solved) - shared  # gamma' Lambda^-1 gamma
    for s in solved:
        log_det += float(np.vdot(s.types.row_count, s.factor.log_det_a) + s.types.number @ s.factor.log_det_s)
    squares = stats.squares - 2 * model.mu * stats.total + stats.count * model.mu**2
    rest = squares / model.sigma2 + stats.count * np.log(2 * np.pi * model.sigma2)
    return float(0.5 * (explained - rest.sum() - log_det))


def _add_types(moments: Moments, s: _Solved, T: Array, Tt: Array) -> None:
    """Add the moments of some types, given T and T t of their matrices."""
    types, f, D = s.types, s.factor, s.x.shape[-1]
    moved = s.one[:, :, None, None]
    x = s.x - moved * (f.row_pu @ Tt[:, None, :, None])[:, None, :, :, 0]  # (E7)
    y = s.y - moved * (f.col_pu @ Tt[:, None, :, None])[:, None, :, :, 0]
    x_var, y_var = _variances(f, T)
    x_square = x.transpose(0, 2, 3, 1) @ x.transpose(0, 2, 1, 3) + types.row_count[..., None, None] * x_var
    y_square = y.transpose(0, 2, 3, 1) @ y.transpose(0, 2, 1, 3) + types.col_count[..., None, None] * y_var
    moments.add_side(0, types.row_n, types.row_u[..., None] * _sum(s.one, x), x_square, s.row_sums, x)
    moments.add_side(1, types.col_n, types.col_u[..., None] * _sum(s.one, y), y_square, s.col_sums, y)
    for h in (NONTARGET, TARGET):
        if D and types.coupling[h].any():
            moments.ww[h, 1 : 1 + D, 1 + D :] += _cross_moment(types, h, f, T, x, y)


def _variances(f: Factor, T: Array) -> tuple[Array, Array]:
    """Return the posterior covariance of each row element and of each column element, (E3)."""
    n_types, n_rows, D, _ = f.row_pu.shape
    n_cols = f.col_pu.shape[1]
    by_row, diagonal = (n_types, n_rows, D, n_cols * D), np.arange(n_cols)
    x_var = f.A_inv + f.X_S.reshape(by_row) @ f.X.reshape(by_row).swapaxes(2, 3)
    y_var = f.S_inv.reshape(n_types, n_cols, D, n_cols, D)[:, diagonal, :, diagonal].swapaxes(0, 1)
    x_var = x_var - f.row_pu @ T[:, None] @ f.row_pu.swapaxes(2, 3)
    return x_var, y_var - f.col_pu @ T[:, None] @ f.col_pu.swapaxes(2, 3)


def _cross_moment(types: Types, h: int, f: Factor, T: Array, x: Array, y: Array) -> Array:
    """Return the sum of <x y'> over the pairs that class h couples: products of means, and the covariances of (E3)."""
    weight, (n_types, n_rows, n_cols) = types.coupling[h], types.coupling.shape[1:]
    D = x.shape[-1]
    partners = (weight[:, None] @ y).reshape(-1, D)  # for each x, the weighted sum of the y that it is coupled with
    of_means = x.reshape(partners.shape).T @ partners
    t, r, c = np.nonzero(weight)
    X_S = f.X_S.reshape(n_types, n_rows, D, n_cols, D)[t, r, :, c]
    within = np.tensordot(types.number[t] * weight[t, r, c], X_S, 1)  # minus the covariance under P
    reach = (weight @ f.col_pu.reshape(n_types, n_cols, 2 * D * D)).reshape(n_types, n_rows, D, 2 * D)
    by_background = (types.number[:, None, None, None] * (f.row_pu @ T[:, None])) @ reach.swapaxes(2, 3)
    return of_means - within - by_background.sum((0, 1))
