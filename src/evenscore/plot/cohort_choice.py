"""A metric against the size of the cohort, or against top-k."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore.norms.options import usual_count
from evenscore.plot.style import GREY, MARKERS, PALETTE, axes_or_new, legend

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from evenscore.comparison import CohortCandidate, CohortChoice

__all__ = ["plot_cohort_choice"]

_BESIDE = 1.04  # single draws stand a little to the right of their mean
_MOST_TICKS = 10
_METRICS = {"eer": "EER (%)", "min_dcf": "minDCF", "act_dcf": "actDCF", "cllr": "Cllr", "min_cllr": "minCllr"}


def plot_cohort_choice(choice: CohortChoice, *, ax: Axes | None = None) -> Axes:
    """Draw what `choose_cohort` found: the metric against the size of the cohort, or against top-k.

    A vertical bar is the interval of a candidate's mean; small dots are the single draws of a cohort; the dashed line
    is the metric of the raw scores. Candidates that differ in neither size nor top-k stand side by side by name.

    Parameters
    ----------
    choice
        What `choose_cohort` returned.
    ax
        Where to draw; by default on a new figure.

    Examples
    --------
    >>> from evenscore import LabelledBlocks, ScoreModel, choose_cohort, simulate
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.5], [1.5]], beta=[[1.0], [1.0]], sigma2=[1.0, 1.0])
    >>> speakers = [f"s{n // 2}" for n in range(60)]
    >>> dev = LabelledBlocks.own_cohort(*simulate(model, speakers, speakers, seed=1))
    >>> ax = plot_cohort_choice(choose_cohort([dev], "s", sizes=[3, 10, 20], repeats=2, bootstrap=20))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('Cohort members on a side', 'Cllr')
    """
    ax = axes_or_new(ax)
    factor = 100.0 if choice.metric == "eer" else 1.0
    along = _along(choice)
    entries: list[tuple[Artist, str]] = []
    series = _series(choice, along)
    for number, (name, candidates) in enumerate(series.items()):
        look = {"color": PALETTE[number % len(PALETTE)], "marker": MARKERS[number % len(MARKERS)]}
        places = [_place(one, along, choice) for one in candidates]
        entries.append((_draw(ax, places, candidates, factor, look, joined=along != "name"), name))
    raw = ax.axhline(factor * choice.raw, color=GREY, linestyle="--", linewidth=1.2)
    entries.append((raw, "raw"))
    _label(ax, choice, along)
    legend(ax, entries if len(series) > 1 else [entries[-1]], loc="best")
    return ax


def _draw(
    ax: Axes,
    places: list[float],
    candidates: list[CohortCandidate],
    factor: float,
    look: dict[str, Any],
    *,
    joined: bool,
) -> Artist:
    """Draw one line of candidates, with their intervals and single draws; return what stands for it in a legend."""
    order = np.argsort(places, kind="stable")
    x = np.array(places)[order]
    found = [candidates[at] for at in order]
    means = factor * np.array([one.mean for one in found])
    low, high = (factor * np.array([getattr(one.interval, end) for one in found]) for end in ("low", "high"))
    bars = (np.maximum(means - low, 0.0), np.maximum(high - means, 0.0))
    drawn = ax.errorbar(
        x, means, yerr=bars, markersize=5, linestyle="-" if joined else "", capsize=3, elinewidth=1, **look
    )
    for place, one in zip(x, found, strict=True):
        if len(one.values) > 1:
            beside = np.full(len(one.values), place * _BESIDE if joined else place + _BESIDE - 1)
            ax.plot(beside, factor * one.values, ".", color=look["color"], alpha=0.6, markersize=5)
    return drawn.lines[0]


def _along(choice: CohortChoice) -> str:
    """Return what the horizontal axis shows: sizes if they differ, else top-k, else names."""
    for what in ("size", "top_k"):
        if len({getattr(one, what) for one in choice.candidates}) > 1:
            return what
    return "name"


def _series(choice: CohortChoice, along: str) -> dict[str, list[CohortCandidate]]:
    """Return the candidates of each line."""
    series: dict[str, list[CohortCandidate]] = {}
    for one in choice.candidates:
        name = choice.method if along == "name" else one.cohort
        if along == "size" and one.top_k is not None:
            name = f"{name}, top_k {one.top_k}"
        series.setdefault(name, []).append(one)
    return series


def _place(one: CohortCandidate, along: str, choice: CohortChoice) -> float:
    if along == "size":
        return one.members
    if along == "name":
        return float(choice.candidates.index(one))
    if one.top_k is None:
        return usual_count(round(one.members))
    return one.top_k * one.members if isinstance(one.top_k, float) else float(one.top_k)


def _label(ax: Axes, choice: CohortChoice, along: str) -> None:
    ax.set_ylabel(_METRICS[choice.metric])
    if along == "name":
        names = [one.name(choice.unit) for one in choice.candidates]
        ax.set_xticks(range(len(names)), names, parse_math=False, usetex=False)
        ax.set_xlabel("Cohort")
        return
    ax.set_xscale("log")
    places = sorted({_place(one, along, choice) for one in choice.candidates})
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    if len(places) <= _MOST_TICKS:
        ax.xaxis.set_major_locator(FixedLocator(places))
        ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:.4g}"))
    ax.set_xlabel("Cohort members on a side" if along == "size" else "Cohort scores that are taken (top-k)")
