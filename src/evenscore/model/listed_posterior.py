"""The elimination for a large list of trials: couplings are sparse, the Schur complement is dense (Cholesky)."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from evenscore.errors import InputError
from evenscore.tables import UNKNOWN

__all__ = ["eliminate_listed"]

Array = np.ndarray
_LARGEST = 40_000  # rows of a Schur complement: 12 GB
_CHUNK = 1 << 24  # numbers of the largest temporary array


def eliminate_listed(
    key: Array,
    table: Float[Array, "3 d d"],
    labels: tuple[int, ...],
    D_out: Float[Array, "1 e d d"],
    rhs_out: Float[Array, "1 e d r"],
    D_in: Float[Array, "1 f d d"],
    rhs_in: Float[Array, "1 f d r"],
) -> tuple[Array, Array, Array, Array, dict[int, Array], float]:
    """Do the same as `_eliminate` in component_posterior.py, for one component most of whose pairs are missing."""
    n_out, n_in, dim, n_rhs = *key.shape[1:], table.shape[1], rhs_in.shape[3]
    if n_in * dim > _LARGEST:
        raise InputError(
            f"the trials link {n_out} x {n_in} enrolments and tests into one system, which is too large to solve; "
            "train on a matrix of fewer enrolments or tests, or on several separate lists"
        )
    i, j = np.nonzero(key[0] != UNKNOWN)
    inverse = np.linalg.inv(D_out[0])
    C = _sparse_blocks(table[key[0, i, j]], i, j, n_out, n_in)
    X = _sparse_blocks(inverse[i] @ table[key[0, i, j]], i, j, n_out, n_in)
    S = -(C.T @ X).toarray()
    at = np.arange(n_in)[:, None] * dim + np.arange(dim)
    S[at[:, :, None], at[:, None, :]] += D_in[0]
    S_inv, log_det = _cholesky_inverse(S)
    rest = rhs_in.reshape(n_in * dim, n_rhs) - X.T @ rhs_out.reshape(n_out * dim, n_rhs)
    inner = S_inv @ rest
    outer = inverse @ rhs_out[0] - (X @ inner).reshape(n_out, dim, n_rhs)
    reach = _listed_products(X, S_inv, i, j, dim)  # minus the covariance of each listed pair
    out_cov = inverse.copy()
    np.add.at(out_cov, i, reach @ (inverse[i] @ table[key[0, i, j]]).transpose(0, 2, 1))
    cross = {label: -reach[key[0, i, j] == label].sum(axis=0) for label in labels}
    in_cov = S_inv[at[:, :, None], at[:, None, :]]
    log_det += float(np.linalg.slogdet(D_out[0])[1].sum())
    return outer[None], inner.reshape(rhs_in.shape), out_cov[None], in_cov[None], cross, log_det


def _listed_products(X: Any, S_inv: Float[Array, "w w"], i: Array, j: Array, dim: int) -> Float[Array, "n d d"]:
    """Return the d x d blocks of X S_inv at listed pairs, whose rows rise; some rows of the product exist at a time."""
    n_out, width = X.shape[0] // dim, S_inv.shape[0]
    reach = np.empty((len(i), dim, dim))
    step = max(1, _CHUNK // max(width * dim, 1))
    for start in range(0, n_out, step):
        stop = min(start + step, n_out)
        part = slice(*np.searchsorted(i, [start, stop]))
        XS = (X[start * dim : stop * dim] @ S_inv).reshape(stop - start, dim, width // dim, dim)
        reach[part] = XS[i[part] - start, :, j[part], :]
    return reach


def _sparse_blocks(blocks: Float[Array, "n d d"], i: Array, j: Array, n_out: int, n_in: int) -> Any:
    """Return a sparse matrix with a d x d block at each pair."""
    from scipy.sparse import coo_array

    dim = blocks.shape[1]
    a, b = np.indices((dim, dim))
    rows = (i[:, None, None] * dim + a).reshape(-1)
    columns = (j[:, None, None] * dim + b).reshape(-1)
    return coo_array((blocks.reshape(-1), (rows, columns)), shape=(n_out * dim, n_in * dim)).tocsr()


def _cholesky_inverse(S: Float[Array, "w w"]) -> tuple[Float[Array, "w w"], float]:
    """Return the inverse of a symmetric positive definite matrix, which is overwritten, and its log-determinant."""
    from scipy.linalg.lapack import dpotrf, dpotri

    factor, failed = dpotrf(S.T, lower=True, overwrite_a=True)
    if failed:
        raise np.linalg.LinAlgError("the posterior precision is not positive definite")
    log_det = 2.0 * float(np.log(np.diag(factor)).sum())
    inverse, _ = dpotri(factor, lower=True, overwrite_c=True)
    lower = np.tril(inverse)
    return lower + np.tril(lower, -1).T, log_det
