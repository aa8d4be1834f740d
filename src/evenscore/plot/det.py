"""Detection error trade-off: misses against false alarms, on probit axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics import DetBand, Points, det_curve, detection_costs, eer, miss_rate_at
from evenscore.metrics.costs import PointLike, as_operating_points
from evenscore.metrics.points import Floats, LabelsLike
from evenscore.plot.style import GREY, SystemsLike, legend, percent, start_figure

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["RULE_OF_30", "det_limits", "plot_det", "probit", "probit_ticks"]

RULE_OF_30 = 30  #: errors from which a rate is within 30 % of the truth with 90 % confidence


def plot_det(
    scores: SystemsLike,
    labels: LabelsLike = None,
    *,
    points: PointLike | Iterable[PointLike] | None = None,
    band: DetBand | Mapping[str, DetBand] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw DET curves: the miss rate against the false-alarm rate at all thresholds, on probit axes.

    Dotted lines mark the rates that rest on 30 errors; beyond them, the curves say little.

    Parameters
    ----------
    scores, labels
        As in `evenscore.evaluate`; or several systems by name.
    points
        Operating points. Each is marked on each curve, open at the minimum cost and filled at the actual one.
    band
        Confidence band of `bootstrap_det`; or bands by name of system.
    ax
        Where to draw; by default on a new figure.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(2000) % 10 == 0
    >>> scores = rng.normal(3.0 * labels)
    >>> ax = plot_det({"clean": scores, "noisy": scores + rng.normal(size=2000)}, labels, points=0.05)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['clean (EER 6.33 %)', 'noisy (EER 13.94 %)', 'min (open), act DCF, p = 0.05', '30 misses or false alarms']
    """
    places = () if points is None else as_operating_points(points)
    ax, systems = start_figure(scores, labels, ax, thresholds=[place.threshold for place in places])
    bands = {systems[0].name: band} if isinstance(band, DetBand) else band or {}
    for name in {*bands}.difference(system.name for system in systems):
        raise InputError(f"there is a band for {name!r}, but no such system; give bands by name of system")
    low, high = det_limits([system.trials for system in systems])
    entries: list[tuple[Artist, str]] = []
    marks: dict[str, Artist] = {}
    markers = ("s", "^", "D", "v", "P", "X")  # of operating points; the dot is the EER
    for name, trials, color, style, _ in systems:
        rate, curve = eer(trials), det_curve(trials, most=4000)  # finer steps cannot be seen
        (line,) = ax.plot(curve.p_fa, curve.p_miss, color=color, linestyle=style, zorder=3)
        entries.append((line, f"{name} (EER {percent(rate)})" if name else f"EER {percent(rate)}"))
        ax.plot(rate, rate, "o", color=color, markersize=5, zorder=4)
        if name in bands:
            ends = bands[name].low, bands[name].high
            ax.fill_between(bands[name].p_fa, *ends, color=color, alpha=0.2, linewidth=0, zorder=1)
        for at, cost in enumerate(detection_costs(trials, points=places) if places else ()):
            marker = markers[at % len(markers)]
            (opened,) = ax.plot(cost.min_p_fa, cost.min_p_miss, marker, color=color, markersize=6, zorder=5)
            opened.set_markerfacecolor(ax.get_facecolor())
            ax.plot(cost.act_p_fa, cost.act_p_miss, marker, color=color, markersize=6, zorder=5)
            point = cost.point
            costs = "" if point.c_miss == point.c_fa == 1 else f", costs {point.c_miss:g}:{point.c_fa:g}"
            marks.setdefault(f"min (open), act DCF, p = {point.p_target:g}{costs}", opened)
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.6, zorder=0.9)
    entries += [(mark, text) for text, mark in marks.items()]
    for n_target, n_nontarget in dict.fromkeys((one.trials.n_target, one.trials.n_nontarget) for one in systems):
        rule = ax.axhline(RULE_OF_30 / n_target, color=GREY, linestyle=":", linewidth=1, zorder=0.9)
        ax.axvline(RULE_OF_30 / n_nontarget, color=GREY, linestyle=":", linewidth=1, zorder=0.9)
    entries.append((rule, "30 misses or false alarms"))
    _set_probit_axes(ax, low, high)
    ax.set(xlabel="False-alarm rate (%)", ylabel="Miss rate (%)")
    legend(ax, entries)
    return ax


def probit(rate: npt.ArrayLike) -> Floats:
    """Return the quantile of the standard normal distribution; 0 and 1 are taken as 1e-12 and 1 - 1e-12."""
    from scipy.special import ndtri

    return np.asarray(ndtri(np.clip(rate, 1e-12, 1 - 1e-12)))


def det_limits(systems: list[Points]) -> tuple[Floats, Floats]:
    """Return the lowest and the highest rates (false alarms, misses) to show: what the curves have below the top."""
    worst = max(eer(trials) for trials in systems)
    high = next(top for limit, top in ((0.03, 0.4), (0.1, 0.8), (0.2, 0.95), (1.0, 0.99)) if worst <= limit)
    fa, miss = [], []
    for trials in systems:
        fa.append(max(trials.p_fa[np.searchsorted(trials.p_miss, high, side="right") - 1], 1 / trials.n_nontarget))
        miss.append(max(miss_rate_at(trials, p_fa=high).p_miss, 1 / trials.n_target))
    return np.clip([min(fa) / 2, min(miss) / 2], 1e-6, 0.02), np.array([high, high])


def _set_probit_axes(ax: Axes, low: Floats, high: Floats) -> None:
    """Make both axes probit axes between these rates, with the same unit on both and ticks in percent."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
    from scipy.special import ndtr

    size = ax.get_window_extent()
    points = 72 / ax.figure.dpi  # of length in a pixel; labels need 34 of them across, 15 down
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))  # before the scale, too: its inverse knows rates only
    ax.set_xscale("function", functions=(probit, ndtr))
    ax.set_yscale("function", functions=(probit, ndtr))
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    ax.xaxis.set_major_locator(FixedLocator(probit_ticks(low[0], high[0], space=34 / (size.width * points))))
    ax.yaxis.set_major_locator(FixedLocator(probit_ticks(low[1], high[1], space=15 / (size.height * points))))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda rate, _: f"{100 * rate:.6g}"))
        axis.set_minor_locator(NullLocator())
    ax.set_aspect("equal", adjustable="box")


def probit_ticks(low: float, high: float, *, space: float) -> list[float]:
    """Return the usual ticks of DET plots between two rates, at least the share ``space`` of the axis apart."""
    first, last = probit([low, high]).tolist()
    kept: dict[float, float] = {}
    ticks = (  # where they would be crowded, the first ones are kept
        *(0.01, 0.1, 0.4, 0.001, 0.0001, 0.00001, 0.05, 0.2, 0.02, 0.005, 0.8, 0.95, 0.99, 0.6, 0.9, 0.98),
        *(0.002, 0.0005, 0.0002, 0.00005, 0.00002, 0.000005, 0.000002, 0.000001, 0.995, 0.998, 0.999),
        *(0.3, 0.03, 0.5, 0.7, 0.07, 0.15, 0.04, 0.06, 0.08, 0.003, 0.007, 0.0003, 0.0007),
    )
    for rate in ticks:
        place = float(probit(rate))
        far = all(abs(place - other) >= space * (last - first) for other in kept.values())
        if first - 1e-9 <= place <= last + 1e-9 and far:
            kept[rate] = place
    return sorted(kept)
