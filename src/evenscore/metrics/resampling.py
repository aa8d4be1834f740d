"""Drawing speakers with replacement, and what one draw needs of the trials."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.operating_points import OperatingPoint, cost_weights
from evenscore.metrics.speakers import TrialSpeakers
from evenscore.tables import TARGET, UNKNOWN

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

__all__ = ["Draws", "RankedTrials", "Resampled", "Rows", "rank_trials", "replicate"]

_DRAWS = 1 << 22  # numbers drawn at a time, to bound memory


Draws: TypeAlias = npt.NDArray[np.int64]  # how often each speaker was drawn, a row for each replicate
Rows: TypeAlias = npt.NDArray[np.float64]  # a row for each replicate, of NaN if it lacks targets or non-targets


class Resampled(Protocol):
    """What a bootstrap draws from: all trials (`RankedTrials`), or counts of groups of speakers (`GroupCounts`)."""

    @property
    def n_speakers(self) -> int:
        """How many speakers, or groups of them, are drawn."""

    @property
    def points(self) -> tuple[OperatingPoint, ...]:
        """The operating points."""

    def measured(self, draws: Draws, normalize: bool) -> Rows:
        """Return EER, Cllr, minCllr, then minDCF and actDCF of each point, of each draw."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RankedTrials:
    """Trials in order of score, cut into runs that can be counted together.

    All scores up to the next score of the other class form a run, and so do equal scores of both classes; a threshold
    also ends a run.

    Attributes
    ----------
    n_speakers
        How many speakers there are.
    enroll, test
        Numbers of the speakers.
    target
        Whether the trial is a target trial.
    loss
        Contribution to Cllr: softplus(-score) of a target, softplus(score) of a non-target.
    starts
        Where each run starts, and the number of trials.
    points, cuts
        Operating points, and the first accepted run of each.
    """

    n_speakers: int
    enroll: Int[np.ndarray, " n"]
    test: Int[np.ndarray, " n"]
    target: Bool[np.ndarray, " n"]
    loss: Float[np.ndarray, " n"]
    starts: Int[np.ndarray, " r"]
    points: tuple[OperatingPoint, ...]
    cuts: Int[np.ndarray, " p"]

    def measured(self, draws: Draws, normalize: bool) -> Rows:
        """Return the metrics of each draw."""
        from evenscore.metrics.kernels import replicate_metrics

        out = np.empty((len(draws), 3 + 2 * len(self.points)))
        sides = self.enroll, self.test, self.target, self.starts, self.loss
        replicate_metrics(draws, *sides, self.cuts, *cost_weights(self.points, normalize), out)
        return out

    def miss_rates(self, draws: Draws, p_fa: npt.NDArray[np.float64]) -> Rows:
        """Return the miss rates of the hull of each draw at these false-alarm rates."""
        from evenscore.metrics.kernels import replicate_hulls

        out = np.empty((len(draws), p_fa.size))
        replicate_hulls(draws, self.enroll, self.test, self.target, self.starts, self.loss, p_fa, out)
        return out


def rank_trials(
    scores: npt.NDArray[Any],
    labels: npt.NDArray[np.int8],
    speakers: TrialSpeakers,
    points: Sequence[OperatingPoint] = (),
) -> RankedTrials:
    """Sort the trials once, for any number of replicates; refuse those that cannot be resampled by speaker."""
    _check_speakers(speakers, labels)
    at = np.flatnonzero(labels != UNKNOWN)
    if np.isnan(scores[at]).any():
        raise InputError("a score is nan, so the trial cannot be ranked; drop the trial or label it -1")
    at = at[np.argsort(scores[at], kind="stable")]
    ranked, target = scores[at].astype(np.float64), labels[at] == TARGET
    cuts = np.searchsorted(ranked, [point.threshold for point in points])
    starts = np.unique(np.concatenate((_run_starts(ranked, target), cuts, [len(at)]))).astype(np.int64)
    return RankedTrials(
        n_speakers=len(speakers.names),
        enroll=speakers.enroll[at].astype(np.int32, copy=False),
        test=speakers.test[at].astype(np.int32, copy=False),
        target=target,
        loss=np.logaddexp(0.0, np.where(target, -ranked, ranked)),
        starts=starts,
        points=tuple(points),
        cuts=np.searchsorted(starts, cuts),
    )


def _check_speakers(speakers: TrialSpeakers, labels: npt.NDArray[np.int8]) -> None:
    """Refuse trials that cannot be resampled by speaker, with the reason."""
    if len(speakers.names) < 2:
        raise InputError(
            f"all trials are of one speaker, {speakers.names[0]!r}; a bootstrap over speakers needs at least two "
            "(better twenty), because it learns how the metric varies from one set of speakers to the next"
        )
    wrong = np.flatnonzero((labels == TARGET) & (speakers.enroll != speakers.test))
    if wrong.size:
        at = int(wrong[0])
        pair = tuple(speakers.names[side[at]] for side in (speakers.enroll, speakers.test))
        raise InputError(
            f"trial {at} is a target trial, but its speakers are {pair[0]!r} and {pair[1]!r}; check the key"
        )


def _run_starts(ranked: npt.NDArray[np.float64], target: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    starts = np.flatnonzero(np.concatenate(([True], ranked[1:] != ranked[:-1])))
    share = np.add.reduceat(target, starts, dtype=np.int64) / np.diff(np.append(starts, len(ranked)))
    pure = (share == 0) | (share == 1)
    joins = np.concatenate(([False], pure[1:] & (share[1:] == share[:-1])))
    return starts[~joins]


def replicate(measure: Callable[[Draws], Rows], n_speakers: int, replicates: int, seed: int) -> Rows:
    """Return one row of ``measure`` for each draw of as many speakers as there are; rows of NaN are drawn again."""
    if replicates < 1:
        raise InputError(f"replicates is {replicates}, but must be at least 1; 1000 is usual")
    rng = np.random.default_rng(seed)
    rows: list[npt.NDArray[np.float64]] = []
    found = 0
    threads = os.cpu_count() or 1
    with ThreadPoolExecutor(threads) as pool:
        while found < replicates:  # a draw with both classes is never rare: it needs three given speakers at most
            size = min(replicates - found, max(1, _DRAWS // n_speakers))
            draws = rng.multinomial(n_speakers, np.full(n_speakers, 1 / n_speakers), size=size)
            measured = np.concatenate(list(pool.map(measure, np.array_split(draws, min(threads, size)))))
            rows.append(measured[~np.isnan(measured[:, 0])])
            found += len(rows[-1])
    return np.concatenate(rows)
