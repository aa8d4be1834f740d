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

from collections.abc import Iterator
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
_BLOCK = 1 << 28  # bytes of statistics that are worked on, and copied a few times, at once


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
    return _ClassSums(count, statistics).add(statistics, classes).offsets(relevance)


class _ClassSums:
    """Statistics summed over the recordings of each class, block by block."""

    def __init__(self, count: int, like: Statistics) -> None:
        self._n = np.zeros((count, *like.n.shape[1:]), dtype=like.n.dtype)
        self._f = np.zeros((count, *like.f.shape[1:]), dtype=like.f.dtype)

    def add(self, statistics: Statistics, classes: npt.NDArray[np.intp]) -> _ClassSums:
        order = np.argsort(classes, kind="stable")
        present, starts = np.unique(classes[order], return_index=True)
        self._n[present] += np.add.reduceat(statistics.n[order], starts, axis=0)
        self._f[present] += np.add.reduceat(statistics.f[order], starts, axis=0)
        return self

    def offsets(self, relevance: float) -> Float[np.ndarray, "s c d"]:
        """Return the offsets (J5); the sums are used up."""
        self._f /= (self._n + relevance)[:, :, None]
        return self._f


def _blocks(statistics: Statistics) -> Iterator[slice]:
    """Return the bounds of blocks of recordings that are small enough to be copied several times."""
    rows = max(1, _BLOCK // statistics.f[0].nbytes)
    for start in range(0, len(statistics), rows):
        yield slice(start, start + rows)


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
        sums = _Moments(size, dim, rank)
        factors = []
        for rows in _blocks(statistics):
            block, own = statistics.take(rows), offsets[classes[rows]]
            found, covariance = channel_factors(block, eigenchannels, own)
            sums.add(block, own, found, covariance)
            factors.append(found)
        eigenchannels = sums.maximized()
        pooled = _ClassSums(count, statistics)
        for rows, found in zip(_blocks(statistics), factors, strict=True):
            pooled.add(compensated(statistics.take(rows), eigenchannels, found), classes[rows])
        offsets = pooled.offsets(relevance)
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
    residual = np.empty_like(statistics.f)
    for rows in _blocks(statistics):
        n = statistics.n[rows, :, None]
        residual[rows] = (statistics.f[rows] - n * offsets[classes[rows]]) / (n + relevance)
    deviations = residual.reshape(len(residual), -1)
    # Subspace iteration: a few products bring random directions to the leading ones, near enough for a start of EM.
    basis = np.random.default_rng(0).standard_normal((len(deviations), min(rank + 10, len(deviations))))
    for _ in range(_SUBSPACE_ITERATIONS):
        basis = np.linalg.qr(deviations @ (deviations.T @ basis.astype(np.float32)))[0]
    _, lengths, directions = np.linalg.svd(basis.T @ deviations, full_matrices=False)
    spread = lengths[:rank] / np.sqrt(len(deviations))  # standard deviation along each direction
    return (directions[:rank].T * spread).reshape(*statistics.f.shape[1:], rank).astype(np.float32)


class _Moments:
    """What the M-step needs, summed over recordings, block by block."""

    def __init__(self, size: int, dim: int, rank: int) -> None:
        self._cross = np.zeros((size, dim, rank))
        self._inner = np.zeros((size, rank, rank))

    def add(
        self,
        statistics: Statistics,
        offsets: Float[np.ndarray, "r c d"],
        factors: Float[np.ndarray, "r rank"],
        covariance: Float[np.ndarray, "r rank rank"],
    ) -> None:
        residual = (statistics.f - statistics.n[:, :, None] * offsets).reshape(len(factors), -1)
        self._cross += (residual.T @ factors.astype(np.float32)).reshape(self._cross.shape)
        second = (covariance + factors[:, :, None] * factors[:, None, :]).reshape(len(factors), -1)  # (J4)
        self._inner += (statistics.n.T.astype(np.float64) @ second).reshape(self._inner.shape)

    def maximized(self) -> Float[np.ndarray, "c d rank"]:
        rank = self._inner.shape[1]
        ridge = 1e-6 * np.trace(self._inner, axis1=1, axis2=2)[:, None, None] / rank + 1e-10
        solved: npt.NDArray[Any] = np.linalg.solve(self._inner + ridge * np.eye(rank), self._cross.transpose(0, 2, 1))
        return solved.transpose(0, 2, 1).astype(np.float32)  # (J6)
