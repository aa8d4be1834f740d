"""Cllr: the quality of log-likelihood ratios over all operating points at once, in bits."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.hull import Hull
from evenscore.metrics.points import Floats, LabelsLike, ScoresLike, as_points

__all__ = ["PriorCurve", "cllr", "ece_curve", "min_cllr", "posterior_probability"]

_BITS = 1 / math.log(2)


def expit(x: npt.ArrayLike) -> Floats:
    """Return 1 / (1 + exp(-x)), accurate for all x."""
    small = np.exp(-np.abs(np.asarray(x, np.float64)))
    return np.where(np.asarray(x) >= 0, 1.0, small) / (1.0 + small)


def cllr(llr: ScoresLike, labels: LabelsLike = None) -> float:
    """Return Cllr, the cross-entropy of natural-log LLRs at prior 0.5, in bits.

    Cllr = 1/2 mean over targets of log2(1 + exp(-llr)) + 1/2 mean over non-targets of log2(1 + exp(llr)). It is 1 for
    LLRs of 0, and infinite if a target has LLR -inf or a non-target +inf.

    Examples
    --------
    >>> cllr([0.0, 0.0], [1, 0])
    1.0
    >>> round(cllr([2.0, float("-inf")], [1, 0]), 6)
    0.091559
    """
    target, nontarget = as_points(llr, labels).mean_losses()
    return (nontarget + target) / 2 * _BITS


def min_cllr(scores: ScoresLike, labels: LabelsLike = None) -> float:
    """Return Cllr after the best monotone (PAV) calibration, chosen with the labels.

    Examples
    --------
    >>> min_cllr([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1])
    0.5
    """
    return min_cllr_of_hull(as_points(scores, labels).hull)


def min_cllr_of_hull(hull: Hull) -> float:
    """Return the Cllr of the LLRs of the blocks."""
    target, nontarget = hull.target_share, hull.nontarget_share
    mixed = (target > 0) & (nontarget > 0)  # in the other blocks the LLR is infinite and right
    target, nontarget = target[mixed], nontarget[mixed]
    nats = target @ np.log1p(nontarget / target) + nontarget @ np.log1p(target / nontarget)
    return float(nats / 2 * _BITS)


def posterior_probability(llr: npt.ArrayLike, prior: float = 0.5) -> Floats:
    """Return the probability that trials are targets, given their LLRs and the prior probability of a target.

    Examples
    --------
    >>> posterior_probability([0.0, 4.595], prior=0.01).round(3)
    array([0.01, 0.5 ])
    """
    if not 0 < prior < 1:
        raise InputError(f"prior is {prior}, but must lie between 0 and 1")
    return expit(np.asarray(llr, np.float64) + (math.log(prior) - math.log1p(-prior)))


@dataclass(frozen=True, eq=False)
class PriorCurve:
    """A metric over a range of priors."""

    log_odds: Floats  #: prior log-odds, logit(p)
    actual: Floats  #: of the LLRs
    minimum: Floats  #: after the best monotone (PAV) calibration, chosen with the labels
    default: Floats  #: of the prior alone


def ece_curve(llr: ScoresLike, labels: LabelsLike = None, *, log_odds: npt.ArrayLike | None = None) -> PriorCurve:
    """Return the empirical cross-entropy of LLRs in memory at each prior, in bits (Ramos, 2007).

    It is p mean over targets of log2(1 + exp(-llr - logit p)) + (1 - p) mean over non-targets of log2(1 + exp(llr +
    logit p)); at p = 1/2 it is Cllr. Prior log-odds are by default from -3 to 3 as logarithms to the base 10.

    Examples
    --------
    >>> curve = ece_curve([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1], log_odds=[0.0])
    >>> curve.actual.round(4), curve.minimum, curve.default  # Cllr and minCllr
    (array([0.7477]), array([0.5]), array([1.]))
    """
    priors = as_log_odds(np.linspace(-3, 3, 121) * math.log(10) if log_odds is None else log_odds)
    points = as_points(llr, labels, merge=False)
    hull = points.hull
    values, one = points.score.astype(np.float64), np.ones(1)
    actual = [_entropy(at, values, points.target, points.nontarget) for at in priors]
    minimum = [_entropy(at, hull.llr, hull.target_share, hull.nontarget_share) for at in priors]
    default = [_entropy(at, np.zeros(1), one, one) for at in priors]
    return PriorCurve(priors, np.array(actual), np.array(minimum), np.array(default))


def as_log_odds(log_odds: npt.ArrayLike) -> Floats:
    """Return prior log-odds as an array of finite numbers."""
    priors = np.asarray(log_odds, np.float64)
    if priors.ndim != 1 or not np.isfinite(priors).all():
        raise InputError("log_odds must be a list of finite numbers")
    return priors


def _entropy(prior: float, llr: Floats, target: npt.NDArray[np.number], nontarget: npt.NDArray[np.number]) -> float:
    """Return the cross-entropy at one prior; ``target`` and ``nontarget`` are the weights of the LLRs."""
    present = target > 0  # 0 * inf is 0: what is not there costs nothing
    miss = np.logaddexp(0, -llr[present] - prior) @ target[present] / target.sum()
    present = nontarget > 0
    false_alarm = np.logaddexp(0, llr[present] + prior) @ nontarget[present] / nontarget.sum()
    return float(expit(prior) * miss + expit(-prior) * false_alarm) * _BITS
