"""The features of trials: what their four blocks say about them, each by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.evidence.own_pairs import Ridges, pair_features
from evenscore.evidence.takes import likeness, trial_takes
from evenscore.metrics.speakers import speakers_by_targets
from evenscore.model.normalizer import ScoreModelNormalizer
from evenscore.model.parameters import ScoreModel
from evenscore.norms.by_trial import TrialScores, statistics_without_own
from evenscore.norms.options import NormOptions
from evenscore.norms.sides import Sides, other_side
from evenscore.norms.statistics import Statistics, Summary, side_statistics
from evenscore.tables import ScoreBlocks

__all__ = [
    "EXTRAS",
    "PATTERNS",
    "SIDES",
    "SIMPLE",
    "VIEWS",
    "ScalePrior",
    "Scales",
    "evidence_features",
    "pattern_of",
    "restricted",
    "shrunk_log_scale",
    "shrunk_log_scale_of_one",
    "summary_of",
    "trial_moments",
    "with_cohort_speakers",
]

_LARGEST = 700.0  # of the mean of log-scales: beyond it, scales are no numbers
_FLOOR = 5.0  # nats below the usual scale at which a scale is held


@dataclass(frozen=True, kw_only=True)
class ScalePrior:
    """How the cohort scores of one side are spread, as far as is known before they are seen.

    log std ~ N(center, variance); the mean is about ``location``. ``alike`` is the correlation of the squared
    deviations of two scores of one cohort speaker, see `likeness`.
    """

    center: float
    variance: float
    location: float
    alike: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.alike <= 1:
            raise InputError(f"scores of one cohort speaker are alike by {self.alike:g}, but that must be from 0 to 1")
        if not (self.variance >= 0 and abs(self.center) <= _LARGEST):
            raise InputError(
                f"log-scales have the mean {self.center:g} and the variance {self.variance:g}, but the mean must lie "
                f"between -{_LARGEST:g} and {_LARGEST:g}, and the variance must not be negative"
            )

    @classmethod
    def of(
        cls, moments: Sequence[Statistics], takes: Sequence[npt.NDArray[np.float64] | float] = (), alike: float = 0.0
    ) -> ScalePrior:
        """Estimate it: the variance of log standard deviations, less what comes from small samples.

        ``takes`` are those of the trials that the moments belong to, as `shrunk_log_scale` has them; 1 if not given.
        """
        parts = [
            [np.ravel(values) for values in (m.mean, m.std, m.count, _counted(m.count, some, alike))]
            for m, some in zip(moments, takes or [1.0] * len(moments), strict=True)
        ]
        mean, std, count, counted = (np.concatenate([part[at] for part in parts] or [np.empty(0)]) for at in range(4))
        good = (count >= 2) & (std > 0)
        if not good.any():
            return cls(center=0.0, variance=0.0, location=0.0, alike=alike)
        logs, told = np.log(std[good]), counted[good] > 1
        noise = 0.5 / (counted[good][told] - 1)
        variance = max(float(logs[told].var() - noise.mean()), 0.0) if told.any() else 0.0
        return cls(center=float(logs.mean()), variance=variance, location=float(mean[good].mean()), alike=alike)


def _counted(count: npt.NDArray[Any], takes: npt.NDArray[np.float64] | float, alike: float) -> npt.NDArray[np.float64]:
    """Return how many scores count, as if they were of different speakers."""
    return np.asarray(count / (1.0 + alike * (takes - 1.0)))  # (T1)


def shrunk_log_scale(
    moments: Statistics, prior: ScalePrior, takes: npt.NDArray[np.float64] | float = 1.0
) -> npt.NDArray[np.float64]:
    """Return the log standard deviation less its usual value, shrunk to 0 by its sampling variance 1 / (2 (n - 1)).

    n is the number of scores, or less if there are several ``takes`` of a cohort speaker: sum_k n_k^2 / sum_k n_k, if
    there are n_k scores of speaker k.

    Examples
    --------
    >>> prior = ScalePrior(center=0.0, variance=0.1, location=0.0, alike=0.5)
    >>> few, many = np.array([3.0, 3000.0]), np.zeros(2)
    >>> moments = Statistics(few, many, np.full(2, np.e))
    >>> shrunk_log_scale(moments, prior).round(3)
    array([0.286, 0.998])
    >>> shrunk_log_scale(moments, prior, takes=2.0).round(3)
    array([0.167, 0.998])
    """
    known = moments.count >= 2
    free = np.maximum(_counted(moments.count, takes, prior.alike) - 1.0, 0.0)
    std = np.where(known, moments.std, np.exp(prior.center))
    logs = np.log(np.maximum(std, np.exp(prior.center - _FLOOR))) - prior.center
    share = prior.variance * free / (prior.variance * free + 0.5)
    return np.asarray(np.where(known, share * logs, 0.0))


def shrunk_log_scale_of_one(count: int, std: float, prior: ScalePrior, takes: float = 1.0) -> float:
    """Return `shrunk_log_scale` of a single row, without the time that arrays of one number take.

    Examples
    --------
    >>> shrunk_log_scale_of_one(3, math.e, ScalePrior(center=0.0, variance=0.1, location=0.0))
    0.28571428571428575
    """
    if count < 2:
        return 0.0
    free = prior.variance * max(count / (1.0 + prior.alike * (takes - 1.0)) - 1.0, 0.0)
    logs = math.log(max(std, math.exp(prior.center - _FLOOR))) - prior.center
    return free / (free + 0.5) * logs


@lru_cache(maxsize=16)
def summary_of(top: float | None, size: int) -> Summary:
    """Return what is computed of a row of cohort scores: of all of them, or of this fraction of the highest ones."""
    if top is None:
        return Summary.of(NormOptions(ddof=1), "s", size)
    return Summary.of(NormOptions(top_k=float(top), ddof=1), "as", size)


def trial_moments(blocks: ScoreBlocks, side: str, top: float | None = None) -> Statistics:
    """Return count, mean and standard deviation of the cohort scores of one side for each trial.

    Parameters
    ----------
    blocks
        With this side's cohort scores.
    side
        Whose: ``"enroll"`` or ``"test"``.
    top
        Take this fraction of the highest scores only.
    """
    sides, tile = Sides.of(blocks), blocks.trials.tile
    chosen, others = sides.side(side, getattr(blocks, side).scores), sides.speaker[other_side(side)]
    summary = summary_of(top, chosen.shape[1])
    if not len(chosen.groups.present(others)):
        found, by_row = side_statistics(chosen, summary), side == "enroll"
        arrays = (found.count, found.mean, found.std)
        both = (tile.pair(*((values, others) if by_row else (others, values))) for values in arrays)
        return Statistics(*(pair[0 if by_row else 1] for pair in both))
    table = TrialScores.of(blocks.trials)
    out = np.empty(tile.scores.shape, dtype=np.int64), np.empty(tile.scores.shape), np.empty(tile.scores.shape)
    for rows, column, found in statistics_without_own(table, chosen, others, summary):
        at, *values = table.look_up(side, rows, column, found.count, found.mean, found.std)
        for whole, some in zip(out, values, strict=True):
            whole[at] = some
    return Statistics(*out)


#: What a head may know, by the blocks that there are.
PATTERNS = ("full", "pair", "enroll", "test", "none")
VIEWS = {
    "full": ("s_norm", "score_model", "as_norm"),
    "pair": ("s_norm", "as_norm", "raw"),
    "enroll": ("s_norm", "as_norm", "raw"),
    "test": ("s_norm", "as_norm", "raw"),
    "none": ("raw",),
}
EXTRAS = {
    "full": ("ls_e", "ls_t", "b", "w"),
    "pair": ("ls_e", "ls_t"),
    "enroll": ("ls_e",),
    "test": ("ls_t",),
    "none": (),
}
#: Norms that a head may give way to, with nothing but a calibration after them; the first needs no cohort.
SIMPLE = {
    "full": ("raw", "s", "as"),
    "pair": ("raw", "s", "as"),
    "enroll": ("raw", "z"),
    "test": ("raw", "t"),
    "none": (),
}
SIDES = {"full": ("enroll", "test"), "pair": ("enroll", "test"), "enroll": ("enroll",), "test": ("test",), "none": ()}

TOP = 0.2  #: the share of the cohort that ``as_norm`` takes

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Scales:
    """What is known of the spread of cohort scores: of all of them and of the highest ones, for both sides."""

    enroll: ScalePrior
    test: ScalePrior
    enroll_top: ScalePrior
    test_top: ScalePrior

    def of(self, side: str, top: bool) -> ScalePrior:
        """Return the one of a side."""
        found: ScalePrior = getattr(self, f"{side}_top" if top else side)
        return found

    @classmethod
    def estimated(cls, parts: Sequence[ScoreBlocks]) -> Scales:
        """Estimate all four from the blocks that have the side."""
        found = {}
        for side in ("enroll", "test"):
            have = [blocks for blocks in parts if getattr(blocks, side) is not None]
            # The highest scores are taken to be as alike as all: by themselves they do not tell, see the tests.
            takes, alike = [trial_takes(blocks, side) for blocks in have], likeness(have, side)
            for name, top in ((side, None), (f"{side}_top", TOP)):
                found[name] = ScalePrior.of([trial_moments(blocks, side, top) for blocks in have], takes, alike)
        return cls(**found)


def pattern_of(blocks: ScoreBlocks) -> str:
    """Return which of the `PATTERNS` the blocks follow.

    ``full`` needs both sides, the cohort against itself, and the speakers of the cohort's tests.
    """
    enroll, test = blocks.enroll is not None, blocks.test is not None
    if enroll and test:
        return "full" if blocks.cohort is not None and blocks.cohort_test_speakers is not None else "pair"
    return "enroll" if enroll else "test" if test else "none"


def with_cohort_speakers(blocks: ScoreBlocks) -> ScoreBlocks:
    """Return the blocks with the speakers of the cohort; if nobody is known by name, those that its targets connect."""
    known = (
        blocks.enroll_speakers,
        blocks.test_speakers,
        blocks.cohort_enroll_speakers,
        blocks.cohort_test_speakers,
    )
    cohort, labels = blocks.cohort, blocks.cohort_labels
    if any(names is not None for names in known) or cohort is None or labels is None or not labels.n_target:
        return blocks
    speakers = speakers_by_targets([cohort.to_trials(labels)])
    sides = [[speakers.get(name, name) for name in ids.tolist()] for ids in (cohort.enroll_ids, cohort.test_ids)]
    return blocks.replace(cohort=cohort.with_speakers(*sides))


def restricted(blocks: ScoreBlocks, pattern: str) -> ScoreBlocks:
    """Return the blocks that a pattern uses."""
    keep = SIDES[pattern]
    return blocks.replace(
        enroll=blocks.enroll if "enroll" in keep else None,
        test=blocks.test if "test" in keep else None,
        cohort=blocks.cohort if pattern == "full" else None,
    )


def evidence_features(
    blocks: ScoreBlocks, pattern: str, model: ScoreModel, scales: Scales, ridges: Ridges | None
) -> dict[str, Array]:
    """Return the features of all trials, in the shape of their scores; without ridges those of pairs are left out.

    ==================  ========================================================================================
    ``raw``             the score
    ``s_norm``          the mean over the sides of (score - mean) / shrunk scale
    ``as_norm``         the same with mean and scale of the highest fifth of the cohort scores
    ``score_model``     the score model's log-likelihood ratio, made of its predicted shifts
    ``ls_e``, ``ls_t``  shrunk log-scale of each side's cohort scores, less the usual one
    ``b``, ``w``        predicted impostor score, and the part of the score where one speaker varies
    ==================  ========================================================================================
    """
    trials = blocks.trials
    assert trials.scores is not None  # noqa: S101
    score = np.asarray(trials.scores, dtype=np.float64)
    found: dict[str, Array] = {"raw": score}
    sides = SIDES[pattern]
    if sides:
        takes = {side: trial_takes(blocks, side) for side in sides}
        for name, top in (("s_norm", None), ("as_norm", TOP)):
            moments = {side: trial_moments(blocks, side, top) for side in sides}
            logs = {
                side: shrunk_log_scale(moments[side], scales.of(side, top is not None), takes[side]) for side in sides
            }
            found[name] = _normalized(score, moments, logs, scales, top is not None)
            if top is None:
                for side in sides:
                    found[f"ls_{side[0]}"] = np.broadcast_to(logs[side], score.shape)
    if pattern == "full":
        llr = ScoreModelNormalizer(model, blocks).normalize(blocks).scores
        found["score_model"] = np.asarray(llr, dtype=np.float64)
        if ridges is not None:
            found |= pair_features(blocks, ridges)
    return found


def _normalized(
    score: Array, moments: dict[str, Statistics], logs: dict[str, Array], scales: Scales, top: bool
) -> Array:
    """Return the mean over the sides of (score - mean) / scale; a side without cohort scores has the usual mean."""
    parts = []
    for side, found in moments.items():
        prior = scales.of(side, top)
        mean = np.where(found.count > 0, found.mean, prior.location)
        parts.append((score - mean) * np.exp(-logs[side] - prior.center))
    return np.asarray(sum(parts) / len(parts))
