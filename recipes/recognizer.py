"""A text-dependent recognizer: GMM-UBM, eigenchannels, relevance-MAP enrolment, linear scoring.

Baum-Welch statistics of a recording r, in units of the background model's standard deviations, with gamma_tc the share
of Gaussian c in frame t:

    n_rc = sum_t gamma_tc,    f_rc = sum_t gamma_tc (o_t - m_c) / sqrt(v_c)                      (R1)

Eigenchannels U: recording r of class s (a speaker saying a phrase) has the means z_s + U x_r, x_r ~ N(0, I), so

    L_r = I + sum_c n_rc U_c' U_c,    E[x_r] = L_r^-1 sum_c U_c' (f_rc - n_rc z_sc)              (R2)
    z_sc = sum_r (f_rc - n_rc U_c E[x_r]) / (k + sum_r n_rc)                                     (R3)
    U_c = (sum_r (f_rc - n_rc z_sc) E[x_r]') (sum_r n_rc E[x_r x_r'])^-1                         (R4)

and the score of a test against an enrolment is, to first order (Glembek et al., 2009),

    s = sum_c z_c' (f_c - n_c U_c x) / sum_c n_c                                                 (R5)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenscore import InputError

__all__ = ["Mixture", "Recognizer", "fit_mixture", "train_recognizer"]

Array = npt.NDArray[np.floating]
Codes = npt.NDArray[np.intp]

_CHUNK = 8192  # frames at a time
_LEAST_FRAMES = 2.0  # a Gaussian with fewer keeps its mean and variance


@dataclass(frozen=True, eq=False)
class Mixture:
    """p(o) = sum_c w_c N(o; m_c, diag(v_c))."""

    weights: Array
    means: Array
    variances: Array

    def posteriors(self, frames: Array) -> tuple[Array, Array]:
        """Return each Gaussian's share in each frame, and the log-likelihood of each frame."""
        center = self.weights @ self.means  # relative to it, single precision is enough for squares
        means, frames = self.means - center, frames - center.astype(frames.dtype)
        constant = np.log(self.weights) - 0.5 * np.sum(
            np.log(2 * np.pi * self.variances) + means**2 / self.variances, axis=1
        )
        linear = np.hstack([means / self.variances, -0.5 / self.variances]).astype(frames.dtype)
        scores = np.hstack([frames, frames**2]) @ linear.T + constant.astype(frames.dtype)
        highest = scores.max(axis=1, keepdims=True)
        np.exp(scores - highest, out=scores)
        totals = scores.sum(axis=1, keepdims=True)
        return scores / totals, (highest + np.log(totals))[:, 0]

    def statistics(self, recordings: Sequence[Array]) -> tuple[Array, Array]:
        """Return n (r x c) and f (r x c x d) of recordings (R1), in single precision."""
        n = np.empty((len(recordings), len(self.weights)), np.float32)
        f = np.empty((len(recordings), *self.means.shape), np.float32)
        for row, frames in enumerate(recordings):
            shares, _ = self.posteriors(frames)
            n[row], f[row] = shares.sum(axis=0), shares.T @ frames
        f -= n[:, :, None] * self.means.astype(np.float32)
        return n, f / np.sqrt(self.variances).astype(np.float32)


def fit_mixture(frames: Array, size: int, *, split_iterations: int = 4, iterations: int = 12) -> Mixture:
    """Fit a mixture by EM, from one Gaussian by splitting; nothing is left to chance.

    Examples
    --------
    >>> mixture = fit_mixture(np.array([[-1.1], [-1.0], [-0.9], [2.9], [3.0], [3.1]]), 2)
    >>> sorted(mixture.means[:, 0].round(2).tolist())
    [-1.0, 3.0]
    """
    if len(frames) < 2 * size:
        raise InputError(f"{len(frames)} frames are too few for a mixture of {size} Gaussians; give more speech")
    overall = frames.var(axis=0, dtype=np.float64)
    floor = np.maximum(0.01 * overall, 1e-10)
    mixture = Mixture(np.ones(1), frames.mean(axis=0, dtype=np.float64)[None], np.maximum(overall, floor)[None])
    while True:
        if len(mixture.weights) < size:
            mixture = _split(mixture, min(size, 2 * len(mixture.weights)))
        complete = len(mixture.weights) == size
        for _ in range(iterations if complete else split_iterations):
            mixture = _em_iteration(mixture, frames, floor)
        if complete:
            return mixture


