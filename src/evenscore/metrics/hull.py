"""The ROC of a set of scores, and its convex hull.

Scores are walked upwards in *groups*: all scores up to the next score of the other class form one group (they lie on
one straight line of the ROC), and so do all scores that are equal across the classes. A corner is where a group ends:
it is given by how many targets and how many non-targets lie below it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.points import SortedScores
from evenscore.metrics.trials import ScoresLike, sort_scores
from evenscore.tables.arrays import frozen

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = [
    "Roc",
    "Rocch",
    "at_places",
    "hull_of",
    "hull_of_scores",
    "nearest_corner",
    "ordered_pairs",
    "roc",
    "roc_corners",
    "rocch",
]

Counts = npt.NDArray[np.int64]
# Each round drops what is seen not to be a vertex; once a round drops less than this share, a walk is quicker.
_WORTH_A_ROUND = 1 / 16


@dataclass(frozen=True, kw_only=True, eq=False)
class Roc:
    """Error rates at several thresholds, from "accept everything" to "reject everything".

    Attributes
    ----------
    p_miss, p_fa
        Miss and false-alarm rates at each threshold.
    threshold
        Scores at or above it are accepted.
    """

    p_miss: Float[np.ndarray, " k"]
    p_fa: Float[np.ndarray, " k"]
    threshold: Float[np.ndarray, " k"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Rocch:
    """Convex hull of the ROC, which is the isotonic (PAV) fit of the labels to the scores.

    The v vertices go from "accept everything" (0, 1) to "reject everything" (1, 0). Between vertices b and b + 1
    lies block b of the isotonic fit: the scores from ``low[b]`` to ``high[b]``, with a share of the targets
    ``p_miss[b + 1] - p_miss[b]`` and of the non-targets ``p_fa[b] - p_fa[b + 1]``; the logarithm of the ratio of the
    two is the block's LLR. Scores that are equal always share a block (which is the "pessimistic" treatment of ties:
    targets rank below equal non-targets), and three vertices never lie on one line.

    Attributes
    ----------
    p_miss, p_fa
        Error rates at the vertices.
    threshold
        The lowest accepted score at each vertex; at the last one the next number after the highest score.
    target_below, nontarget_below
        Numbers of trials rejected at each vertex.
    low, high
        Lowest and highest score of each block.
    auc
        Area under the steppy ROC itself, not under its hull.
    """

    p_miss: Float[np.ndarray, " v"]
    p_fa: Float[np.ndarray, " v"]
    threshold: Float[np.ndarray, " v"]
    target_below: Int[np.ndarray, " v"]
    nontarget_below: Int[np.ndarray, " v"]
    low: Float[np.ndarray, " v-1"]
    high: Float[np.ndarray, " v-1"]
    auc: float

    @property
    def target_share(self) -> Float[np.ndarray, " v-1"]:
        """Share of the targets in each block."""
        return np.diff(self.p_miss)

    @property
    def nontarget_share(self) -> Float[np.ndarray, " v-1"]:
        """Share of the non-targets in each block."""
        return -np.diff(self.p_fa)

    @property
    def llr(self) -> Float[np.ndarray, " v-1"]:
        """Optimal log-likelihood ratio of each block; -inf without targets, +inf without non-targets."""
        with np.errstate(divide="ignore"):  # log(0) = -inf is meant
            return np.asarray(np.log(self.target_share) - np.log(self.nontarget_share))


def rocch(scores: ScoresLike, labels: npt.ArrayLike | None = None) -> Rocch:
    """Return the convex hull of the ROC.

    Parameters
    ----------
    scores, labels
        As in `validate`, or `SortedScores`.

    Examples
    --------
    >>> hull = rocch([-2.0, -1.0, 0.0, 1.0, 2.0], [0, 1, 0, 1, 1])
    >>> hull.p_miss.round(3), hull.p_fa
    (array([0.   , 0.   , 0.333, 1.   ]), array([1. , 0.5, 0. , 0. ]))
    >>> hull.llr.round(3)
    array([  -inf, -0.405,    inf])
    """
    return sort_scores(scores, labels).hull


def hull_of_scores(trials: SortedScores) -> Rocch:
    """Return the convex hull of the ROC of sorted scores."""
    tar, non = trials.target, trials.nontarget
    i, j = roc_corners(tar, non)
    if trials.target_mass is None or trials.nontarget_mass is None:
        t, n = i, j
    else:
        t, n = trials.target_mass[i], trials.nontarget_mass[j]
    auc = ordered_pairs(t, n) / (2 * t[-1] * n[-1])
    vertices = hull_of(t, n)
    i, j = i[vertices], j[vertices]
    threshold = _thresholds(trials, i, j)
    highest = np.maximum(at_places(tar, i - 1, -np.inf), at_places(non, j - 1, -np.inf))
    return Rocch(
        p_miss=frozen(trials.miss_rate(i)),
        p_fa=frozen(trials.false_alarm_rate(j)),
        threshold=frozen(threshold),
        target_below=frozen(i),
        nontarget_below=frozen(j),
        low=frozen(threshold[:-1]),
        high=frozen(highest[1:]),
        auc=float(auc),
    )


def _thresholds(
    trials: SortedScores, i: npt.NDArray[np.integer], j: npt.NDArray[np.integer]
) -> npt.NDArray[np.float64]:
    """Return the lowest accepted score at each corner; the last one rejects everything."""
    lowest = np.minimum(at_places(trials.target, i, np.inf), at_places(trials.nontarget, j, np.inf))
    lowest[-1] = trials.threshold(trials.target.size, trials.nontarget.size)
    return lowest


def at_places(
    scores: npt.NDArray[np.floating], place: npt.NDArray[np.integer], beyond: float
) -> npt.NDArray[np.float64]:
    """Return the scores at these places as float64, and ``beyond`` at places that do not exist."""
    exists = (place >= 0) & (place < scores.size)
    return np.where(exists, scores[np.where(exists, place, 0)], np.float64(beyond)).astype(np.float64)


def roc(scores: ScoresLike, labels: npt.ArrayLike | None = None, *, most: int | None = None) -> Roc:
    """Return the corners of the ROC itself, as for a DET plot.

    Parameters
    ----------
    scores, labels
        As in `validate`, or `SortedScores`.
    most
        Keep at most about this many corners, spread evenly along the two error counts' square roots so that the
        ends, where single trials can be seen, keep their detail. All by default.

    Examples
    --------
    >>> curve = roc([-1.0, 0.0, 0.5, 1.0], [0, 1, 0, 1])
    >>> curve.p_miss, curve.p_fa
    (array([0. , 0. , 0.5, 0.5, 1. ]), array([1. , 0.5, 0.5, 0. , 0. ]))
    >>> curve.threshold
    array([-1. ,  0. ,  0.5,  1. ,  1. ])
    """
    if most is not None and most < 2:
        raise InputError(f"most is {most}, but a curve has at least 2 points")
    trials = sort_scores(scores, labels)
    i, j = roc_corners(trials.target, trials.nontarget)
    if most is not None and i.size > most:
        keep = _spread(i, j, most)
        i, j = i[keep], j[keep]
    rates = {"p_miss": frozen(trials.miss_rate(i)), "p_fa": frozen(trials.false_alarm_rate(j))}
    return Roc(**rates, threshold=frozen(_thresholds(trials, i, j)))


def _spread(i: npt.NDArray[np.int64], j: npt.NDArray[np.int64], most: int) -> npt.NDArray[np.intp]:
    """Choose corners at even steps of sqrt(misses) and of sqrt(false alarms), ends included."""
    path = np.sqrt(i / i[-1]) - np.sqrt((j[-1] - j) / j[-1])
    steps = np.linspace(path[0], path[-1], most)
    keep = np.unique(np.searchsorted(path, steps))
    keep[-1] = path.size - 1
    return keep


def roc_corners(tar: npt.NDArray[Any], non: npt.NDArray[Any]) -> tuple[Counts, Counts]:
    """Return how many targets and how many non-targets lie below each corner of the steppy ROC.

    Examples
    --------
    >>> roc_corners(np.array([0.0, 1.0, 2.0]), np.array([-1.0, 1.0]))
    (array([0, 0, 1, 2, 3]), array([0, 1, 1, 2, 2]))
    """
    low = np.searchsorted(non, tar)  # non-targets below each target
    tied = non[np.minimum(low, non.size - 1)] == tar
    starts = np.flatnonzero(np.diff(2 * low + tied, prepend=-1))
    first, last = starts, np.append(starts[1:], tar.size)
    before = low[starts]
    after = np.where(tied[starts], np.searchsorted(non, tar[starts], side="right"), before)
    below_t = np.concatenate(([0], np.stack((first, last), axis=1).reshape(-1), [tar.size]))
    below_n = np.concatenate(([0], np.stack((before, after), axis=1).reshape(-1), [non.size]))
    moved = np.append(True, (np.diff(below_t) > 0) | (np.diff(below_n) > 0))
    return below_t[moved], below_n[moved]


def ordered_pairs(t: npt.NDArray[Any], n: npt.NDArray[Any]) -> Any:
    """Return the mass of pairs of a target and a lower non-target times two, plus that of ties.

    ``t`` and ``n`` are the masses of targets and non-targets below each corner.
    """
    return np.diff(t) @ (n[1:] + n[:-1])


def hull_of(t: npt.NDArray[Any], n: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return which corners are vertices of the hull: between them the share of targets rises (PAV).

    A corner on or above the line between its neighbours is no vertex, so all such corners can be dropped at once, and
    again, until the rest is walked once with a stack.

    Examples
    --------
    >>> hull_of(np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 2, 2]))
    array([0, 1, 3, 4])
    """
    kept = np.arange(t.size)
    while kept.size > 2:
        dt, dn = np.diff(t[kept]), np.diff(n[kept])
        bent = dt[:-1] * dn[1:] < dt[1:] * dn[:-1]
        dropped = bent.size - np.count_nonzero(bent)
        kept = kept[np.concatenate(([True], bent, [True]))]
        if dropped == 0:
            return kept
        if dropped < _WORTH_A_ROUND * bent.size:
            break
    return kept[_walked(t[kept].tolist(), n[kept].tolist())]


