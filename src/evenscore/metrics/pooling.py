"""The corners of the ROC of sorted scores, and which of them are the vertices of its convex hull.

Scores are walked upwards in *groups*: all scores up to the next score of the other class form one group (they lie on
one straight line of the ROC), and so do all scores that are equal across the classes. A corner is where a group ends:
it is given by how many targets and how many non-targets lie below it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["hull_of", "nearest_corner", "ordered_pairs", "roc_corners"]

Counts = npt.NDArray[np.int64]

# Each round drops what is seen not to be a vertex; once a round drops less than this share, a walk is quicker.
_WORTH_A_ROUND = 1 / 16


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