def _em_iteration(mixture: Mixture, frames: Array, floor: Array) -> Mixture:
    size, dim = mixture.means.shape
    n, sums = np.zeros(size), np.zeros((size, 2 * dim))
    center = mixture.weights @ mixture.means
    for start in range(0, len(frames), _CHUNK):
        chunk = frames[start : start + _CHUNK]
        shares, _ = mixture.posteriors(chunk)
        relative = chunk - center.astype(chunk.dtype)
        n += shares.sum(axis=0, dtype=np.float64)
        sums += shares.T @ np.hstack([relative, relative**2])
    count, seen = np.maximum(n, _LEAST_FRAMES)[:, None], (n >= _LEAST_FRAMES)[:, None]
    offsets = sums[:, :dim] / count
    variances = np.maximum(sums[:, dim:] / count - offsets**2, floor)
    weights = np.maximum(n / n.sum(), 1e-8)
    return Mixture(
        weights / weights.sum(),
        np.where(seen, center + offsets, mixture.means),
        np.where(seen, variances, mixture.variances),
    )


def _split(mixture: Mixture, size: int) -> Mixture:
    """Return a mixture of at most twice as many Gaussians: the heaviest are halved and moved apart."""
    halved = np.sort(np.argsort(-mixture.weights, kind="stable")[: size - len(mixture.weights)])
    # Every second feature moves against the others, in an own pattern for each Gaussian: no two halves are alike.
    signs = np.where((np.arange(mixture.means.shape[1]) + halved[:, None]) % 2 == 0, 1.0, -1.0)
    step = 0.5 * np.sqrt(mixture.variances[halved]) * signs
    weights, means = mixture.weights.copy(), mixture.means.copy()
    weights[halved] /= 2.0
    means[halved] += step
    return Mixture(
        np.concatenate([weights, weights[halved]]),
        np.concatenate([means, means[halved] - 2.0 * step]),
        np.concatenate([mixture.variances, mixture.variances[halved]]),
    )


@dataclass(frozen=True, eq=False)
class Recognizer:
    """What is learnt from background speech."""

    mixture: Mixture
    eigenchannels: Array  #: c x d x rank
    relevance: float = 8.0

    def enroll(self, recordings: Sequence[Array], classes: Codes) -> Array:
        """Return the MAP offset of each class (an enrolment, numbered from 0) of recordings, as a row."""
        n, f = self._without_channel(*self.mixture.statistics(recordings))
        return _class_offsets(n, f, classes, self.relevance).reshape(classes.max() + 1, -1)

    def test(self, recordings: Sequence[Array]) -> Array:
        """Return the statistics of each test without its channel, for one frame, as a row; enrol @ test.T is (R5)."""
        n, f = self._without_channel(*self.mixture.statistics(recordings))
        return (f / n.sum(axis=1)[:, None, None]).reshape(len(f), -1)

    def _without_channel(self, n: Array, f: Array) -> tuple[Array, Array]:
        if not self.eigenchannels.shape[2]:
            return n, f
        factors, _ = _channel_factors(n, f, self.eigenchannels)
        return n, _compensated(n, f, self.eigenchannels, factors)


