"""What every metric works on: the sorted distinct scores, and how much of each class stands at each of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from operator import add
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import NONTARGET, TARGET, UNKNOWN, Labels
from evenscore.data.score_matrix import ScoreMatrix, as_scores
from evenscore.data.side import Side
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.large import is_dask, reduce_blocks
from evenscore.metrics.hull import Hull, hull_vertices
from evenscore.parallel import run_blocks, thread_count

__all__ = ["LabelsLike", "Points", "ScoresLike", "as_points", "count_groups", "labelled_scores"]

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]

_MANY = 1 << 17  # trials from which non-targets between two targets are counted instead of listed
_PIECE = 1 << 16  # scores whose terms stay in the cache
_FOLD = 256  # scores with one logarithm


@dataclass(frozen=True, eq=False, repr=False)
class Points:
    """Sorted distinct scores, and the weight of the targets and of the non-targets that have each of them.

    All that the ROC, its convex hull and PAV need of the non-targets is how many lie between two neighbouring target
    scores; their order there does not matter. So, if there are many trials, the non-targets of such a gap are *merged*:
    all but the highest one count at the lowest score of the gap. Metrics are the same; memory grows with the number of
    targets only. Points are added with ``+``; merged ones only if their gaps are divided at the same scores.

    Examples
    --------
    >>> points = Points.from_scores([2.0, -1.0, 2.0, 0.5], [1, 0, 0, -1])
    >>> points.score, points.target, points.nontarget
    (array([-1.,  2.]), array([0, 1]), array([1, 1]))
    >>> points + points
    Points(2 targets, 4 non-targets, 2 scores)
    """

    score: npt.NDArray[np.floating]  #: distinct scores, rising
    target: npt.NDArray[np.number]  #: number of targets at each score, or sum of their weights
    nontarget: npt.NDArray[np.number]
    trials: tuple[int, int]  #: numbers of target and of non-target trials
    losses: tuple[float, float] | None = None  #: of merged points: sums of log(1 + exp(-score)), log(1 + exp(score))
    thresholds: tuple[float, ...] = ()  #: of merged points: where gaps were divided, so that rates are known there

    @classmethod
    def from_scores(
        cls,
        scores: Any,
        labels: Any,
        weights: Floats | None = None,
        *,
        thresholds: Iterable[float] = (),
        merge: bool | None = None,
    ) -> Points:
        """Sort and count valid scores with labels, NumPy or dask arrays of one shape.

        ``thresholds`` are where error rates will be asked for, if points are merged; ``merge`` says whether they are,
        by default if there are many trials.
        """
        if is_dask(scores):
            if merge is False or weights is not None:
                raise InputError("weights and this metric need all trials in memory; read a part of the scores")
            return count_groups(scores, labels, None, 1, thresholds)[0]
        scores, labels = np.asarray(scores), np.asarray(labels)
        merge = scores.size >= _MANY if merge is None else merge
        if weights is None and merge:
            return _count(scores.reshape(-1), labels.reshape(-1), thresholds)
        used = labels != UNKNOWN
        values, of_target = scores[used], labels[used] == TARGET
        score, at = np.unique(values, return_inverse=True)
        if weights is None:
            target = np.bincount(at[of_target], minlength=score.size)
            nontarget = np.bincount(at, minlength=score.size) - target
        else:
            target = np.bincount(at, weights[used] * of_target, score.size)
            nontarget = np.bincount(at, weights[used] * ~of_target, score.size)
            score, target, nontarget = (x[target + nontarget > 0] for x in (score, target, nontarget))
        n_target = int(np.count_nonzero(of_target))
        return cls(score, target, nontarget, (n_target, len(values) - n_target))

    @property
    def n_target(self) -> int:
        """Number of target trials."""
        return self.trials[0]

    @property
    def n_nontarget(self) -> int:
        """Number of non-target trials."""
        return self.trials[1]

    @property
    def merged(self) -> bool:
        """Whether non-targets between two targets are counted, not listed."""
        return self.losses is not None

    @cached_property
    def p_miss(self) -> Floats:
        """Miss rate if the k lowest scores are rejected, k = 0, ..., number of scores."""
        below = np.concatenate([[0], np.cumsum(self.target)])
        return below / below[-1]

    @cached_property
    def p_fa(self) -> Floats:
        """False-alarm rate if the k lowest scores are rejected."""
        below = np.concatenate([[0], np.cumsum(self.nontarget)])
        return (below[-1] - below) / below[-1]

    @cached_property
    def hull(self) -> Hull:
        """The convex hull of the ROC, which is the isotonic (PAV) fit of the labels to the scores."""
        targets, nontargets = np.cumsum(self.target), np.cumsum(self.nontarget)
        if float(targets[-1]) * float(nontargets[-1]) > 1 << 62:  # products would overflow
            targets, nontargets = targets.astype(np.float64), nontargets.astype(np.float64)
        at = hull_vertices(np.concatenate([[0], targets]), np.concatenate([[0], nontargets]))
        low, high = self.score[at[:-1]].astype(np.float64), self.score[at[1:] - 1].astype(np.float64)
        return Hull(self.p_miss[at], self.p_fa[at], np.append(low, self.threshold(at[-1])), low, high)

    def threshold(self, k: int) -> float:
        """Return the lowest accepted score if the k lowest are rejected; above all scores if nothing is accepted."""
        if k < self.score.size:
            return float(self.score[k])
        with np.errstate(over="ignore"):  # after the largest number comes infinity
            return float(np.nextafter(self.score[-1], np.inf, dtype=self.score.dtype))

    def rejected(self, threshold: float) -> int:
        """Return how many of the distinct scores lie below a threshold: a position in `p_miss` and `p_fa`."""
        k = int(np.searchsorted(self.score, threshold))
        inside = 0 < k < self.score.size and not self.target[k - 1] and not self.target[k] and self.score[k] > threshold
        if self.merged and inside and threshold not in self.thresholds:
            raise InputError(f"the scores were not counted at the threshold {threshold:g}; give it to from_scores")
        return k

    def mean_losses(self) -> tuple[float, float]:
        """Return the mean of log(1 + exp(-score)) of the targets and of log(1 + exp(score)) of the non-targets."""
        sums = self.losses
        if sums is None:
            score = self.score.astype(np.float64)
            of_target, of_nontarget = (
                self.target > 0,
                self.nontarget > 0,
            )  # 0 * inf is 0: what is not there costs nothing
            sums = (
                float(self.target[of_target] @ np.logaddexp(0, -score[of_target])),
                float(self.nontarget[of_nontarget] @ np.logaddexp(0, score[of_nontarget])),
            )
        return sums[0] / float(self.target.sum()), sums[1] / float(self.nontarget.sum())

    def scaled(self, target: float, nontarget: float) -> Points:
        """Return the same scores with other weights of the two classes."""
        losses = None if self.losses is None else (self.losses[0] * target, self.losses[1] * nontarget)
        return replace(self, target=self.target * target, nontarget=self.nontarget * nontarget, losses=losses)

    def __add__(self, other: Points) -> Points:
        score, at = np.unique(np.concatenate([self.score, other.score]), return_inverse=True)
        losses = None
        if self.losses is not None and other.losses is not None:
            losses = (self.losses[0] + other.losses[0], self.losses[1] + other.losses[1])
        elif self.merged or other.merged:
            raise InputError("points that are merged and points that are not cannot be added")
        dtype = np.result_type(self.target, other.target)
        target = np.bincount(at, np.concatenate([self.target, other.target]), score.size).astype(dtype)
        nontarget = np.bincount(at, np.concatenate([self.nontarget, other.nontarget]), score.size).astype(dtype)
        trials = (self.n_target + other.n_target, self.n_nontarget + other.n_nontarget)
        return Points(score, target, nontarget, trials, losses, self.thresholds)

    def __repr__(self) -> str:
        merged = ", merged" if self.merged else ""
        return f"Points({self.n_target} targets, {self.n_nontarget} non-targets, {self.score.size} scores{merged})"


ScoresLike: TypeAlias = "npt.ArrayLike | ScoreMatrix | TrialList | Points"
LabelsLike: TypeAlias = "npt.ArrayLike | Labels | TrialList | None"


def as_points(
    scores: ScoresLike,
    labels: LabelsLike = None,
    weights: npt.ArrayLike | None = None,
    *,
    thresholds: Iterable[float] = (),
    merge: bool | None = None,
) -> Points:
    """Validate scores and labels and return their points; every metric begins with this.

    ``scores`` and ``labels`` are as in `evaluate`, all else is as in `Points.from_scores`; points are returned as such.

    Examples
    --------
    >>> as_points([2.0, -1.0, 3.0], [1, 0, 1])
    Points(2 targets, 1 non-targets, 3 scores)
    """
    if isinstance(scores, Points):
        if labels is not None or weights is not None:
            raise InputError("points have their labels and weights, which must not be given again; leave them out")
        if merge is False and scores.merged:
            raise InputError("this metric needs every score, but the non-targets of these points are merged")
        return scores
    values, key = labelled_scores(scores, labels)
    mass = None if weights is None else np.asarray(weights, np.float64)
    if mass is not None and (mass.shape != values.shape or not np.isfinite(mass).all() or mass.min() < 0):
        raise InputError(f"weights must be finite and not negative, one for each of {values.size} scores")
    found = Points.from_scores(values, key, mass, thresholds=thresholds, merge=merge)
    if not found.n_target or not found.n_nontarget:
        raise InputError(
            f"there are {found.n_target} target and {found.n_nontarget} non-target trials, but both kinds are needed; "
            "check the key"
        )
    if not found.target.any() or not found.nontarget.any():
        raise InputError("all trials of a class have weight 0; give some of them a weight above 0")
    return found


def labelled_scores(scores: ScoresLike, labels: LabelsLike = None) -> tuple[Any, Any]:
    """Return scores and labels as arrays of one shape, without NaN where the label is known; or both as dask arrays."""
    if isinstance(scores, Points):
        raise InputError("sorted scores have lost their order; give scores and labels, one for each trial")
    if isinstance(scores, ScoreMatrix):
        key = _matrix_labels(scores, labels)
        if not is_dask(scores.scores):
            key = np.where(np.isnan(scores.scores), UNKNOWN, key)
        return scores.scores, key
    if isinstance(scores, TrialList):
        if isinstance(labels, Labels | TrialList):
            scores = scores.join(labels, unmatched="drop")
            labels = None
        labels = scores.labels if labels is None else labels
        if labels is None:
            raise InputError("the trials have no labels; join them with a key first")
        scores = scores.needs_scores()
    if labels is None:
        raise InputError("labels are missing; give one label per score: 1 (target), 0 (non-target), -1 (unknown)")
    if is_dask(scores):
        return scores, labels
    values = as_scores(scores, "scores", ndim=np.ndim(scores))
    key = as_labels(labels, values.shape)
    missing = np.isnan(values)
    if missing.any() and (missing & (key != UNKNOWN)).any():
        at = np.argwhere(missing & (key != UNKNOWN))[0].tolist()
        raise InputError(f"scores{at} is nan, so the trial cannot be ranked; drop the trial or label it -1")
    return values, key


def as_labels(labels: object, shape: tuple[int, ...]) -> npt.NDArray[np.int8]:
    """Return labels as int8: 1 (target), 0 (non-target), -1 (unknown)."""
    key = np.asarray(labels)
    if key.shape != shape:
        raise InputError(f"labels have shape {key.shape}, but the scores have {shape}; give one label per score")
    if key.size and (key.dtype.kind not in "biu" or key.min() < UNKNOWN or key.max() > TARGET):
        raise InputError("labels must be 1 or True (target), 0 or False (non-target) or -1 (unknown)")
    return key.astype(np.int8, copy=False)


def _matrix_labels(scores: ScoreMatrix, labels: LabelsLike) -> Any:
    """Return the labels of a matrix: int8, a dask array if the scores are one."""
    enroll, test = scores.enroll, scores.test
    if labels is None:
        if enroll.speakers is None or test.speakers is None:
            raise InputError("labels are missing; give Labels, a key, or speakers of both sides")
        labels = Labels.from_speakers(enroll, test)
    if isinstance(labels, TrialList):
        labels = _key_matrix(labels, enroll, test)
    if not isinstance(labels, Labels):
        return labels if is_dask(labels) else as_labels(labels, scores.shape)
    labels = labels.align(enroll, test)
    if not is_dask(scores.scores) or not labels.by_speaker:
        return labels.matrix
    import dask.array as da

    rows, cols, _ = labels.speaker_codes
    one = da.from_array(rows[:, None], (scores.scores.chunks[0], 1))
    other = da.from_array(cols[None, :], (1, scores.scores.chunks[1]))
    return da.where((one < 0) | (other < 0), UNKNOWN, one == other).astype(np.int8)


def _key_matrix(key: TrialList, enroll: Side, test: Side) -> Labels:
    """Return the labels of the listed pairs that the sides have; all other pairs are unknown."""
    if key.labels is None:
        raise InputError("the key has no labels; give a list of trials with labels")
    rows, cols = enroll.find(key.enroll_ids)[key.rows], test.find(key.test_ids)[key.cols]
    here = (rows >= 0) & (cols >= 0)
    if len(key) and not here.any():
        raise InputError("the key has none of these trials; do the two files belong together?")
    matrix = np.full((len(enroll), len(test)), UNKNOWN, np.int8)
    matrix[rows[here], cols[here]] = key.labels[here]
    return Labels((len(enroll), len(test)), enroll, test, key=matrix)


@dataclass(frozen=True)
class _Gaps:
    """Non-targets of a block between and at the cuts; those of two blocks are added."""

    left: npt.NDArray[np.int64]  #: how many lie below each cut
    right: npt.NDArray[np.int64]  #: how many lie below or at each cut
    low: Array  #: lowest one of each gap
    high: Array  #: highest one of each gap
    number: int
    loss: float

    def __add__(self, other: _Gaps) -> _Gaps:
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        left, right = self.left + other.left, self.right + other.right
        return _Gaps(left, right, low, high, self.number + other.number, self.loss + other.loss)


def _count(values: Array, key: Array, thresholds: Iterable[float]) -> Points:
    """Count scores in memory, in blocks on all cores; a block should not be smaller than the number of targets."""
    targets = np.sort(values[key == TARGET])
    cuts = _cuts(targets, thresholds)
    parts: list[_Gaps] = []

    def work(block: slice) -> None:
        parts.append(_gaps(cuts, values[block], key[block]))

    run_blocks(work, len(values), 1, max(len(values) // thread_count() + 1, cuts.size))
    return _merged(targets, cuts, reduce(add, parts), thresholds)


def count_groups(scores: Any, labels: Any, groups: Any, n_groups: int, thresholds: Iterable[float]) -> list[Points]:
    """Count the scores of a dask array, those of each group by themselves; the points of groups can be added.

    The blocks are passed twice: for the targets, which are kept in memory, and for the non-targets between them.
    """
    import dask.array as da

    thresholds = tuple(thresholds)
    groups = np.zeros((1,) * scores.ndim, np.intp) if groups is None else groups
    chunks = tuple(chunk if size > 1 else (1,) for chunk, size in zip(scores.chunks, groups.shape, strict=True))
    groups = da.broadcast_to(da.from_array(groups, chunks), scores.shape, chunks=scores.chunks)
    found = reduce_blocks(_targets, scores, labels, groups)
    targets, of_group = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(targets)
    targets, of_group = targets[order], of_group[order]
    cuts = _cuts(targets, thresholds)
    gaps = reduce_blocks(partial(_group_gaps, cuts, n_groups), scores, labels, groups)
    return [_merged(targets[of_group == group], cuts, part, thresholds) for group, part in enumerate(gaps)]


def _targets(scores: Array, labels: Array, groups: Array) -> list[tuple[Array, Array]]:
    used = (labels == TARGET) & ~np.isnan(scores)
    return [(scores[used], groups[used])]


def _group_gaps(cuts: Array, n_groups: int, scores: Array, labels: Array, groups: Array) -> npt.NDArray[np.object_]:
    found = np.empty(n_groups, object)  # which adds element by element
    for group in range(n_groups):
        member = (groups == group) & ~np.isnan(scores)
        found[group] = _gaps(cuts, scores[member], labels[member])
    return found


def _cuts(targets: Array, thresholds: Iterable[float]) -> Array:
    """Return the distinct sorted targets and thresholds, these rounded up to the type of the scores."""
    exact = np.array(list(thresholds), np.float64)
    limit = exact.astype(targets.dtype)
    limit = np.where(limit < exact, np.nextafter(limit, np.inf, dtype=limit.dtype), limit)
    limit = np.sort(limit)
    both = np.insert(targets, np.searchsorted(targets, limit), limit)
    return both[np.append(True, both[1:] != both[:-1])]


def _gaps(cuts: Array, values: Array, key: Array) -> _Gaps:
    block = values[key == NONTARGET]
    loss = _softplus_sum(block)
    block.sort()
    left = np.searchsorted(block, cuts)
    right = left.copy()
    tied = left < block.size
    tied[tied] = block[left[tied]] == cuts[tied]
    right[tied] = np.searchsorted(block, cuts[tied], side="right")
    start, stop = np.append(0, right), np.append(left, block.size)
    low, high = np.full(start.size, np.inf, values.dtype), np.full(start.size, -np.inf, values.dtype)
    some = start < stop
    low[some], high[some] = block[start[some]], block[stop[some] - 1]
    return _Gaps(left, right, low, high, block.size, loss)


def _merged(targets: Array, cuts: Array, gaps: _Gaps, thresholds: Iterable[float]) -> Points:
    """Put the points together: the lowest and the highest score of each gap, then the cut above it."""
    target = np.zeros((cuts.size + 1, 3), np.int64)
    target[:-1, 2] = np.diff(np.append(np.searchsorted(targets, cuts), len(targets)))
    inside = np.append(gaps.left, gaps.number) - np.append(0, gaps.right)
    wide = gaps.high > gaps.low
    nontarget = np.stack([inside - wide, wide, np.append(gaps.right - gaps.left, 0)], axis=1).ravel()
    score = np.stack([gaps.low, gaps.high, np.append(cuts, cuts.dtype.type(np.inf))], axis=1).ravel()
    some = target.ravel() + nontarget > 0
    counts = target.ravel()[some], nontarget[some], (len(targets), gaps.number)
    return Points(score[some], *counts, (_softplus_sum(-targets), gaps.loss), tuple(thresholds))


def _softplus_sum(x: Array) -> float:
    """Return the sum of log(1 + exp(x)), with one logarithm for many scores.

    It is max(x, 0) + log(1 + u) with u = exp(-|x|). The product of 256 factors 1 + u, less 1, is built up as
    q + u + q u, so that small u keep all their digits.
    """
    total = 0.0
    for start in range(0, x.size, _PIECE):
        part = x[start : start + _PIECE].astype(np.float64)
        total += float(np.maximum(part, 0.0).sum())
        q = np.zeros(part.size + -part.size % _FOLD)
        np.exp(-np.abs(part), out=q[: part.size])
        product = q.reshape(_FOLD, -1)
        while len(product) > 1:
            one, two = product[: len(product) // 2], product[len(product) // 2 :]
            product = one + two + one * two
        total += float(np.log1p(product).sum())
    return total
