"""The numbers of the plots, for the scripts of the page, and the same in short tables for those who read tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evenscore.metrics import OperatingPoint, SortedScores, bayes_error_curve, p_miss_at
from evenscore.metrics.detection_cost import BayesErrorCurve
from evenscore.report.content import System, Table
from evenscore.report.curves import DetCurve, Histogram, det_curve, det_range, histogram, probit
from evenscore.report.numbers import json_numbers, percent

if TYPE_CHECKING:
    from evenscore.comparison.comparison import Comparison, MethodResult

__all__ = ["Curves", "bayes_table", "curves_of", "det_table", "histogram_table", "plot_numbers", "systems_of"]

# The usual ticks of DET plots; where they would be crowded, the first ones stay. Then finer ones for a closer look.
_USUAL_TICKS = (
    *(0.01, 0.1, 0.4, 0.001, 0.0001, 0.00001, 0.05, 0.2, 0.02, 0.005, 0.8, 0.95, 0.99, 0.6, 0.9, 0.98),
    *(0.002, 0.0005, 0.0002, 0.00005, 0.00002, 0.000005, 0.000002),
)
_FINE_TICKS = (
    *(0.5, 0.3, 0.03, 0.7, 0.15, 0.04, 0.07, 0.06, 0.08, 0.09, 0.25, 0.003, 0.004, 0.007, 0.0003, 0.0007),
    *(0.015, 0.025, 0.035, 0.045, 0.055, 0.065, 0.12, 0.14, 0.17, 0.35, 0.45),
)
_RULE = 30  # errors that make a rate trustworthy
_LOG_ODDS = np.linspace(-8, 8, 161)
_TABLE_RATES = (0.0001, 0.001, 0.01, 0.05, 0.1)
_TABLE_ODDS = (-6.0, -4.0, -2.0, 0.0, 2.0, 4.0, 6.0)
_KINDS: tuple[Literal["llrs"], Literal["scores"]] = ("llrs", "scores")
_QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_HIGHEST_ERROR = 1.4  # above 1, how much worse than no system matters little
_COLOURS = 9  # beside that of the raw scores
_DASHES = ("", "8px,3px", "2px,3px", "8px,3px,2px,3px")


@dataclass(frozen=True, kw_only=True, eq=False)
class Curves:
    """What the plots show of one method; small, whatever the number of trials."""

    det: DetCurve
    bayes: BayesErrorCurve
    histogram: Histogram
    misses: Sequence[float]  #: at the false-alarm rates of the table
    quantiles: Sequence[Sequence[float]]  #: of the scores of non-targets and of targets
    n_nontarget: int
    n_target: int


def curves_of(comparison: Comparison, method: MethodResult) -> Curves:
    """Return the curves of one method."""
    llrs, scores = (comparison.sorted_scores(method.name, kind) for kind in _KINDS)
    return Curves(
        det=det_curve(llrs),
        bayes=bayes_error_curve(llrs, log_odds=_LOG_ODDS),
        histogram=histogram(scores),
        misses=[p_miss_at(rate, llrs) for rate in _TABLE_RATES],
        quantiles=_quantiles(scores, method.figures.values["n_nontarget"], method.figures.values["n_target"]),
        n_nontarget=method.figures.values["n_nontarget"],
        n_target=method.figures.values["n_target"],
    )


def _quantiles(scores: SortedScores, *sizes: int) -> list[list[float]]:
    found = []
    sides = (scores.nontarget, scores.nontarget_mass), (scores.target, scores.target_mass)
    for (side, mass), size in zip(sides, sizes, strict=True):
        rank = np.round(np.array(_QUANTILES) * (size - 1)).astype(np.int64)
        if mass is not None:  # bins of many scores: the one in which that rank falls
            rank = np.minimum(np.searchsorted(mass[1:] * size, rank + 0.5), side.size - 1)
        found.append(side[rank].tolist())
    return found


def systems_of(comparison: Comparison) -> list[System]:
    """Give each method its look: the raw scores are grey, the best is the first colour, both with a full line."""
    systems: list[System] = []
    number = 0
    for method in comparison.methods:
        raw, best = method.name == comparison.raw.name, method.name == comparison.best.name
        dash = "" if raw or best else _DASHES[number % len(_DASHES)]
        systems.append(
            System(name=method.name, colour=0 if raw else 1 + number % _COLOURS, dash=dash, raw=raw, best=best)
        )
        number += not raw
    return systems


def plot_numbers(
    systems: Sequence[System], curves: Sequence[Curves], points: Sequence[OperatingPoint]
) -> dict[str, Any]:
    """Return what the scripts draw, ready for JSON."""
    worst = max(curve.det.eer for curve in curves)
    some = curves[0]
    ticks = (*_USUAL_TICKS, *_FINE_TICKS)
    sizes = (some.n_nontarget, some.n_target)
    ranges = [probit(det_range(worst, size)) for size in sizes]
    highest = max(float(np.max(curve.bayes.actual[np.abs(_LOG_ODDS) <= 7])) for curve in curves)
    return {
        "systems": [_system(system, curve) for system, curve in zip(systems, curves, strict=True)],
        "det": {
            "x_range": json_numbers(ranges[0], 5),
            "y_range": json_numbers(ranges[1], 5),
            "rule_of_30": [json_numbers(probit(_RULE / size), 5)[0] if size > _RULE else None for size in sizes],
            "ticks": {
                "places": json_numbers(probit(ticks), 6),
                "labels": [f"{100 * rate:g}" for rate in ticks],
                "usual": len(_USUAL_TICKS),
            },
        },
        "bayes": {
            "log_odds": json_numbers(_LOG_ODDS, 4),
            "highest": round(min(max(1.05 * highest, 1.08), _HIGHEST_ERROR), 3),
            "points": json_numbers([-point.threshold for point in points]),
        },
    }


def _system(system: System, curves: Curves) -> dict[str, Any]:
    det = curves.det
    return {
        "name": system.name,
        "colour": system.colour,
        "dash": system.dash,
        "raw": system.raw,
        "best": system.best,
        "det": {
            "x": json_numbers(probit(det.p_fa), 5),
            "y": json_numbers(probit(det.p_miss), 5),
            "p_fa": json_numbers(det.p_fa, 4),
            "p_miss": json_numbers(det.p_miss, 4),
            "threshold": json_numbers(det.threshold, 4),
            "eer": json_numbers(det.eer, 5)[0],
            "eer_place": json_numbers(probit(det.eer), 5)[0],
        },
        "bayes": {"actual": json_numbers(curves.bayes.actual), "minimum": json_numbers(curves.bayes.minimum)},
        "histogram": {
            name: json_numbers(getattr(curves.histogram, name), 5) for name in ("edges", "nontarget", "target")
        },
    }


def det_table(systems: Sequence[System], curves: Sequence[Curves]) -> Table:
    """Return miss rates at some false-alarm rates."""
    rows = [
        [system.name, percent(curve.det.eer), *map(percent, curve.misses)]
        for system, curve in zip(systems, curves, strict=True)
    ]
    head = ["Method", "EER", *(f"at {100 * rate:g} %" for rate in _TABLE_RATES)]
    return Table(caption="Equal error rate, and miss rates at these false-alarm rates", head=head, rows=rows)


def bayes_table(systems: Sequence[System], curves: Sequence[Curves]) -> Table:
    """Return actual and minimum Bayes error rates at some priors."""
    places = [int(np.argmin(np.abs(_LOG_ODDS - odds))) for odds in _TABLE_ODDS]
    rows = [
        [system.name, *(f"{curve.bayes.actual[at]:.3f} ({curve.bayes.minimum[at]:.3f})" for at in places)]
        for system, curve in zip(systems, curves, strict=True)
    ]
    head = ["Method", *(f"{odds:+g}".replace("-", "−") for odds in _TABLE_ODDS)]
    caption = "Normalized Bayes error rates, actual and (minimum), at these prior log-odds"
    return Table(caption=caption, head=head, rows=rows)


def histogram_table(systems: Sequence[System], curves: Sequence[Curves]) -> Table:
    """Return quantiles of the normalized scores of each class."""
    rows = [
        [system.name, side, *(f"{value:.3g}".replace("-", "−") for value in values)]
        for system, curve in zip(systems, curves, strict=True)
        for side, values in zip(("non-targets", "targets"), curve.quantiles, strict=True)
    ]
    head = ["Method", "Class", *(f"{100 * level:g} %" for level in _QUANTILES)]
    return Table(
        caption="Scores below which this share of a class lies, before calibration", head=head, rows=rows, texts=2
    )
