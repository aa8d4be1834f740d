"""Forensic metrics of log-likelihood ratios: distance from calibration, and bounds beyond which they extrapolate."""

from __future__ import annotations

import math

import numpy as np

from evenscore.metrics.points import LabelsLike, ScoresLike, as_points

__all__ = ["dev_pav", "elub"]

_BAN = math.log(10.0)
_STEPS = 100  # thresholds in a power of ten, as in the program of the paper


def dev_pav(llr: ScoresLike, labels: LabelsLike = None) -> float:
    """Return devPAV: how far LLRs are from their PAV calibration on average, as logarithms to the base 10.

    It is the mean distance of the PAV curve, drawn with straight lines through the LLRs, from the diagonal, over the
    range in which the calibrated LLR is finite (Vergeer et al., 2021); 0 is perfect. NaN if it is finite nowhere.

    Examples
    --------
    >>> round(dev_pav([-1.0, -1.0, -1.0, 1.0, 1.0, 1.0], [0, 0, 1, 0, 1, 1]), 4)  # the LLRs should be 0.69
    0.0666
    """
    hull = as_points(llr, labels).hull
    finite = np.isfinite(hull.llr)
    ends = np.stack([hull.low[finite], hull.high[finite]], axis=1).ravel() / _BAN
    gap = np.repeat(hull.llr[finite], 2) / _BAN - ends
    if not ends.size:
        return math.nan
    if not np.isfinite(ends).all():
        return math.inf
    width = np.diff(ends)
    if not width.sum() > 0:
        return float(abs(gap[0]))
    one, other = np.abs(gap[:-1]), np.abs(gap[1:])
    both = np.maximum(one + other, np.finfo(np.float64).tiny)
    crossing = gap[:-1] * gap[1:] < 0  # then the area is that of two triangles
    height = np.where(crossing, (one**2 + other**2) / (2 * both), both / 2)
    return float(width @ height / width.sum())


def elub(llr: ScoresLike, labels: LabelsLike = None) -> tuple[float, float]:
    """Return the empirical lower and upper bound (ELUB) of LLRs: beyond them, they rest on extrapolation.

    At a threshold t, decisions by the LLRs cost t Pfa + Pmiss, and decisions without them min(t, 1). One misleading
    target and one misleading non-target are added to the trials; the bounds are where the LLRs cease to be worth
    more than none (Vergeer et al., 2016), to 1/100 of a power of ten.

    Returns
    -------
    tuple
        Lower bound of at most 0 and upper bound of at least 0, natural logarithms.

    Notes
    -----
    The bounds depend on the number of trials, which are taken to be independent. Trials that share a speaker are not:
    with many trials of few speakers the bounds are too wide.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(2000) % 2
    >>> low, high = elub(rng.normal(np.where(labels, 8.0, -8.0), 4.0), labels)
    >>> round(low, 2), round(high, 2)
    (-5.85, 6.47)
    """
    points = as_points(llr, labels, merge=False)
    score, n_target, n_nontarget = points.score.astype(np.float64) / _BAN, points.n_target, points.n_nontarget
    least = max(score[0], -math.log10(n_target + 1), -9.0)
    most = min(score[-1], math.log10(n_nontarget + 1), 9.0)
    steps = np.arange(min(0, math.floor(least * _STEPS)), max(0, math.floor(most * _STEPS) + 1) + 1)
    log_t = steps / _STEPS
    at = np.searchsorted(score, log_t, side="right")
    p_miss = (points.p_miss[at] * n_target + 1) / (n_target + 1)
    p_fa = (points.p_fa[at] * n_nontarget + 1) / (n_nontarget + 1)
    t = 10.0**log_t
    worse = np.minimum(t, 1.0) < p_miss + t * p_fa
    low = min(int(np.max(steps[worse & (steps <= 0)] + 1, initial=steps[0])), 0)
    high = max(int(np.min(steps[worse & (steps >= 0)] - 1, initial=steps[-1])), 0)
    return low / _STEPS * _BAN, high / _STEPS * _BAN
