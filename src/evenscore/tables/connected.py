"""Which nodes of a graph are connected: the ids of one speaker by target trials, rows and columns by their pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["connect"]


def connect(
    first: npt.NDArray[np.integer[Any]], second: npt.NDArray[np.integer[Any]], size: int
) -> npt.NDArray[np.intp]:
    """Return which connected component each of some nodes belongs to, from the two ends of each link.

    Components are numbered by their first nodes. Every node points at one that is not later, at last at the first of
    its component: links make the ends of two paths point at the earlier one, then all paths are cut short.

    Examples
    --------
    >>> connect(np.array([0, 3]), np.array([2, 4]), 5)
    array([0, 1, 0, 2, 2])
    """
    part = np.arange(size)
    while True:
        low = np.minimum(part[first], part[second])
        joined = part.copy()
        np.minimum.at(joined, part[first], low)
        np.minimum.at(joined, part[second], low)
        while not np.array_equal(joined, shorter := joined[joined]):
            joined = shorter
        if np.array_equal(joined, part):
            return np.unique(part, return_inverse=True)[1].reshape(-1)
        part = joined
