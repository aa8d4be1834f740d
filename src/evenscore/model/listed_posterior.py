"""The elimination for a large list of trials: couplings are sparse, the Schur complement is dense (Cholesky)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore.errors import InputError
from evenscore.tables import UNKNOWN

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["eliminate_listed"]

Array = np.ndarray
_LARGEST = 40_000  # rows of a Schur complement: 12 GB
_CHUNK = 1 << 23  # numbers of the largest temporary array


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
    inverse = np.linalg.inv(D_out[0])
    S, rest = np.zeros((n_in * dim, n_in * dim)), rhs_in.reshape(n_in * dim, n_rhs).copy()
    at = np.arange(n_in)[:, None] * dim + np.arange(dim)
    S[at[:, :, None], at[:, None, :]] = D_in[0]
    for part in _listed_parts(key[0], table, inverse):
        S -= (part.C.T @ part.X).toarray()
        rest -= part.X.T @ rhs_out[0, part.rows].reshape(part.X.shape[0], n_rhs)
    S_inv, log_det = _cholesky_inverse(S)
    inner = S_inv @ rest
    outer, out_cov = inverse @ rhs_out[0], inverse.copy()
    cross = {label: np.zeros((dim, dim)) for label in labels}
    for part in _listed_parts(key[0], table, inverse):
        outer[part.rows] -= (part.X @ inner).reshape(outer[part.rows].shape)
        reach = (part.X @ S_inv).reshape(-1, dim, n_in, dim)[part.i, :, part.j, :]  # minus each pair's covariance
        np.add.at(out_cov[part.rows], part.i, reach @ part.blocks.transpose(0, 2, 1))
        for label in cross:
            cross[label] -= reach[part.labels == label].sum(axis=0)
    in_cov = S_inv[at[:, :, None], at[:, None, :]]
    log_det += float(np.linalg.slogdet(D_out[0])[1].sum())
    return outer[None], inner.reshape(rhs_in.shape), out_cov[None], in_cov[None], cross, log_det


@dataclass(frozen=True, kw_only=True, eq=False)
class _ListedPart:
    """Some outer elements with their listed pairs: couplings C, and D_out^-1 C."""

    rows: slice
    i: Array  #: outer element of each pair, from 0
    j: Array
    labels: Array
    blocks: Float[Array, "n d d"]  #: the pairs' blocks of X
    C: Any
    X: Any


def _listed_parts(key: Array, table: Float[Array, "3 d d"], inverse: Float[Array, "e d d"]) -> Iterator[_ListedPart]:
    """Yield the outer side part by part, so that neither pairs nor products take more than a chunk at once."""
    n_out, n_in = key.shape
    dim = table.shape[1]
    step = max(1, _CHUNK // max(n_in * dim * dim, 1))
    for start in range(0, n_out, step):
        rows = slice(start, min(start + step, n_out))
        i, j = np.nonzero(key[rows] != UNKNOWN)
        labels = key[rows][i, j]
        coupling = table[labels]
        blocks = inverse[rows][i] @ coupling
        shape = (rows.stop - start, n_in)
        C, X = _sparse_blocks(coupling, i, j, *shape), _sparse_blocks(blocks, i, j, *shape)
        yield _ListedPart(rows=rows, i=i, j=j, labels=labels, blocks=blocks, C=C, X=X)


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
