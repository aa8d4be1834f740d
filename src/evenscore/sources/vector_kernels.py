"""Passes over many vectors, compiled: each reads its vectors once and computes in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenscore.compiled import loop

__all__ = ["normalize_into"]


@loop("F2 int int -> D1 F2", reorder=True)
def normalize_into(vectors: Any, start: int, stop: int, lengths: Any, out: Any) -> None:
    """Set lengths to those of the vectors, and out to the vectors at length 1; a vector of zeros stays."""
    for i in range(start, stop):
        square = 0.0
        for k in range(vectors.shape[1]):
            square += np.float64(vectors[i, k]) * np.float64(vectors[i, k])
        lengths[i] = np.sqrt(square)
        scale = 1 / lengths[i] if square > 0 else 0.0
        for k in range(vectors.shape[1]):
            out[i, k] = vectors[i, k] * scale
