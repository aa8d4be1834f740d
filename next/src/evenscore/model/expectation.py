"""The posterior of the hidden variables, and the E-step, for any pattern of scores.

The posterior precision is Lambda = P + U M U'. P is block-diagonal over components, U'z = (sum x, sum y), and M couples
all rows with all columns as the background does. Equations as in docs/math.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.model.parameters import ScoreModel
from evenscore.model.statistics import Statistics, Types

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Factor", "Moments", "background_core", "expect", "factorize"]

Array = npt.NDArray[np.float64]
_LARGE = 128  # rows of a matrix that is worth a Cholesky factorization of its own, or a look at its zeros


@dataclass(frozen=True, eq=False)
class Moments:
    """Expectations that the M-step needs: over the scores of each class, w = (1, x, y); over rows; over columns."""

    ww: Float[np.ndarray, "2 v v"]  #: sum of <w w'>
    sw: Float[np.ndarray, "2 v"]  #: sum of s <w>
    ss: Float[np.ndarray, "2"]  #: sum of s^2
    first: Float[np.ndarray, "2 d"]  #: sum of <x>, of <y>
    second: Float[np.ndarray, "2 d d"]  #: sum of <x x'>, of <y y'>
    number: Float[np.ndarray, "2"]  #: rows and columns that have scores
    log_likelihood: float

    @property
    def T(self) -> Moments:  # noqa: N802
        """The moments of the transposed scores."""
        D = self.first.shape[1]
        order = np.r_[0, 1 + D : 1 + 2 * D, 1 : 1 + D]
        ww, sw = self.ww[:, order][:, :, order], self.sw[:, order]
        return Moments(ww, sw, self.ss, self.first[::-1], self.second[::-1], self.number[::-1], self.log_likelihood)


@dataclass(frozen=True, eq=False)
class Factor:
    """P of some components: row elements are eliminated, and the Schur complement S of the column elements inverted."""

    A_inv: Float[np.ndarray, "t r d d"]
    X: Float[np.ndarray, "t rd cd"]  #: A^-1 times what couples rows and columns
    S_inv: Float[np.ndarray, "t cd cd"]
    log_det_A: Float[np.ndarray, "t r"]
    log_det_S: Float[np.ndarray, " t"]
    row_PU: Float[np.ndarray, "t r d p"]  #: P^-1 U, p = 2 D
    col_PU: Float[np.ndarray, "t c d p"]
    UPU: Float[np.ndarray, "t p p"]  #: U' P^-1 U of each component
    mostly_zero: bool  #: whether X is that of one large component with few scores


def factorize(
    model: ScoreModel,
    coupling: Float[np.ndarray, "2 t r c"],
    row_n: Float[np.ndarray, "t r 2"],
    col_n: Float[np.ndarray, "t c 2"],
    row_u: Float[np.ndarray, "t r"],
    col_u: Float[np.ndarray, "t c"],
) -> Factor:
    """Eliminate the rows of components, (E3), and solve for U; the arrays are those of `Types`."""
    D, (T, R, C) = model.dim, coupling.shape[1:]
    a, b, c = model.score_precision()
    A = np.eye(D) + (row_n @ a.reshape(2, D * D)).reshape(T, R, D, D)  # (E3)
    B = np.eye(D) + (col_n @ b.reshape(2, D * D)).reshape(T, C, D, D)
    between = np.tensordot(coupling, c, (0, 0)).transpose(0, 1, 3, 2, 4)  # T R D C D
    A_inv, log_det_A = _inverse(A)
    X = (A_inv @ between.reshape(T, R, D, C * D)).reshape(T, R * D, C * D)
    mostly_zero = T == 1 and min(R, C) * D >= _LARGE and 8 * np.count_nonzero(coupling) < coupling.size
    S = -_product(between.reshape(T, R * D, C * D).swapaxes(1, 2), X, mostly_zero)
    diagonal = np.arange(C)
    S.reshape(T, C, D, C, D)[:, diagonal, :, diagonal] += B.swapaxes(0, 1)
    S_inv, log_det_S = _inverse(S)
    # P^-1 U by the same elimination, where U has u_r I in the rows for x and u_c I in those for y
    row_U, col_U = np.zeros((T, R, D, 2 * D)), np.zeros((T, C, D, 2 * D))
    row_U[..., :D], col_U[..., D:] = row_u[..., None, None] * np.eye(D), col_u[..., None, None] * np.eye(D)
    flat = (T, R * D, 2 * D)
    col_PU = S_inv @ (col_U.reshape(T, C * D, 2 * D) - X.swapaxes(1, 2) @ row_U.reshape(flat))
    row_PU = A_inv @ row_U - (X @ col_PU).reshape(T, R, D, 2 * D)
    col_PU = col_PU.reshape(T, C, D, 2 * D)
    UPU = np.concatenate([_weighted(row_u, row_PU), _weighted(col_u, col_PU)], axis=1)
    return Factor(A_inv, X, S_inv, log_det_A, log_det_S, row_PU, col_PU, UPU, mostly_zero)


def _weighted(u: Float[np.ndarray, "t r"], values: Float[np.ndarray, "t r d p"]) -> Float[np.ndarray, "t d p"]:
    """Return the sums over elements of u times values."""
    T, R, D, P = values.shape
    return (u[:, None] @ values.reshape(T, R, D * P)).reshape(T, D, P)


def _inverse(matrices: Array) -> tuple[Array, Array]:
    """Return the inverses of symmetric matrices, and their log-determinants."""
    if matrices.shape[-1] == 1:
        return 1 / matrices, np.log(abs(matrices[..., 0, 0]))
    if matrices.shape[-1] == 2:
        p, q, r = matrices[..., 0, 0], matrices[..., 0, 1], matrices[..., 1, 1]
        det = p * r - q * q
        found = np.empty_like(matrices)
        found[..., 0, 0], found[..., 1, 1], found[..., 0, 1] = r / det, p / det, -q / det
        found[..., 1, 0] = found[..., 0, 1]
        return found, np.log(abs(det))
    if matrices.shape[-1] >= _LARGE:
        from scipy.linalg import lapack

        roots = [lapack.dpotrf(matrix, lower=1, clean=1) for matrix in matrices]
        if not any(info for _, info in roots):  # without its background, P need not be positive definite
            lower = np.stack([lapack.dpotri(root, lower=1)[0] for root, _ in roots])
            log_det = 2 * np.log(np.stack([np.diag(root) for root, _ in roots])).sum(1)
            full = lower + lower.swapaxes(1, 2)
            full[:, np.arange(full.shape[1]), np.arange(full.shape[1])] /= 2
            return full, log_det
    return np.linalg.inv(matrices), np.linalg.slogdet(matrices)[1]


def _product(left: Array, right: Array, mostly_zero: bool) -> Array:
    """Return the products of matrices."""
    if mostly_zero:
        from scipy.sparse import csr_array

        return (csr_array(left[0]) @ right[0])[None]
    return left @ right


def solve(
    factor: Factor, row_g: Float[np.ndarray, "t n r d"], col_g: Float[np.ndarray, "t n c d"]
) -> tuple[Array, Array]:
    """Return P^-1 g for n vectors g of each component."""
    T, N, R, D = row_g.shape
    y = (col_g.reshape(T, N, col_g.shape[2] * D) - row_g.reshape(T, N, R * D) @ factor.X) @ factor.S_inv
    x = (factor.A_inv @ row_g.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)  # A_inv is symmetric
    return x - (y @ factor.X.swapaxes(1, 2)).reshape(row_g.shape), y.reshape(col_g.shape)


def background_core(
    model: ScoreModel, W: Float[np.ndarray, "b p p"], background: Any
) -> tuple[Float[np.ndarray, "b p p"], Float[np.ndarray, " b"]]:
    """Return (I + M W)^-1 M of (E4) and log |I + M W| of (E5) for each matrix."""
    D = model.dim
    M = np.zeros(W.shape)
    c = model.score_precision()[2][0]
    M[:, :D, D:], M[:, D:, :D] = c, c.T
    M *= np.asarray(background, float)[:, None, None]
    I_MW = np.eye(2 * D) + M @ W
    return np.linalg.solve(I_MW, M), np.linalg.slogdet(I_MW)[1]


@dataclass(frozen=True, eq=False)
class _Means:
    """Sums, evidence and posterior means of some types, one for each row of phi."""

    one: Float[np.ndarray, "t p"]
    row_sums: Float[np.ndarray, "t p r 2"]
    col_sums: Float[np.ndarray, "t p c 2"]
    x: Float[np.ndarray, "t p r d"]
    y: Float[np.ndarray, "t p c d"]
    explained: float  #: sum of gamma' z


def _means(model: ScoreModel, types: Types, factor: Factor) -> _Means:
    """Return P^-1 gamma, with gamma of (E6)."""
    (T, P, _), R, C = types.phi.shape, types.coupling.shape[2], types.coupling.shape[3]
    one = types.phi[:, :, 0]
    row_sums = types.phi[:, :, 1 : 1 + 2 * R].reshape(T, P, R, 2)
    col_sums = types.phi[:, :, 1 + 2 * R :].reshape(T, P, C, 2)
    expected = one[:, :, None, None]
    row_gamma = (row_sums - expected * (types.row_u[..., None] * types.row_n * model.mu)[:, None]) / model.sigma2
    col_gamma = (col_sums - expected * (types.col_u[..., None] * types.col_n * model.mu)[:, None]) / model.sigma2
    row_gamma, col_gamma = row_gamma @ model.alpha, col_gamma @ model.beta
    x, y = solve(factor, row_gamma, col_gamma)
    return _Means(one, row_sums, col_sums, x, y, float(np.vdot(row_gamma, x) + np.vdot(col_gamma, y)))


class _Totals:
    """Sums of the moments over types."""

    def __init__(self, dim: int) -> None:
        self.wx, self.wxx, self.sx = (
            np.zeros((2, 2, dim)),
            np.zeros((2, 2, dim, dim)),
            np.zeros((2, 2, dim)),
        )  # side, class
        self.first, self.second, self.cross = np.zeros((2, dim)), np.zeros((2, dim, dim)), np.zeros((2, dim, dim))

    def add_side(self, side: int, n: Array, total: Array, square: Array, sums: Array, z: Array) -> None:
        """Add one side of some types: sums of <z> and <z z'> of each element, and what multiplies them."""
        (T, R, D), H = total.shape, n.reshape(-1, 2)
        self.wx[side] += H.T @ total.reshape(T * R, D)
        self.wxx[side] += (H.T @ square.reshape(T * R, D * D)).reshape(2, D, D)
        self.sx[side] += sums.reshape(-1, 2).T @ z.reshape(sums.size // 2, D)
        self.first[side] += total.sum((0, 1))
        self.second[side] += square.sum((0, 1))


def expect(model: ScoreModel, stats: Statistics) -> Moments:
    """Return the moments of the hidden variables and the log-likelihood, in the units of the statistics: the E-step."""
    if stats.transposed:
        return _expect(model.T, stats).T
    return _expect(model, stats)


def _expect(model: ScoreModel, stats: Statistics) -> Moments:
    D, B = model.dim, len(stats.background)
    factors = [factorize(model, t.coupling, t.row_n, t.col_n, t.row_u, t.col_u) for t in stats.types]
    W, t = np.zeros((B, 2 * D, 2 * D)), np.zeros((B, 2 * D))  # U' P^-1 U and U' P^-1 gamma of each matrix
    means = [_means(model, types, factor) for types, factor in zip(stats.types, factors, strict=True)]
    for types, factor, m in zip(stats.types, factors, means, strict=True):
        _add_by_matrix(W, types, types.number[:, None, None] * factor.UPU)
        x, y = _of_ones(m.one, m.x), _of_ones(m.one, m.y)
        both = [(types.row_u[..., None] * x).sum(1), (types.col_u[..., None] * y).sum(1)]
        _add_by_matrix(t, types, np.concatenate(both, axis=1))
    core, log_det = background_core(model, W, stats.background)
    shift = (core @ t[:, :, None])[:, :, 0]
    totals = _Totals(D)
    for types, factor, m in zip(stats.types, factors, means, strict=True):
        _add_types(totals, types, factor, m, core[types.matrix], shift[types.matrix])
    # <x y'> over all pairs of the background, of which the couplings are exceptions
    z = t - (W @ shift[:, :, None])[:, :, 0]
    whole = z[:, :D, None] * z[:, None, D:] + (W - W @ core @ W)[:, :D, D:]
    totals.cross[0] += (stats.background[:, None, None] * whole).sum(0)
    totals.second -= (stats.hidden - stats.seen)[:, None, None] * np.eye(D)  # others stay at their prior
    explained = sum(m.explained for m in means) - np.vdot(t, shift)
    log_dets = log_det.sum()
    for types, factor in zip(stats.types, factors, strict=True):
        log_dets += np.vdot(types.row_count, factor.log_det_A) + types.number @ factor.log_det_S
    rest = (stats.squares - 2 * model.mu * stats.total + stats.count * model.mu**2) / model.sigma2
    rest = rest + stats.count * np.log(2 * np.pi * model.sigma2)
    value = 0.5 * (explained - rest.sum() - log_dets)  # (E13)
    return _moments(stats, totals, float(value))


def _add_by_matrix(out: Array, types: Types, values: Array) -> None:
    """Add values of types to those of their matrices."""
    if len(out) == 1:
        out[0] += values.sum(0)
    else:
        np.add.at(out, types.matrix, values)


def _of_ones(one: Float[np.ndarray, "t p"], z: Float[np.ndarray, "t p r d"]) -> Float[np.ndarray, "t r d"]:
    """Return the sums of z over all components of a type."""
    T, P, R, D = z.shape
    return (one[:, None] @ z.reshape(T, P, R * D)).reshape(T, R, D)


def _add_types(totals: _Totals, types: Types, f: Factor, m: _Means, core: Array, shift: Array) -> None:
    """Add the moments of some types, given the core and the shift of their matrices."""
    (T, R, C), D = types.coupling.shape[1:], f.A_inv.shape[-1]
    moved = m.one[:, :, None, None]
    x = m.x - moved * (f.row_PU @ shift[:, None, :, None])[:, None, :, :, 0]  # (E7)
    y = m.y - moved * (f.col_PU @ shift[:, None, :, None])[:, None, :, :, 0]
    X_S = _product(f.X, f.S_inv, f.mostly_zero)
    x_var = f.A_inv + X_S.reshape(T, R, D, C * D) @ f.X.reshape(T, R, D, C * D).swapaxes(2, 3)
    diagonal = np.arange(C)
    y_var = f.S_inv.reshape(T, C, D, C, D)[:, diagonal, :, diagonal].swapaxes(0, 1)
    row_core, col_core = f.row_PU @ core[:, None], f.col_PU @ core[:, None]
    x_var = x_var - row_core @ f.row_PU.swapaxes(2, 3)  # (E4)
    y_var = y_var - col_core @ f.col_PU.swapaxes(2, 3)
    x_total, y_total = types.row_u[..., None] * _of_ones(m.one, x), types.col_u[..., None] * _of_ones(m.one, y)
    x_square = _outer(x, x) + types.row_count[..., None, None] * x_var
    y_square = _outer(y, y) + types.col_count[..., None, None] * y_var
    totals.add_side(0, types.row_n, x_total, x_square, m.row_sums, x)
    totals.add_side(1, types.col_n, y_total, y_square, m.col_sums, y)
    for h in (0, 1):  # <x y'> over the coupled pairs of a class
        weight = types.coupling[h]
        t, r, c = np.nonzero(weight)
        if not len(t):
            continue
        near = np.tensordot(types.number[t] * weight[t, r, c], X_S.reshape(T, R, D, C, D)[t, r, :, c], 1)
        reach = (weight @ f.col_PU.reshape(T, C, 2 * D * D)).reshape(T, R, D, 2 * D)
        far = (types.number[:, None, None, None] * row_core) @ reach.swapaxes(2, 3)
        coupled = (weight[:, None] @ y).reshape(x.size // max(D, 1), D)
        totals.cross[h] += x.reshape(coupled.shape).T @ coupled - near - far.sum((0, 1))


def _outer(left: Float[np.ndarray, "t p r d"], right: Float[np.ndarray, "t p r d"]) -> Float[np.ndarray, "t r d d"]:
    """Return the sums of left right' over all components of a type."""
    return left.transpose(0, 2, 3, 1) @ right.transpose(0, 2, 1, 3)


def _moments(stats: Statistics, totals: _Totals, log_likelihood: float) -> Moments:
    """Put the sums together to those of w = (1, x, y)."""
    D = totals.first.shape[1]
    x, y = slice(1, 1 + D), slice(1 + D, None)
    ww, sw = np.zeros((2, 1 + 2 * D, 1 + 2 * D)), np.zeros((2, 1 + 2 * D))
    ww[:, 0, x], ww[:, 0, y], ww[:, x, y] = totals.wx[0], totals.wx[1], totals.cross
    ww += ww.swapaxes(1, 2)
    ww[:, 0, 0], ww[:, x, x], ww[:, y, y] = stats.count, totals.wxx[0], totals.wxx[1]
    sw[:, 0], sw[:, x], sw[:, y] = stats.total, totals.sx[0], totals.sx[1]
    return Moments(ww, sw, stats.squares, totals.first, totals.second, stats.seen, log_likelihood)
