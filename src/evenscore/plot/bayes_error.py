"""Bayes error rates of LLRs over a range of priors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenscore.metrics.detection_cost import bayes_error_curve
from evenscore.metrics.operating_points import PointLike, as_points
from evenscore.plot.style import GREY, MARKERS, PALETTE, SystemsLike, as_systems, axes_or_new, legend

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["plot_bayes_error"]

_HIGHEST = 1.4  # a rate above 1 is worse than no system; how much worse matters little
_MARKS = 8  # per curve, to tell systems apart in grey print


def plot_bayes_error(
    scores: SystemsLike,
    labels: npt.ArrayLike | None = None,
    *,
    log_odds: npt.ArrayLike | None = None,
    points: PointLike | Iterable[PointLike] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw normalized Bayes error rates against the prior log-odds: actual, minimum and default.

    The gap between the actual and the minimum rate is what better calibration could gain at that prior; above 1,
    decisions by the prior alone would be better.

    Parameters
    ----------
    scores, labels
        LLRs, as in `evenscore.metrics.validate`, or `SortedScores`; or several systems by name.
    log_odds
        Prior log-odds, by default 201 values from -10 to 10.
    points
        Operating points to mark on the axis of priors.
    ax
        Where to draw; by default on a new figure.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(2000) % 10 == 0
    >>> ax = plot_bayes_error(rng.normal(np.where(labels, 2.0, -2.0), 2.0), labels)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['actual', 'minimum', 'default']
    """
    systems = as_systems(scores, labels)
    curves = {name: bayes_error_curve(trials, log_odds=log_odds) for name, trials in systems.items()}
    places = () if points is None else as_points(points)
    ax = axes_or_new(ax)
    from matplotlib.lines import Line2D

    entries: list[tuple[Artist, str]] = []
    highest = 1.0
    for place, (name, curve) in enumerate(curves.items()):
        color, marker = PALETTE[place % len(PALETTE)], MARKERS[place % len(MARKERS)]
        every = max(curve.log_odds.size // _MARKS, 1)
        for rate, line in ((curve.actual, "-"), (curve.minimum, "--")):
            (drawn,) = ax.plot(curve.log_odds, rate, color=color, linestyle=line)
            if len(curves) > 1:
                drawn.set(marker=marker, markersize=5, markevery=(every // 2, every))
        if name:
            entries.append((Line2D([], [], color=color, marker=marker, markersize=5, linestyle=""), name))
        highest = max(highest, float(np.max(curve.actual)))
    some = next(iter(curves.values()))
    (default,) = ax.plot(some.log_odds, some.default, color=GREY, linestyle=":")
    color = GREY if len(curves) > 1 else PALETTE[0]
    entries += [(Line2D([], [], color=color), "actual"), (Line2D([], [], color=color, linestyle="--"), "minimum")]
    entries.append((default, "default"))
    for point in places:
        ax.axvline(-point.threshold, color=GREY, linewidth=0.8, zorder=0.9)
    ax.set_xlim(float(np.min(some.log_odds)), float(np.max(some.log_odds)))
    ax.set_ylim(0, min(1.08 * highest, _HIGHEST))
    ax.set_xlabel("Prior log-odds")
    ax.set_ylabel("Normalized Bayes error rate")
    legend(ax, entries, loc="best")
    return ax
