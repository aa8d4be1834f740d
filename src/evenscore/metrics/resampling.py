"""Drawing speakers with replacement, and what one draw needs of the trials."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.operating_points import OperatingPoint
from evenscore.metrics.speakers import TrialSpeakers
from evenscore.tables import TARGET, UNKNOWN

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

__all__ = ["RankedTrials", "check_speakers", "rank_trials", "replicate"]

_DRAWS = 1 << 22  # numbers drawn at a time, to bound memory


@dataclass(frozen=True, kw_only=True, eq=False)
class RankedTrials:
    """Trials in order of score, cut into runs that can be counted together.

    All scores up to the next score of the other class form a run, and so do equal scores of both classes; a threshold
    also ends a run.

    Attributes
    ----------
    enroll, test
        Numbers of the speakers.
    target
        Whether the trial is a target trial.
    loss
        Contribution to Cllr: softplus(-score) of a target, softplus(score) of a non-target.
    starts
        Where each run starts, and the number of trials.
    cuts
        The first accepted run of each operating point.
    """

    enroll: Int[np.ndarray, " n"]
    test: Int[np.ndarray, " n"]
    target: Bool[np.ndarray, " n"]
    loss: Float[np.ndarray, " n"]
    starts: Int[np.ndarray, " r"]
    cuts: Int[np.ndarray, " p"]


def check_speakers(speakers: TrialSpeakers, labels: npt.NDArray[np.int8]) -> None:
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


def rank_trials(
    scores: npt.NDArray[Any],
    labels: npt.NDArray[np.int8],
    speakers: TrialSpeakers,
    points: Sequence[OperatingPoint] = (),
) -> RankedTrials:
    """Sort the trials once, for any number of replicates."""
    at = np.flatnonzero(labels != UNKNOWN)
    if np.isnan(scores[at]).any():
        raise InputError("a score is nan, so the trial cannot be ranked; drop the trial or label it -1")
    at = at[np.argsort(scores[at], kind="stable")]
    ranked, target = scores[at].astype(np.float64), labels[at] == TARGET
    cuts = np.searchsorted(ranked, [point.threshold for point in points])
    starts = np.unique(np.concatenate((_run_starts(ranked, target), cuts, [len(at)]))).astype(np.int64)
    return RankedTrials(
        enroll=speakers.enroll[at].astype(np.int32, copy=False),
        test=speakers.test[at].astype(np.int32, copy=False),
        target=target,
        loss=np.logaddexp(0.0, np.where(target, -ranked, ranked)),
        starts=starts,
        cuts=np.searchsorted(starts, cuts),
    )


def _run_starts(ranked: npt.NDArray[np.float64], target: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    starts = np.flatnonzero(np.concatenate(([True], ranked[1:] != ranked[:-1])))
    share = np.add.reduceat(target, starts, dtype=np.int64) / np.diff(np.append(starts, len(ranked)))
    pure = (share == 0) | (share == 1)
    joins = np.concatenate(([False], pure[1:] & (share[1:] == share[:-1])))
    return starts[~joins]


def replicate(
    measure: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]],
    n_speakers: int,
    replicates: int,
    seed: int,
) -> npt.NDArray[np.float64]:
    """Return one row of ``measure`` for each draw of as many speakers as there are.

    ``measure`` takes draws (how often each speaker was drawn, one row per replicate) and returns NaN rows for draws
    without targets or without non-targets; those are drawn again.
    """
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