def _walked(t: list[Any], n: list[Any]) -> list[int]:
    stack: list[int] = []
    for k in range(len(t)):
        while len(stack) > 1:
            i, j = stack[-2], stack[-1]
            if (t[j] - t[i]) * (n[k] - n[j]) < (t[k] - t[j]) * (n[j] - n[i]):
                break
            stack.pop()
        stack.append(k)
    return stack


def nearest_corner(tar: npt.NDArray[Any], non: npt.NDArray[Any]) -> tuple[int, int]:
    """Return (targets below, non-targets below) where the two error rates are nearest among the corners of the ROC.

    A corner is here what scikit-learn's `roc_curve` keeps: a threshold where the step to the next lower score differs
    from the one before, or one of the ends. Of equally near corners the one with the highest threshold is taken.
    """
    values = np.unique(np.concatenate((tar, non)))
    i, j = np.append(np.searchsorted(tar, values), tar.size), np.append(np.searchsorted(non, values), non.size)
    steps_t, steps_n = np.diff(i), np.diff(j)
    kept = np.append(True, (np.diff(steps_t) != 0) | (np.diff(steps_n) != 0))
    kept[-1] = True
    i, j = i[np.append(kept, True)], j[np.append(kept, True)]
    # rounded as scikit-learn's users round it
    distance = np.abs((1.0 - (tar.size - i) / tar.size) - (non.size - j) / non.size)
    best = distance.size - 1 - int(np.argmin(distance[::-1]))
    return int(i[best]), int(j[best])
