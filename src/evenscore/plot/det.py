"""Detection error trade-off: misses against false alarms, on probit axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.detection_cost import DetectionCost, detection_costs
from evenscore.metrics.error_rates import equal_error_rate, p_fa_at, p_miss_at
from evenscore.metrics.hull import roc
from evenscore.metrics.operating_points import OperatingPoint, PointLike, as_points
from evenscore.metrics.trials import SortedScores
from evenscore.metrics.uncertainty import DetBand
from evenscore.plot.style import GREY, MARKERS, SystemsLike, as_systems, axes_or_new, legend, percent, system_look

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["plot_det"]

_MOST_POINTS = 6000  # of a curve: steps that are finer cannot be seen
_RULE = 30  # errors that make a rate trustworthy: with 30, it is within 30 % of the truth with 90 % confidence
_SMALLEST = 1e-6  # rate that is shown
# Highest rate that is shown when all systems have a lower EER, so that there is room above the curves.
_HIGHEST = {0.03: 0.4, 0.1: 0.8, 0.2: 0.95, 1.0: 0.99}


def plot_det(
    scores: SystemsLike,
    labels: npt.ArrayLike | None = None,
    *,
    points: PointLike | Iterable[PointLike] | None = None,
    band: DetBand | Mapping[str, DetBand] | None = None,
    rule_of_30: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw DET curves: the miss rate against the false-alarm rate at all thresholds, on probit axes.

    Parameters
    ----------
    scores, labels
        As in `evenscore.metrics.validate`, or `SortedScores`; or several systems by name.
    points
        Operating points, as in `detection_costs`. Each is marked on each curve, open at the minimum cost and full at
        the actual one.
    band
        Confidence band of `bootstrap_det`; or bands by name of system.
    rule_of_30
        Mark the rates that rest on 30 errors; beyond, the curve says little.
    ax
        Where to draw; by default on a new figure.

    Returns
    -------
    Axes
        Their scale and limits are in rates, so ``ax.set_xlim(0.001, 0.4)`` shows 0.1 to 40 per cent.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(2000) % 10 == 0
    >>> scores = rng.normal(3.0 * labels)
    >>> noisy = scores + rng.normal(size=2000)
    >>> ax = plot_det({"clean": scores, "noisy": noisy}, labels, points=0.05)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['clean (EER 6.33 %)', 'noisy (EER 13.94 %)', 'min (open), act DCF, p = 0.05', '30 misses or false alarms']
    """
    systems = as_systems(scores, labels)
    places = () if points is None else as_points(points)
    bands = _bands(band, systems)
    ax = axes_or_new(ax)
    from evenscore.plot.probit_axis import set_probit_axes

    rates = {}
    entries: list[tuple[Artist, str]] = []
    for place, (name, trials) in enumerate(systems.items()):
        look = system_look(place)
        rates[name] = equal_error_rate(trials).eer
        (line,) = ax.plot(*_curve(trials), **look, zorder=3)
        if name in bands:
            shown = bands[name]
            ax.fill_between(shown.p_fa, shown.low, shown.high, color=look["color"], alpha=0.2, linewidth=0, zorder=1)
        ax.plot(rates[name], rates[name], "o", color=look["color"], markersize=5, zorder=4)
        costs = detection_costs(trials, points=places) if places else []
        for cost, marker in zip(costs, _marks(places), strict=True):
            _mark_costs(ax, cost, marker, look["color"])
        entries.append((line, f"{name} (EER {percent(rates[name])})" if name else f"EER {percent(rates[name])}"))
    low, high = _limits(systems, max(rates.values()))
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.6, zorder=0.9)
    entries += _point_entries(places)
    if rule_of_30:
        entries += _mark_rule_of_30(ax, systems)
    set_probit_axes(ax, low, high)
    ax.set_xlabel("False-alarm rate (%)")
    ax.set_ylabel("Miss rate (%)")
    legend(ax, entries, loc="best")
    return ax


def _bands(band: DetBand | Mapping[str, DetBand] | None, systems: Mapping[str, SortedScores]) -> Mapping[str, DetBand]:
    if band is None:
        return {}
    if isinstance(band, Mapping):
        unknown = [name for name in band if name not in systems]
        if unknown:
            raise InputError(f"there is a band for {unknown[0]!r}, but no such system; name it as the system")
        return band
    if len(systems) > 1:
        raise InputError(f"there is one band for {len(systems)} systems; give bands by name of system")
    return dict.fromkeys(systems, band)


def _curve(trials: SortedScores) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return false-alarm and miss rates of the corners of the ROC, without those that lie too close to be seen."""
    from evenscore.plot.probit_axis import probit

    curve = roc(trials)
    if curve.p_fa.size <= _MOST_POINTS:
        return curve.p_fa, curve.p_miss
    path = probit(curve.p_miss) - probit(curve.p_fa)  # never falls along the curve
    keep = np.unique(np.searchsorted(path, np.linspace(path[0], path[-1], _MOST_POINTS)))
    return curve.p_fa[keep], curve.p_miss[keep]


def _marks(points: tuple[OperatingPoint, ...]) -> list[str]:
    return [MARKERS[1 + place % (len(MARKERS) - 1)] for place in range(len(points))]


def _mark_costs(ax: Axes, cost: DetectionCost, marker: str, color: str) -> None:
    """Mark the two decisions of one operating point."""
    look: dict[str, Any] = {"color": color, "markersize": 6, "zorder": 5, "linestyle": ""}
    ax.plot(cost.min_p_fa, cost.min_p_miss, marker, markerfacecolor="white", **look)
    ax.plot(cost.act_p_fa, cost.act_p_miss, marker, **look)


def _point_entries(points: tuple[OperatingPoint, ...]) -> list[tuple[Artist, str]]:
    from matplotlib.lines import Line2D

    entries: list[tuple[Artist, str]] = []
    for point, marker in zip(points, _marks(points), strict=True):
        costs = "" if point.c_miss == point.c_fa == 1 else f", costs {point.c_miss:g}:{point.c_fa:g}"
        shown = Line2D([], [], color=GREY, marker=marker, markerfacecolor="white", linestyle="")
        entries.append((shown, f"min (open), act DCF, p = {point.p_target:g}{costs}"))
    return entries


def _mark_rule_of_30(ax: Axes, systems: Mapping[str, SortedScores]) -> list[tuple[Artist, str]]:
    """Draw a line at 30 misses and at 30 false alarms; systems on as many trials share them."""
    lines: list[Artist] = []
    for trials in systems.values():
        if trials.target_mass is not None:
            continue  # weighted trials have no number of errors
        lines += [
            draw(_RULE / side.size, color=GREY, linestyle=(0, (1, 2)), linewidth=1, zorder=0.9)
            for draw, side in ((ax.axvline, trials.nontarget), (ax.axhline, trials.target))
            if side.size > _RULE
        ]
    return [(lines[0], "30 misses or false alarms")] if lines else []


def _limits(systems: Mapping[str, SortedScores], worst: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the lowest and highest rates to show.

    Up to 40 %, or more for poor systems; down to single errors, or to where the curves leave the figure.
    """
    high = next(high for limit, high in _HIGHEST.items() if worst <= limit)
    fa = min(max(p_fa_at(high, trials), 1 / trials.nontarget.size) for trials in systems.values())
    miss = min(max(p_miss_at(high, trials), 1 / trials.target.size) for trials in systems.values())
    return (min(max(fa / 2, _SMALLEST), 0.02), min(max(miss / 2, _SMALLEST), 0.02)), (high, high)
