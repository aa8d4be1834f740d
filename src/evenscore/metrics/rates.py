"""Error rates, which depend on the order of the scores only: EER in five conventions, DET curve, AUC, fixed rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.large import is_dask
from evenscore.metrics.points import LabelsLike, Points, ScoresLike, as_points

__all__ = ["MERGE", "DetCurve", "EerMethod", "EqualErrorRate", "ErrorRates"]
__all__ += ["auc", "det_curve", "eer", "equal_error_rate", "miss_rate_at"]

EerMethod = Literal["rocch", "interpolated", "nearest-mean", "nearest-max", "kaldi"]
MERGE = {"rocch": None, "interpolated": None}  #: others depend on single non-targets, so points must not be merged


@dataclass(frozen=True)
class EqualErrorRate:
    """The equal error rate, a fraction, and the (lower) threshold at which the two error rates are nearest."""

    eer: float
    threshold: float
    method: str


def eer(scores: ScoresLike, labels: LabelsLike = None, *, method: EerMethod = "rocch") -> float:
    """Return the equal error rate, a fraction; see `equal_error_rate` for the conventions.

    Examples
    --------
    >>> eer([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1])
    0.25
    """
    return equal_error_rate(scores, labels, method=method).eer


def equal_error_rate(scores: ScoresLike, labels: LabelsLike = None, *, method: EerMethod = "rocch") -> EqualErrorRate:
    """Return the equal error rate and its threshold, which is near a target score if there are many trials.

    ================  ==============================================================================================
    ``rocch``         where the convex hull of the ROC has equal rates (BOSARIS, PYLLR); at most 0.5
    ``interpolated``  where straight lines between neighbouring points of the ROC do (wespeaker, 3D-Speaker)
    ``nearest-mean``  mean of the two rates at the point where they are nearest (SpeechBrain)
    ``nearest-max``   the larger of the two at the nearest corner that scikit-learn keeps (ESPnet, VoxCeleb trainer)
    ``kaldi``         share of targets below the first one that exceeds its counterpart in the non-targets (compute-eer)
    ================  ==============================================================================================

    Examples
    --------
    >>> equal_error_rate([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1])
    EqualErrorRate(eer=0.25, threshold=0.0, method='rocch')
    """
    if method not in get_args(EerMethod):
        raise InputError(f"there is no EER method {method!r}; choose one of {', '.join(get_args(EerMethod))}")
    points = as_points(scores, labels, merge=MERGE.get(method, False))
    p_miss, p_fa = points.p_miss, points.p_fa
    after = int(np.argmax(p_miss >= p_fa))  # the first decision with Pmiss >= Pfa
    gap = p_miss[after - 1 : after + 1] - p_fa[after - 1 : after + 1]  # from below 0 to 0 or more
    step = gap[0] / (gap[0] - gap[1])
    nearest = after - 1 if -gap[0] <= gap[1] else after
    if method in ("rocch", "interpolated"):
        crossing = float(p_miss[after - 1] + step * (p_miss[after] - p_miss[after - 1]))
        return EqualErrorRate(points.hull.eer if method == "rocch" else crossing, points.threshold(nearest), method)
    if points.target.dtype.kind != "i":
        raise InputError(f"the EER method {method!r} is defined for single trials, not for weights; use 'rocch'")
    if method == "kaldi":
        return EqualErrorRate(*_kaldi(points), method)
    if method == "nearest-max":
        at = _nearest_corner(points)
        return EqualErrorRate(float(max(p_miss[at], p_fa[at])), points.threshold(at), method)
    at = max(nearest, 1)  # SpeechBrain rejects at least the lowest score
    return EqualErrorRate(float(p_miss[at] + p_fa[at]) / 2, points.threshold(at), method)


def _nearest_corner(points: Points) -> int:
    """Return the decision with the nearest rates (the highest of several) that scikit-learn's `roc_curve` keeps."""
    differs = (np.diff(points.target) != 0) | (np.diff(points.nontarget) != 0)
    kept = np.concatenate([[True], differs, [True]])
    kept[-2] = True
    corners, n_target = np.flatnonzero(kept), points.n_target
    detected = (n_target - np.rint(points.p_miss[corners] * n_target)) / n_target  # rounded as users of roc_curve do
    distance = np.abs((1.0 - detected) - points.p_fa[corners])
    return int(corners[len(corners) - 1 - int(np.argmin(distance[::-1]))])


