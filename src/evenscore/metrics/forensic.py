"""Forensic metrics of log-likelihood ratios: cross-entropy over priors, distance from calibration, and bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.log_odds import expit
from evenscore.metrics.trials import ScoresLike, points_of, sort_scores
from evenscore.tables.arrays import frozen

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["CrossEntropyCurve", "dev_pav", "ece_curve", "llr_bounds"]

_BAN = math.log(10.0)
_STEPS = 100  # of the bounds' thresholds in a power of ten, as in the paper's own program


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossEntropyCurve:
    """Empirical cross-entropy (ECE) over a range of priors, in bits.

    Attributes
    ----------
    log_odds
        Prior log-odds, logit(p).
    actual
        p mean over targets of log2(1 + exp(-llr - logit p)) + (1 - p) mean over non-targets of
        log2(1 + exp(llr + logit p)); at p = 1/2 it is Cllr.
    minimum
        The same after the best monotone (PAV) calibration, chosen with the labels.
    default
        The entropy of the prior alone: LLRs of 0.
    """

    log_odds: Float[np.ndarray, " k"]
    actual: Float[np.ndarray, " k"]
    minimum: Float[np.ndarray, " k"]
    default: Float[np.ndarray, " k"]


def ece_curve(
    scores: ScoresLike, labels: npt.ArrayLike | None = None, *, log_odds: npt.ArrayLike | None = None
) -> CrossEntropyCurve:
    """Return the empirical cross-entropy of LLRs at each prior (Ramos, 2007).

    Parameters
    ----------
    scores, labels
        As in `validate`, or any points; of bins, their means are taken.
    log_odds
        Prior log-odds, by default 121 values that are from -3 to 3 as logarithms to the base 10.

    Examples
    --------
    >>> curve = ece_curve([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1], log_odds=[0.0])
    >>> curve.actual.round(4), curve.minimum, curve.default  # Cllr and minCllr
    (array([0.7477]), array([0.5]), array([1.]))
    """
    priors = np.linspace(-3, 3, 121) * _BAN if log_odds is None else np.asarray(log_odds, dtype=np.float64)
    if priors.ndim != 1 or not np.isfinite(priors).all():
        raise InputError("log_odds must be a list of finite numbers")
    trials = sort_scores(scores, labels)
    hull = trials.hull
    blocks = (hull.llr, hull.nontarget_share), (hull.llr, hull.target_share)
    masses = (trials.nontarget, trials.nontarget_mass), (trials.target, trials.target_mass)
    sides = tuple((llrs, np.ones(llrs.size) if mass is None else np.diff(mass)) for llrs, mass in masses)
    zero = (np.zeros(1), np.ones(1)), (np.zeros(1), np.ones(1))
    actual, minimum, default = ([_ece(prior, *pair) for prior in priors] for pair in (sides, blocks, zero))
    return CrossEntropyCurve(
        log_odds=frozen(priors),
        actual=frozen(np.array(actual)),
        minimum=frozen(np.array(minimum)),
        default=frozen(np.array(default)),
    )


_Weighted = tuple[npt.NDArray[np.floating], npt.NDArray[np.number]]


def _ece(prior: float, nontarget: _Weighted, target: _Weighted) -> float:
    losses = []
    for (llrs, weights), sign in ((nontarget, 1.0), (target, -1.0)):
        used = weights > 0  # 0 * inf is 0: what is not there costs nothing
        costs = np.logaddexp(0.0, sign * (llrs[used].astype(np.float64) + prior))
        losses.append(float(costs @ weights[used] / weights[used].sum()))
    return float(expit(-prior) * losses[0] + expit(prior) * losses[1]) / math.log(2.0)


def dev_pav(scores: ScoresLike, labels: npt.ArrayLike | None = None) -> float:
    """Return devPAV: how far LLRs are from their PAV calibration on average, as logarithms to the base 10.

    It is the mean distance of the PAV curve, drawn with straight lines through the LLRs, from the diagonal, over the
    range in which the calibrated LLR is finite (Vergeer et al., 2021); 0 is perfect. NaN if it is finite nowhere.

    Examples
    --------
    >>> round(dev_pav([-1.0, -1.0, -1.0, 1.0, 1.0, 1.0], [0, 0, 1, 0, 1, 1]), 4)  # the LLRs should be 0.69
    0.0666
    """
    hull = sort_scores(scores, labels).hull
    finite = np.isfinite(hull.llr)
    ends = np.stack([hull.low[finite], hull.high[finite]], axis=1).astype(np.float64).ravel() / _BAN
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


def llr_bounds(scores: ScoresLike, labels: npt.ArrayLike | None = None) -> tuple[float, float]:
    """Return the empirical lower and upper bound (ELUB) of LLRs: beyond them, they rest on extrapolation.

    At a threshold t, decisions by the LLRs cost t Pfa + Pmiss, and decisions without them min(t, 1). One misleading
    target and one misleading non-target are added to the trials; the bounds are where the LLRs cease to be worth
    more than none (Vergeer et al., 2016), to 1/100 of a power of ten.

    Returns
    -------
    tuple
        Lower bound of at most 0 and upper bound of at least 0, natural logarithms.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(2000) % 2
    >>> low, high = llr_bounds(rng.normal(np.where(labels, 8.0, -8.0), 4.0), labels)
    >>> round(low, 2), round(high, 2)
    (-5.85, 6.47)
    """
    found = points_of(scores, labels)
    trials, n_target, n_nontarget = found.tied, found.n_target, found.n_nontarget
    tar, non = (side.astype(np.float64) / _BAN for side in (trials.target, trials.nontarget))
    least = max(min(tar[0], non[0]), -math.log10(n_target + 1), -9.0)
    most = min(max(tar[-1], non[-1]), math.log10(n_nontarget + 1), 9.0)
    steps = np.arange(min(0, math.floor(least * _STEPS)), max(0, math.floor(most * _STEPS) + 1) + 1)
    log_t = steps / _STEPS
    t = 10.0**log_t
    below, above = (np.searchsorted(side, log_t, side="right") for side in (tar, non))
    misses = (trials.miss_rate(below) * n_target + 1) / (n_target + 1)
    alarms = (trials.false_alarm_rate(above) * n_nontarget + 1) / (n_nontarget + 1)
    worse = np.minimum(t, 1.0) < misses + t * alarms
    low = min(int(np.max(steps[worse & (steps <= 0)] + 1, initial=steps[0])), 0)
    high = max(int(np.min(steps[worse & (steps >= 0)] - 1, initial=steps[-1])), 0)
    return low / _STEPS * _BAN, high / _STEPS * _BAN
