"""How sure we are of metrics of more scores than fit into memory: groups of speakers, drawn from counts that add up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.operating_points import OperatingPoint
from evenscore.metrics.resampling import replicate
from evenscore.metrics.speaker_group_kernels import HALF, NEAR, count_trials, replicate_bins
from evenscore.metrics.uncertainty import Bootstrap
from evenscore.tables.arrays import frozen

if TYPE_CHECKING:
    from jaxtyping import Int

__all__ = ["MOST_GROUPS", "GroupCounter", "GroupCounts", "count_groups", "speaker_groups"]

_LARGEST = 1e30  # that float32 can hold
MOST_GROUPS = 40  #: of speakers; with fewer speakers than that, each is a group


def speaker_groups(n_speakers: int, seed: int) -> Int[np.ndarray, " s"]:
    """Return the group of each speaker: groups are drawn at random and differ by one speaker at most.

    Examples
    --------
    >>> speaker_groups(3, seed=0), np.bincount(speaker_groups(100, seed=0)).max()
    (array([0, 1, 2]), np.int64(3))
    """
    places = np.arange(n_speakers)
    if n_speakers <= MOST_GROUPS:
        return places
    return np.random.default_rng(seed).permutation(places % MOST_GROUPS)


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupCounts:
    """Binned LLRs of each pair of groups of speakers; counts of parts are added with ``+``.

    A draw of groups weighs each count by how often its groups were drawn, c: targets of group a by c_a, non-targets of
    groups a and b by c_a c_b. So every replicate of the bootstrap comes from these counts, whatever the number of
    trials. Bins are 1/16 wide up to |LLR| = 4, then twice as wide for each doubling of 4 + |LLR|.

    Attributes
    ----------
    target, target_below
        For each group the number of targets in each bin, and below the threshold of each operating point.
    nontarget, nontarget_below
        The same of the non-targets: first a row for each group with those of one and the same speaker, which only a
        key can make, then one for each pair of groups, (0, 0), (1, 0), (1, 1), (2, 0), ...
    """

    target: Int[np.ndarray, "g b"]
    nontarget: Int[np.ndarray, "c b"]
    target_below: Int[np.ndarray, "g p"]
    nontarget_below: Int[np.ndarray, "c p"]

    def __add__(self, other: GroupCounts) -> GroupCounts:
        """Return the counts of both sets of trials."""
        names = ("target", "nontarget", "target_below", "nontarget_below")
        return GroupCounts(**{name: frozen(getattr(self, name) + getattr(other, name)) for name in names})

    def bootstrap(
        self,
        points: Sequence[OperatingPoint],
        figures: Mapping[str, Any],
        *,
        replicates: int,
        seed: int,
    ) -> Bootstrap:
        """Return the metrics of replicates, each with groups drawn with replacement.

        Parameters
        ----------
        points
            Operating points, those of the counts.
        figures
            Metrics of all trials, as `evaluate` gives them: what is lost to the bins is taken from their differences
            to the metrics of the bins, and given back to every replicate.
        replicates, seed
            As in `evenscore.bootstrap`; with as many groups as speakers, the draws are the same.
        """
        groups = len(self.target)

        def measure(draws: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
            return self._measured(draws.astype(np.float64), points)

        whole = measure(np.ones((1, groups), np.int64))[0]
        exact = [figures["eer"], figures["cllr"], figures["min_cllr"]]
        for cost in figures["dcf"]:
            exact += [cost["min_dcf"], cost["act_dcf"]]
        with np.errstate(invalid="ignore"):  # an infinite Cllr has no difference
            lost = np.nan_to_num(np.array(exact) - whole, nan=0.0, posinf=0.0, neginf=0.0)
        rows = np.maximum(replicate(measure, groups, replicates, seed) + lost, 0.0)
        return Bootstrap.of_rows(rows, tuple(points), groups)

    def _measured(self, draws: npt.NDArray[np.float64], points: Sequence[OperatingPoint]) -> npt.NDArray[np.float64]:
        """Return EER, Cllr, minCllr, then minDCF and actDCF per point, of each draw; NaN without one of the classes."""
        high, low = _pairs(len(self.target))
        times = np.hstack((draws, draws[:, high] * draws[:, low]))
        tar, non = draws @ self.target, times @ self.nontarget
        tar_below, non_below = draws @ self.target_below, times @ self.nontarget_below
        n_tar, n_non = tar.sum(axis=1), non.sum(axis=1)
        unit = np.array([point.default_cost for point in points])
        miss, alarm = (np.array([getattr(at, name) for at in points]) / unit for name in ("miss_weight", "fa_weight"))
        out = np.full((len(draws), 3 + 2 * len(points)), np.nan)
        both = (n_tar > 0) & (n_non > 0)
        found = np.empty((int(both.sum()), 2 + len(points)))
        replicate_bins(tar[both], non[both], miss, alarm, found)
        n_tar, n_non = n_tar[both, None], n_non[both, None]
        out[both, 0], out[both, 2], out[both, 3::2] = found[:, 0], found[:, 1], found[:, 2:]
        out[both, 1] = (_losses(tar[both], -1.0) / n_tar[:, 0] + _losses(non[both], 1.0) / n_non[:, 0]) / (
            2 * np.log(2)
        )
        out[both, 4::2] = miss * tar_below[both] / n_tar + alarm * (n_non - non_below[both]) / n_non
        return out


def _pairs(groups: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the two groups of each pair, in the order of the rows."""
    return np.tril_indices(groups)


