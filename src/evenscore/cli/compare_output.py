"""Printing what `evenscore compare` found: a table, the verdict, and what could not run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evenscore.cli.output import print_lines, print_table

if TYPE_CHECKING:
    from evenscore.comparison import Comparison, Figures, MethodResult

__all__ = ["print_comparison"]

_TITLES = {"eer": "EER %", "min_dcf": "minDCF", "act_dcf": "actDCF", "cllr": "Cllr", "min_cllr": "minCllr"}


def print_comparison(comparison: Comparison) -> None:
    """Print methods and figures, best first, then what follows from them."""
    metric = comparison.rank_by
    header = ("", *_TITLES.values(), f"{_TITLES[metric].removesuffix(' %')} to raw")
    rows: list[Sequence[str]] = []
    for method in comparison.methods:
        rows += _rows(method, comparison)
    print_table(rows, header=header, numbers=True)
    lines = [f"not run: {name}: {reason}" for name, reason in comparison.not_run.items()]
    point = comparison.how.points[0]
    lines.append(
        f"DCF at p_target {point.p_target:g}, c_miss {point.c_miss:g}, c_fa {point.c_fa:g}; every method with "
        f"{comparison.how.calibration} calibration of the training side"
    )
    lines.append(
        f"{100 * comparison.how.level:g} % intervals from {comparison.how.replicates} draws of "
        f"{comparison.drawn}, known from {comparison.trials.speakers_from}"
    )
    print_lines([*lines, "", comparison.verdict.text])


def _rows(method: MethodResult, comparison: Comparison) -> list[Sequence[str]]:
    test = method.to_raw[comparison.rank_by]
    same = method.name == "raw"
    ends = (test.interval.low, test.interval.high)
    difference = "" if same else _cell(comparison.rank_by, test.difference, sign="+")
    interval = "" if same else "..".join(_cell(comparison.rank_by, end, sign="+") for end in ends)
    rows = [
        [method.name, *_values(method.figures), difference],
        [f"    {100 * comparison.how.level:g} %", *_ranges(method.figures), interval],
    ]
    if method.uncalibrated is not None:
        rows.append(["    not calibrated", *_values(method.uncalibrated), ""])
    return rows  # type: ignore[return-value]


def _values(figures: Figures) -> list[str]:
    return [_cell(metric, figures.values[metric]) for metric in _TITLES]


def _ranges(figures: Figures) -> list[str]:
    found = []
    for metric in _TITLES:
        ends = figures.interval(metric)
        found.append("" if ends is None else "..".join(_cell(metric, end) for end in ends))
    return found


def _cell(metric: str, value: float, sign: str = "") -> str:
    return f"{100 * value:{sign}.2f}" if metric == "eer" else f"{value:{sign}.3f}"
