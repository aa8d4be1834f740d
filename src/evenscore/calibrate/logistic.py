"""Affine calibrations, by prior-weighted logistic regression: of one or several systems, or with bounded LLRs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.base import Calibration
from evenscore.calibrate.trials import Floats, Trials, as_tables, as_trials
from evenscore.data.labels import TARGET
from evenscore.errors import InputError
from evenscore.metrics.cllr import expit
from evenscore.parallel import one_blas_thread

__all__ = ["LogisticCalibration", "SaturatingCalibration"]

_CHUNK = 1 << 13  # rows at a time: intermediate results stay in the cache
_SAMPLE = 1 << 15  # trials that give a start near the optimum
_REMEDY = "a penalty such as l2=0.001"
SHARES = (0.0, 1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2)  #: candidates of the shares of outliers
Shares = tuple[float, float]  # of target outliers, of non-target outliers
_GAIN, _BINS = 0.02, 4096  # part of the loss that a share must save; scores of a class while they are chosen
_PENALTY = 1e-6  # on the weight, in units of the scores' spread: without its outliers, a class may be free of errors


@dataclass(frozen=True, kw_only=True, eq=False)
class LogisticCalibration(Calibration):
    """An affine map of scores and quality measures, fitted by logistic regression.

    llr = offset + weights . scores + quality_weights . quality                                     (L1)

    minimizes p mean_targets log(1 + exp(-llr - logit p)) + (1 - p) mean_nontargets log(1 + exp(llr + logit p))
    + l2 / 2 |standardized weights|^2                                                               (L2)

    With p_target = 0.5 and no penalty, this is the Cllr (times log 2). Several systems at once are a fusion.

    Options of `fit`: ``p_target``, the prior at which the LLRs should be best (0.5), and ``l2``, a penalty on the
    weights, which scores that separate the classes need. Inputs that tell the same share their weight.

    Examples
    --------
    >>> calibration = LogisticCalibration.fit([-2.0, -1.0, 0.0, 0.5, 2.0], [0, 0, 1, 0, 1])
    >>> calibration([0.0, 1.0]).round(4)
    array([-0.1092,  1.5289])
    """

    kind: ClassVar[str] = "logistic"
    fuses: ClassVar[bool] = True
    weights: Floats = field(default_factory=lambda: np.ones(1))
    quality_weights: Floats = field(default_factory=lambda: np.zeros(0))
    offset: float = 0.0
    p_target: float = 0.5
    l2: float = 0.0
    quality_names: tuple[str, ...] | None = None  #: of quality measures that were given by name

    @classmethod
    def _fit(cls, trials: Trials, p_target: float = 0.5, l2: float = 0.0) -> LogisticCalibration:
        k = 1 if trials.scores.ndim == 1 else trials.scores.shape[1]
        inputs = np.column_stack((trials.scores, trials.measures)) if trials.measures.size else trials.scores
        with one_blas_thread():
            slopes, offset = _regress(
                inputs.reshape(len(inputs), -1), trials.labels == TARGET, trials.weights, k, p_target, l2
            )
        return cls(weights=slopes[:k], quality_weights=slopes[k:], offset=offset, p_target=p_target, l2=l2)

    def __call__(self, scores: Any, quality: Any = None) -> Any:
        """Return the LLRs, as `Calibration`; of k systems given along the last axis, or as k tables in a list.

        ``quality`` are the q measures of a trial, along one more axis; of tables also names, by default those of `fit`.
        """
        tables, n_systems, n_measures = as_tables(scores), self.weights.size, self.quality_weights.size
        if n_systems == 1 and not n_measures and quality is None and len(tables) <= 1:
            return super().__call__(tables[0] if tables else scores)
        names = self.quality_names if quality is None and tables else quality
        trials = as_trials(scores, quality=names, labelled=False, several=n_systems > 1)
        inputs = np.column_stack((self._valid(trials.scores), self._valid(trials.measures)))
        if inputs.shape[1] != n_systems + n_measures or trials.measures.shape[1] != n_measures:
            raise InputError(
                f"this calibration is of {n_systems} systems and {n_measures} quality measures; give these"
            )
        return trials.with_llrs(inputs @ np.append(self.weights, self.quality_weights) + self.offset)  # (L1)

    def _llr(self, scores: Floats) -> Floats:
        return np.asarray(scores * self.weights[0] + self.offset)


def _regress(
    inputs: Floats, target: npt.NDArray[np.bool_], weights: Floats, n_systems: int, p_target: float, l2: float
) -> tuple[Floats, float]:
    """Return the slopes and the offset that minimize (L2)."""
    mean = weights @ inputs / weights.sum()
    rows, covariance = np.ones((len(inputs), len(mean) + 1)), np.zeros((len(mean), len(mean)))
    for start in range(0, len(inputs), _CHUNK):
        part = rows[start : start + _CHUNK, :-1]
        np.subtract(inputs[start : start + _CHUNK], mean, out=part)
        covariance += (part * weights[start : start + _CHUNK, None]).T @ part / weights.sum()
    std = np.sqrt(np.diag(covariance))
    varies = std > 1e-12 * np.abs(mean)
    if not varies[:n_systems].any():
        raise InputError("the scores are the same in all trials, so that they have no weight; give others")
    theta, scale = np.zeros(len(mean) + 1), np.append(np.where(varies, std, 1.0), 1.0)
    thin = max(1, len(rows) // _SAMPLE)
    if thin >= 4 and target[::thin].any():  # some of the trials give a start near the optimum
        some = _prior_shares(weights[::thin], target[::thin], p_target)
        with suppress(InputError):  # all trials may have an optimum nevertheless
            theta = _newton(_Problem(rows[::thin], target[::thin], some, scale, p_target, l2), theta, flat=1e-3)
    theta = _newton(_Problem(rows, target, _prior_shares(weights, target, p_target), scale, p_target, l2), theta)
    slopes = theta[:-1] / scale[:-1]
    return slopes, float(theta[-1] - slopes @ mean)


def _prior_shares(weights: Floats, target: npt.NDArray[np.bool_], p_target: float) -> Floats:
    """Return the share of each trial in the objective; those of a class sum up to its prior."""
    scale = p_target / weights[target].sum(), (1 - p_target) / weights[~target].sum()
    return weights * np.where(target, *scale)


class _Problem(NamedTuple):
    """The minimization (L2) over the slopes of standardized inputs and the offset."""

    rows: Floats  #: centred inputs, and a last column of ones
    target: npt.NDArray[np.bool_]
    share: Floats  #: of each trial in the objective
    scale: Floats  #: standard deviations of the inputs, and 1
    p_target: float
    l2: float

    def evaluate(self, theta: Floats) -> tuple[float, Floats, Floats, bool]:
        """Return value, gradient and Hessian of (L2), and whether a threshold separates the classes."""
        penalty = np.append(np.full(theta.size - 1, self.l2), 0.0)
        value, gradient, hessian = 0.5 * float(penalty @ theta**2), np.zeros(theta.size), np.zeros((theta.size,) * 2)
        lowest, highest = math.inf, -math.inf  # log-odds of a target, of a non-target
        logit = math.log(self.p_target) - math.log1p(-self.p_target)
        for start in range(0, len(self.rows), _CHUNK):
            at = slice(start, start + _CHUNK)
            rows, target, share = self.rows[at], self.target[at], self.share[at]
            odds = rows @ (theta / self.scale) + logit
            small = np.exp(-np.abs(odds))  # the one exponential of loss and probability: most of the time goes here
            likelier = 1.0 / (1.0 + small)
            posterior = np.where(odds >= 0, likelier, small * likelier)
            # log(1 + exp(z)) = max(z, 0) - log(likelier); log1p would be several times slower
            value += float(share @ (np.maximum(odds, 0.0) - target * odds - np.log(likelier)))
            gradient += (share * (posterior - target)) @ rows
            hessian += rows.T @ (rows * (share * small * likelier**2)[:, None])
            lowest = min(lowest, float(odds[target].min(initial=math.inf)))
            highest = max(highest, float(odds[~target].max(initial=-math.inf)))
        gradient, hessian = gradient / self.scale, hessian / np.outer(self.scale, self.scale)
        return value, gradient + penalty * theta, hessian + np.diag(penalty), lowest >= highest


def _newton(problem: _Problem, theta: Floats, flat: float = 1e-12) -> Floats:
    """Return the optimum; a step is halved until the objective falls enough, up to rounding."""
    value, gradient, hessian, separated = problem.evaluate(theta)
    for _ in range(200):
        if np.abs(gradient).max() <= flat:
            return theta
        step = np.linalg.lstsq(hessian, gradient, rcond=1e-9)[0]  # inputs that tell the same share their weight
        fall, length = float(gradient @ step), 1.0  # twice the expected fall of the objective
        there = problem.evaluate(theta - step)
        while there[0] > value - 1e-4 * length * fall + 1e-14 * abs(value) and length > 1e-6:
            length /= 2
            there = problem.evaluate(theta - length * step)
        if length <= 1e-6:
            break
        theta, (value, gradient, hessian, separated) = theta - length * step, there
        if problem.l2 == 0 and separated:
            raise InputError(f"the scores separate the classes without error; give more trials, or {_REMEDY}")
        if fall < 1e-16:  # this step has squared it: what is left is rounding
            return theta
    raise InputError(
        f"the logistic regression does not converge; leave out scores far from all others, or give {_REMEDY}"
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class SaturatingCalibration(Calibration):
    """An affine map of scores whose log-likelihood ratios are bounded on both sides.

    z = offset + weight score                                                                   (T1)
    llr = log((1 - e) exp(z) + e) - log((1 - d) + d exp(z)),   log e < llr < -log d             (T2)

    It is the likelihood ratio if a share e (target_outliers) of the targets has scores of non-targets, and a share d
    (nontarget_outliers) of the non-targets scores of targets: wrong labels, broken recordings. With e = d = 0 it is the
    logistic calibration, in which a single outlier flattens the slope of all LLRs.

    Options of `fit`: ``target_outliers`` and ``nontarget_outliers``, if they are known, else those of `SHARES` with the
    smallest cross-entropy, but 0 if that saves less than 2 % of it; ``p_target``, ``l2`` as in `LogisticCalibration`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = np.concatenate([rng.normal(0, 1, 2000), rng.normal(6, 1, 200), rng.normal(0, 1, 4)])
    >>> labels = np.repeat([0, 1], [2000, 204])
    >>> [float(kind.fit(scores, labels)(-100.0).round(1)) for kind in (SaturatingCalibration, LogisticCalibration)]
    [-4.6, -183.9]
    """

    kind: ClassVar[str] = "saturating"
    weight: float = 1.0
    offset: float = 0.0
    target_outliers: float = 0.0
    nontarget_outliers: float = 0.0
    p_target: float = 0.5

    @classmethod
    def _fit(
        cls,
        trials: Trials,
        target_outliers: float | None = None,
        nontarget_outliers: float | None = None,
        p_target: float = 0.5,
        l2: float = 0.0,
    ) -> SaturatingCalibration:
        target = trials.labels == TARGET
        logistic = LogisticCalibration._fit(trials, p_target, l2)
        start = float(logistic.weights[0]), logistic.offset
        data = _Data(trials.scores, np.where(target, 1.0, -1.0), _prior_shares(trials.weights, target, p_target))
        grids = [SHARES if share is None else (share,) for share in (target_outliers, nontarget_outliers)]
        ridge = l2 * float(np.cov(trials.scores, aweights=trials.weights, ddof=0))
        e, d = _choose_shares(data.condensed(), grids, start, ridge)
        weight, offset = start if e == d == 0 else _fit_affine(data, (e, d), start, ridge)[:2]
        return cls(weight=weight, offset=offset, target_outliers=e, nontarget_outliers=d, p_target=p_target)

    def _llr(self, scores: Floats) -> Floats:
        above, below = _log_terms(scores * self.weight + self.offset, self.target_outliers, self.nontarget_outliers)
        return np.asarray(above - below)  # (T2)


def _log_terms(z: Floats, e: float, d: float) -> tuple[Floats, Floats]:
    """Return log((1 - e) exp(z) + e) and log((1 - d) + d exp(z))."""
    with np.errstate(divide="ignore", invalid="ignore"):  # a share of 0 sets no bound; NaN stays NaN
        return np.logaddexp(np.log1p(-e) + z, np.log(e)), np.logaddexp(np.log1p(-d), np.log(d) + z)


class _Data(NamedTuple):
    """Scores, 1 (target) or -1 (non-target), and shares: those of a class sum up to its prior."""

    score: Floats
    sign: Floats
    share: Floats

    def condensed(self) -> _Data:
        """Return at most about 2 x 4096 scores: neighbours of the same class are averaged."""
        if len(self.score) <= _BINS:
            return self
        score, sign, share = (values[np.argsort(self.score)] for values in self)
        at = np.unique((np.cumsum(share) * _BINS).astype(np.intp) * 2 + (sign > 0), return_inverse=True)[1]
        total = np.bincount(at, share).astype(np.float64)
        return _Data(np.bincount(at, share * score) / total, np.sign(np.bincount(at, sign)), total)

    def middle(self, sign: int) -> tuple[float, float]:
        """Return the median of a class, and half the width of its middle two thirds: about the standard deviation."""
        order = np.argsort(self.score)[self.sign[np.argsort(self.score)] == sign]
        running = np.cumsum(self.share[order])
        low, median, high = self.score[order[np.searchsorted(running, running[-1] * np.array([1 / 6, 1 / 2, 5 / 6]))]]
        return float(median), float(high - low) / 2


def _fit_affine(data: _Data, shares: Shares, start: tuple[float, float], ridge: float) -> tuple[float, float, float]:
    """Return weight, offset and their prior-weighted cross-entropy; the search is in units of the scores' spread."""
    from scipy.optimize import minimize

    (low, low_width), (high, high_width) = data.middle(-1), data.middle(1)
    mean, scale = 0.5 * (low + high), max(low_width, high_width, 0.5 * abs(high - low)) or float(data.score.std())
    score, p_target = (data.score - mean) / scale, data.share[data.sign > 0].sum()
    penalty = max(ridge / scale**2, _PENALTY if max(shares) > 0 else 0.0)
    logits = [math.log(share / (1 - share)) if share else -math.inf for share in shares]

    def loss(theta: Floats) -> tuple[float, Floats]:
        z = theta[0] * score + theta[1]
        above, below = _log_terms(z, *shares)
        slope = expit(z - logits[0]) - expit(z + logits[1])  # d llr / dz
        margin = data.sign * (above - below + np.log(p_target / (1 - p_target)))
        pull = -data.sign * data.share * expit(-margin) * slope
        value = float(data.share @ np.logaddexp(0.0, -margin)) + 0.5 * penalty * theta[0] ** 2
        return value, np.array([pull @ score + penalty * theta[0], pull.sum()])

    within = 0.5 * (low_width**2 + high_width**2) or scale**2
    # scores that are far away may have flattened the logistic calibration
    starts = [start[0] * scale, start[1] + start[0] * mean], [scale * (high - low) / within, 0.0]
    found = minimize(
        loss, min(starts, key=lambda theta: loss(np.array(theta))[0]), jac=True, method="BFGS", options={"gtol": 1e-9}
    )
    weight = float(found.x[0] / scale)
    return weight, float(found.x[1] - weight * mean), float(found.fun)


def _choose_shares(data: _Data, grids: Sequence[Sequence[float]], start: tuple[float, float], ridge: float) -> Shares:
    """Return the shares with the smallest loss: one share after the other, twice."""
    loss = cache(lambda e, d: _fit_affine(data, (e, d), start, ridge)[2])
    first = e, d = grids[0][0], grids[1][0]
    for _ in range(2 if len(grids[0]) + len(grids[1]) > 2 else 0):
        best = min(grids[0], key=lambda share: loss(share, d))
        e = best if loss(best, d) < (1 - _GAIN) * loss(first[0], d) else first[0]
        best = min(grids[1], key=lambda share: loss(e, share))
        d = best if loss(e, best) < (1 - _GAIN) * loss(e, first[1]) else first[1]
    return e, d
