"""Error rates that look only at the order of the scores: EER in its five conventions, fixed points, AUC."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.hull import nearest_corner
from evenscore.metrics.trials import ScoresLike, SortedScores, points_of

__all__ = ["EerMethod", "EqualErrorRate", "auc", "eer", "equal_error_rate", "p_fa_at", "p_miss_at"]

EerMethod = Literal["rocch", "interpolated", "nearest-mean", "nearest-max", "kaldi"]


@dataclass(frozen=True, kw_only=True)
class EqualErrorRate:
    """The equal error rate, and a threshold near it.

    Attributes
    ----------
    eer
        The rate, a fraction.
    threshold
        The score threshold at which the two error rates are nearest to each other (the lower of two); scores at or
        above it are accepted.
    method
        The convention.
    """

    eer: float
    threshold: float
    method: str


def eer(scores: ScoresLike, labels: npt.ArrayLike | None = None, *, method: EerMethod = "rocch") -> float:
    """Return the equal error rate, a fraction; see `equal_error_rate` for the conventions.

    Examples
    --------
    >>> eer([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1])
    0.25
    >>> eer([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1], method="nearest-mean")
    0.5
    """
    return equal_error_rate(scores, labels, method=method).eer


def equal_error_rate(
    scores: ScoresLike,
    labels: npt.ArrayLike | None = None,
    *,
    method: EerMethod = "rocch",
) -> EqualErrorRate:
    """Return the equal error rate and its threshold.

    Parameters
    ----------
    scores, labels
        As in `validate`, or `SortedScores`.
    method
        ================  ==========================================================================================
        ``rocch``         where the convex hull of the ROC has equal rates (BOSARIS, PYLLR); at most 0.5
        ``interpolated``  where straight lines between neighbouring points of the ROC do (wespeaker, 3D-Speaker)
        ``nearest-mean``  mean of the two rates at the point where they are nearest (SpeechBrain)
        ``nearest-max``   the larger of the two at the nearest corner that scikit-learn keeps (ESPnet, VoxCeleb trainer)
        ``kaldi``         share of targets below the first target that beats its counterpart among the non-targets
                          (compute-eer)
        ================  ==========================================================================================

    Notes
    -----
    If all scores are equal, every convention but ``nearest-max`` (1) and ``kaldi`` gives 0.5; if the classes are
    separated, 0.

    Examples
    --------
    >>> equal_error_rate([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1])
    EqualErrorRate(eer=0.25, threshold=0.0, method='rocch')
    """
    if method not in get_args(EerMethod):
        raise InputError(f"there is no EER method {method!r}; choose one of {', '.join(get_args(EerMethod))}")
    found = points_of(scores, labels)
    if method not in _OF_CURVES and found.tied.target_mass is not None:
        raise InputError(
            f"the EER method {method!r} looks at single trials and knows no weights and no bins; use 'rocch'"
        )
    value, threshold = _METHODS[method](found.tied)
    if len(found.orders) > 1:
        value = found.middle(lambda order: _METHODS[method](order)[0])
    return EqualErrorRate(eer=value, threshold=threshold, method=method)


def _rocch(trials: SortedScores) -> tuple[float, float]:
    """Intersect the hull with the diagonal Pmiss = Pfa."""
    hull = trials.hull
    gap = hull.p_miss - hull.p_fa  # from -1 to 1, rising
    b = int(np.argmax(gap >= 0))
    step = -gap[b - 1] / (gap[b] - gap[b - 1])
    value = float(hull.p_miss[b - 1] + step * (hull.p_miss[b] - hull.p_miss[b - 1]))
    return value, trials.threshold(*_nearest(trials))


def _crossing(trials: SortedScores) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the last point of the ROC with Pmiss < Pfa and the first one with Pmiss >= Pfa.

    A point is (targets below, non-targets below). The gap Pmiss - Pfa rises with the threshold, so bisection finds it.
    """
    tar, non = trials.target, trials.nontarget

    def reached(threshold: float) -> bool:
        i, j = (int(np.searchsorted(side, threshold)) for side in (tar, non))
        return bool(trials.miss_rate(i) >= trials.false_alarm_rate(j))

    i, j = (_first(side, reached) for side in (tar, non))
    heads = [side[at] for side, at in ((tar, i), (non, j)) if at < side.size]
    if heads:
        first = min(heads)
        i, j = (int(np.searchsorted(side, first)) for side in (tar, non))
    tails = [side[at - 1] for side, at in ((tar, i), (non, j)) if at > 0]
    last = max(tails)
    before = int(np.searchsorted(tar, last)), int(np.searchsorted(non, last))
    return before, (i, j)


def _first(scores: npt.NDArray[np.floating], reached: Callable[[float], bool]) -> int:
    """Return the first place where a rising condition holds, or the length."""
    low, high = 0, scores.size
    while low < high:
        middle = (low + high) // 2
        if reached(scores[middle]):
            high = middle
        else:
            low = middle + 1
    return low


