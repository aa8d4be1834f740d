"""Calibration with bounded log-likelihood ratios: an affine map, and the shares of trials that are outliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from evenscore.calibrate.base import Calibration
from evenscore.calibrate.logistic import LogisticCalibration, prior_shares
from evenscore.calibrate.trials import Floats, Trials
from evenscore.data.labels import TARGET
from evenscore.metrics.cllr import expit

__all__ = ["SHARES", "SaturatingCalibration"]

SHARES = (0.0, 1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2)  #: candidates of the two shares
_GAIN = 0.02  # part of the loss that a share above the first of its candidates must save
_BINS = 4096  # scores of a class while the shares are chosen
_PENALTY = 1e-6  # on the weight, in units of the scores' spread: without its outliers, a class may be free of errors

Shares = tuple[float, float]  # of target outliers, of non-target outliers


@dataclass(frozen=True, kw_only=True, eq=False)
class SaturatingCalibration(Calibration):
    """An affine map of scores whose log-likelihood ratios are bounded on both sides.

    z = offset + weight score                                                                   (T1)
    llr = log((1 - e) exp(z) + e) - log((1 - d) + d exp(z)),   log e < llr < -log d             (T2)

    It is the likelihood ratio if a share e = target_outliers of the targets has scores of non-targets, and a share
    d = nontarget_outliers of the non-targets scores of targets: wrong labels, broken recordings, one person under
    two names. With e = d = 0 it is the logistic calibration, in which a single outlier flattens the slope of all LLRs.

    Options of `fit`: ``target_outliers`` and ``nontarget_outliers``, shares that are known, else those of `SHARES` with
    the smallest cross-entropy, but 0 if that saves less than 2 % of it; ``p_target`` and ``l2`` as in
    `LogisticCalibration`; scores that separate the classes need an ``l2``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = np.concatenate([rng.normal(0, 1, 2000), rng.normal(6, 1, 200), rng.normal(0, 1, 4)])
    >>> labels = np.repeat([0, 1], [2000, 204])
    >>> calibration = SaturatingCalibration.fit(scores, labels)
    >>> calibration.target_outliers, calibration.nontarget_outliers
    (0.01, 0.0)
    >>> [float(one(-100.0).round(1)) for one in (calibration, LogisticCalibration.fit(scores, labels))]
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
        data = _Data(trials.scores, np.where(target, 1.0, -1.0), prior_shares(trials.weights, target, p_target))
        grids = [SHARES if share is None else (share,) for share in (target_outliers, nontarget_outliers)]
        shares = _choose_shares(data.condensed(), grids, start, l2)
        weight, offset = start if shares == (0.0, 0.0) else _fit_affine(data, shares, start, l2)[:2]
        e, d = shares
        return cls(weight=weight, offset=offset, target_outliers=e, nontarget_outliers=d, p_target=p_target)

    def _llr(self, scores: Floats) -> Floats:
        above, below = _log_terms(scores * self.weight + self.offset, (self.target_outliers, self.nontarget_outliers))
        return np.asarray(above - below)  # (T2)


def _log_terms(z: Floats, shares: Shares) -> tuple[Floats, Floats]:
    """Return log((1 - e) exp(z) + e) and log((1 - d) + d exp(z))."""
    e, d = shares
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
        total = np.bincount(at, share)
        return _Data(np.bincount(at, share * score) / total, np.sign(np.bincount(at, sign)), total)

    def middle(self, sign: int) -> tuple[float, float]:
        """Return the median of a class, and half the width of its middle two thirds: about the standard deviation."""
        score, share = self.score[self.sign == sign], self.share[self.sign == sign]
        order = np.argsort(score)
        running = np.cumsum(share[order]) / share.sum()
        low, median, high = np.interp([1 / 6, 1 / 2, 5 / 6], running, score[order])
        return float(median), float(high - low) / 2


def _fit_affine(data: _Data, shares: Shares, start: tuple[float, float], l2: float) -> tuple[float, float, float]:
    """Return weight, offset and their prior-weighted cross-entropy; the search is in units of the scores' spread."""
    from scipy.optimize import minimize

    (low, low_width), (high, high_width) = data.middle(-1), data.middle(1)
    spread, mean = float(data.score.std()), 0.5 * (low + high)
    scale = max(low_width, high_width, 0.5 * abs(high - low)) or spread
    score, p_target = (data.score - mean) / scale, data.share[data.sign > 0].sum()
    penalty = max(l2 * (spread / scale) ** 2, _PENALTY if max(shares) > 0 else 0.0)

    def loss(theta: Floats) -> tuple[float, Floats]:
        z = theta[0] * score + theta[1]
        above, below = _log_terms(z, shares)
        slope = (1 - shares[0]) * np.exp(z - above) - shares[1] * np.exp(z - below)  # d llr / dz
        margin = data.sign * (above - below + np.log(p_target / (1 - p_target)))
        pull = -data.sign * data.share * expit(-margin) * slope
        value = float(data.share @ np.logaddexp(0.0, -margin)) + 0.5 * penalty * theta[0] ** 2
        return value, np.array([pull @ score + penalty * theta[0], pull.sum()])

    starts = [np.array([start[0] * scale, start[1] + start[0] * mean])]
    within = 0.5 * (low_width**2 + high_width**2)
    if within > 0:  # a few scores that are far away may have flattened the logistic calibration
        starts.append(np.array([scale * (high - low) / within, 0.0]))
    first = min(starts, key=lambda theta: loss(theta)[0])
    found = minimize(loss, first, jac=True, method="BFGS", options={"gtol": 1e-9})
    weight = float(found.x[0] / scale)
    return weight, float(found.x[1] - weight * mean), float(found.fun)


def _choose_shares(data: _Data, grids: list[tuple[float, ...]], start: tuple[float, float], l2: float) -> Shares:
    """Return the shares with the smallest loss: one share after the other, twice."""
    best, known = (grids[0][0], grids[1][0]), dict[Shares, float]()

    def loss(shares: Shares) -> float:
        if shares not in known:
            known[shares] = _fit_affine(data, shares, start, l2)[2]
        return known[shares]

    for side in (0, 1, 0, 1):
        options = [(share, best[1]) if side == 0 else (best[0], share) for share in grids[side]]
        if len(options) > 1:
            found = min(options, key=loss)
            best = found if loss(found) < (1 - _GAIN) * loss(options[0]) else options[0]
    return best
