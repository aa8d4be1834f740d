"""Calibration by isotonic regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.base import Calibration, finite
from evenscore.calibrate.training import Floats, Training
from evenscore.errors import InputError
from evenscore.metrics.hull import hull_vertices

__all__ = ["PavCalibration"]


@dataclass(frozen=True, kw_only=True, eq=False)
class PavCalibration(Calibration):
    """A rising staircase: the best monotone calibration of the training scores (pool adjacent violators).

    llr(s) = llr[b]  where edges[b - 1] <= s < edges[b]                                            (P1)

    Equal scores have equal LLRs. A step lies halfway between the two training scores that it divides; beyond the
    training scores the LLR stays at that of the outermost block. Without smoothing, a block of only non-targets at the
    bottom has LLR -inf, one of only targets at the top +inf.

    Attributes
    ----------
    llr
        The k LLRs, rising.
    edges
        The k - 1 scores at which the LLR steps up.

    Examples
    --------
    >>> calibration = PavCalibration.fit([-2.0, -1.0, 0.0, 1.0, 2.0], [0, 1, 0, 1, 1], smoothing=0)
    >>> calibration.edges, calibration.llr.round(3)
    (array([-1.5,  0.5]), array([  -inf, -0.405,    inf]))
    >>> calibration([-5.0, -1.0, 0.4, 9.0]).round(3)
    array([  -inf, -0.405, -0.405,    inf])
    """

    kind: ClassVar[str] = "pav"
    accepts_infinite: ClassVar[bool] = True

    llr: Floats
    edges: Floats

    def __post_init__(self) -> None:
        edges, llr = np.array(self.edges, dtype=np.float64), np.array(self.llr, dtype=np.float64)
        if llr.ndim != 1 or edges.shape != (llr.size - 1,):
            raise InputError(f"edges and llr have shapes {edges.shape} and {llr.shape}, but k LLRs need k - 1 edges")
        rising = (edges[1:] > edges[:-1]).all() and (llr[1:] >= llr[:-1]).all()  # False where one is NaN
        if not rising or np.isnan(edges).any() or np.isnan(llr).any():
            raise InputError("edges and llr must rise and must not be NaN")
        finite("llr", llr[1:-1])  # only the ends may be infinite
        for name, values in (("edges", edges), ("llr", llr)):
            values.flags.writeable = False
            object.__setattr__(self, name, values)

    @classmethod
    def fit(
        cls, scores: Any, labels: Any = None, weights: npt.ArrayLike | None = None, *, smoothing: float = 1.0
    ) -> Self:
        """Fit by pooling adjacent violators.

        Parameters
        ----------
        scores, labels, weights
            As in `Calibration.fit`; infinite scores are accepted.
        smoothing
            How many artificial trials to add at each end: at +inf this many non-targets, at -inf this many targets,
            each together with as large a share of the other class, so that they carry no evidence (LLR 0). With 1,
            the LLR is at most about the log of the number of non-targets, and at least about minus the log of the
            number of targets. With 0, the ends may be infinite, and the Cllr of the training scores is minCllr.
        """
        if not 0 <= smoothing < np.inf:
            raise InputError(f"smoothing is {smoothing}, but must be finite and at least 0")
        training = Training.from_scores(scores, labels, weights, infinite=True)
        points = training.points()
        # Weight at or below each score; it starts below 0, so that sums of whole weights are exact.
        target, nontarget = np.cumsum(points.target).astype(np.float64), np.cumsum(points.nontarget).astype(np.float64)
        n_target, n_nontarget = target[-1], nontarget[-1]
        target = np.concatenate([[-smoothing, 0.0], target, [n_target + smoothing * n_target / n_nontarget]])
        nontarget = np.concatenate([[-smoothing * n_nontarget / n_target, 0.0], nontarget, [n_nontarget + smoothing]])
        if smoothing == 0:
            target, nontarget = target[1:-1], nontarget[1:-1]
        at = hull_vertices(target, nontarget)
        with np.errstate(divide="ignore"):  # log(0) = -inf is meant
            llr = np.log(np.diff(target[at]) / np.ptp(target)) - np.log(np.diff(nontarget[at]) / np.ptp(nontarget))
        if smoothing > 0:
            at = at - 1  # number of distinct scores below each vertex: -1 and one too many at the ends
            first, last = int(at[1] <= 0), llr.size - int(at[-2] >= points.score.size)  # blocks without any score
            at, llr = at[first : last + 1], llr[first:last]
        score = points.score.astype(np.float64)
        edges = _between(score[at[1:-1] - 1], score[at[1:-1]])
        return cls(edges=edges, llr=np.maximum.accumulate(llr))._fitted_to(training, smoothing=smoothing)

    def _llr(self, scores: Floats) -> Floats:
        llr = self.llr[np.searchsorted(self.edges, scores, side="right")]
        return np.where(np.isnan(scores), np.nan, llr)


def _between(high: Floats, low: Floats) -> Floats:
    """Return the middle of each gap; the upper end of it where there is no number between, or an end is infinite."""
    with np.errstate(invalid="ignore"):  # -inf + inf
        middle = high / 2 + low / 2
    return np.where((middle > high) & (middle <= low), middle, low)
