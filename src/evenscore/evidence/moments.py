"""Location and scale of the cohort scores of each trial, its own speakers left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.norms.adaptive import by_pieces, exclusion
from evenscore.norms.block_sides import block_sides
from evenscore.norms.options import NormOptions
from evenscore.norms.sides import NormSides, Side
from evenscore.norms.statistics import Statistics, Summary, column_statistics, row_statistics
from evenscore.norms.trial_scores import TrialScores
from evenscore.tables import ScoreBlocks

__all__ = ["Moments", "ScalePrior", "shrunk_log_scale", "trial_moments"]

_LARGEST = 700.0  # of the mean of log-scales: beyond it, scales are no numbers
_FLOOR = 5.0  # nats below the usual scale at which a scale is held


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Count, mean and standard deviation of cohort scores; the arrays broadcast to the shape of the trials."""

    count: npt.NDArray[Any]
    mean: npt.NDArray[Any]
    std: npt.NDArray[Any]


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
    def of(cls, moments: list[Moments]) -> ScalePrior:
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


def shrunk_log_scale(moments: Moments, prior: ScalePrior) -> npt.NDArray[np.float64]:
    """Return the log standard deviation less its usual value, shrunk to 0 by its sampling variance 1 / (2 (n - 1)).

    Examples
    --------
    >>> prior = ScalePrior(center=0.0, variance=0.1, location=0.0)
    >>> few, many = np.array([3.0, 3000.0]), np.zeros(2)
    >>> shrunk_log_scale(Moments(count=few, mean=many, std=np.full(2, np.e)), prior).round(3)
    array([0.286, 0.998])
    """
    known = moments.count >= 2
    count = np.where(known, moments.count, 2)
    std = np.where(known, moments.std, np.exp(prior.center))
    logs = np.log(np.maximum(std, np.exp(prior.center - _FLOOR))) - prior.center
    share = prior.variance / (prior.variance + 0.5 / (count - 1)) if prior.variance > 0 else 0.0
    return np.asarray(np.where(known, share * logs, 0.0))


def trial_moments(blocks: ScoreBlocks, side: str, top: float | None = None) -> Moments:
    """Return the moments of the cohort scores of one side (``"enroll"`` or ``"test"``) for each trial.

    Parameters
    ----------
    blocks
        With this side's cohort scores.
    side
        Whose.
    top
        Take this fraction of the highest scores only.
    """
    options = NormOptions(ddof=1) if top is None else NormOptions(top_k=float(top), ddof=1)
    method = "s" if top is None else "as"
    sides = block_sides(blocks, method, None)
    chosen: Side | None = getattr(sides, side)
    assert chosen is not None  # noqa: S101
    summary = Summary.of(options, method, chosen.shape[1])
    others = sides.speaker_of_other(chosen)
    if len(chosen.groups.present(others)):
        return _by_trial(blocks, chosen, others, summary)
    if chosen.columns is not None and summary.plain and not chosen.masks:
        found = column_statistics(chosen.columns, summary.ddof)
    else:
        found = by_pieces(chosen, lambda X: row_statistics(X, summary))
    return _spread_out(blocks, sides, side, found)


def _spread_out(blocks: ScoreBlocks, sides: NormSides, side: str, found: Statistics) -> Moments:
    tile, which = blocks.trials.tile, 0 if side == "enroll" else 1
    nothing = np.empty(len(blocks.trials.test_ids if which == 0 else blocks.trials.enroll_ids))

    def spread(values: Any) -> Any:
        return tile.pair(*((values, nothing) if which == 0 else (nothing, values)))[which]

    return Moments(count=spread(found.count), mean=spread(found.mean), std=spread(found.std))


def _by_trial(blocks: ScoreBlocks, side: Side, others: npt.NDArray[np.int64], summary: Summary) -> Moments:
    """Return the moments where the other side's speaker stands in this side's cohort."""
    table = TrialScores.of(blocks.trials)
    shape = table.out.shape
    count, mean, std = np.empty(shape, dtype=np.int64), np.empty(shape), np.empty(shape)
    left_out, column = exclusion(side, others)
    width = len(left_out.first)
    for rows in side.pieces(beside=25 * (width + len(others))):
        needed = table.needed(side.name, rows, column, width)
        found = row_statistics(side.scores(rows), summary, side.groups, left_out, needed)
        at = table.where(side.name, rows)
        for out, values in ((count, found.count), (mean, found.mean), (std, found.std)):
            out[at] = table.expand(side.name, rows, values, column)
    return Moments(count=count, mean=mean, std=std)
