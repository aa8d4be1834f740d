"""The curves of the plots, with so few points that the page stays small whatever the number of trials."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from evenscore.metrics import SortedScores, equal_error_rate, roc

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["DetCurve", "Histogram", "det_curve", "det_range", "histogram", "probit", "shape_points"]

MOST_POINTS = 500  #: of a DET curve
SMALLEST_RATE = 1e-6  #: that a plot shows; rates of 0 and 1 lie beyond its edge
_MOST_DISTINCT = 20_000
_UNSEEN = 0.002  # a fifth of a pixel on probit axes
_BINS = 72
_TAIL = 0.001  # share of the scores beyond either end of a histogram


def probit(rate: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the quantile of the standard normal distribution; rates of 0 and 1 are a little beyond what is shown."""
    return np.asarray(ndtri(np.clip(rate, SMALLEST_RATE / 10, 1 - SMALLEST_RATE / 10)))


@dataclass(frozen=True, kw_only=True, eq=False)
class DetCurve:
    """Points of a DET curve, and its equal error rate."""

    p_fa: Float[np.ndarray, " k"]
    p_miss: Float[np.ndarray, " k"]
    threshold: Float[np.ndarray, " k"]
    eer: float


def det_curve(trials: SortedScores, most: int = MOST_POINTS) -> DetCurve:
    """Return a DET curve with at most ``most`` of its corners, those that are needed most to keep its shape.

    Examples
    --------
    >>> from evenscore.metrics import sort_scores
    >>> curve = det_curve(sort_scores([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1]))
    >>> curve.p_fa, curve.eer
    (array([1. , 0.5, 0.5, 0. , 0. ]), 0.25)
    """
    corners = roc(trials)
    keep = _distinct(corners.p_fa, corners.p_miss)
    points = np.column_stack([probit(corners.p_fa[keep]), probit(corners.p_miss[keep])])
    keep = keep[shape_points(points, most)]
    return DetCurve(
        p_fa=corners.p_fa[keep],
        p_miss=corners.p_miss[keep],
        threshold=corners.threshold[keep],
        eer=equal_error_rate(trials).eer,
    )


def _distinct(p_fa: npt.NDArray[np.float64], p_miss: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
    """Return where the corners stand that lie far enough apart to be told from each other, in one pass."""
    if p_fa.size <= _MOST_DISTINCT:
        return np.arange(p_fa.size)
    path = probit(p_miss) - probit(p_fa)  # never falls along the curve
    return np.unique(np.searchsorted(path, np.linspace(path[0], path[-1], _MOST_DISTINCT)))


def shape_points(points: Float[np.ndarray, "n 2"], most: int) -> npt.NDArray[np.intp]:
    """Choose points of a line so that straight pieces between them stay close to it (Douglas and Peucker).

    The point that lies farthest from its piece is added first, until none lies farther than can be seen or there are
    ``most``.

    Examples
    --------
    >>> shape_points(np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [2.0, 5.0]]), 10)
    array([0, 2, 3])
    """
    chosen = {0, len(points) - 1}
    pieces = [_farthest(points, 0, len(points) - 1)]
    while len(chosen) < most:
        distance, start, middle, end = heappop(pieces)
        if -distance <= _UNSEEN:
            break
        chosen.add(middle)
        heappush(pieces, _farthest(points, start, middle))
        heappush(pieces, _farthest(points, middle, end))
    return np.array(sorted(chosen))


def _farthest(points: Float[np.ndarray, "n 2"], start: int, end: int) -> tuple[float, int, int, int]:
    """Return the distance from a piece to the point farthest from it, negative for the heap, and the three places."""
    if end - start < 2:
        return 0.0, start, start, end
    along = points[end] - points[start]
    away = points[start + 1 : end] - points[start]
    length = float(np.hypot(*along))
    if length > 0:
        distances = np.abs(away[:, 0] * along[1] - away[:, 1] * along[0]) / length
    else:
        distances = np.hypot(away[:, 0], away[:, 1])
    at = int(np.argmax(distances))
    return -float(distances[at]), start, start + 1 + at, end


def det_range(worst_eer: float, trials: int) -> list[float]:
    """Return the lowest and the highest rate of an axis for that many trials of its class.

    Examples
    --------
    >>> det_range(0.05, 1000)
    [0.0005, 0.7]
    """
    high = next(top for limit, top in ((0.03, 0.4), (0.1, 0.7), (0.2, 0.9), (1.0, 0.99)) if worst_eer <= limit)
    low = 0.5 / max(trials, 1)
    return [max(min(low, worst_eer / 4) if worst_eer > 0 else low, SMALLEST_RATE), high]


@dataclass(frozen=True, kw_only=True, eq=False)
class Histogram:
    """Densities of non-target and target scores over the same bins."""

    edges: Float[np.ndarray, " k+1"]
    nontarget: Float[np.ndarray, " k"]
    target: Float[np.ndarray, " k"]


def histogram(trials: SortedScores) -> Histogram:
    """Return the densities of both classes; the outermost thousandth of either class may lie beyond the ends.

    Examples
    --------
    >>> from evenscore.metrics import sort_scores
    >>> shown = histogram(sort_scores([0.0, 1.0, 2.0, 3.0], [0, 0, 1, 1]))
    >>> float(shown.edges[0]), float(shown.edges[-1]), shown.target.size
    (0.0, 3.0, 72)
    """
    sides = [_weighted(trials.nontarget, trials.nontarget_mass), _weighted(trials.target, trials.target_mass)]
    ends = [_span(*side) for side in sides if side[0].size]
    low, high = (min(end[0] for end in ends), max(end[1] for end in ends)) if ends else (0.0, 1.0)
    if not high > low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, _BINS + 1)
    width = edges[1] - edges[0]
    shares = [np.histogram(side, edges, weights=weight)[0] / width for side, weight in sides]
    return Histogram(edges=edges, nontarget=shares[0], target=shares[1])


def _weighted(
    side: npt.NDArray[np.floating], mass: npt.NDArray[np.float64] | None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the finite scores of a class, sorted, and the share of each among them."""
    finite = np.isfinite(side)
    weights = (np.ones(side.size) if mass is None else np.diff(mass))[finite]
    return side[finite].astype(np.float64), weights / max(weights.sum(), np.finfo(float).tiny)


def _span(side: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the ends of sorted scores without a thousandth at either end."""
    below = np.cumsum(weights)
    low = int(np.searchsorted(below, _TAIL, side="right"))
    high = int(np.searchsorted(below, 1 - _TAIL))
    return float(side[min(low, side.size - 1)]), float(side[min(high, side.size - 1)])