def _nearest(trials: SortedScores) -> tuple[int, int]:
    """Return the point of the ROC whose two rates are nearest, the lower threshold if two are equally near."""
    points = _crossing(trials)
    gaps = [abs(float(trials.miss_rate(i)) - float(trials.false_alarm_rate(j))) for i, j in points]
    return points[0] if gaps[0] <= gaps[1] else points[1]


def _interpolated(trials: SortedScores) -> tuple[float, float]:
    (i0, j0), (i1, j1) = _crossing(trials)
    miss0, miss1 = float(trials.miss_rate(i0)), float(trials.miss_rate(i1))
    fa0, fa1 = float(trials.false_alarm_rate(j0)), float(trials.false_alarm_rate(j1))
    step = (miss1 - fa1) / (fa0 - fa1 - (miss0 - miss1))
    return miss1 + step * (miss0 - miss1), trials.threshold(*_nearest(trials))


def _nearest_mean(trials: SortedScores) -> tuple[float, float]:
    i, j = _nearest(trials)
    if i == j == 0:  # SpeechBrain rejects at least the lowest score
        i, j = _crossing(trials)[1]
    return float(trials.miss_rate(i) + trials.false_alarm_rate(j)) / 2, trials.threshold(i, j)


def _nearest_max(trials: SortedScores) -> tuple[float, float]:
    i, j = nearest_corner(trials.target, trials.nontarget)
    return float(max(trials.miss_rate(i), trials.false_alarm_rate(j))), trials.threshold(i, j)


def _kaldi(trials: SortedScores) -> tuple[float, float]:
    tar, non = trials.target, trials.nontarget
    place = np.arange(tar.size)
    counterpart = np.maximum(non.size - 1 - (non.size * place / tar.size).astype(np.int64), 0)
    beats = non[counterpart] < tar
    beats[-1] = True  # the last target is taken in any case
    at = int(np.argmax(beats))
    return at / tar.size, float(tar[at])


_METHODS: dict[str, Callable[[SortedScores], tuple[float, float]]] = {
    "rocch": _rocch,
    "interpolated": _interpolated,
    "nearest-mean": _nearest_mean,
    "nearest-max": _nearest_max,
    "kaldi": _kaldi,
}
_OF_CURVES = ("rocch", "interpolated")  # a bin's step of the ROC is a straight line, so that its ends tell all


def auc(scores: ScoresLike, labels: npt.ArrayLike | None = None) -> float:
    """Return the area under the ROC: the chance that a target scores above a non-target, a tie counting one half.

    Examples
    --------
    >>> auc([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1])
    0.75
    """
    return points_of(scores, labels).middle(lambda order: order.hull.auc)


def p_miss_at(p_fa: float, scores: ScoresLike, labels: npt.ArrayLike | None = None) -> float:
    """Return the lowest miss rate of a threshold with a false-alarm rate of at most ``p_fa``.

    Examples
    --------
    >>> p_miss_at(0.5, [-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1])
    0.0
    >>> p_miss_at(0.1, [-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1])
    0.5
    """
    limit = _as_limit(p_fa, "p_fa")
    return points_of(scores, labels).middle(lambda order: _p_miss_at(limit, order))


def _p_miss_at(limit: float, trials: SortedScores) -> float:
    size = trials.nontarget.size
    if trials.nontarget_mass is None:
        rejected = size - int(limit * size)
    else:
        rejected = int(np.searchsorted(trials.nontarget_mass, 1.0 - limit))
    if rejected <= 0:
        return 0.0
    best_rejected = trials.nontarget[rejected - 1]
    return float(trials.miss_rate(np.searchsorted(trials.target, best_rejected, side="right")))


def p_fa_at(p_miss: float, scores: ScoresLike, labels: npt.ArrayLike | None = None) -> float:
    """Return the lowest false-alarm rate of a threshold with a miss rate of at most ``p_miss``.

    Examples
    --------
    >>> p_fa_at(0.5, [-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1])
    0.0
    """
    limit = _as_limit(p_miss, "p_miss")
    return points_of(scores, labels).middle(lambda order: _p_fa_at(limit, order))


def _p_fa_at(limit: float, trials: SortedScores) -> float:
    size = trials.target.size
    if trials.target_mass is None:
        rejected = int(limit * size)
    else:
        rejected = int(np.searchsorted(trials.target_mass, limit, side="right")) - 1
    if rejected >= size:
        return 0.0
    return float(trials.false_alarm_rate(np.searchsorted(trials.nontarget, trials.target[rejected])))


def _as_limit(rate: float, name: str) -> float:
    """Return the rate, a hair larger, so that rounding does not forbid exactly 0.29 * 100 errors."""
    if not 0 <= rate <= 1:
        raise InputError(f"{name} is {rate}, but a rate lies between 0 and 1")
    return rate * (1 + 1e-12)
