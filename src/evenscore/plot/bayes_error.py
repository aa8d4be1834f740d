"""Bayes error rates of LLRs over a range of priors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenscore.metrics.detection_cost import BayesErrorCurve, bayes_error_curve
from evenscore.metrics.operating_points import PointLike, as_points
from evenscore.plot.style import GREY, MARKERS, PALETTE, SystemsLike, as_systems, axes_or_new, legend

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from evenscore.metrics.forensic import CrossEntropyCurve

__all__ = ["draw_over_priors", "plot_bayes_error"]

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
    ax = draw_over_priors(curves, axes_or_new(ax))
    for point in places:
        ax.axvline(-point.threshold, color=GREY, linewidth=0.8, zorder=0.9)
    ax.set_ylim(0, min(ax.get_ylim()[1], _HIGHEST))
    ax.set_xlabel("Prior log-odds")
    ax.set_ylabel("Normalized Bayes error rate")
    return ax


def draw_over_priors(
    curves: Mapping[str, BayesErrorCurve | CrossEntropyCurve], ax: Axes, *, unit: float = 1.0, loc: str = "best"
) -> Axes:
    """Draw actual, minimum and default curves of systems over the prior log-odds, which are divided by a unit."""
    from matplotlib.lines import Line2D

    entries: list[tuple[Artist, str]] = []
    highest = 0.0
    for place, (name, curve) in enumerate(curves.items()):
        color, marker = PALETTE[place % len(PALETTE)], MARKERS[place % len(MARKERS)]
        every = max(curve.log_odds.size // _MARKS, 1)
        for rate, line in ((curve.actual, "-"), (curve.minimum, "--")):
            (drawn,) = ax.plot(curve.log_odds / unit, rate, color=color, linestyle=line)
            if len(curves) > 1:
                drawn.set(marker=marker, markersize=5, markevery=(every // 2, every))
        if name:
            entries.append((Line2D([], [], color=color, marker=marker, markersize=5, linestyle=""), name))
        highest = max(
            highest, *(float(np.max(rate[np.isfinite(rate)], initial=0.0)) for rate in (curve.actual, curve.default))
        )
    some = next(iter(curves.values()))
    (default,) = ax.plot(some.log_odds / unit, some.default, color=GREY, linestyle=":")
    color = GREY if len(curves) > 1 else PALETTE[0]
    entries += [(Line2D([], [], color=color), "actual"), (Line2D([], [], color=color, linestyle="--"), "minimum")]
    entries.append((default, "default"))
    ax.set_xlim(float(np.min(some.log_odds)) / unit, float(np.max(some.log_odds)) / unit)
    ax.set_ylim(0, 1.08 * highest)
    legend(ax, entries, loc=loc)
    return ax
