"""A comparison as text: a table of methods and figures, and the verdict."""

from __future__ import annotations

from evenscore.comparison.record import METRICS, Comparison, Figures, MethodResult

__all__ = ["format_table"]

_HEADER = ["", "EER %", "minDCF", "actDCF", "Cllr", "minCllr", "Cllr to raw"]


def format_table(comparison: Comparison) -> str:
    """Return the methods and their figures, lowest Cllr first, then what follows from them."""
    settings = comparison.settings
    rows = [row for method in comparison.methods for row in _rows(method, comparison)]
    first = max(len(row[0]) for row in rows)
    lines = [f"{row[0]:{first}}" + "".join(f"{cell:>15}" for cell in row[1:]).rstrip() for row in (_HEADER, *rows)]
    lines += [f"not run: {name}: {reason}" for name, reason in comparison.failed.items()]
    point = settings.points[0].name
    lines.append(f"* recommended; {settings.calibration} calibration on the training side; DCF at p_target {point}")
    draws = f"{settings.replicates} draws of {comparison.data.evaluation.speakers} speakers"
    lines.append(
        f"{100 * settings.level:g} % intervals from {draws}; those of 'Cllr to raw' hold for all methods at once"
    )
    return "\n".join([*lines, "", comparison.verdict.text])


def _rows(method: MethodResult, comparison: Comparison) -> list[list[str]]:
    """Return the lines of a method: figures, intervals, the other LLRs of a norm that gives LLRs, training figures."""
    level, to_raw = comparison.settings.level, method.to_raw["cllr"]
    ends = [(metric, method.figures.interval(metric, level=level)) for metric in METRICS]
    ranges = [f"{_cell(metric, end.low)}..{_cell(metric, end.high)}" for metric, end in ends]
    is_raw, mark = method.name == "raw", "* " if method.name == comparison.verdict.use else "  "
    between = "" if is_raw else f"{to_raw.interval.low:+.3f}..{to_raw.interval.high:+.3f}"
    rows = [
        [f"{mark}{method.name}", *_values(method.figures), "" if is_raw else f"{to_raw.difference:+.3f}"],
        [f"      {100 * level:g} %", *ranges, between],
    ]
    other = method.calibrated if method.judged_by == "own" else method.own
    if other is not None:
        rows.append([f"      {'calibrated' if other is method.calibrated else 'own LLRs'}", *_values(other)])
    return rows


def _values(figures: Figures) -> list[str]:
    return [_cell(metric, figures.value(metric)) for metric in METRICS]


def _cell(metric: str, value: float) -> str:
    return f"{100 * value:.2f}" if metric == "eer" else f"{value:.3f}"
