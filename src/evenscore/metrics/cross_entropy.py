"""Cllr: the goodness of LLRs over all operating points at once, in bits."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from evenscore.metrics.hull import Rocch
from evenscore.metrics.trials import ScoresLike, points_of

__all__ = ["calibration_loss", "cllr", "min_cllr"]


def cllr(scores: ScoresLike, labels: npt.ArrayLike | None = None) -> float:
    """Return Cllr, the cross-entropy of natural-log LLRs at prior 0.5, in bits.

    Cllr = 1/2 mean over targets of log2(1 + exp(-llr)) + 1/2 mean over non-targets of log2(1 + exp(llr)). It is 1 for
    LLRs of 0, and infinite if a target has LLR -inf or a non-target +inf; an infinite LLR with the right sign adds
    nothing.

    Examples
    --------
    >>> cllr([0.0, 0.0], [1, 0])
    1.0
    >>> round(cllr([2.0, float("-inf")], [1, 0]), 6)
    0.091559
    """
    nontarget, target = points_of(scores, labels).losses()
    return (nontarget + target) / (2 * math.log(2))


def min_cllr(scores: ScoresLike, labels: npt.ArrayLike | None = None) -> float:
    """Return the Cllr after the best monotone (PAV) calibration, chosen with the labels.

    Examples
    --------
    >>> min_cllr([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1])
    0.5
    """
    return points_of(scores, labels).middle(lambda order: _hull_cllr(order.hull))


def _hull_cllr(hull: Rocch) -> float:
    a, b = hull.target_share, hull.nontarget_share
    mixed = (a > 0) & (b > 0)  # in the other blocks the LLR is infinite and right
    a, b = a[mixed], b[mixed]
    nats = a @ np.log1p(b / a) + b @ np.log1p(a / b)
    return float(nats / (2 * math.log(2)))


def calibration_loss(scores: ScoresLike, labels: npt.ArrayLike | None = None) -> float:
    """Return Cllr - minCllr: what is lost because the scores are not calibrated LLRs.

    Examples
    --------
    >>> round(calibration_loss([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1]), 4)
    0.2477
    """
    found = points_of(scores, labels)
    return cllr(found) - min_cllr(found)
