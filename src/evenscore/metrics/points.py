"""What every metric works on: the sorted distinct scores, and how much of each class stands at each of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from operator import add
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import NONTARGET, TARGET, UNKNOWN, Labels
from evenscore.data.score_matrix import ScoreMatrix, as_scores
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.large import is_dask, map_pairs, reduce_blocks
from evenscore.parallel import run_blocks, thread_count

__all__ = ["Hull", "LabelsLike", "Points", "ScoresLike"]
__all__ += ["as_labels", "as_points", "hull_vertices", "labelled_list", "labelled_scores"]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
ScoresLike: TypeAlias = "npt.ArrayLike | ScoreMatrix | TrialList | Points"
LabelsLike: TypeAlias = "npt.ArrayLike | Labels | TrialList | None"


@dataclass(frozen=True, eq=False, repr=False)
class Points:
    """Sorted distinct scores, and the weight of the targets and of the non-targets that have each of them.

    All that the ROC, its convex hull and PAV need of the non-targets is how many lie between two neighbouring target
    scores; their order there does not matter. So, if there are many trials, the non-targets of such a gap are *merged*:
    they count just above the lower target. Metrics are the same; memory grows with the number of targets only.

    Examples
    --------
    >>> points = Points.from_scores([2.0, -1.0, 2.0, 0.5], [1, 0, 0, -1])
    >>> points.score, points.target, points.nontarget
    (array([-1.,  2.]), array([0, 1]), array([1, 1]))
    """

    score: npt.NDArray[np.floating]  #: distinct scores, rising
    target: npt.NDArray[np.number]  #: number of targets at each score, or sum of their weights
    nontarget: npt.NDArray[np.number]
    n_target: int  #: number of trials
    n_nontarget: int
    losses: tuple[float, float] | None = None  #: of merged points: sums of log(1 + exp(-score)), log(1 + exp(score))
    thresholds: tuple[float, ...] = ()  #: of merged points: where gaps were divided, so that rates are known there

    @classmethod
    def from_scores(
        cls, scores: Any, labels: Any, weights: Any = None, thresholds: Iterable[float] = (), merge: bool | None = None
    ) -> Points:
        """Sort and count valid scores with labels and maybe weights, NumPy or dask arrays of one shape.

        ``thresholds`` are where error rates will be asked for, if points are merged; ``merge`` says whether they are,
        by default if there are many trials (131,072) without weights.
        """
        lazy = is_dask(scores)
        if lazy and (weights is not None or merge is False):
            raise InputError("weights and this metric need all trials in memory; evaluate a part of the scores")
        values, key = (scores, labels) if lazy else (np.ravel(scores), np.ravel(labels))
        if lazy or merge or (merge is None and weights is None and values.size >= 1 << 17):
            return cls(**_count_gaps(values, key, thresholds), thresholds=tuple(thresholds))
        mass = np.ones(values.size, np.int64) if weights is None else np.ravel(weights)
        used = (key != UNKNOWN) & (mass > 0)
        score, at = np.unique(values[used], return_inverse=True)
        of_target, mass = key[used] == TARGET, mass[used]
        target = np.bincount(at[of_target], mass[of_target], score.size).astype(mass.dtype)
        nontarget = np.bincount(at[~of_target], mass[~of_target], score.size).astype(mass.dtype)
        n_target = int(np.count_nonzero(of_target))
        return cls(score, target, nontarget, n_target, of_target.size - n_target)

    @cached_property
    def below(self) -> tuple[Array, Array]:
        """Weight of the targets and of the non-targets among the k lowest scores, k = 0, ..., number of scores."""
        return np.append(0, np.cumsum(self.target)), np.append(0, np.cumsum(self.nontarget))

    @cached_property
    def p_miss(self) -> Floats:
        """Miss rate if the k lowest scores are rejected."""
        return self.below[0] / self.below[0][-1]

    @cached_property
    def p_fa(self) -> Floats:
        """False-alarm rate if the k lowest scores are rejected."""
        return (self.below[1][-1] - self.below[1]) / self.below[1][-1]

    @cached_property
    def hull(self) -> Hull:
        """The convex hull of the ROC, which is the isotonic (PAV) fit of the labels to the scores."""
        targets, nontargets = self.below
        if float(targets[-1]) * float(nontargets[-1]) > 1 << 62:  # products would overflow
            targets, nontargets = targets.astype(np.float64), nontargets.astype(np.float64)
        at = hull_vertices(targets, nontargets)
        low, high = self.score[at[:-1]].astype(np.float64), self.score[at[1:] - 1].astype(np.float64)
        return Hull(self.p_miss[at], self.p_fa[at], np.append(low, self.threshold(at[-1])), low, high)

    def threshold(self, k: int) -> float:
        """Return the lowest accepted score if the k lowest are rejected; above all scores if nothing is accepted."""
        last = math.inf if self.losses else math.nextafter(float(self.score[-1]), math.inf)
        return float(self.score[k]) if k < self.score.size else last

    def rejected(self, threshold: float) -> int:
        """Return how many of the distinct scores lie below a threshold: a position in `p_miss` and `p_fa`."""
        if self.losses and threshold not in self.thresholds:
            raise InputError(f"the scores were not counted at the threshold {threshold:g}; give it to from_scores")
        return int(np.searchsorted(self.score, threshold))


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
    def shares(self) -> tuple[Floats, Floats]:
        """Shares of the targets and of the non-targets in each block."""
        return np.diff(self.p_miss), -np.diff(self.p_fa)

    @property
    def llr(self) -> Floats:
        """Optimal log-likelihood ratio of each block; -inf without targets, +inf without non-targets."""
        target, nontarget = self.shares
        with np.errstate(divide="ignore"):  # log(0) = -inf is meant
            return np.log(target) - np.log(nontarget)

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
        target, nontarget = self.shares
        mixed = (target > 0) & (nontarget > 0)  # in the other blocks the LLR is infinite and right
        target, nontarget = target[mixed], nontarget[mixed]
        nats = target @ np.log1p(nontarget / target) + nontarget @ np.log1p(target / nontarget)
        return float(nats / (2 * np.log(2.0)))


def hull_vertices(targets: npt.NDArray[np.number], nontargets: npt.NDArray[np.number]) -> npt.NDArray[np.intp]:
    """Return which decisions are vertices of the hull, from how many of each class are rejected: PAV.

    A decision on or above the line between its neighbours is no vertex, so all such ones can be dropped at once, and
    again; a walk with a stack does the rest. With whole numbers, this is exact. Neighbours must differ.

    Examples
    --------
    >>> hull_vertices(np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 2, 2]))
    array([0, 1, 3, 4])
    """
    kept = np.arange(targets.size)
    while targets.size > 2:
        dt, dn = targets[1:] - targets[:-1], nontargets[1:] - nontargets[:-1]
        convex = np.ones(targets.size, bool)
        np.less(dt[:-1] * dn[1:], dt[1:] * dn[:-1], out=convex[1:-1])
        size, some = kept.size, np.flatnonzero(convex)
        kept, targets, nontargets = kept[some], targets[some], nontargets[some]
        if size - some.size < size / 16:  # then a round is slower than walking over the rest
            break
    t, n = targets.tolist(), nontargets.tolist()
    stack: list[int] = []
    for k in range(len(t)):
        while len(stack) > 1:
            i, j = stack[-2], stack[-1]
            if (t[j] - t[i]) * (n[k] - n[j]) < (t[k] - t[j]) * (n[j] - n[i]):
                break
            stack.pop()
        stack.append(k)
    return kept[stack]


def as_points(
    scores: ScoresLike, labels: LabelsLike = None, weights: npt.ArrayLike | None = None, **counting: Any
) -> Points:
    """Validate scores and labels and return their points; every metric begins with this.

    ``scores`` and ``labels`` are as in `evaluate`, all else is as in `Points.from_scores`; points are returned as such.

    Examples
    --------
    >>> as_points([2.0, -1.0, 3.0], [1, 0, 1]).p_miss
    array([0. , 0. , 0.5, 1. ])
    """
    if isinstance(scores, Points):
        if labels is not None or weights is not None:
            raise InputError("points have their labels and weights, which must not be given again; leave them out")
        if counting.get("merge") is False and scores.losses:
            raise InputError("this metric needs every score, but the non-targets of these points are merged")
        return scores
    values, key = labelled_scores(scores, labels)
    mass = None if weights is None else np.asarray(weights, np.float64)
    if mass is not None and (mass.shape != values.shape or not np.isfinite(mass).all() or mass.min() < 0):
        raise InputError(f"weights must be finite and not negative, one for each of {values.size} scores")
    found = Points.from_scores(values, key, mass, **counting)
    if not found.n_target or not found.n_nontarget:
        raise InputError(
            f"there are {found.n_target} target and {found.n_nontarget} non-target trials; both are needed"
        )
    return found


def labelled_scores(scores: Any, labels: Any = None) -> tuple[Any, Any]:
    """Return scores and labels as arrays of one shape, without NaN where the label is known; or both as dask arrays."""
    if isinstance(scores, ScoreMatrix):
        scores, labels = scores.scores, _matrix_labels(scores, labels)
    elif isinstance(scores, TrialList):
        listed = labelled_list(scores, labels)
        scores, labels = listed.needs_scores(), listed.labels
    if labels is None:
        raise InputError("labels are missing; give one label per score: 1 (target), 0 (non-target), -1 (unknown)")
    if is_dask(scores):
        return scores, np.where(np.isnan(scores), UNKNOWN, labels)
    values = as_scores(scores, "scores", ndim=np.ndim(scores))
    key = as_labels(labels, values.shape)
    missing = np.isnan(values) & (key != UNKNOWN)
    if missing.any():
        raise InputError(f"scores{np.argwhere(missing)[0].tolist()} is nan; drop the trial or label it -1 (unknown)")
    return values, key


def as_labels(labels: object, shape: tuple[int, ...]) -> npt.NDArray[np.int8]:
    """Return labels as int8: 1 (target), 0 (non-target), -1 (unknown)."""
    key = np.asarray(labels)
    if key.shape != shape:
        raise InputError(f"labels have shape {key.shape}, but the scores have {shape}; give one label per score")
    if key.size and (key.dtype.kind not in "biu" or key.min() < UNKNOWN or key.max() > TARGET):
        raise InputError("labels must be 1 or True (target), 0 or False (non-target) or -1 (unknown)")
    return key.astype(np.int8, copy=False)


def labelled_list(trials: TrialList, labels: Any) -> TrialList:
    """Return trials with labels: those of a key or `Labels`, one for each trial, their own, or by their speakers."""
    if labels is None and trials.labels is None and trials.enroll.speakers is not None:
        labels = Labels.from_speakers(trials.enroll, trials.test)
    if hasattr(labels, "enroll"):
        return trials.join(labels, unmatched="drop")
    return trials if labels is None else trials.with_labels(labels)


def _matrix_labels(scores: ScoreMatrix, labels: Any) -> Any:
    """Return the labels of a matrix; those of missing scores and of pairs that a key lacks are unknown."""
    if labels is None:
        labels = Labels.from_speakers(scores.enroll, scores.test)
    elif hasattr(labels, "rows"):
        labels = Labels.from_trials(labels)
    if isinstance(labels, Labels):
        labels = labels.align(scores.enroll, scores.test)
        if is_dask(scores.scores) and labels.by_speaker:
            rows, cols, _ = labels.speaker_codes
            formula = lambda _, enroll, test: np.where((enroll < 0) | (test < 0), UNKNOWN, enroll == test)  # noqa: E731
            return map_pairs(formula, scores.scores, [rows], [cols]).astype(np.int8)
        labels = labels.matrix
    return labels if is_dask(scores.scores) else np.where(np.isnan(scores.scores), UNKNOWN, labels)


def _count_gaps(scores: Any, labels: Any, thresholds: Iterable[float]) -> dict[str, Any]:
    """Count scores and labels, flat NumPy or dask arrays; return the fields of merged `Points`.

    The blocks are passed twice: for the targets, which are kept in memory, and for the non-targets between them.
    """
    found = _add_up(lambda block, key: [block.take(np.flatnonzero(key == TARGET))], scores, labels, 1)
    targets = np.concatenate(found)
    exact = np.array(list(thresholds), np.float64)
    limits = exact.astype(targets.dtype)  # rounded up to the type of the scores
    limits = np.where(limits < exact, np.nextafter(limits, np.inf, dtype=limits.dtype), limits)
    cuts, at_cut = np.unique(np.concatenate([targets, limits]), return_counts=True)
    np.subtract.at(at_cut, np.searchsorted(cuts, limits), 1)
    below, upto, n_nontarget, loss = _add_up(partial(_block_sums, cuts), scores, labels, cuts.size)
    target, nontarget = np.zeros((2, cuts.size + 1, 2), np.int64)  # in each gap, and at the cut above it
    target[:-1, 1] = at_cut
    nontarget[:, 0] = np.append(below, n_nontarget) - np.append(0, upto)
    nontarget[:-1, 1] = upto - below
    above = np.nextafter(cuts, np.inf, dtype=cuts.dtype)
    score = np.stack([np.append(-np.inf, above), np.append(cuts, np.inf)], axis=1)
    some = target + nontarget > 0
    counts = {"score": score[some], "target": target[some], "nontarget": nontarget[some], "n_target": targets.size}
    return {**counts, "n_nontarget": n_nontarget, "losses": (_softplus_sum(-targets), loss)}


def _add_up(function: Callable[[Array, Array], Any], scores: Any, labels: Any, smallest: int) -> Any:
    """Return the sum of a function of blocks: of dask arrays, or of NumPy arrays in one part per core."""
    if is_dask(scores):
        return reduce_blocks(function, scores, labels)
    parts: list[Any] = []
    size = max(len(scores) // thread_count() + 1, smallest)
    run_blocks(lambda block: parts.append(function(scores[block], labels[block])), len(scores), 1, size)
    return reduce(add, parts)


def _block_sums(cuts: Array, scores: Array, labels: Array) -> Array:
    """Return how many non-targets lie below each cut, how many below or at it, their number and the sum of losses."""
    block = scores[labels == NONTARGET]
    loss = _softplus_sum(block)
    block.sort()
    below, upto = np.searchsorted(block, cuts), np.searchsorted(block, cuts, side="right")
    sums = np.empty(4, object)  # two of them are arrays; all of them add up
    sums[:] = below, upto, block.size, loss
    return sums


def _softplus_sum(x: Array) -> float:
    """Return the sum of log(1 + exp(x)) = max(x, 0) + log(1 + u), u = exp(-|x|), with one logarithm for many scores.

    The product of 256 factors 1 + u, less 1, is built up as q + u + q u, so that small u keep all their digits.
    """
    total, piece, fold = 0.0, 1 << 16, 256  # the terms of a piece stay in the cache
    for start in range(0, x.size, piece):
        part = x[start : start + piece].astype(np.float64)
        total += float(np.maximum(part, 0.0).sum())
        q = np.zeros(part.size + -part.size % fold)
        np.exp(-np.abs(part), out=q[: part.size])
        product = q.reshape(fold, -1)
        while len(product) > 1:
            one, two = product[: len(product) // 2], product[len(product) // 2 :]
            product = one + two + one * two
        total += float(np.log1p(product).sum())
    return total
