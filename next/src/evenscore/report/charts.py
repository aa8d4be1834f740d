"""The charts of the page: DET curves, Bayes error rates and histograms as lines in a drawing, ready for SVG.

Coordinates are rounded to tenths of a unit and curves have a few hundred points, so that the page stays small.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from evenscore.comparison.record import Comparison
from evenscore.metrics import as_points, bayes_error_curve, det_curve, eer
from evenscore.plot.det import RULE_OF_30, det_limits, probit, probit_ticks
from evenscore.plot.style import percent

__all__ = ["Chart", "Curve", "Look", "bayes_chart", "det_chart", "histogram_charts", "looks"]

Floats = npt.NDArray[np.float64]
LOG_ODDS = np.linspace(-8, 8, 161)  #: priors of the Bayes error rates
_MOST_POINTS = 400  # of a DET curve
_BINS = 72
_TAIL = 0.001  # share of a class that may lie beyond either end of a histogram
_HIGHEST = 1.4  # Bayes error rate; above 1, how much worse than no system matters little
_COLOURS = 9  # beside that of the raw scores
_DASHES = ("", "8 3", "2 3", "8 3 2 3")
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 16, 16, 66  # margins of a chart


@dataclass(frozen=True)
class Look:
    """How a method is drawn: the number of its colour in the style sheet, and its dashes."""

    name: str
    colour: int
    dash: str
    shown: bool  #: in charts that show only some methods at first


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A line of a chart; ``values`` are lists of what its tip says about each of its points, as JSON."""

    system: int
    name: str
    css: str
    path: str
    dash: str = ""
    values: str = "[]"
    dot: tuple[float, float, str] | None = None  #: of the equal error rate


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart with axes; places are those of the drawing, whose upper left corner is (0, 0)."""

    kind: str
    width: float
    height: float
    title: str  #: for those who cannot see it
    x_title: str
    y_title: str
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    curves: Sequence[Curve]
    rules: Sequence[tuple[float, float, float, float]] = ()  #: thin lines
    tip: str = ""  #: text with {0}, {1}, ... for the values of a point
    box: tuple[float, float, float, float] = field(init=False)

    def __post_init__(self) -> None:
        ends = (_LEFT, _TOP, self.width - _RIGHT, self.height - _BOTTOM)
        object.__setattr__(self, "box", ends)


@dataclass(frozen=True)
class Scale:
    """From values on both axes to places in a drawing."""

    x: tuple[float, float]
    y: tuple[float, float]
    width: float
    height: float

    def across(self, values: npt.ArrayLike) -> Floats:
        """Return places along the horizontal axis."""
        inner = self.width - _LEFT - _RIGHT
        return np.round(_LEFT + inner * (np.asarray(values) - self.x[0]) / (self.x[1] - self.x[0]), 1)

    def down(self, values: npt.ArrayLike) -> Floats:
        """Return places along the vertical axis, from the top."""
        inner = self.height - _TOP - _BOTTOM
        return np.round(_TOP + inner * (self.y[1] - np.asarray(values)) / (self.y[1] - self.y[0]), 1)

    def path(self, x: npt.ArrayLike, y: npt.ArrayLike) -> str:
        """Return a line through points, as SVG writes it."""
        places = zip(self.across(x).tolist(), self.down(y).tolist(), strict=True)
        return "M" + "L".join(f"{a:g} {b:g}" for a, b in places)


def looks(comparison: Comparison) -> list[Look]:
    """Give each method its look: the raw scores are grey, the recommended one has the first colour."""
    found = []
    number = 0
    for method in sorted(comparison.methods, key=lambda one: one.name != comparison.verdict.use):
        raw, used = method.name == "raw", method.name == comparison.verdict.use
        number += not raw
        dash = "" if raw or number == 1 else _DASHES[(number - 1) % len(_DASHES)]
        best = raw or used or method.name == comparison.best.name
        found.append(Look(method.name, 0 if raw else 1 + (number - 1) % _COLOURS, dash, best))
    order = [method.name for method in comparison.methods]
    return sorted(found, key=lambda look: order.index(look.name))


def det_chart(comparison: Comparison, systems: Sequence[Look]) -> Chart:
    """Return DET curves on probit axes, with the same unit on both."""
    trials = [as_points(method.llrs, comparison.labels, merge=False) for method in comparison.methods]
    low, high = det_limits(trials)
    (left, bottom), (right, top) = probit(low).tolist(), probit(high).tolist()
    inner = 720 - _LEFT - _RIGHT
    height = round(min(max(inner * (top - bottom) / (right - left), 320), 900)) + _TOP + _BOTTOM
    scale = Scale((left, right), (bottom, top), 720, height)
    curves = []
    for number, (look, points) in enumerate(zip(systems, trials, strict=True)):
        curve, rate = det_curve(points), eer(points)
        x, y = probit(np.clip(curve.p_fa, low[0] / 2, 1)), probit(np.clip(curve.p_miss, low[1] / 2, 1))
        keep = _spread(y - x, _MOST_POINTS)  # which never falls along the curve
        values = [100 * curve.p_miss[keep], 100 * curve.p_fa[keep], curve.threshold[keep]]
        dot = float(scale.across(probit(rate))), float(scale.down(probit(rate))), f"{look.name}: EER {percent(rate)}"
        path = scale.path(x[keep], y[keep])
        curves.append(_curve(number, look, path=path, dash=look.dash, values=_json(values, 3), dot=dot))
    few = probit(RULE_OF_30 / np.array([trials[0].n_nontarget, trials[0].n_target]))
    return Chart(
        kind="det",
        width=scale.width,
        height=height,
        title=f"DET curves of {len(curves)} methods on probit axes",
        x_title="False-alarm rate (%)",
        y_title="Miss rate (%)",
        x_ticks=[
            (float(scale.across(probit(rate))), f"{100 * rate:g}")
            for rate in probit_ticks(low[0], high[0], room=64 / inner)
        ],
        y_ticks=[
            (float(scale.down(probit(rate))), f"{100 * rate:g}")
            for rate in probit_ticks(low[1], high[1], room=34 / (height - _TOP - _BOTTOM))
        ],
        curves=curves,
        rules=[_upright(scale, few[0]), _level(scale, few[1])],
        tip="misses {0} %, false alarms {1} %, threshold {2}",
    )


def bayes_chart(comparison: Comparison, systems: Sequence[Look]) -> Chart:
    """Return actual (full line) and minimum (dashed) normalized Bayes error rates over the prior log-odds."""
    curves = [bayes_error_curve(one.llrs, comparison.labels, log_odds=LOG_ODDS) for one in comparison.methods]
    shown = np.abs(LOG_ODDS) <= 7
    highest = max(float(np.max(curve.actual[shown])) for curve in curves)
    scale = Scale((-8.0, 8.0), (0.0, min(max(1.05 * highest, 1.08), _HIGHEST)), 720, 440)
    lines = []
    for number, (look, curve) in enumerate(zip(systems, curves, strict=True)):
        for kind, rates, dash in (("actual", curve.actual, ""), ("minimum", curve.minimum, "6 4")):
            path = scale.path(LOG_ODDS, np.minimum(rates, 2 * scale.y[1]))
            values = _json([LOG_ODDS, rates], 3)
            lines.append(_curve(number, look, path=path, dash=dash, values=values, kind=kind))
    points = [-point.threshold for point in comparison.settings.points]
    return Chart(
        kind="bayes",
        width=scale.width,
        height=scale.height,
        title=f"Normalized Bayes error rates of {len(systems)} methods against the prior log-odds from -8 to 8",
        x_title="Prior log-odds of a target",
        y_title="Normalized Bayes error rate",
        x_ticks=[(float(scale.across(at)), f"{at:g}".replace("-", "−")) for at in range(-8, 9, 2)],
        y_ticks=[(float(scale.down(at)), f"{at:g}") for at in _round_ticks(*scale.y)],
        curves=lines,
        rules=[*(_upright(scale, point) for point in points if abs(point) < 8), _level(scale, 1.0)],
        tip="prior log-odds {0}, Bayes error {1}",
    )


def histogram_charts(comparison: Comparison) -> list[Chart]:
    """Return a histogram of the normalized scores of each method, non-targets and targets, each with area 1."""
    return [_histogram(method.name, method.scores, comparison.labels) for method in comparison.methods]


def _histogram(name: str, scores: Floats, labels: npt.NDArray[np.int8]) -> Chart:
    sides = [scores[(labels == label) & np.isfinite(scores)] for label in (0, 1)]
    ends = [np.quantile(side, [_TAIL, 1 - _TAIL]) for side in sides if side.size] or [np.array([0.0, 1.0])]
    low, high = float(np.min(ends)), float(np.max(ends))
    low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
    edges = np.linspace(low, high, _BINS + 1)
    heights = [np.histogram(side, edges)[0] / (max(side.size, 1) * (edges[1] - edges[0])) for side in sides]
    scale = Scale((low, high), (0.0, 1.06 * (max(float(one.max()) for one in heights) or 1.0)), 560, 340)
    curves = []
    for css, text, density in zip(("nontarget", "target"), ("non-targets", "targets"), heights, strict=True):
        steps = np.concatenate([[0.0], np.repeat(density, 2), [0.0]])
        values = _json([np.repeat(edges, 2), steps], 3)
        dash = "2 3" if css == "nontarget" else ""
        path = scale.path(np.repeat(edges, 2), steps)
        curves.append(Curve(system=0, name=text, css=f"area {css}", path=path, dash=dash, values=values))
    return Chart(
        kind="histogram",
        width=scale.width,
        height=scale.height,
        title=f"Histograms of the scores of non-targets and of targets, {name}",
        x_title="Score",
        y_title="Density",
        x_ticks=[(float(scale.across(at)), f"{at:g}".replace("-", "−")) for at in _round_ticks(low, high, 6)],
        y_ticks=[(float(scale.down(at)), f"{at:g}") for at in _round_ticks(*scale.y)],
        curves=curves,
        tip="score {0}, density {1}",
    )


def _curve(
    number: int,
    look: Look,
    *,
    path: str,
    dash: str,
    values: str,
    kind: str = "",
    dot: tuple[float, float, str] | None = None,
) -> Curve:
    """Return a curve of a method; that of the first colour is the strongest."""
    css = f"stroke-{look.colour}{' strong' if look.colour == 1 and kind != 'minimum' else ''}"
    name = f"{look.name}, {kind}" if kind else look.name
    return Curve(system=number, name=name, css=css, path=path, dash=dash, values=values, dot=dot)


def _spread(places: Floats, most: int) -> npt.NDArray[np.intp]:
    """Return which of many rising places to draw, evenly spread."""
    if places.size <= most:
        return np.arange(places.size)
    return np.unique(np.searchsorted(places, np.linspace(places[0], places[-1], most)))


def _json(columns: Sequence[Floats], digits: int) -> str:
    """Return columns of short numbers as JSON, which knows no infinity: null stands there."""
    shorter = [[float(f"{x:.{digits}g}") if math.isfinite(x) else None for x in column.tolist()] for column in columns]
    return json.dumps(shorter, separators=(",", ":"))


def _upright(scale: Scale, x: float) -> tuple[float, float, float, float]:
    at = float(scale.across(x))
    return at, _TOP, at, scale.height - _BOTTOM


def _level(scale: Scale, y: float) -> tuple[float, float, float, float]:
    at = float(scale.down(y))
    return _LEFT, at, scale.width - _RIGHT, at


def _round_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Return at most so many round numbers between two others.

    Examples
    --------
    >>> _round_ticks(-0.3, 1.4)
    [-0.2, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4]
    """
    rough = (high - low) / most
    unit = 10.0 ** math.floor(math.log10(rough))
    step = unit * next(factor for factor in (1, 2, 5, 10) if factor * unit >= rough * (1 - 1e-9))
    return [round(k * step, 12) for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
