"""Metrics of more scores than fit into memory: a summary that adds up over chunks and machines."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.operating_points import DEFAULT_POINTS, OperatingPoint, PointLike, as_points
from evenscore.metrics.points import Points, SortedScores
from evenscore.metrics.trials import as_labels, scores_and_labels
from evenscore.tables import NONTARGET, TARGET, TrialList
from evenscore.tables.arrays import frozen

if TYPE_CHECKING:
    from jaxtyping import Float, Int, Num

    from evenscore.metrics.evaluation_records import Evaluation

__all__ = ["BITS", "ScoreSummary", "bin_edges", "summarize"]

Order = Literal["best", "worst", "tied"]
_CHUNK = 1 << 20  # scores at a time, so that the float32 copy of float64 scores stays small
_MOST_BITS = 24
BITS = 20  #: of a histogram, where nothing is said: 2048 bins for each power of two


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ScoreSummary(Points):
    """Counts and sums of labelled scores, from which every metric follows; summaries of parts are added with ``+``.

    Exact, whatever the number of scores: counts, Cllr, and the actual detection costs at ``points``. The metrics that
    need the order of the scores (EER, minimum costs, minCllr, AUC) come from a histogram over the first ``bits`` bits
    of the scores as float32, 2^(bits - 9) bins for each power of two. Only the order within a bin is unknown, so the
    best and the worst order bracket each metric: the bounds are certain, not statistical.

    Attributes
    ----------
    points
        Operating points.
    bits
        Of the histogram, from 10 to 24.
    bins
        Numbers of the bins that have scores, rising.
    counts, sums
        Number and sum of the scores of each class (non-target, target) in each of these bins.
    squares
        Sum of the squared distances of the scores of each class from the inner edges of their bins.
    costs
        Sum of log(1 + exp(llr)) of the non-targets and of log(1 + exp(-llr)) of the targets.
    below
        Number of scores of each class below the Bayes threshold of each point.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(4000) % 8 == 0
    >>> scores = rng.normal(2.0 * labels, 1.0)
    >>> half = summarize(scores[:2000], labels[:2000]), summarize(scores[2000:], labels[2000:])
    >>> figures = (half[0] + half[1]).evaluate()
    >>> round(figures.eer, 3), figures.n_target
    (0.145, 500)
    >>> low, high = figures.bounds["eer"]
    >>> high - low < 0.001
    True
    """

    points: tuple[OperatingPoint, ...]
    bits: int
    bins: Int[np.ndarray, " b"]
    counts: Num[np.ndarray, "2 b"]
    sums: Float[np.ndarray, "2 b"]
    squares: Float[np.ndarray, " 2"]
    costs: Float[np.ndarray, " 2"]
    below: Num[np.ndarray, "2 k"]

    def number(self, label: int) -> int:
        """Return the number of scores of a class."""
        return round(self.counts[label].sum())

    def __add__(self, other: ScoreSummary) -> ScoreSummary:
        """Return the summary of both sets of scores."""
        if not isinstance(other, ScoreSummary):
            return NotImplemented
        if (self.points, self.bits) != (other.points, other.bits):
            raise InputError("the two summaries have different operating points or bits; make both in the same way")
        bins = np.union1d(self.bins, other.bins)
        places = np.searchsorted(bins, self.bins), np.searchsorted(bins, other.bins)
        totals = {name: getattr(self, name) + getattr(other, name) for name in ("squares", "costs", "below")}
        for name in ("counts", "sums"):
            mine, theirs = getattr(self, name), getattr(other, name)
            totals[name] = np.zeros((2, bins.size), dtype=np.result_type(mine, theirs))
            totals[name][:, places[0]] += mine
            totals[name][:, places[1]] += theirs
        return self._with(bins=bins, **totals)

    def _with(self, **arrays: npt.NDArray[Any]) -> ScoreSummary:
        changed: dict[str, Any] = {name: frozen(array) for name, array in arrays.items()}
        return replace(self, **changed)

    def scaled(self, nontarget: float, target: float) -> ScoreSummary:
        """Return the summary in which each score of a class counts this many times."""
        factor = np.array([nontarget, target])
        arrays = {name: factor[:, None] * getattr(self, name) for name in ("counts", "sums", "below")}
        return self._with(**arrays, squares=factor * self.squares, costs=factor * self.costs)

    def coarsened(self, bits: int) -> ScoreSummary:
        """Return the summary with fewer bits, which takes less memory and has wider bounds; what is exact stays so."""
        if not 10 <= bits <= self.bits:
            raise InputError(f"bits is {bits}, but must lie between 10 and {self.bits}")
        if bits == self.bits:
            return self
        bins, starts = np.unique(self.bins >> (self.bits - bits), return_index=True)
        if not bins.size:
            return replace(self, bits=bits)
        fine = bin_edges(self.bins, self.bits)
        known = np.isfinite(fine)
        edges = np.repeat(bin_edges(bins, bits), np.diff(starts, append=self.bins.size))
        shift, counts = fine[known] - edges[known], self.counts[:, known]
        squares = self.squares + (2 * shift * (self.sums[:, known] - counts * fine[known]) + counts * shift**2).sum(
            axis=1
        )
        counts, sums = (np.add.reduceat(values, starts, axis=1) for values in (self.counts, self.sums))
        return replace(self, bits=bits)._with(bins=bins, counts=counts, sums=sums, squares=squares)

    def __repr__(self) -> str:
        return f"ScoreSummary({self.n_target} targets, {self.n_nontarget} non-targets, {self.bits} bits)"

    @cached_property
    def tied(self) -> SortedScores:
        """The bins in order, with equal scores in each."""
        return self.sorted_scores("tied")

    @cached_property
    def orders(self) -> tuple[SortedScores, ...]:
        """The best and the worst order that the scores can have."""
        return self.sorted_scores("best"), self.sorted_scores("worst")

    def cllr(self) -> float:
        """Return Cllr, exactly; see `evenscore.cllr`."""
        from evenscore.metrics.cross_entropy import cllr

        return cllr(self)

    def losses(self) -> tuple[float, float]:
        """Return the mean of log(1 + exp(llr)) of the non-targets and of log(1 + exp(-llr)) of the targets, exactly."""
        return float(self.costs[NONTARGET] / self.n_nontarget), float(self.costs[TARGET] / self.n_target)

    def rates_at(self, point: OperatingPoint) -> tuple[float, float]:
        """Return miss and false-alarm rate at the Bayes threshold of one of the points, exactly."""
        if point not in self.points:
            raise InputError(f"the scores were not counted at {point}; count them again, with points={point}")
        target, nontarget = self.below[[TARGET, NONTARGET], self.points.index(point)]
        return float(target / self.n_target), float((self.n_nontarget - nontarget) / self.n_nontarget)

    def class_scores(self, label: int) -> tuple[Float[np.ndarray, " u"], Num[np.ndarray, " u"]]:
        """Return the mean score and the number of scores of a class in each bin that has any."""
        used = np.flatnonzero(self.counts[label])
        return self.sums[label, used] / self.counts[label, used], self.counts[label, used]

    def pooled_scores(self) -> tuple[Float[np.ndarray, " b"], Num[np.ndarray, " b"]]:
        """Return the mean score and the number of scores in each bin."""
        counts = self.counts.sum(axis=0)
        return self.sums.sum(axis=0) / counts, counts

    def moments(self) -> tuple[Float[np.ndarray, " 2"], Float[np.ndarray, " 2"], Float[np.ndarray, " 2"]]:
        """Return the number, the mean and the variance of the scores of each class; exact, but for rounding."""
        self.check_classes()
        self.refuse_infinite()
        number = self.counts.sum(axis=1).astype(np.float64)
        mean = self.sums.sum(axis=1) / number
        edges = bin_edges(self.bins, self.bits)
        scatter = []
        for label in (NONTARGET, TARGET):
            centers, counts = self.class_scores(label)
            inside = self.squares[label] - counts @ (centers - edges[self.counts[label] > 0]) ** 2
            scatter.append(max(inside, 0.0) + counts @ (centers - mean[label]) ** 2)
        return number, mean, np.array(scatter) / number

    def refuse_infinite(self) -> None:
        """Refuse scores that are infinite, or beyond what float32 can hold."""
        if not (np.isfinite(bin_edges(self.bins, self.bits)).all() and np.isfinite(self.sums).all()):
            raise InputError("some of the counted scores are infinite; drop the trials")

    def sorted_scores(self, order: Order = "tied") -> SortedScores:
        """Return one weighted score per bin and class, for any function that takes `SortedScores`.

        Parameters
        ----------
        order
            Within each bin: ``"best"``: all targets above all non-targets, ``"worst"``: below, ``"tied"``: the mean
            score of each class where there is only one class, one common mean where there are both.
        """
        self.check_classes()
        counts, sums = self.counts, self.sums
        sides: dict[str, npt.NDArray[Any]] = {}
        for name, label in (("target", TARGET), ("nontarget", NONTARGET)):
            present = counts[label] > 0
            mass = np.concatenate(([0.0], np.cumsum(counts[label, present])))
            if order == "tied":
                with np.errstate(over="ignore"):  # the sum of the largest numbers is infinite
                    values = sums[:, present].sum(axis=0) / counts[:, present].sum(axis=0)
            else:
                above = (label == TARGET) == (order == "best")
                values = 2.0 * np.flatnonzero(present) + above
            sides[name] = frozen(values)
            sides[f"{name}_mass"] = frozen(mass / mass[-1])
        return SortedScores(**sides)

    def evaluate(self, *, normalize: bool = True) -> Evaluation:
        """Return what `evenscore.evaluate` returns, with ``bounds``; thresholds are those of the bins."""
        from evenscore.metrics.evaluation import evaluate

        return evaluate(self, points=self.points, normalize=normalize)


def summarize(
    scores: npt.ArrayLike | TrialList,
    labels: npt.ArrayLike | None = None,
    *,
    points: PointLike | Iterable[PointLike] = DEFAULT_POINTS,
    bits: int = BITS,
) -> ScoreSummary:
    """Count scores into a summary that adds up.

    Parameters
    ----------
    scores
        Of any shape; NaN is a missing score and is skipped. Or a `TrialList` with scores and labels.
    labels
        1 (target), 0 (non-target) or -1 (unknown, skipped) for each score; of the same shape.
    points
        Operating points of the detection cost.
    bits
        Bits of the histogram: each more halves the bins' width and the bounds, and doubles the memory
        (at most 32 MB for 20; bins without scores take none).

    Examples
    --------
    >>> summarize([[3.0, -1.0], [float("nan"), 2.0]], [[1, 0], [0, 1]])
    ScoreSummary(2 targets, 1 non-targets, 20 bits)
    """
    from evenscore.metrics.kernels import count_scores

    if not 10 <= bits <= _MOST_BITS:
        raise InputError(f"bits is {bits}, but must lie between 10 and {_MOST_BITS}")
    values, key = map(np.asarray, scores_and_labels(scores, labels))
    if values.shape != key.shape:
        raise InputError(f"labels have shape {key.shape}, but the scores {values.shape}; give one label per score")
    values = values.ravel() if values.dtype in (np.float32, np.float64) else values.ravel().astype(np.float64)
    key = as_labels(key.ravel(), values.size)
    found = as_points(points)
    thresholds = np.array([point.threshold for point in found])
    counts, sums = _empty_bins(bits)
    squares, costs, below = np.zeros(2), np.zeros(2), np.zeros((2, len(found)), np.int64)
    totals = counts, sums, squares, costs, below
    used = [np.empty(0, np.int64)]
    for start in range(0, values.size, _CHUNK):
        part = values[start : start + _CHUNK]
        with np.errstate(over="ignore"):  # what is beyond float32 belongs to the last bin
            patterns = np.ascontiguousarray(part, dtype=np.float32).view(np.uint32)
        edges = (patterns >> np.uint32(32 - bits) << np.uint32(32 - bits)).view(np.float32)
        key_part = key[start : start + _CHUNK]
        used.append(count_scores(part, patterns, edges, key_part, 32 - bits, thresholds, *totals))
    bins = np.sort(np.concatenate(used))
    arrays = {"bins": bins, "counts": counts[:, bins], "sums": sums[:, bins]}
    arrays |= {"squares": squares, "costs": costs, "below": below}
    counts[:, bins], sums[:, bins] = 0, 0
    _spare.bins = {bits: (counts, sums)}
    return ScoreSummary(points=found, bits=bits, **{name: frozen(array) for name, array in arrays.items()})


_spare = threading.local()  # empty bins for the next summary of the same thread: zeros cost more than few scores


def _empty_bins(bits: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return counts and sums of all bins; whoever takes them gives them back empty, or not at all."""
    spare: dict[int, Any] = getattr(_spare, "bins", {})
    found: tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]] | None = spare.pop(bits, None)
    return found or (np.zeros((2, 1 << bits), np.int64), np.zeros((2, 1 << bits)))


def bin_edges(bins: npt.NDArray[np.int64], bits: int) -> npt.NDArray[np.float64]:
    """Return the edge of each bin that is nearer to 0: what is left of its scores without their last bits.

    Examples
    --------
    >>> bin_edges(summarize([1.0, -2.5, 3.3], [1, 0, 0], bits=10).bins, 10)
    array([-2.,  1.,  3.])
    """
    keys = bins.astype(np.uint32)
    top = np.uint32(1 << (bits - 1))
    patterns = np.where(keys & top, keys ^ top, ~keys & np.uint32((1 << bits) - 1)) << np.uint32(32 - bits)
    return patterns.astype(np.uint32).view(np.float32).astype(np.float64)
