"""Cllr: the goodness of LLRs over all operating points at once, in bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.metrics.hull import Rocch, rocch
from evenscore.metrics.trials import ScoresLike, sort_scores

__all__ = ["calibration_loss", "cllr", "min_cllr"]

_FOLDED = 256
_PIECE = 1 << 16  # scores whose numbers stay in the cache


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
    trials = sort_scores(scores, labels)
    if trials.target_mass is not None and trials.nontarget_mass is not None:
        miss = _weighted(np.logaddexp(0.0, -trials.target.astype(np.float64)), np.diff(trials.target_mass))
        alarm = _weighted(np.logaddexp(0.0, trials.nontarget.astype(np.float64)), np.diff(trials.nontarget_mass))
    else:
        miss = _softplus_sum(trials.target, -1.0) / trials.target.size
        alarm = _softplus_sum(trials.nontarget, 1.0) / trials.nontarget.size
    return float((miss + alarm) / (2 * math.log(2)))


def _softplus_sum(scores: npt.NDArray[Any], sign: float) -> float:
    """Return the sum of log(1 + exp(sign * score)), with one logarithm per 256 scores.

    softplus(x) = max(x, 0) + log(1 + u) with u = exp(-|x|), and q = prod(1 + u) - 1 is built up without ever adding a
    small u to 1, so that tiny terms keep all their digits; 1 + u is at most 2, so a product of 256 stays far below
    overflow.
    """
    total = 0.0
    for start in range(0, scores.size, _PIECE):
        x = sign * scores[start : start + _PIECE].astype(np.float64)
        total += np.maximum(x, 0.0).sum()
        u = np.zeros(-x.size % _FOLDED + x.size)
        np.exp(-np.abs(x), out=u[: x.size])
        q = u.reshape(_FOLDED, -1)
        while len(q) > 1:
            one, other = q[: len(q) // 2], q[len(q) // 2 :]
            q = one + other + one * other
        total += np.log1p(q).sum()
    return float(total)


def _weighted(costs: npt.NDArray[np.float64], shares: npt.NDArray[np.float64]) -> float:
    present = shares > 0  # 0 * inf is 0: a trial of weight 0 is not there
    return float(costs[present] @ shares[present])


def min_cllr(scores: ScoresLike, labels: npt.ArrayLike | None = None, *, hull: Rocch | None = None) -> float:
    """Return the Cllr after the best monotone (PAV) calibration, chosen with the labels.

    Parameters
    ----------
    scores, labels
        As in `validate`, or `SortedScores`.
    hull
        The `rocch` of the same trials, if it is at hand.

    Examples
    --------
    >>> min_cllr([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1])
    0.5
    """
    hull = rocch(scores, labels) if hull is None else hull
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
    trials = sort_scores(scores, labels)
    return cllr(trials) - min_cllr(trials)
