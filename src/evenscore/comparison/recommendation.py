"""Which method loses least in the worst case, and what speaks for a simpler one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor
from typing import TYPE_CHECKING, Literal

import numpy as np

from evenscore.comparison.needs import need_of
from evenscore.metrics import PairedTest
from evenscore.metrics.uncertainty import Metric, differences

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from evenscore.comparison.comparison import Comparison, Measured, MethodResult

__all__ = ["Recommendation", "clear", "losses_of", "paired_with", "recommended", "worst_loss"]


Doubt = Literal["", "too few", "unlike"]
Why = Literal["", "surer", "safer", "simpler", "too few", "unlike"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Recommendation:
    """The method to use.

    Attributes
    ----------
    method
        The method; raw if no other is clearly better.
    why
        Why not the one that is best on average: that is not clearly better than raw (``"surer"``), loses more in the
        worst case (``"safer"``), or loses as much but learns more from the training side (``"simpler"``), which is too
        small for it (``"too few"``) or unlike the evaluation side (``"unlike"``). Empty if it is the best on average,
        and for raw.
    doubt
        Whether the training side is too small or unlike for the method itself.
    """

    method: MethodResult
    why: Why
    doubt: Doubt


def clear(test: PairedTest) -> bool:
    """Tell whether the interval of a difference leaves out zero."""
    return test.interval.high < 0 or test.interval.low > 0


def paired_with(
    methods: Sequence[Measured], other: Measured, metric: Metric, level: float, n_speakers: int
) -> list[PairedTest]:
    """Return each method against another one, on the draws that all were measured on, as `evenscore.paired_test` does.

    But intervals and p-values hold for all of them at once: in a share ``level`` of the draws no difference at all
    leaves its interval. So each more method is one more chance of a lucky one, and that is paid for; methods that
    agree in every draw cost as much as one.
    """
    tests = [_paired(one, other, metric, level, n_speakers) for one in methods]
    drawn = [differences(one.replicates[metric], other.replicates[metric]) for one in methods]
    others = [found for one, found in zip(methods, drawn, strict=True) if one is not other]
    if len(others) < 2:
        return tests
    shallowest = np.min([depth(found, found) for found in others], axis=0)
    left_out = floor(round((1 - level) * len(shallowest), 9))  # so many draws may leave an interval
    least = np.sort(shallowest)[left_out]
    return [_widened(test, found, least, shallowest) for test, found in zip(tests, drawn, strict=True)]


def depth(drawn: Float[np.ndarray, " b"], values: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Return how deep values lie among draws: how many draws are not above them, or not below, whichever are fewer.

    Examples
    --------
    >>> depth(np.arange(100.0), np.array([2.0, 50.0, 99.0, 500.0])).tolist()
    [3, 50, 1, 0]
    """
    ordered = np.sort(drawn)
    not_above = np.searchsorted(ordered, values, side="right")
    not_below = len(drawn) - np.searchsorted(ordered, values, side="left")
    return np.minimum(not_above, not_below)


def _widened(
    test: PairedTest, drawn: Float[np.ndarray, " b"], least: int, shallowest: Int[np.ndarray, " b"]
) -> PairedTest:
    """Return a test whose interval holds all draws of this depth, and whose p-value counts all methods."""
    ordered, interval = np.sort(drawn), test.interval
    low, high = min(interval.low, float(ordered[least - 1])), max(interval.high, float(ordered[-least]))
    as_far = np.count_nonzero(shallowest <= depth(drawn, np.zeros(1)))
    chance = max(test.p_value, (1 + as_far) / (1 + len(drawn)))
    return replace(test, interval=replace(interval, low=low, high=high), p_value=chance)


def _paired(a: Measured, b: Measured, metric: Metric, level: float, n_speakers: int) -> PairedTest:
    values = a.figures.values[metric], b.figures.values[metric]
    return PairedTest.of(metric, values, (a.replicates[metric], b.replicates[metric]), level, n_speakers)


def losses_of(methods: Sequence[MethodResult], metric: Metric) -> dict[str, Float[np.ndarray, " b"]]:
    """Return what each method, by name, loses in each draw of speakers to the method that is best in that draw."""
    least = np.min([one.replicates[metric] for one in methods], axis=0)
    return {one.name: differences(one.replicates[metric], least) for one in methods}


def worst_loss(losses: Float[np.ndarray, " b"], level: float, *, errors: float = 0.0) -> float:
    """Return the loss that is exceeded in a share of 1 - level of the draws, or so many standard errors above it.

    Examples
    --------
    >>> worst_loss(np.arange(1001.0), 0.95), worst_loss(np.arange(1001.0), 0.95, errors=2)
    (950.0, 964.0)
    """
    place = level * (len(losses) - 1) + errors * np.sqrt(len(losses) * level * (1 - level))
    return float(np.sort(losses)[min(round(place), len(losses) - 1)])


def recommended(comparison: Comparison) -> Recommendation:
    """Return the method with the smallest worst loss among those that are clearly better than raw.

    Where the draws cannot tell which loss is smaller, the one that learns less from the training side. If that side is
    too small for it or unlike the evaluation side, one that learns even less, unless it is clearly worse.
    """
    metric, level = comparison.rank_by, comparison.how.level
    usable = [one for one in comparison.methods if one.to_raw[metric].interval.high < 0]
    if not usable:
        return Recommendation(method=comparison.raw, why="", doubt=_doubt(comparison, comparison.raw))
    losses = losses_of(comparison.methods, metric)
    worst = {one.name: worst_loss(losses[one.name], level) for one in usable}
    safest = min(worst, key=lambda name: worst[name])
    bound = worst_loss(losses[safest], level, errors=2)
    safe = [one for one in usable if worst[one.name] <= bound]
    chosen, best = _simplest(safe, worst), comparison.best
    why: Why = "surer" if best not in usable else "safer" if best not in safe else "simpler"
    doubt = _doubt(comparison, chosen)
    if doubt:
        less = [one for one in usable if need_of(one) < need_of(chosen)]
        alike = [one for one in less if not clear(comparison.paired(one, chosen))]
        if alike:
            chosen, why = _simplest(alike, worst), doubt
            doubt = _doubt(comparison, chosen)
    return Recommendation(method=chosen, why="" if chosen is best else why, doubt=doubt)


def _simplest(methods: Sequence[MethodResult], worst: Mapping[str, float]) -> MethodResult:
    """Return the method that learns least; among those, the one that loses least."""
    return min(methods, key=lambda one: (need_of(one), worst[one.name]))


def _doubt(comparison: Comparison, method: MethodResult) -> Doubt:
    if method.name in comparison.too_few:
        return "too few"
    return "unlike" if comparison.unlike else ""
