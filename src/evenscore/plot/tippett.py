"""Tippett plot: how often LLRs are at least so large."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenscore.metrics.trials import SortedScores
from evenscore.plot.style import (
    CLASS_LOOK,
    GREY,
    SystemsLike,
    as_systems,
    axes_or_new,
    legend,
    percent,
    system_look,
    visible_range,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["plot_tippett"]

_MOST_POINTS = 2000
_WIDTHS = {"target": 1.8, "non-target": 1.0}  # of the lines, to tell the classes of one system apart


def plot_tippett(
    scores: SystemsLike, labels: npt.ArrayLike | None = None, *, log10: bool = False, ax: Axes | None = None
) -> Axes:
    """Draw the share of targets and of non-targets whose LLR is at least so large.

    The share of LLRs on the wrong side of 0, targets below it and non-targets at or above it, stands in the legend of
    one system; of several systems, the targets have the stronger lines.

    Parameters
    ----------
    scores, labels
        LLRs, as in `evenscore.metrics.validate`, or `SortedScores`; or several systems by name.
    log10
        Show logarithms to the base 10, as is usual in forensic reports.
    ax
        Where to draw; by default on a new figure.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(2000) % 10 == 0
    >>> ax = plot_tippett(rng.normal(np.where(labels, 2.0, -2.0), 2.0), labels)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['targets, 17.50 % < 0', 'non-targets, 15.56 % ≥ 0']
    """
    systems = as_systems(scores, labels)
    unit = np.log(10) if log10 else 1.0
    sides = [side for trials in systems.values() for side in (trials.target, trials.nontarget)]
    low, high = visible_range(*sides, np.zeros(1))
    ax = axes_or_new(ax)
    from matplotlib.lines import Line2D

    entries: list[tuple[Artist, str]] = []
    for place, (name, trials) in enumerate(systems.items()):
        for kind, width in _WIDTHS.items():
            side = trials.target if kind == "target" else trials.nontarget
            look = system_look(place) if name else {key: CLASS_LOOK[kind][key] for key in ("color", "linestyle")}
            x, y = _exceedance(trials, side, low, high)
            (line,) = ax.plot(x / unit, y, drawstyle="steps-pre", linewidth=width, **look)
            if not name:
                entries.append((line, f"{kind}s, {_misleading(trials, kind)}"))
        if name:
            entries.append((Line2D([], [], **system_look(place)), name))
    if "" not in systems:
        entries += [(Line2D([], [], color=GREY, linewidth=width), f"{kind}s") for kind, width in _WIDTHS.items()]
    ax.axvline(0, color=GREY, linewidth=0.8, zorder=0.9)
    ax.set_xlim(low / unit, high / unit)
    ax.set_ylim(0, 1.01)
    ax.set_xlabel("Likelihood ratio (log10)" if log10 else "Log-likelihood ratio")
    ax.set_ylabel("Share of trials at or above")
    legend(ax, entries, loc="best")
    return ax


def _misleading(trials: SortedScores, kind: str) -> str:
    """Return the share of LLRs on the wrong side of 0."""
    targets, nontargets = (int(count) for count in trials.below(0.0))
    if kind == "target":
        return f"{percent(float(trials.miss_rate(targets)))} < 0"
    return f"{percent(float(trials.false_alarm_rate(nontargets)))} ≥ 0"


def _exceedance(
    trials: SortedScores, side: npt.NDArray[np.floating], low: float, high: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return scores within the range and the share at or above each; of many trials, at even steps of the share."""
    inside = np.arange(np.searchsorted(side, low), np.searchsorted(side, high, side="right"))
    if inside.size > _MOST_POINTS:
        inside = inside[np.linspace(0, inside.size - 1, _MOST_POINTS).astype(np.intp)]
    x = np.concatenate(([low], side[inside], [high])).astype(np.float64)
    targets, nontargets = trials.below(x)
    share = 1 - trials.miss_rate(targets) if side is trials.target else trials.false_alarm_rate(nontargets)
    return x, share
