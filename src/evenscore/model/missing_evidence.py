"""Trials some of whose cohort scores are missing: the full cohort's prediction, less what was not observed.

A missing score is first counted as if it had been observed at mu_0, and then taken out again by a downdate whose size
is the number of missing scores, so that no trial needs a factorization of the whole cohort. See docs/math.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.model.block_posterior import couplings
from evenscore.model.parameters import ScoreModel
from evenscore.tables import NONTARGET, UNKNOWN

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["EffectPosterior", "effect_posterior", "missing_patterns", "without_missing"]

Array = np.ndarray
_LARGEST_COHORT = 20_000  # members whose covariances fit into memory


@dataclass(frozen=True, kw_only=True, eq=False)
class EffectPosterior:
    """Posterior of the effects in a trial's M + N cohort scores, all of them observed.

    The effect of score j of S_e is alpha_0'x~ + beta_0'y_j, that of score i of S_t is alpha_0'x_i + beta_0'y~.
    """

    covariance: Float[Array, "o o"]
    offset: Float[Array, " o"]  #: mean, when all of the trial's cohort scores are mu_0


def effect_posterior(
    model: ScoreModel, cohort: npt.NDArray[Any], key: npt.NDArray[np.int8], sides: tuple[bool, bool]
) -> EffectPosterior:
    """Return the posterior of the effects, by the dense formula: once for a cohort."""
    n_rows, n_columns = key.shape
    if (n_rows + n_columns) * max(model.dim, 1) > _LARGEST_COHORT:
        raise InputError(
            f"cohort scores of trials are missing, and a cohort of {n_rows} + {n_columns} is too large for that; "
            "complete the cohort scores or take a smaller cohort"
        )
    dim, terms = model.dim, couplings(model)
    extended = np.full((n_rows + 1, n_columns + 1), UNKNOWN, dtype=np.int8)
    extended[:-1, :-1] = key
    extended[-1, :-1] = NONTARGET if sides[0] else UNKNOWN
    extended[:-1, -1] = NONTARGET if sides[1] else UNKNOWN
    zero = np.zeros((1, dim, dim))
    a, b, c = (np.concatenate([term, zero]) for term in (terms.a, terms.b, terms.c))  # index -1: missing
    size = (n_rows + n_columns + 2) * dim
    precision = np.eye(size)
    x, y = slice(0, (n_rows + 1) * dim), slice((n_rows + 1) * dim, size)
    precision[x, x] += _block_diagonal(np.stack([a[row].sum(axis=0) for row in extended]))
    precision[y, y] += _block_diagonal(np.stack([b[column].sum(axis=0) for column in extended.T]))
    precision[x, y] = c[extended].transpose(0, 2, 1, 3).reshape((n_rows + 1) * dim, (n_columns + 1) * dim)
    precision[y, x] = precision[x, y].T
    posterior = np.linalg.inv(precision)
    centered = np.where(key == UNKNOWN, 0.0, cohort - model.mu[np.maximum(key, 0)])
    gamma = np.zeros(size)
    padded_alpha = np.concatenate([terms.alpha_precision, zero[0, :1]])
    padded_beta = np.concatenate([terms.beta_precision, zero[0, :1]])
    gamma[: n_rows * dim] = np.einsum("ij,ijd->id", centered, padded_alpha[key]).reshape(-1)
    gamma[(n_rows + 1) * dim : -dim or None] = np.einsum("ij,ijd->jd", centered, padded_beta[key]).reshape(-1)
    maps = _effect_maps(model, n_rows, n_columns)
    return EffectPosterior(covariance=maps @ posterior @ maps.T, offset=maps @ posterior @ gamma)


def _block_diagonal(blocks: Float[Array, "n d d"]) -> Float[Array, "nd nd"]:
    n, dim = blocks.shape[:2]
    whole = np.zeros((n * dim, n * dim))
    at = np.arange(n * dim).reshape(n, dim)
    whole[at[:, :, None], at[:, None, :]] = blocks
    return whole


def _effect_maps(model: ScoreModel, n_rows: int, n_columns: int) -> Float[Array, "o z"]:
    """Return the linear maps from all hidden variables to the effects in S_e, then in S_t."""
    dim = model.dim
    maps = np.zeros((n_columns + n_rows, (n_rows + n_columns + 2) * dim))
    x, y = (n_rows * dim, (n_rows + 1) * dim), (n_rows + 1) * dim
    maps[:n_columns, x[0] : x[1]] = model.alpha[NONTARGET]
    maps[n_columns:, maps.shape[1] - dim :] = model.beta[NONTARGET]
    for j in range(n_columns):
        maps[j, y + j * dim : y + (j + 1) * dim] = model.beta[NONTARGET]
    for i in range(n_rows):
        maps[n_columns + i, i * dim : (i + 1) * dim] = model.alpha[NONTARGET]
    return maps


def missing_patterns(missing: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
    """Return the distinct rows of a mask, and which of them each row is."""
    packed = np.packbits(missing, axis=1)
    _, first, which = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    return missing[first], which.reshape(-1)


def without_missing(
    model: ScoreModel,
    effects: EffectPosterior,
    loading: Float[Array, "2 o"],
    absent: npt.NDArray[np.intp],
    predicted: Float[Array, "t a"],
) -> tuple[Float[Array, "t 2"], Float[Array, " 2"]]:
    """Return what taking out absent scores adds to the means and variances of the predicted scores, (S5).

    `loading` are the weights of all cohort scores in the two predicted scores, `predicted` the effects expected for
    the absent ones in each trial.
    """
    noise = model.sigma2[NONTARGET]
    inner = noise * np.eye(len(absent)) - effects.covariance[np.ix_(absent, absent)]
    reach = noise * loading[:, absent]
    weights = np.linalg.solve(inner, reach.T)  # symmetric, so it serves the means and the variances
    return predicted @ weights, np.einsum("ha,ah->h", reach, weights)
