"""The universal background model: a mixture of Gaussians with diagonal covariances, trained by EM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from evenscore import InputError
from evenscore.progress import silent
from recipes.text_dependent.recordings import Progress

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["DiagonalMixture", "fit_mixture", "posteriors", "sum_moments", "update"]

_CHUNK = 1024  # frames whose posteriors stay in the processor's cache
_LEAST_FRAMES = 2.0  # a Gaussian with fewer keeps its mean and variance
_LEAST_WEIGHT = 1e-8
_SPLIT = 0.5  # how far halves of a Gaussian are moved apart, in standard deviations


@dataclass(frozen=True, kw_only=True, eq=False)
class DiagonalMixture:
    """p(o) = sum_c w_c N(o; m_c, diag(v_c)), for frames o of F features.

    Attributes
    ----------
    weights, means, variances
        w, m and v.
    log_likelihoods
        Mean log-likelihood of a training frame at each iteration with all C Gaussians.
    """

    weights: Float[np.ndarray, " c"]
    means: Float[np.ndarray, "c f"]
    variances: Float[np.ndarray, "c f"]
    log_likelihoods: tuple[float, ...] = ()

    @property
    def size(self) -> int:
        """Number of Gaussians."""
        return len(self.weights)


def posteriors(
    mixture: DiagonalMixture, frames: Float[np.ndarray, "n f"]
) -> tuple[Float[np.ndarray, "n c"], Float[np.ndarray, " n"]]:
    """Return each Gaussian's share in each frame, and the log-likelihood of each frame.

    Frames are taken relative to the mixture's mean, so that single precision is enough for the squares.
    """
    dtype = frames.dtype
    centre = mixture.weights @ mixture.means
    means = mixture.means - centre
    frames = frames - centre.astype(dtype)
    constant = np.log(mixture.weights) - 0.5 * np.sum(
        np.log(2 * np.pi * mixture.variances) + means**2 / mixture.variances, axis=1
    )
    linear = np.hstack([means / mixture.variances, -0.5 / mixture.variances]).astype(dtype)
    scores = np.hstack([frames, frames**2]) @ linear.T
    scores += constant.astype(dtype)
    highest = scores.max(axis=1, keepdims=True)
    np.exp(scores - highest, out=scores)
    totals = scores.sum(axis=1, keepdims=True)
    scores /= totals
    return scores, (highest + np.log(totals))[:, 0]


@dataclass(frozen=True)
class _Moments:
    """What the M-step needs, summed over frames."""

    n: Float[np.ndarray, " c"]
    first: Float[np.ndarray, "c f"]
    second: Float[np.ndarray, "c f"]
    log_likelihood: float


def sum_moments(mixture: DiagonalMixture, frames: Float[np.ndarray, "n f"]) -> _Moments:
    """E-step: sum posteriors, and frames and their squares weighted by them; relative to the mixture's mean."""
    size, dim = mixture.means.shape
    n, sums = np.zeros(size), np.zeros((size, 2 * dim))
    centre = (mixture.weights @ mixture.means).astype(frames.dtype)
    total = 0.0
    # Products of such small matrices gain little from threads, which lose much where other programs run.
    with threadpool_limits(1, "blas"):
        for start in range(0, len(frames), _CHUNK):
            chunk = frames[start : start + _CHUNK]
            shares, likelihood = posteriors(mixture, chunk)
            relative = chunk - centre
            n += shares.sum(axis=0, dtype=np.float64)
            sums += shares.T @ np.hstack([relative, relative**2])
            total += float(likelihood.sum(dtype=np.float64))
    return _Moments(n, sums[:, :dim], sums[:, dim:], total)


def update(mixture: DiagonalMixture, moments: _Moments, floor: Float[np.ndarray, " f"]) -> DiagonalMixture:
    """M-step: the mixture of highest likelihood given the shares, with variances of at least the floor."""
    centre = mixture.weights @ mixture.means
    n = np.maximum(moments.n, _LEAST_FRAMES)[:, None]
    offsets = moments.first / n
    variances = np.maximum(moments.second / n - offsets**2, floor)
    seen = (moments.n >= _LEAST_FRAMES)[:, None]
    weights = np.maximum(moments.n / moments.n.sum(), _LEAST_WEIGHT)
    return DiagonalMixture(
        weights=weights / weights.sum(),
        means=np.where(seen, centre + offsets, mixture.means),
        variances=np.where(seen, variances, mixture.variances),
    )


def _split(mixture: DiagonalMixture, size: int) -> DiagonalMixture:
    """Return a mixture of at most twice as many Gaussians: the heaviest are halved and moved apart."""
    halved = np.sort(np.argsort(-mixture.weights, kind="stable")[: size - mixture.size])
    # Every second feature moves against the others, in an own pattern for each Gaussian: no two halves are alike.
    signs = np.where((np.arange(mixture.means.shape[1]) + halved[:, None]) % 2 == 0, 1.0, -1.0)
    step = _SPLIT * np.sqrt(mixture.variances[halved]) * signs
    weights, means = mixture.weights.copy(), mixture.means.copy()
    weights[halved] /= 2.0
    means[halved] += step
    return DiagonalMixture(
        weights=np.concatenate([weights, weights[halved]]),
        means=np.concatenate([means, means[halved] - 2.0 * step]),
        variances=np.concatenate([mixture.variances, mixture.variances[halved]]),
    )


def fit_mixture(
    frames: Float[np.ndarray, "n f"],
    size: int,
    *,
    split_iterations: int = 4,
    iterations: int = 12,
    variance_floor: float = 0.01,
    progress: Progress = silent,
) -> DiagonalMixture:
    """Fit a mixture by EM, from one Gaussian by splitting; nothing is left to chance.

    Parameters
    ----------
    frames
        All training frames; single precision is faster.
    size
        Number of Gaussians C.
    split_iterations, iterations
        EM iterations after each split, and with all C Gaussians.
    variance_floor
        Least variance of a feature in a Gaussian, as a fraction of its variance over all frames.
    progress
        Called with a stage name and the fraction done.

    Examples
    --------
    >>> frames = np.array([[-1.1], [-1.0], [-0.9], [2.9], [3.0], [3.1]])
    >>> mixture = fit_mixture(frames, 2)
    >>> sorted(mixture.means[:, 0].round(2).tolist())
    [-1.0, 3.0]
    """
    if size < 1 or len(frames) < 2 * size:
        raise InputError(f"{len(frames)} frames are too few for a mixture of {size} Gaussians; give more speech")
    overall = frames.var(axis=0, dtype=np.float64)
    floor = np.maximum(variance_floor * overall, 1e-10)
    mixture = DiagonalMixture(
        weights=np.ones(1),
        means=frames.mean(axis=0, dtype=np.float64)[None],
        variances=np.maximum(overall, floor)[None],
    )
    history: list[float] = []
    total = split_iterations * max(0, int(np.ceil(np.log2(size))) - 1) + iterations
    done = 0
    while True:
        if mixture.size < size:
            mixture = _split(mixture, min(size, 2 * mixture.size))
        final = mixture.size == size
        for _ in range(iterations if final else split_iterations):
            moments = sum_moments(mixture, frames)
            if final:
                history.append(moments.log_likelihood / len(frames))
            mixture = update(mixture, moments, floor)
            done += 1
            progress("background model", min(1.0, done / total))
        if final:
            break
    return DiagonalMixture(
        weights=mixture.weights, means=mixture.means, variances=mixture.variances, log_likelihoods=tuple(history)
    )
