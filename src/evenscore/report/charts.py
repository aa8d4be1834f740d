"""The charts of the page: DET curves, Bayes error rates and histograms as lines in a drawing, ready for SVG.

Coordinates are rounded to tenths of a unit and curves have a few hundred points, so that the page stays small.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenscore.comparison.record import Comparison
from evenscore.metrics import as_points, bayes_error_curve, det_curve, eer
from evenscore.metrics.points import Floats
from evenscore.plot.det import RULE_OF_30, det_limits, probit, probit_ticks
from evenscore.plot.style import percent

__all__ = ["Chart", "Curve", "Look", "bayes_chart", "det_chart", "histogram_charts", "looks"]

_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 16, 16, 66  # margins of a chart


@dataclass(frozen=True)
class Look:
    """How a method is drawn: the number of its colour in the style sheet, and its dashes."""

    name: str
    colour: int
    dash: str
    used: bool  #: the recommended one; the best one if that is raw
    shown: bool  #: in charts that show only some methods at first


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A line of a chart; ``values`` are lists of what its tip says about each of its points, as JSON."""

    system: int
    name: str
    css: str
    path: str
    dash: str
    values: str
    dot: tuple[float, float, str] | None = None  #: of the equal error rate


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart with axes; places are those of the drawing, whose upper left corner is (0, 0)."""

    kind: str
    width: float
    height: float
    box: tuple[float, float, float, float]  #: left, top, right and bottom of the axes
    title: str  #: for those who cannot see it
    x_title: str
    y_title: str
    x_ticks: Sequence[tuple[float, str, bool]]  #: place, label, and whether it is for a closer look only
    y_ticks: Sequence[tuple[float, str, bool]]
    upright: Sequence[float]  #: places of thin lines
    level: Sequence[float]
    curves: Sequence[Curve]
    tip: str  #: text with {0}, {1}, ... for the values of a point


@dataclass(frozen=True)
class _Frame:
    """From the values of both axes to places in a drawing of this size."""

    x: tuple[float, float]
    y: tuple[float, float]
    width: float
    height: float

    def place(self, x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
        """Return places from the left and from the top, to tenths of a unit."""
        across = (np.asarray(x) - self.x[0]) / (self.x[1] - self.x[0])
        down = (self.y[1] - np.asarray(y)) / (self.y[1] - self.y[0])
        left = _LEFT + (self.width - _LEFT - _RIGHT) * across
        return np.round(left, 1), np.round(_TOP + (self.height - _TOP - _BOTTOM) * down, 1)

    def path(self, x: ArrayLike, y: ArrayLike) -> str:
        """Return a line through points, as SVG writes it."""
        across, down = self.place(x, y)
        return "M" + "L".join(f"{a:g} {b:g}" for a, b in zip(across.tolist(), down.tolist(), strict=True))

    def chart(
        self,
        kind: str,
        titles: tuple[str, str, str],
        ticks: Sequence[dict[float, str]],
        fine: Sequence[dict[float, str]],
        rules: Sequence[Sequence[float]],
        curves: Sequence[Curve],
        tip: str,
    ) -> Chart:
        """Return a chart; titles are those of the whole and of both axes, ticks and rules are values on both axes."""
        x_ticks, y_ticks = ticks[0] | fine[0], ticks[1] | fine[1]
        across, down = self.place(list(x_ticks), list(y_ticks))
        upright, level = self.place(rules[0], rules[1])
        return Chart(
            kind=kind,
            width=self.width,
            height=self.height,
            box=(_LEFT, _TOP, self.width - _RIGHT, self.height - _BOTTOM),
            title=titles[0],
            x_title=titles[1],
            y_title=titles[2],
            x_ticks=[(at, x_ticks[x], x not in ticks[0]) for at, x in zip(across.tolist(), x_ticks, strict=True)],
            y_ticks=[(at, y_ticks[y], y not in ticks[1]) for at, y in zip(down.tolist(), y_ticks, strict=True)],
            upright=upright.tolist(),
            level=level.tolist(),
            curves=curves,
            tip=tip,
        )


def looks(comparison: Comparison) -> list[Look]:
    """Give each method its look: the raw scores are grey, the recommended one has the first colour."""
    use = comparison.best.name if comparison.verdict.use == "raw" else comparison.verdict.use
    names = [use, *(method.name for method in comparison.methods if method.name not in (use, "raw"))]
    found, n_colours, dashes = [], 9, ("", "8 3", "2 3", "8 3 2 3")  # as in the style sheet, which has grey as well
    for method in comparison.methods:
        at = -1 if method.name == "raw" else names.index(method.name)
        shown = at <= 0 or method is comparison.best
        dash = "" if at < 0 else dashes[at % len(dashes)]
        found.append(Look(method.name, 1 + at % n_colours if at >= 0 else 0, dash, at == 0, shown))
    return found


def det_chart(comparison: Comparison, systems: Sequence[Look]) -> Chart:
    """Return DET curves on probit axes, with the same unit on both."""
    trials = [as_points(method.llrs, comparison.labels, merge=False) for method in comparison.methods]
    low, high = det_limits(trials)
    (left, bottom), (right, top) = probit(low).tolist(), probit(high).tolist()
    across = 720 - _LEFT - _RIGHT
    down = round(min(max(across * (top - bottom) / (right - left), 320), 900))
    frame = _Frame((left, right), (bottom, top), 720, down + _TOP + _BOTTOM)
    curves, most = [], 400  # points of a curve
    for number, (look, points) in enumerate(zip(systems, trials, strict=True)):
        curve, rate = det_curve(points), eer(points)
        x, y = probit(np.clip(curve.p_fa, low[0] / 2, 1)), probit(np.clip(curve.p_miss, low[1] / 2, 1))
        steps = np.linspace(y[0] - x[0], y[-1] - x[-1], most)  # y - x never falls along the curve
        keep = np.unique(np.searchsorted(y - x, steps)) if x.size > most else np.arange(x.size)
        a, b = frame.place(probit(rate), probit(rate))
        values = [100 * curve.p_miss[keep], 100 * curve.p_fa[keep], curve.threshold[keep]]
        curves.append(
            Curve(
                system=number,
                name=look.name,
                css=f"stroke-{look.colour}{' strong' * look.used}",
                path=frame.path(x[keep], y[keep]),
                dash=look.dash,
                values=_json(values),
                dot=(float(a), float(b), f"{look.name}: EER {percent(rate)}"),
            )
        )
    ticks, fine = (
        tuple(
            {float(probit(rate)): f"{100 * rate:g}" for rate in probit_ticks(low[k], high[k], space=space / closer)}
            for k, space in ((0, 64 / across), (1, 34 / down))
        )
        for closer in (1, 4)
    )
    few = probit(RULE_OF_30 / np.array([trials[0].n_nontarget, trials[0].n_target])).tolist()
    titles = f"DET curves of {len(curves)} methods on probit axes", "False-alarm rate (%)", "Miss rate (%)"
    tip = "misses {0} %, false alarms {1} %, threshold {2}"
    return frame.chart("det", titles, ticks, fine, (few[:1], few[1:]), curves, tip)


def bayes_chart(comparison: Comparison, systems: Sequence[Look]) -> Chart:
    """Return actual (full line) and minimum (dashed) normalized Bayes error rates over the prior log-odds."""
    log_odds = np.linspace(-8, 8, 161)
    found = [bayes_error_curve(one.llrs, comparison.labels, log_odds=log_odds) for one in comparison.methods]
    highest = max(float(np.max(curve.actual[np.abs(log_odds) <= 7])) for curve in found)
    highest = min(max(1.05 * highest, 1.08), 1.4)  # above 1, how much worse than no system matters little
    frame = _Frame((-8.0, 8.0), (0.0, highest), 720, 440)
    curves = []
    for number, (look, curve) in enumerate(zip(systems, found, strict=True)):
        for kind, rates, dash in (("actual", curve.actual, ""), ("minimum", curve.minimum, "6 4")):
            curves.append(
                Curve(
                    system=number,
                    name=f"{look.name}, {kind}",
                    css=f"stroke-{look.colour}{' strong' * (look.used and kind == 'actual')}",
                    path=frame.path(log_odds, np.minimum(rates, 2 * frame.y[1])),
                    dash=dash,
                    values=_json([log_odds, rates]),
                )
            )
    points = [-point.threshold for point in comparison.settings.points if abs(point.threshold) < 8]
    titles = f"Normalized Bayes error rates of {len(systems)} methods against the prior log-odds from -8 to 8"
    axes = "Prior log-odds of a target", "Normalized Bayes error rate"
    ticks, fine = ((round_ticks(*frame.x, most), round_ticks(*frame.y, most)) for most in (8, 32))
    tip = "prior log-odds {0}, Bayes error {1}"
    return frame.chart("bayes", (titles, *axes), ticks, fine, (points, [1.0]), curves, tip)


def histogram_charts(comparison: Comparison) -> list[Chart]:
    """Return a histogram of the normalized scores of each method, non-targets and targets, each with area 1."""
    charts, classes = [], ("nontarget", "target")  # in the style sheet
    for method in comparison.methods:
        finite = np.isfinite(method.scores)
        sides = [method.scores[finite & (comparison.labels == label)] for label in (0, 1)]
        ends = [np.quantile(side, [0.001, 0.999]) for side in sides if side.size] or [np.array([0.0, 1.0])]
        low, high = float(np.min(ends)), float(np.max(ends))
        low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
        edges = np.linspace(low, high, 73)
        heights = [np.histogram(side, edges)[0] / (max(side.size, 1) * (edges[1] - edges[0])) for side in sides]
        frame = _Frame((low, high), (0.0, 1.06 * (float(np.max(heights)) or 1.0)), 560, 340)
        curves = []
        for css, name, dash, density in zip(classes, ("non-targets", "targets"), ("2 3", ""), heights, strict=True):
            x, y = np.repeat(edges, 2), np.concatenate([[0.0], np.repeat(density, 2), [0.0]])
            path, values = frame.path(x, y), _json([x, y])
            curves.append(Curve(system=0, name=name, css=f"area {css}", path=path, dash=dash, values=values))
        title = f"Histograms of the scores of non-targets and of targets, {method.name}"
        ticks = round_ticks(low, high, 6), round_ticks(*frame.y)
        tip = "score {0}, density {1}"
        charts.append(frame.chart("histogram", (title, "Score", "Density"), ticks, ticks, ((), ()), curves, tip))
    return charts


def _json(columns: Sequence[Floats]) -> str:
    """Return columns of short numbers as JSON, which knows no infinity: null stands there."""
    shorter = [[float(f"{x:.3g}") if math.isfinite(x) else None for x in column.tolist()] for column in columns]
    return json.dumps(shorter, separators=(",", ":"))


def round_ticks(low: float, high: float, most: int = 8) -> dict[float, str]:
    """Return about so many round numbers between two others, and how they are written.

    Examples
    --------
    >>> round_ticks(-0.3, 1.0)
    {-0.2: '−0.2', 0.0: '0', 0.2: '0.2', 0.4: '0.4', 0.6: '0.6', 0.8: '0.8', 1.0: '1'}
    """
    rough = (high - low) / most
    unit = 10.0 ** math.floor(math.log10(rough))
    step = unit * next(factor for factor in (1, 2, 5, 10) if factor * unit >= rough * (1 - 1e-9))
    found = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return {round(k * step, 12): f"{k * step:.6g}".replace("-", "−") for k in found}