def _losses(counts: npt.NDArray[np.float64], sign: float) -> npt.NDArray[np.float64]:
    """Return the sum of softplus(sign x LLR) of binned LLRs; infinite where one is infinitely wrong."""
    edges = NEAR * np.exp2(np.arange(HALF) // 64) * (1 + np.arange(HALF) % 64 / 64) - NEAR
    middle = (edges[:-1] + edges[1:]) / 2
    llrs = np.concatenate((-middle[::-1], middle))
    finite = counts[:, 1:-1] @ np.logaddexp(0.0, sign * llrs)
    wrong = counts[:, -1 if sign > 0 else 0]
    return np.where(wrong > 0, np.inf, finite)


def _rows(enroll: Int[np.ndarray, " n"], width: int) -> Iterator[tuple[Any, Int[np.ndarray, " m"]]]:
    """Yield each row of a tile, with its speaker as often as there are columns."""
    for row, speaker in enumerate(enroll):
        yield row, np.full(width, speaker, dtype=np.int32)


class GroupCounter:
    """Counts LLRs by the groups of their speakers, piece by piece."""

    def __init__(self, group: Int[np.ndarray, " s"], points: Sequence[OperatingPoint]) -> None:
        number = int(group.max()) + 1
        cells = number + number * (number + 1) // 2
        self._group = group.astype(np.int32)
        self._thresholds = np.array([point.threshold for point in points])
        self._counts = {
            "target": np.zeros((number, 2 * HALF), np.int64),
            "target_below": np.zeros((number, len(points)), np.int64),
            "nontarget": np.zeros((cells, 2 * HALF), np.int64),
            "nontarget_below": np.zeros((cells, len(points)), np.int64),
        }

    def add(
        self,
        llrs: npt.NDArray[Any],
        labels: npt.NDArray[np.int8],
        enroll: Int[np.ndarray, " n"],
        test: Int[np.ndarray, " m"],
    ) -> None:
        """Count a tile of a matrix, with the speakers of its rows and columns, or a list with those of each trial."""
        enroll, test = (np.ascontiguousarray(side, dtype=np.int32) for side in (enroll, test))
        for at, who in [(slice(None), enroll)] if llrs.ndim == 1 else _rows(enroll, len(test)):
            part = np.ascontiguousarray(llrs[at], dtype=np.float64)
            bits = (np.minimum(np.abs(part), _LARGEST) + NEAR).astype(np.float32).view(np.uint32)
            sides = (np.ascontiguousarray(labels[at]), who, test, self._group, self._thresholds)
            if count_trials(part, bits, *sides, *self._counts.values()) >= 0:
                raise InputError("a target trial has two different speakers; check the key and the speakers")

    def counts(self) -> GroupCounts:
        """Return what was counted; nothing more is added then."""
        return GroupCounts(**{name: frozen(array) for name, array in self._counts.items()})


def count_groups(
    llrs: npt.NDArray[Any],
    labels: npt.NDArray[np.int8],
    enroll: Int[np.ndarray, " n"],
    test: Int[np.ndarray, " m"],
    group: Int[np.ndarray, " s"],
    points: Sequence[OperatingPoint],
) -> GroupCounts:
    """Count LLRs, a tile of a matrix or those of a list, by the groups of their speakers.

    Parameters
    ----------
    llrs, labels
        LLRs and labels of the same shape; NaN and unknown labels are skipped.
    enroll, test
        Numbers of the speakers of rows and columns, or of each trial of a list.
    group
        The group of each speaker.
    points
        Operating points.

    Examples
    --------
    >>> tile = np.array([[3.0, -1.0], [0.5, 2.0]])
    >>> speakers = np.arange(2)
    >>> counts = count_groups(tile, np.eye(2, dtype=np.int8), speakers, speakers, speakers, [OperatingPoint(0.5)])
    >>> counts.target.sum(), counts.nontarget.sum(), counts.nontarget_below.ravel()
    (np.int64(2), np.int64(2), array([0, 0, 0, 1, 0]))
    """
    counter = GroupCounter(group, points)
    counter.add(llrs, labels, enroll, test)
    return counter.counts()
