"""Calibration by isotonic regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evenscore.calibrate.base import Calibration
from evenscore.calibrate.trials import Floats, Trials
from evenscore.errors import InputError
from evenscore.metrics.points import Points, hull_vertices

__all__ = ["PavCalibration"]


@dataclass(frozen=True, kw_only=True, eq=False)
class PavCalibration(Calibration):
    """A rising staircase: the best monotone calibration of the training scores (pool adjacent violators).

    llr(s) = llr[b]  where edges[b - 1] <= s < edges[b]                                            (P1)

    Equal scores have equal LLRs. A step lies halfway between the two training scores that it divides; beyond the
    training scores the LLR stays at that of the outermost block. Without smoothing, a block of only non-targets at the
    bottom has LLR -inf, one of only targets at the top +inf.

    The option ``smoothing`` of `fit` (1) is how many artificial trials are added at each end: non-targets at +inf and
    targets at -inf, with as large a share of the other class, so that they carry no evidence. With 1, LLRs are at most
    about the log of the number of non-targets. With 0, the Cllr of the training scores is minCllr.

    Examples
    --------
    >>> calibration = PavCalibration.fit([-2.0, -1.0, 0.0, 1.0, 2.0], [0, 1, 0, 1, 1], smoothing=0)
    >>> calibration([-5.0, -1.0, 0.4, 9.0]).round(3)
    array([  -inf, -0.405, -0.405,    inf])
    """

    kind: ClassVar[str] = "pav"
    accepts_infinite: ClassVar[bool] = True
    llr: Floats  #: k, rising
    edges: Floats  #: the k - 1 scores at which the LLR steps up

    def __post_init__(self) -> None:
        super().__post_init__()
        rising = (np.diff(self.edges) > 0).all() and (self.llr[1:] >= self.llr[:-1]).all()
        if self.edges.size != self.llr.size - 1 or not rising:
            raise InputError("edges and llr must rise, and there must be one LLR more than edges")

    @classmethod
    def _fit(cls, trials: Trials, smoothing: float = 1.0) -> PavCalibration:
        points = Points.from_scores(trials.scores, trials.labels, trials.weights)
        # Weight at or below each score; it starts below 0, so that sums of whole weights are exact.
        target, nontarget = np.append(0.0, np.cumsum(points.target)), np.append(0.0, np.cumsum(points.nontarget))
        if smoothing > 0:
            ratio = nontarget[-1] / target[-1]
            target = np.concatenate([[-smoothing], target, [target[-1] + smoothing / ratio]])
            nontarget = np.concatenate([[-smoothing * ratio], nontarget, [nontarget[-1] + smoothing]])
        at = hull_vertices(target, nontarget)
        with np.errstate(divide="ignore"):  # log(0) = -inf is meant
            llr = np.log(np.diff(target[at]) / np.ptp(target)) - np.log(np.diff(nontarget[at]) / np.ptp(nontarget))
        if smoothing > 0:
            at = at - 1  # number of distinct scores below each vertex: -1 and one too many at the ends
            first, last = int(at[1] <= 0), llr.size - int(at[-2] >= points.score.size)  # blocks without any score
            at, llr = at[first : last + 1], llr[first:last]
        below, above = points.score[at[1:-1] - 1], points.score[at[1:-1]]
        with np.errstate(invalid="ignore"):  # -inf + inf
            middle = below / 2 + above / 2
        edges = np.where((middle > below) & (middle <= above), middle, above)  # there may be no number between
        return cls(edges=edges, llr=np.maximum.accumulate(llr))

    def _llr(self, scores: Floats) -> Floats:
        llr = self.llr[np.searchsorted(self.edges, scores, side="right")]  # (P1)
        return np.where(np.isnan(scores), np.nan, llr)
