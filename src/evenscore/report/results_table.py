"""The summary's large figures and the table of results."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evenscore.comparison.verdict import METRIC_NAMES, shown_metrics
from evenscore.report.content import Cell, Column, ResultRow, Results, Table, Tile
from evenscore.report.numbers import difference, figure, share, span

if TYPE_CHECKING:
    from evenscore.comparison.comparison import Comparison, Figures, MethodResult
    from evenscore.metrics import OperatingPoint, PairedTest

__all__ = [
    "condition_details",
    "condition_table",
    "failed_table",
    "method_table",
    "point_text",
    "results_of",
    "tiles_of",
]

_EXPLANATIONS = {
    "eer": "Equal error rate: misses and false alarms are equally frequent",
    "min_dcf": "Detection cost at the best threshold",
    "act_dcf": "Detection cost at the threshold that the prior and the costs demand of LLRs",
    "cllr": "Cost of the LLRs as they are, in bits, over all priors",
    "min_cllr": "Cost of the LLRs after the best possible calibration",
}


def point_text(point: OperatingPoint) -> str:
    """Return an operating point in words.

    Examples
    --------
    >>> from evenscore import OperatingPoint
    >>> point_text(OperatingPoint(0.01)), point_text(OperatingPoint(0.05, 10, 1))
    ('target prior 0.01', 'target prior 0.05, a miss costs 10, a false alarm 1')
    """
    costs = "" if point.c_miss == point.c_fa == 1 else f", a miss costs {point.c_miss:g}, a false alarm {point.c_fa:g}"
    return f"target prior {point.p_target:g}{costs}"


def tiles_of(comparison: Comparison) -> list[Tile]:
    """Return the figures of the recommended method (of the best, if that is raw) beside those of the raw scores."""
    used = comparison.verdict.use
    shown = comparison.best if used == comparison.raw.name else comparison[used]
    best, raw = shown.figures.values, comparison.raw.figures.values
    alone = shown.name == comparison.raw.name
    tiles = []
    for metric in METRIC_NAMES:
        if metric == "min_cllr":
            continue
        after, before = float(best[metric]), float(raw[metric])
        relative = (after - before) / before if before > 0 and math.isfinite(before) else 0.0
        changed = not alone and abs(relative) >= 0.005
        tiles.append(
            Tile(
                name=f"{METRIC_NAMES[metric]} of {shown.name}",
                value=figure(metric, after),
                before="" if alone else f"raw {figure(metric, before)}",
                change=f"{abs(100 * relative):.0f} % {'lower' if relative < 0 else 'higher'}" if changed else "",
                better=relative < 0,
            )
        )
    return tiles


def results_of(comparison: Comparison) -> Results:
    """Return the table of results."""
    ranked = METRIC_NAMES[comparison.rank_by]
    unit = " in percentage points" if comparison.rank_by == "eer" else ""
    columns = [Column(title="Method", explanation="Name of the method")]
    columns += [
        Column(title=name, explanation=_EXPLANATIONS[metric], sorted=metric == comparison.rank_by and not point)
        for name, metric, point in shown_metrics(comparison.how.points)
    ]
    columns += [
        Column(title=f"{ranked} to raw", explanation=f"Difference of {ranked}{unit} to the raw scores"),
        Column(title=f"{ranked} to best", explanation=f"Difference of {ranked}{unit} to the best method"),
        Column(title="Wins", explanation="Share of the draws of speakers in which no other method was better"),
        Column(
            title="Worst loss",
            explanation=f"{ranked}{unit} lost to the best method of a draw of speakers, in the worst draws",
        ),
    ]
    level = f"{100 * comparison.how.level:g} %"
    explanation = (
        f"Lower is better everywhere. Small figures are {level} intervals from {comparison.how.replicates} draws of "
        f"{comparison.drawn}; a difference is bold and in colour where its interval leaves out 0, and the "
        "intervals of differences hold for all methods at once. All methods were "
        f"calibrated the same way ({comparison.how.calibration}) on the training side. The worst loss is the most "
        "that a method loses to the best one of a draw of speakers, but for "
        f"{100 * (1 - comparison.how.level):.2g} % of the draws."
    )
    points = "; ".join(point_text(point) for point in comparison.how.points)
    return Results(
        explanation=explanation,
        caption=f"Methods, best {ranked} first. Detection costs are normalized: {points}.",
        columns=columns,
        rows=[_row(comparison, method) for method in comparison.methods],
        differences=_differences(comparison),
    )


def _row(comparison: Comparison, method: MethodResult) -> ResultRow:
    best = method.name == comparison.best.name
    used = method.name == comparison.verdict.use
    tag = "recommended" if used else f"lowest {METRIC_NAMES[comparison.rank_by]}" if best else ""
    cells = [_metric_cell(method, metric, point) for _, metric, point in shown_metrics(comparison.how.points)]
    cells += [_difference_cell(tests.get(comparison.rank_by)) for tests in (method.to_raw, method.to_best)]
    cells.append(Cell(text=share(method.best_share), value=f"{method.best_share:.6g}"))
    cells.append(Cell(text=figure(comparison.rank_by, method.worst_loss), value=_sortable(method.worst_loss)))
    return ResultRow(name=method.name, tag=tag, recommended=used, cells=cells)


def _metric_cell(method: MethodResult, metric: str, point: int) -> Cell:
    value, interval = method.figures.value(metric, point), method.figures.interval(metric, point)
    return Cell(
        text=figure(metric, value),
        value=_sortable(value),
        range="" if interval is None else span(metric, *interval),
    )


def _sortable(value: float) -> str:
    """Return a number that JavaScript reads."""
    return f"{value:.9g}" if math.isfinite(value) else ("1e999" if value > 0 else "-1e999")


def _difference_cell(test: PairedTest | None) -> Cell:
    """Return a difference, and no figures for a method against itself."""
    if test is None or (test.difference == test.interval.low == test.interval.high == 0):
        return Cell(text="–", value="0")
    low, high = test.interval.low, test.interval.high
    mood = "better" if high < 0 else "worse" if low > 0 else ""
    ends = [difference(test.metric, end) for end in (low, high)]
    text = difference(test.metric, test.difference)
    return Cell(text=text, value=_sortable(test.difference), range=f"{ends[0]} to {ends[1]}", mood=mood)


def _differences(comparison: Comparison) -> Table | None:
    rows = [
        [method.name, *(_with_chance(method.to_raw.get(metric)) for metric in METRIC_NAMES)]
        for method in comparison.methods
        if method.name != comparison.raw.name and method.to_raw
    ]
    if not rows:
        return None
    return Table(
        caption="Difference to the raw scores, its interval, and the chance p of such a difference between equally "
        "good methods. That of EER is in percentage points.",
        head=["Method", *METRIC_NAMES.values()],
        rows=rows,
    )


def _with_chance(test: PairedTest | None) -> str:
    if test is None:
        return "–"
    ends = [difference(test.metric, end) for end in (test.interval.low, test.interval.high)]
    return f"{difference(test.metric, test.difference)} ({ends[0]} to {ends[1]}), p = {test.p_value:.2g}"


def failed_table(comparison: Comparison) -> Table | None:
    """Return the methods that could not run, with reasons."""
    if not comparison.not_run:
        return None
    rows = [[name, reason] for name, reason in comparison.not_run.items()]
    return Table(caption="Methods left out of the comparison", head=["Method", "Reason"], rows=rows, words=True)


def method_table(comparison: Comparison) -> Table:
    """Return what each method is, and what it has to say."""
    rows = [
        [
            method.name,
            method.norm,
            ", ".join(f"{name} = {value}" for name, value in method.options.items()) or "–",
            _figure_of(method.training, "cllr"),
            _figure_of(method.uncalibrated, "cllr"),
            f"{method.seconds:.1f} s",
            " ".join(method.notes) or "–",
        ]
        for method in comparison.methods
    ]
    head = ["Method", "Norm", "Options", "Cllr on the training side", "Cllr before calibration", "Time", "Notes"]
    caption = (
        "What each method is. Cllr on the training side is cross-validated; only LLRs have one before calibration."
    )
    return Table(caption=caption, head=head, rows=rows, words=True)


def condition_table(comparison: Comparison) -> Table | None:
    """Return the ranking metric of every method in each phrase or condition; None if there is only one."""
    if not any(method.conditions for method in comparison.methods):
        return None
    metric = comparison.rank_by
    rows = [
        [name or "(no name)", *(_figure_of(method.conditions.get(name), metric) for method in comparison.methods)]
        for name in comparison.trials.names
    ]
    caption = f"{METRIC_NAMES[metric]} in each phrase or condition alone"
    return Table(caption=caption, head=["Condition", *(method.name for method in comparison.methods)], rows=rows)


def condition_details(comparison: Comparison) -> Table | None:
    """Return all metrics of each method in each phrase or condition."""
    metrics = shown_metrics(comparison.how.points)
    rows = [
        [
            name or "(no name)",
            method.name,
            *(_figure_of(found, metric, point) for _, metric, point in metrics),
            f"{found.values['n_target']} / {found.values['n_nontarget']}",
        ]
        for name in comparison.trials.names
        for method in comparison.methods
        if (found := method.conditions.get(name)) is not None
    ]
    head = ["Condition", "Method", *(title for title, *_ in metrics), "Targets / non-targets"]
    return Table(caption="Each condition alone, without intervals", head=head, rows=rows, texts=2) if rows else None


def _figure_of(figures: Figures | None, metric: str, point: int = 0) -> str:
    return "–" if figures is None else figure(metric, figures.value(metric, point))
