"""Location and scale of the cohort scores of each trial, its own speakers left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.norms.options import NormOptions
from evenscore.norms.sides import Sides, other_side
from evenscore.norms.statistics import Statistics, Summary, side_statistics
from evenscore.norms.trial_scores import TrialScores, statistics_without_own
from evenscore.tables import ScoreBlocks

__all__ = ["ScalePrior", "shrunk_log_scale", "summary_of", "trial_moments"]

_LARGEST = 700.0  # of the mean of log-scales: beyond it, scales are no numbers
_FLOOR = 5.0  # nats below the usual scale at which a scale is held


@dataclass(frozen=True, kw_only=True)
class ScalePrior:
    """How the cohort scores of one side are spread, as far as is known before they are seen.

    log std ~ N(center, variance); the mean is about ``location``.
    """

    center: float
    variance: float
    location: float

    def __post_init__(self) -> None:
        if not (self.variance >= 0 and abs(self.center) <= _LARGEST):
            raise InputError(
                f"log-scales have the mean {self.center:g} and the variance {self.variance:g}, but the mean must lie "
                f"between -{_LARGEST:g} and {_LARGEST:g}, and the variance must not be negative"
            )

    @classmethod
    def of(cls, moments: list[Statistics]) -> ScalePrior:
        """Estimate it: the variance of log standard deviations, less what comes from small samples."""
        if not moments:
            return cls(center=0.0, variance=0.0, location=0.0)
        parts = [tuple(np.ravel(values) for values in (m.count, m.mean, m.std)) for m in moments]
        count, mean, std = (np.concatenate([part[at] for part in parts]) for at in range(3))
        good = (count >= 2) & (std > 0)
        if not good.any():
            return cls(center=0.0, variance=0.0, location=0.0)
        logs, noise = np.log(std[good]), 0.5 / (count[good] - 1)
        variance = max(float(logs.var() - noise.mean()), 0.0)
        return cls(center=float(logs.mean()), variance=variance, location=float(mean[good].mean()))


def shrunk_log_scale(moments: Statistics, prior: ScalePrior) -> npt.NDArray[np.float64]:
    """Return the log standard deviation less its usual value, shrunk to 0 by its sampling variance 1 / (2 (n - 1)).

    Examples
    --------
    >>> prior = ScalePrior(center=0.0, variance=0.1, location=0.0)
    >>> few, many = np.array([3.0, 3000.0]), np.zeros(2)
    >>> shrunk_log_scale(Statistics(few, many, np.full(2, np.e)), prior).round(3)
    array([0.286, 0.998])
    """
    known = moments.count >= 2
    count = np.where(known, moments.count, 2)
    std = np.where(known, moments.std, np.exp(prior.center))
    logs = np.log(np.maximum(std, np.exp(prior.center - _FLOOR))) - prior.center
    share = prior.variance / (prior.variance + 0.5 / (count - 1)) if prior.variance > 0 else 0.0
    return np.asarray(np.where(known, share * logs, 0.0))


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