def _kaldi(points: Points) -> tuple[float, float]:
    target, nontarget = (np.repeat(points.score, n.astype(np.int64)) for n in (points.target, points.nontarget))
    place = np.arange(target.size)
    counterpart = np.maximum(nontarget.size - 1 - (nontarget.size * place / target.size).astype(np.int64), 0)
    exceeds = nontarget[counterpart] < target
    exceeds[-1] = True
    at = int(np.argmax(exceeds))
    return at / target.size, float(target[at])


def auc(scores: ScoresLike, labels: LabelsLike = None) -> float:
    """Return the area under the ROC: the probability that a target scores above a non-target; ties count one half.

    Examples
    --------
    >>> auc([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1])
    0.75
    """
    points = as_points(scores, labels)
    targets, nontargets = (below.astype(np.float64) for below in points.below)
    return float(points.target @ (nontargets[1:] + nontargets[:-1]) / (2.0 * targets[-1] * nontargets[-1]))


@dataclass(frozen=True)
class ErrorRates:
    """A threshold (scores at or above it are accepted) and its miss and false-alarm rates."""

    threshold: float
    p_miss: float
    p_fa: float


def miss_rate_at(scores: ScoresLike, labels: LabelsLike = None, *, p_fa: float) -> ErrorRates:
    """Return the lowest threshold with a false-alarm rate of at most ``p_fa``, and its error rates.

    Of merged points and of dask arrays it is the next target score, which misses as many.

    Examples
    --------
    >>> miss_rate_at([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1], p_fa=0.1)
    ErrorRates(threshold=4.0, p_miss=0.5, p_fa=0.0)
    """
    if not 0 <= p_fa <= 1:
        raise InputError(f"p_fa is {p_fa}, but a rate lies between 0 and 1")
    lazy = isinstance(scores, Points) or is_dask(getattr(scores, "scores", scores))
    points = as_points(scores, labels, merge=None if lazy else False)
    k = int(np.argmax(points.p_fa <= p_fa * (1 + 1e-12)))  # rounding must not forbid 0.29 * 100 errors
    if points.losses:  # within a gap, numbers are not known: reject all of it, which costs no target
        k += int(np.argmax(np.append(points.target[k:] > 0, True)))
    return ErrorRates(points.threshold(k), float(points.p_miss[k]), float(points.p_fa[k]))


@dataclass(frozen=True, eq=False)
class DetCurve:
    """Error rates at several thresholds, from "accept everything" to "reject everything"."""

    p_miss: npt.NDArray[np.float64]
    p_fa: npt.NDArray[np.float64]
    threshold: npt.NDArray[np.float64]


def det_curve(scores: ScoresLike, labels: LabelsLike = None, *, most: int | None = None) -> DetCurve:
    """Return the corners of the ROC, as for a DET plot.

    ``most`` keeps at most about this many corners, spread evenly along the square roots of the two error rates, so that
    the ends, where single trials can be seen, keep their detail.

    Examples
    --------
    >>> curve = det_curve([-1.0, 0.0, 0.5, 1.0], [0, 1, 0, 1])
    >>> curve.p_miss, curve.p_fa
    (array([0. , 0. , 0.5, 0.5, 1. ]), array([1. , 0.5, 0.5, 0. , 0. ]))
    """
    points = as_points(scores, labels)
    kind = (points.target > 0) + 2 * (points.nontarget > 0)
    corner = (kind[1:] != kind[:-1]) | (kind[1:] == 3)  # within a run of one class, the ROC is a straight line
    at = np.flatnonzero(np.concatenate([[True], corner, [True]]))
    if most is not None and at.size > most:
        path = np.sqrt(points.p_miss[at]) - np.sqrt(points.p_fa[at])
        keep = np.unique(np.searchsorted(path, np.linspace(path[0], path[-1], max(most, 2))))
        keep[-1] = at.size - 1
        at = at[keep]
    threshold = np.append(points.score[at[:-1]].astype(np.float64), points.threshold(at[-1]))
    return DetCurve(points.p_miss[at], points.p_fa[at], threshold)
