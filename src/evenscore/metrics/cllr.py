"""Cllr: the quality of log-likelihood ratios over all operating points at once, in bits."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.points import Floats, LabelsLike, ScoresLike, as_points

__all__ = ["PriorCurve", "cllr", "dev_pav", "ece_curve", "expit", "llr_bounds", "min_cllr", "posterior_probability"]


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
    points = as_points(llr, labels)
    if points.losses is not None:
        target, nontarget = points.losses
    else:
        of_target, of_nontarget = points.target > 0, points.nontarget > 0  # what is not there costs nothing
        score = points.score.astype(np.float64)
        target = float(points.target[of_target] @ np.logaddexp(0, -score[of_target]))
        nontarget = float(points.nontarget[of_nontarget] @ np.logaddexp(0, score[of_nontarget]))
    return (target / float(points.target.sum()) + nontarget / float(points.nontarget.sum())) / (2 * math.log(2))


def min_cllr(scores: ScoresLike, labels: LabelsLike = None) -> float:
    """Return Cllr after the best monotone (PAV) calibration, chosen with the labels.

    Examples
    --------
    >>> min_cllr([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1])
    0.5
    """
    return as_points(scores, labels).hull.min_cllr


def expit(x: npt.ArrayLike) -> Floats:
    """Return 1 / (1 + exp(-x)), accurate for all x."""
    small = np.exp(-np.abs(np.asarray(x, np.float64)))
    return np.where(np.asarray(x) >= 0, 1.0, small) / (1.0 + small)


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
    priors = np.asarray(np.linspace(-3, 3, 121) * math.log(10) if log_odds is None else log_odds, np.float64)
    points = as_points(llr, labels, merge=False)
    hull, one = points.hull, np.ones(1)

    def entropy(llr: Floats, target: npt.NDArray[np.number], nontarget: npt.NDArray[np.number]) -> Floats:
        losses = []
        for sign, weight in ((-1.0, target), (1.0, nontarget)):
            present = weight > 0  # 0 * inf is 0: what is not there costs nothing
            x, share = sign * llr[present], weight[present] / weight.sum()
            losses.append(np.array([share @ np.logaddexp(0, x + sign * prior) for prior in priors]))
        return np.asarray((expit(priors) * losses[0] + expit(-priors) * losses[1]) / math.log(2))

    actual = entropy(points.score.astype(np.float64), points.target, points.nontarget)
    minimum = entropy(hull.llr, *hull.shares)
    return PriorCurve(priors, actual, minimum, entropy(np.zeros(1), one, one))


def dev_pav(llr: ScoresLike, labels: LabelsLike = None) -> float:
    """Return devPAV: how far LLRs are from their PAV calibration on average, as logarithms to the base 10.

    It is the mean distance of the PAV curve, drawn with straight lines through the LLRs, from the diagonal, over the
    range in which the calibrated LLR is finite (Vergeer et al., 2021); 0 is perfect. NaN if it is finite nowhere.

    Examples
    --------
    >>> round(dev_pav([-1.0, -1.0, -1.0, 1.0, 1.0, 1.0], [0, 0, 1, 0, 1, 1]), 4)  # the LLRs should be 0.69
    0.0666
    """
    hull = as_points(llr, labels, merge=False).hull
    finite = np.isfinite(hull.llr)
    ends = np.stack([hull.low[finite], hull.high[finite]], axis=1).ravel() / math.log(10.0)
    gap = np.repeat(hull.llr[finite], 2) / math.log(10.0) - ends
    if not ends.size or not np.isfinite(ends).all():
        return math.inf if ends.size else math.nan
    width = np.diff(ends)
    if not width.sum() > 0:
        return float(abs(gap[0]))
    one, other = np.abs(gap[:-1]), np.abs(gap[1:])
    both = np.maximum(one + other, np.finfo(np.float64).tiny)
    crossing = gap[:-1] * gap[1:] < 0  # then the area is that of two triangles
    height = np.where(crossing, (one**2 + other**2) / (2 * both), both / 2)
    return float(width @ height / width.sum())


def llr_bounds(llr: ScoresLike, labels: LabelsLike = None) -> tuple[float, float]:
    """Return the empirical lower and upper bound (ELUB) of LLRs, natural logarithms: beyond them, they extrapolate.

    At a threshold t, decisions by the LLRs cost t Pfa + Pmiss, and decisions without them min(t, 1). One misleading
    target and one misleading non-target are added to the trials; the bounds, at most 0 and at least 0, are where the
    LLRs cease to be worth more than none (Vergeer et al., 2016), to 1/100 of a power of ten. Trials are taken to be
    independent. Those that share a speaker are not: with many trials of few speakers, the bounds are too wide.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(2000) % 2
    >>> low, high = llr_bounds(rng.normal(np.where(labels, 8.0, -8.0), 4.0), labels)
    >>> round(low, 2), round(high, 2)
    (-5.85, 6.47)
    """
    points, step = as_points(llr, labels, merge=False), 100  # steps of a power of ten, as in the program of the paper
    score, n_target, n_nontarget = points.score.astype(np.float64) / math.log(10.0), points.n_target, points.n_nontarget
    least = max(score[0], -math.log10(n_target + 1), -9.0)
    most = min(score[-1], math.log10(n_nontarget + 1), 9.0)
    steps = np.arange(min(0, math.floor(least * step)), max(0, math.floor(most * step) + 1) + 1)
    at = np.searchsorted(score, steps / step, side="right")
    p_miss = (points.p_miss[at] * n_target + 1) / (n_target + 1)
    p_fa = (points.p_fa[at] * n_nontarget + 1) / (n_nontarget + 1)
    t = 10.0 ** (steps / step)
    worse = np.minimum(t, 1.0) < p_miss + t * p_fa
    low = min(int(np.max(steps[worse & (steps <= 0)] + 1, initial=steps[0])), 0)
    high = max(int(np.min(steps[worse & (steps >= 0)] - 1, initial=steps[-1])), 0)
    return low / step * math.log(10.0), high / step * math.log(10.0)
