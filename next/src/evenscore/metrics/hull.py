"""The convex hull of the ROC, which is the isotonic (PAV) fit of the labels to the scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Hull", "hull_vertices"]

Floats = npt.NDArray[np.float64]

_WORTH_A_ROUND = 1 / 16  # a round that drops a smaller share than this is slower than walking over the rest


@dataclass(frozen=True, eq=False)
class Hull:
    """Convex hull of the ROC, with v vertices from "accept everything" (0, 1) to "reject everything" (1, 0).

    Between vertices b and b + 1 lies block b of the isotonic fit: the scores from ``low[b]`` to ``high[b]``. Equal
    scores always share a block, and three vertices never lie on one line.
    """

    p_miss: Floats
    p_fa: Floats
    threshold: Floats  #: lowest accepted score at each vertex; at the last one the next number after the highest score
    low: Floats  #: lowest score of each of the v - 1 blocks
    high: Floats

    @property
    def target_share(self) -> Floats:
        """Share of the targets in each block."""
        return np.diff(self.p_miss)

    @property
    def nontarget_share(self) -> Floats:
        """Share of the non-targets in each block."""
        return -np.diff(self.p_fa)

    @property
    def llr(self) -> Floats:
        """Optimal log-likelihood ratio of each block; -inf without targets, +inf without non-targets."""
        with np.errstate(divide="ignore"):  # log(0) = -inf is meant
            return np.asarray(np.log(self.target_share) - np.log(self.nontarget_share))

    @property
    def eer(self) -> float:
        """Equal error rate: where the hull crosses the diagonal Pmiss = Pfa."""
        gap = self.p_miss - self.p_fa  # from -1 to 1, rising
        b = int(np.argmax(gap >= 0))
        step = -gap[b - 1] / (gap[b] - gap[b - 1])
        return float(self.p_miss[b - 1] + step * (self.p_miss[b] - self.p_miss[b - 1]))

    @property
    def min_cllr(self) -> float:
        """Cllr of the LLRs of the blocks, in bits."""
        target, nontarget = self.target_share, self.nontarget_share
        mixed = (target > 0) & (nontarget > 0)  # in the other blocks the LLR is infinite and right
        target, nontarget = target[mixed], nontarget[mixed]
        nats = target @ np.log1p(nontarget / target) + nontarget @ np.log1p(target / nontarget)
        return float(nats / (2 * np.log(2.0)))


def hull_vertices(targets: npt.NDArray[np.number], nontargets: npt.NDArray[np.number]) -> npt.NDArray[np.intp]:
    """Return which decisions are vertices of the hull, from how many of each class are rejected: PAV.

    A decision on or above the line between its neighbours is no vertex, so all such ones can be dropped at once, and
    again; a walk with a stack does the rest. With whole numbers, this is exact. Neighbours must differ: of two equal
    ones, both would be dropped.

    Examples
    --------
    >>> hull_vertices(np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 2, 2]))
    array([0, 1, 3, 4])
    """
    kept = np.arange(targets.size)
    while kept.size > 2:
        dt, dn = np.diff(targets[kept]), np.diff(nontargets[kept])
        convex = dt[:-1] * dn[1:] < dt[1:] * dn[:-1]
        n_dropped = convex.size - np.count_nonzero(convex)
        kept = kept[np.concatenate(([True], convex, [True]))]
        if n_dropped == 0:
            return kept
        if n_dropped < _WORTH_A_ROUND * convex.size:
            break
    t, n = targets[kept].tolist(), nontargets[kept].tolist()
    stack: list[int] = []
    for k in range(len(t)):
        while len(stack) > 1:
            i, j = stack[-2], stack[-1]
            if (t[j] - t[i]) * (n[k] - n[j]) < (t[k] - t[j]) * (n[j] - n[i]):
                break
            stack.pop()
        stack.append(k)
    return kept[stack]
