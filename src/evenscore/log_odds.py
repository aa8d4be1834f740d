"""Probabilities and their log-odds; scipy has the same, but takes longer to load than most commands to run."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["expit", "logit"]


def expit(x: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return 1 / (1 + exp(-x)), with all digits also where it is tiny.

    Examples
    --------
    >>> expit([0.0, -800.0, 800.0])
    array([0.5, 0. , 1. ])
    """
    values = np.asarray(x, dtype=np.float64)
    small = np.exp(-np.abs(values))
    return np.where(values >= 0, 1.0, small) / (1.0 + small)


def logit(p: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return log(p / (1 - p)) of probabilities between 0 and 1, both excluded.

    Examples
    --------
    >>> logit(0.5), logit(expit(-30.0)).round(9)
    (np.float64(0.0), np.float64(-30.0))
    """
    values = np.asarray(p, dtype=np.float64)
    return np.asarray(np.log(values) - np.log1p(-values))[()]
