"""What a search for the best cohort found: records, a table, and plain words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore.comparison.comparison import METRICS
from evenscore.comparison.methods import listed
from evenscore.comparison.verdict import METRIC_NAMES, shown_value
from evenscore.metrics import Interval
from evenscore.metrics.uncertainty import Metric

if TYPE_CHECKING:
    import polars as pl
    from jaxtyping import Float

__all__ = ["CohortCandidate", "CohortChoice", "candidate_name"]


@dataclass(frozen=True, kw_only=True, eq=False)
class CohortCandidate:
    """One way to choose the cohort, and how good it is.

    Attributes
    ----------
    cohort
        Name of the cohort; ``"all"`` for everybody.
    size
        How many of its speakers (or members, if speakers are not known) were drawn; None for all of them.
    top_k
        How many of the highest scores the norm takes; None for what is usual for it.
    members
        How many members there were on a side, on average over folds, draws and conditions.
    values
        The metric in each draw of the cohort; one value if nothing was drawn.
    figures
        The mean of every metric over the draws.
    interval
        Of the mean of the metric, from draws of the trials' speakers.
    to_best
        Interval of the difference to the best candidate, on the same draws.
    """

    cohort: str
    size: int | None
    top_k: int | float | None
    members: float
    values: Float[np.ndarray, " r"]
    figures: Mapping[str, float]
    interval: Interval
    to_best: Interval

    @property
    def mean(self) -> float:
        """The mean of the metric over the draws."""
        return float(np.mean(self.values))

    @property
    def spread(self) -> float:
        """The standard deviation of the metric over the draws; 0 if nothing was drawn."""
        return float(np.std(self.values))

    def name(self, unit: str) -> str:
        """Return what it is called in tables and sentences."""
        return candidate_name(self.cohort, self.size, self.top_k, unit)


def candidate_name(cohort: str, size: int | None, top_k: int | float | None, unit: str) -> str:
    """Return what a candidate is called.

    Examples
    --------
    >>> candidate_name("all", 20, None, "speakers"), candidate_name("women", None, 0.5, "speakers")
    ('20 speakers', 'women, top_k 0.5')
    """
    parts = [] if cohort == "all" and size is not None else [cohort]
    if size is not None:
        parts.append(f"{size} {unit}")
    if top_k is not None:
        parts.append(f"top_k {top_k}")
    return ", ".join(parts)


@dataclass(frozen=True, kw_only=True, eq=False)
class CohortChoice:
    """Ways to choose the cohort, compared by cross-validation on the training side. Made by `choose_cohort`.

    Attributes
    ----------
    method
        The norm, with its options.
    metric
        What they are compared by; lower is better.
    unit
        What sizes count: ``"speakers"``, or ``"members"`` if speakers are not known.
    candidates
        In the order in which they were listed.
    not_run
        Those that could not be measured: name and reason.
    raw
        The metric of the calibrated raw scores on the same folds.
    folds, repeats, seed
        Folds of speakers, draws of each size, seed of the draws.
    n_trials
        How many trials were measured.

    Examples
    --------
    >>> from evenscore import LabelledBlocks, ScoreModel, choose_cohort, simulate
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.5], [1.5]], beta=[[1.0], [1.0]], sigma2=[1.0, 1.0])
    >>> speakers = [f"s{n // 2}" for n in range(60)]
    >>> dev = LabelledBlocks.own_cohort(*simulate(model, speakers, speakers, seed=1))
    >>> choice = choose_cohort([dev], "s", sizes=[3, 20], repeats=3, bootstrap=50)
    >>> choice.best.size, choice.table()["members"].to_list()
    (20, [6.0, 40.0])
    """

    method: str
    metric: Metric
    unit: str
    candidates: tuple[CohortCandidate, ...]
    not_run: Mapping[str, str]
    raw: float
    folds: int
    repeats: int
    seed: int
    n_trials: int

    @property
    def best(self) -> CohortCandidate:
        """The candidate with the lowest mean; the first of those that are equal."""
        return min(self.candidates, key=lambda candidate: candidate.mean)

    @property
    def within_noise(self) -> tuple[CohortCandidate, ...]:
        """The candidates that may be as good as the best, the smallest first, the best among them."""
        alike = [one for one in self.candidates if one is self.best or one.to_best.low <= 0 <= one.to_best.high]
        return tuple(sorted(alike, key=lambda candidate: candidate.members))

    @property
    def text(self) -> str:
        """What to take, in plain words."""
        best, metric = self.best, self.metric
        name, value = METRIC_NAMES[metric], shown_value(metric, best.mean)
        if best.mean >= self.raw:
            raw = shown_value(metric, self.raw)
            return f"No cohort helps {self.method}: raw scores have {name} {raw}, the best cohort has {value}."
        words = [f"Take {best.name(self.unit)}: {name} {value} against {shown_value(metric, self.raw)} raw."]
        others = [one for one in self.within_noise if one is not best]
        if not others and len(self.candidates) > 1:
            words.append("It is clearly better than every other choice here.")
        elif len(others) == len(self.candidates) - 1 > 0:
            words.append("All differences are within noise.")
        elif others:
            names = listed(tuple(f"({one.name(self.unit)})" for one in others))
            words.append(f"The difference to {names} is within noise.")
        if others and others[0].members < best.members:
            words.append(f"The smallest of them, {others[0].name(self.unit)}, is likely enough.")
        return " ".join(words)

    def table(self) -> pl.DataFrame:
        """Return one row per candidate, with the mean, its interval, the spread, and every metric's mean."""
        import polars as pl

        rows: list[dict[str, Any]] = []
        for one in self.candidates:
            row = {
                "cohort": one.cohort,
                "size": one.size,
                "top_k": None if one.top_k is None else float(one.top_k),
                "members": one.members,
                "draws": len(one.values),
                "mean": one.mean,
                "low": one.interval.low,
                "high": one.interval.high,
                "spread": one.spread,
                "to_best_low": one.to_best.low,
                "to_best_high": one.to_best.high,
            }
            rows.append(row | {metric: one.figures[metric] for metric in METRICS})
        numbers = dict.fromkeys(("top_k", "members", "mean"), pl.Float64)
        return pl.DataFrame(rows, schema_overrides={"size": pl.Int64, **numbers})
