"""Eigenchannels: the few directions in which recordings of one speaker and phrase differ.

In the units of `Statistics`, a recording r of class s (a speaker saying a phrase) has the Gaussians' means

    z_s + U x_r,    x_r ~ N(0, I_R)                                   (J1)

with z_s the relevance-MAP offset of the class and U of C D rows and R columns. Given U and z,

    L_r = I + sum_c n_rc U_c' U_c                                     (J2)
    E[x_r] = L_r^-1 sum_c U_c' (f_rc - n_rc z_sc)                     (J3)
    E[x_r x_r'] = L_r^-1 + E[x_r] E[x_r]'                             (J4)

and given x, with relevance factor k and sums over the recordings of the class,

    z_sc = sum_r (f_rc - n_rc U_c E[x_r]) / (k + sum_r n_rc)          (J5)
    U_c = (sum_r (f_rc - n_rc z_sc) E[x_r]') (sum_r n_rc E[x_r x_r'])^-1      (J6)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore import InputError
from evenscore.progress import silent
from recipes.text_dependent.recordings import Progress
from recipes.text_dependent.statistics import Statistics

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["channel_factors", "class_offsets", "compensated", "fit_eigenchannels"]

_SUBSPACE_ITERATIONS = 4


def channel_factors(
    statistics: Statistics,
    eigenchannels: Float[np.ndarray, "c d rank"],
    offsets: Float[np.ndarray, "r c d"] | None = None,
) -> tuple[Float[np.ndarray, "r rank"], Float[np.ndarray, "r rank rank"]]:
    """Return mean and covariance of each recording's channel factors, relative to its offset (none: zero)."""
    size, dim, rank = eigenchannels.shape
    f = statistics.f if offsets is None else statistics.f - statistics.n[:, :, None] * offsets
    inner = np.einsum("cdi,cdj->cij", eigenchannels, eigenchannels).reshape(size, rank * rank)
    precision = np.eye(rank) + (statistics.n @ inner).reshape(-1, rank, rank)  # (J2)
    projected = f.reshape(len(f), size * dim) @ eigenchannels.reshape(size * dim, rank)
    covariance = np.linalg.inv(precision.astype(np.float64))
    return np.einsum("rij,rj->ri", covariance, projected), covariance  # (J3)


def compensated(
    statistics: Statistics, eigenchannels: Float[np.ndarray, "c d rank"], factors: Float[np.ndarray, "r rank"]
) -> Statistics:
    """Return statistics with the channel taken off: f_rc - n_rc U_c x_r."""
    size, dim, rank = eigenchannels.shape
    shift = (factors.astype(np.float32) @ eigenchannels.reshape(size * dim, rank).T.astype(np.float32)).reshape(
        -1, size, dim
    )
    return Statistics(statistics.n, statistics.f - statistics.n[:, :, None] * shift)


def class_offsets(
    statistics: Statistics, classes: npt.NDArray[np.intp], count: int, relevance: float
) -> Float[np.ndarray, "s c d"]:
    """Return the relevance-MAP offset of each class from the pooled statistics of its recordings (J5).

    Classes are numbered from 0 to ``count`` - 1, and each has a recording.
    """
    order = np.argsort(classes, kind="stable")
    starts = np.searchsorted(classes[order], np.arange(count))
    n = np.add.reduceat(statistics.n[order], starts, axis=0)
    f = np.add.reduceat(statistics.f[order], starts, axis=0)
    f /= (n + relevance)[:, :, None]
    return f


def fit_eigenchannels(
    statistics: Statistics,
    classes: npt.NDArray[np.intp],
    rank: int,
    *,
    relevance: float,
    iterations: int = 5,
    progress: Progress = silent,
) -> Float[np.ndarray, "c d rank"]:
    """Learn U from recordings of known classes: principal directions of their deviations, then EM.

    Parameters
    ----------
    statistics
        Of R background recordings.
    classes
        The class of each recording, from 0: one for each speaker and phrase.
    rank
        Number of eigenchannels; 0 gives none.
    relevance
        Relevance factor k of the class offsets.
    iterations
        Of EM.
    progress
        Called with a stage name and the fraction done.
    """
    size, dim = statistics.f.shape[1:]
    if rank == 0:
        return np.zeros((size, dim, 0), dtype=np.float32)
    count = int(classes.max()) + 1
    if len(statistics) - count < rank:
        raise InputError(
            f"{len(statistics)} recordings of {count} speakers and phrases are too few for {rank} eigenchannels; "
            "give more takes of each, or a lower rank"
        )
    offsets = class_offsets(statistics, classes, count, relevance)
    eigenchannels = _principal(statistics, classes, offsets, rank, relevance)
    for iteration in range(iterations):
        factors, covariance = channel_factors(statistics, eigenchannels, offsets[classes])
        eigenchannels = _m_step(statistics, offsets[classes], factors, covariance)
        without = compensated(statistics, eigenchannels, factors)
        offsets = class_offsets(without, classes, count, relevance)
        progress("eigenchannels", (iteration + 1) / iterations)
    return eigenchannels


def _principal(
    statistics: Statistics,
    classes: npt.NDArray[np.intp],
    offsets: Float[np.ndarray, "s c d"],
    rank: int,
    relevance: float,
) -> Float[np.ndarray, "c d rank"]:
    """Return the principal directions of recordings' MAP offsets around their class, each as long as it varies."""
    residual = statistics.f - statistics.n[:, :, None] * offsets[classes]
    residual /= (statistics.n + relevance)[:, :, None]
    deviations = residual.reshape(len(residual), -1)
    # Subspace iteration: a few products bring random directions to the leading ones, near enough for a start of EM.
    basis = np.random.default_rng(0).standard_normal((len(deviations), min(rank + 10, len(deviations))))
    for _ in range(_SUBSPACE_ITERATIONS):
        basis = np.linalg.qr(deviations @ (deviations.T @ basis.astype(np.float32)))[0]
    _, lengths, directions = np.linalg.svd(basis.T @ deviations, full_matrices=False)
    spread = lengths[:rank] / np.sqrt(len(deviations))  # standard deviation along each direction
    return (directions[:rank].T * spread).reshape(*statistics.f.shape[1:], rank).astype(np.float32)


def _m_step(
    statistics: Statistics,
    offsets: Float[np.ndarray, "r c d"],
    factors: Float[np.ndarray, "r rank"],
    covariance: Float[np.ndarray, "r rank rank"],
) -> Float[np.ndarray, "c d rank"]:
    size, dim = statistics.f.shape[1:]
    rank = factors.shape[1]
    residual = (statistics.f - statistics.n[:, :, None] * offsets).reshape(len(factors), size * dim)
    cross = (residual.T @ factors.astype(np.float32)).reshape(size, dim, rank).astype(np.float64)
    second = (covariance + factors[:, :, None] * factors[:, None, :]).reshape(len(factors), rank * rank)  # (J4)
    inner = (statistics.n.T.astype(np.float64) @ second).reshape(size, rank, rank)
    ridge = 1e-6 * np.trace(inner, axis1=1, axis2=2)[:, None, None] / rank + 1e-10
    solved: npt.NDArray[Any] = np.linalg.solve(inner + ridge * np.eye(rank), cross.transpose(0, 2, 1))  # (J6)
    return solved.transpose(0, 2, 1).astype(np.float32)
