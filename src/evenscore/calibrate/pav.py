"""Calibration by isotonic regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.calibration import Calibration, as_input, finite
from evenscore.errors import InputError
from evenscore.metrics.hull import at_places, hull_of, roc_corners
from evenscore.metrics.trials import ScoresLike, points_of
from evenscore.tables import NONTARGET, TARGET
from evenscore.tables.arrays import frozen
from evenscore.threads import one_thread_per_product

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["PavCalibration"]


@dataclass(frozen=True, kw_only=True, eq=False)
class PavCalibration(Calibration):
    """A rising staircase: the best monotone calibration of the training scores (pool adjacent violators).

    llr(s) = llr[b]  where edges[b - 1] <= s < edges[b]                                            (P1)

    Equal scores have equal LLRs, so that ties are decided by their class counts alone. A step lies halfway between the
    two training scores that it divides; beyond the training scores the LLR stays at that of the outermost block.
    Without smoothing, a block of only non-targets at the bottom has LLR -inf, one of only targets at the top +inf.

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

    llr: Float[np.ndarray, " k"]
    edges: Float[np.ndarray, " k-1"]

    def __post_init__(self) -> None:
        edges, llr = np.array(self.edges, dtype=np.float64), np.array(self.llr, dtype=np.float64)
        if llr.ndim != 1 or edges.shape != (llr.size - 1,):
            raise InputError(f"edges and llr have shapes {edges.shape} and {llr.shape}, but k LLRs need k - 1 edges")
        rising = (edges[1:] > edges[:-1]).all() and (llr[1:] >= llr[:-1]).all()  # False where one is NaN
        if not rising or np.isnan(edges).any() or np.isnan(llr).any():
            raise InputError("edges and llr must rise and must not be NaN")
        if llr.size > 2:
            finite("llr", llr[1:-1])  # only the ends may be infinite
        object.__setattr__(self, "edges", frozen(edges))
        object.__setattr__(self, "llr", frozen(llr))

    @classmethod
    @one_thread_per_product()
    def fit(cls, scores: ScoresLike, labels: npt.ArrayLike | None = None, *, smoothing: float = 1.0) -> PavCalibration:
        """Fit by pooling adjacent violators.

        Parameters
        ----------
        scores, labels
            As in `evenscore.metrics.validate`; infinite scores are accepted. Or a `ScoreSummary`: all scores of a bin
            are then equal.
        smoothing
            How many made-up trials to add at each end: at +inf this many non-targets, at -inf this many targets, each
            together with as large a share of the other class, so that they tell nothing of their own (LLR 0). With 1,
            the LLR is at most about the log of the number of non-targets, and at least about minus the log of the
            number of targets. With 0, the ends may be infinite, and the Cllr of the training scores is minCllr.
        """
        if not 0 <= smoothing < np.inf:
            raise InputError(f"smoothing is {smoothing}, but must be finite and at least 0")
        found = points_of(scores, labels)
        tar, non = found.tied.target, found.tied.nontarget
        counts = (found.class_scores(label)[1] for label in (NONTARGET, TARGET))
        non_count, tar_count = (np.append(0.0, np.cumsum(count)) for count in counts)
        n_tar, n_non = tar_count[-1], non_count[-1]
        tar, tar_count = _with_ends(tar, tar_count, smoothing, smoothing * n_tar / n_non)
        non, non_count = _with_ends(non, non_count, smoothing * n_non / n_tar, smoothing)
        i, j = roc_corners(tar, non)
        vertices = hull_of(tar_count[i], non_count[j])
        i, j = i[vertices], j[vertices]
        with np.errstate(divide="ignore"):  # log(0) = -inf is meant
            llr = np.log(np.diff(tar_count[i]) / np.ptp(tar_count)) - np.log(np.diff(non_count[j]) / np.ptp(non_count))
        low = np.minimum(at_places(tar, i[1:-1], np.inf), at_places(non, j[1:-1], np.inf))
        high = np.maximum(at_places(tar, i[1:-1] - 1, -np.inf), at_places(non, j[1:-1] - 1, -np.inf))
        first = int(i[1] <= 1 and j[1] <= 1)  # a block of made-up trials only is no place for a score
        last = llr.size - int(i[-2] >= tar.size - 1 and j[-2] >= non.size - 1)
        return cls(edges=_between(high, low)[first : last - 1], llr=np.maximum.accumulate(llr)[first:last])

    def __call__(self, scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the LLR of each score; NaN stays NaN, infinite scores have the LLR of the ends."""
        values = as_input(scores, infinite=True)
        llr = self.llr[np.searchsorted(self.edges, values, side="right")]
        return np.where(np.isnan(values), np.nan, llr)


def _with_ends(
    scores: npt.NDArray[np.floating], counts: npt.NDArray[np.float64], bottom: float, top: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the scores with one made-up score at each end, and the running count where those count as given.

    The count starts below 0, so that it is whole, and differences are exact, wherever the scores are real.
    """
    count = np.concatenate(([-bottom], counts, [counts[-1] + top]))
    return np.concatenate(([-np.inf], scores, [np.inf])), count


def _between(high: npt.NDArray[np.float64], low: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the middle of each gap; the upper end of it where there is no number between, or an end is infinite."""
    with np.errstate(invalid="ignore"):  # -inf + inf
        middle = high / 2 + low / 2
    return np.where((middle > high) & (middle <= low), middle, low)
