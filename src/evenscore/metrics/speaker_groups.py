"""How sure we are of metrics of more scores than fit into memory: groups of speakers, drawn from counts that add up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.kernels import HALF, NEAR, count_trials, replicate_bins
from evenscore.metrics.operating_points import OperatingPoint, cost_weights
from evenscore.metrics.resampling import Draws, Rows
from evenscore.tables.arrays import frozen

if TYPE_CHECKING:
    from jaxtyping import Int

__all__ = ["MOST_GROUPS", "GroupCounter", "GroupCounts", "speaker_groups"]

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
    points
        Operating points.
    target, target_below
        For each group the number of targets in each bin, and below the threshold of each operating point.
    nontarget, nontarget_below
        The same of the non-targets: first a row for each group with those of one and the same speaker, which only a
        key can make, then one for each pair of groups, (0, 0), (1, 0), (1, 1), (2, 0), ...
    """

    points: tuple[OperatingPoint, ...]
    target: Int[np.ndarray, "g b"]
    nontarget: Int[np.ndarray, "c b"]
    target_below: Int[np.ndarray, "g p"]
    nontarget_below: Int[np.ndarray, "c p"]

    def __add__(self, other: GroupCounts) -> GroupCounts:
        """Return the counts of both sets of trials."""
        names = ("target", "nontarget", "target_below", "nontarget_below")
        sums: dict[str, Any] = {name: frozen(getattr(self, name) + getattr(other, name)) for name in names}
        return replace(self, **sums)

    @property
    def n_speakers(self) -> int:
        """How many groups are drawn; with as many groups as speakers, the draws are those of all trials."""
        return len(self.target)

    def measured(self, draws: Draws, normalize: bool) -> Rows:
        """Return the metrics of each draw."""
        draws = draws.astype(np.float64)
        high, low = np.tril_indices(len(self.target))  # the two groups of each pair, in the order of the rows
        times = np.hstack((draws, draws[:, high] * draws[:, low]))
        tar, non = draws @ self.target, times @ self.nontarget
        tar_below, non_below = draws @ self.target_below, times @ self.nontarget_below
        n_tar, n_non = tar.sum(axis=1), non.sum(axis=1)
        miss, alarm = cost_weights(self.points, normalize)
        out = np.full((len(draws), 3 + 2 * len(self.points)), np.nan)
        both = (n_tar > 0) & (n_non > 0)
        found = np.empty((int(both.sum()), 2 + len(self.points)))
        replicate_bins(tar[both], non[both], miss, alarm, found)
        n_tar, n_non = n_tar[both, None], n_non[both, None]
        out[both, 0], out[both, 2], out[both, 3::2] = found[:, 0], found[:, 1], found[:, 2:]
        out[both, 1] = (_losses(tar[both], -1.0) / n_tar[:, 0] + _losses(non[both], 1.0) / n_non[:, 0]) / (
            2 * np.log(2)
        )
        out[both, 4::2] = miss * tar_below[both] / n_tar + alarm * (n_non - non_below[both]) / n_non
        return out


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
    """Counts LLRs by the groups of their speakers, piece by piece.

    Examples
    --------
    >>> speakers = np.arange(2)
    >>> counter = GroupCounter(speakers, [OperatingPoint(0.5)])
    >>> counter.add(np.array([[3.0, -1.0], [0.5, 2.0]]), np.eye(2, dtype=np.int8), speakers, speakers)
    >>> counts = counter.counts()
    >>> counts.target.sum(), counts.nontarget.sum(), counts.nontarget_below.ravel()
    (np.int64(2), np.int64(2), array([0, 0, 0, 1, 0]))
    """

    def __init__(self, group: Int[np.ndarray, " s"], points: Sequence[OperatingPoint]) -> None:
        number = int(group.max()) + 1
        cells = number + number * (number + 1) // 2
        self._group = group.astype(np.int32)
        self._points = tuple(points)
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
        return GroupCounts(points=self._points, **{name: frozen(array) for name, array in self._counts.items()})
