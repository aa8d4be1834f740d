"""Baum-Welch statistics of recordings: how much each Gaussian saw, and how far off its mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from recipes.text_dependent.ubm import DiagonalMixture, posteriors

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Statistics", "baum_welch"]

_CHUNK = 8192  # frames at once


@dataclass(frozen=True, eq=False)
class Statistics:
    """Statistics of R recordings, in units of the background model's standard deviations.

    n_rc = sum_t gamma_tc                                        (S1)
    f_rc = sum_t gamma_tc (o_t - m_c) / sqrt(v_c)                (S2)

    with gamma_tc the share of Gaussian c in frame t. In these units the background model has the covariance I.
    """

    n: Float[np.ndarray, "r c"]
    f: Float[np.ndarray, "r c d"]

    def take(self, rows: npt.NDArray[np.intp] | Sequence[int] | slice) -> Statistics:
        """Return the statistics of some recordings."""
        return Statistics(self.n[rows], self.f[rows])

    def __len__(self) -> int:
        return len(self.n)


def baum_welch(mixture: DiagonalMixture, recordings: Sequence[Float[np.ndarray, "_ d"]]) -> Statistics:
    """Return the statistics of the frames of each recording, in single precision."""
    size, dim = mixture.means.shape
    n = np.zeros((len(recordings), size), dtype=np.float32)
    f = np.zeros((len(recordings), size, dim), dtype=np.float32)
    for first, last in _runs([len(frames) for frames in recordings]):
        stacked = np.concatenate(recordings[first:last])
        shares, _ = posteriors(mixture, stacked)
        start = 0
        for row in range(first, last):
            end = start + len(recordings[row])
            n[row] = shares[start:end].sum(axis=0)
            f[row] = shares[start:end].T @ stacked[start:end]
            start = end
    f -= n[:, :, None] * mixture.means.astype(np.float32)
    f /= np.sqrt(mixture.variances).astype(np.float32)
    return Statistics(n, f)


def _runs(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """Return the bounds of runs of recordings that have about `_CHUNK` frames together."""
    runs, first, frames = [], 0, 0
    for place, length in enumerate(lengths):
        frames += length
        if frames >= _CHUNK or place == len(lengths) - 1:
            runs.append((first, place + 1))
            first, frames = place + 1, 0
    return runs