def train_recognizer(
    recordings: Sequence[Array], classes: Codes, *, n_gaussians: int = 128, rank: int = 40, relevance: float = 8.0
) -> Recognizer:
    """Train the background model and the eigenchannels on the frames of recordings of known classes."""
    stacked = np.concatenate(recordings)
    if len(stacked) > 400_000:
        stacked = stacked[np.sort(np.random.default_rng(0).choice(len(stacked), 400_000, replace=False))]
    mixture = fit_mixture(stacked, n_gaussians)
    n, f = mixture.statistics(recordings)
    if len(n) - (classes.max() + 1) < rank:
        raise InputError(f"{len(n)} recordings are too few for {rank} eigenchannels; give more takes, or a lower rank")
    return Recognizer(mixture, _fit_eigenchannels(n, f, classes, rank, relevance), relevance)


def _channel_factors(n: Array, f: Array, eigenchannels: Array) -> tuple[Array, Array]:
    """Return mean and covariance of each recording's channel factors (R2)."""
    size, dim, rank = eigenchannels.shape
    inner = np.einsum("cdi,cdj->cij", eigenchannels, eigenchannels).reshape(size, rank * rank)
    precision = np.eye(rank) + (n @ inner).reshape(-1, rank, rank)
    covariance = np.linalg.inv(precision.astype(np.float64))
    projected = f.reshape(len(f), size * dim) @ eigenchannels.reshape(size * dim, rank)
    return np.einsum("rij,rj->ri", covariance, projected), covariance


def _compensated(n: Array, f: Array, eigenchannels: Array, factors: Array) -> Array:
    """Return f_rc - n_rc U_c x_r."""
    shift = factors.astype(np.float32) @ eigenchannels.reshape(-1, eigenchannels.shape[2]).T.astype(np.float32)
    return f - n[:, :, None] * shift.reshape(f.shape)


def _class_offsets(n: Array, f: Array, classes: Codes, relevance: float) -> Array:
    """Return the relevance-MAP offset of each class (R3)."""
    order = np.argsort(classes, kind="stable")
    starts = np.unique(classes[order], return_index=True)[1]
    sums = np.add.reduceat(f[order], starts, axis=0)
    return sums / (np.add.reduceat(n[order], starts, axis=0) + relevance)[:, :, None]


def _fit_eigenchannels(n: Array, f: Array, classes: Codes, rank: int, relevance: float, iterations: int = 5) -> Array:
    """Return U: principal directions of the deviations of recordings from their class, then EM (R2) to (R4)."""
    size, dim = f.shape[1:]
    if rank == 0:
        return np.zeros((size, dim, 0), np.float32)
    offsets = _class_offsets(n, f, classes, relevance)
    deviations = ((f - n[:, :, None] * offsets[classes]) / (n + relevance)[:, :, None]).reshape(len(f), -1)
    basis = np.random.default_rng(0).standard_normal((len(deviations), min(rank + 10, len(deviations))))
    for _ in range(4):  # subspace iteration is near enough for a start of EM
        basis = np.linalg.qr(deviations @ (deviations.T @ basis.astype(np.float32)))[0]
    _, lengths, directions = np.linalg.svd(basis.T @ deviations, full_matrices=False)
    spread = lengths[:rank] / np.sqrt(len(deviations))
    eigenchannels = (directions[:rank].T * spread).reshape(size, dim, rank).astype(np.float32)
    for _ in range(iterations):
        residual = f - n[:, :, None] * offsets[classes]
        factors, covariance = _channel_factors(n, residual, eigenchannels)
        second = covariance + factors[:, :, None] * factors[:, None, :]
        inner = (n.T.astype(np.float64) @ second.reshape(len(n), -1)).reshape(size, rank, rank)
        cross = (residual.reshape(len(n), -1).T @ factors.astype(np.float32)).reshape(size, dim, rank)
        ridge = 1e-6 * np.trace(inner, axis1=1, axis2=2)[:, None, None] / rank + 1e-10
        solved = np.linalg.solve(inner + ridge * np.eye(rank), cross.astype(np.float64).transpose(0, 2, 1))
        eigenchannels = solved.transpose(0, 2, 1).astype(np.float32)
        offsets = _class_offsets(n, _compensated(n, f, eigenchannels, factors), classes, relevance)
    return eigenchannels
