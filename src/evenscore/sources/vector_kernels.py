"""Passes over many vectors, compiled: each reads its vectors once and computes in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

__all__ = ["normalize_into"]

_REORDER = {"reassoc", "nsz", "contract"}  # sums may be reordered, but NaN and infinity keep their meaning


@njit(parallel=True, fastmath=_REORDER, cache=True)
def normalize_into(vectors: Any, lengths: Any, out: Any) -> None:
    """Set lengths to those of the vectors, and out to the vectors at length 1; a vector of zeros stays."""
    for i in prange(vectors.shape[0]):
        square = 0.0
        for k in range(vectors.shape[1]):
            square += np.float64(vectors[i, k]) * np.float64(vectors[i, k])
        lengths[i] = np.sqrt(square)
        scale = 1 / lengths[i] if square > 0 else 0.0
        for k in range(vectors.shape[1]):
            out[i, k] = vectors[i, k] * scale
