"""How `evenscore evaluate` prints what it measured: for people, as JSON, CSV or LaTeX."""

from __future__ import annotations

import csv
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenscore.cli.output import print_json, print_lines, print_table

if TYPE_CHECKING:
    from evenscore.cli.evaluation import EvaluationOptions
    from evenscore.metrics import OperatingPoint

__all__ = ["PARTITION", "print_evaluation"]

Figures = Mapping[str, Any]

PARTITION = "partition"  #: what conditions are called that NIST's rules make
_ALWAYS = ("cllr", "min_cllr", "calibration_loss")
_WITHOUT_INTERVAL = ("eer_threshold", "auc")
_SPECIAL = {**{mark: f"\\{mark}" for mark in "&%$#_{}"}, "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_SPECIAL["\\"] = r"\textbackslash{}"


@dataclass(frozen=True)
class _Row:
    """One set of trials: a system, pooled (no column) or under one condition."""

    system: str
    column: str
    condition: str
    figures: Figures

    def label(self, alone: bool) -> str:
        condition = f"{self.column} = {self.condition}" if self.column else ""
        if alone:
            return condition or "all"
        return f"  {condition}" if condition else self.system


@dataclass(frozen=True)
class _Column:
    """One figure: its name for programs and for people, where it stands, and how it is written."""

    name: str
    title: str
    metric: str
    point: int | None = None  #: which operating point
    factor: float = 1.0
    digits: int = 3

    def value(self, figures: Figures) -> float | None:
        """Return the figure; None where the condition has none."""
        holder = figures if self.point is None else figures.get("dcf", [{}] * (self.point + 1))[self.point]
        found: float | None = holder.get(self.metric)
        return found

    def ends(self, figures: Figures) -> tuple[float, float] | None:
        """Return the ends of the confidence interval, if there is one."""
        intervals = figures.get("intervals", {})
        if "problem" in intervals or not intervals:
            return None
        holder = intervals if self.point is None else intervals["dcf"][self.point]
        low, high = holder[self.metric]
        return low, high

    def bounds(self, figures: Figures) -> tuple[float, float] | None:
        """Return what the figure lies between, if it is not exact."""
        if self.point is not None:
            found = figures.get("dcf", [{}] * (self.point + 1))[self.point].get(f"{self.metric}_bounds")
        else:
            found = figures.get("bounds", {}).get(self.metric)
        return None if found is None else (found[0], found[1])

    def cell(self, value: float | None) -> str:
        return "-" if value is None else f"{self.factor * value:.{self.digits}f}"


def print_evaluation(results: Figures, options: EvaluationOptions, form: str = "") -> None:
    """Print the results; ``form`` is ``json``, ``csv``, ``latex`` or, for people, empty."""
    if form == "json":
        print_json(results, spell_infinity=True)
        return
    systems = results.get("systems", [results])
    rows = [row for system in systems for row in _rows(system)]
    if form == "csv":
        _print_csv(rows, options)
    elif form == "latex":
        _print_latex(_lines(rows, len(systems) == 1, options))
    else:
        header, *lines = _lines(rows, len(systems) == 1, options)
        print_table(lines, header=header, numbers=True)
        print_lines(_notes(systems, rows, options))
        for comparison in results.get("comparisons", []):
            print_lines(["", *_comparison_lines(comparison)])


def _rows(system: Figures) -> Iterator[_Row]:
    yield _Row(system["scores"], "", "", system["pooled"])
    for column, conditions in system.get("conditions", {}).items():
        for name, figures in conditions.items():
            yield _Row(system["scores"], column, name, figures)


def _columns(points: Sequence[OperatingPoint]) -> list[_Column]:
    """Return the columns of the tables for people."""
    costs = []
    for place, point in enumerate(points):
        mark = f" {point.name}" if len(points) > 1 else ""
        costs += [_Column(f"{kind}_dcf", f"{kind}DCF{mark}", f"{kind}_dcf", place) for kind in ("min", "act")]
    if len(points) > 1:
        costs += [_Column(f"{kind}_c_primary", f"{kind}Cprim", f"{kind}_c_primary") for kind in ("min", "act")]
    cllr = [_Column("min_cllr", "minCllr", "min_cllr"), _Column("cllr", "Cllr", "cllr")]
    return [_Column("eer", "EER %", "eer", factor=100, digits=2), *costs, *cllr]


def _counts(figures: Figures) -> list[str]:
    return [str(figures["n_target"]), str(figures["n_nontarget"])]


def _lines(rows: Sequence[_Row], alone: bool, options: EvaluationOptions) -> list[list[str]]:
    """Return the table that people read, the header first; what belongs to the line above it is indented."""
    columns = _columns(options.points)
    name = rows[0].system if alone else ""
    lines = [[name, *(column.title for column in columns), "targets", "non-targets"]]
    for row in rows:
        cells = [column.cell(column.value(row.figures)) for column in columns]
        lines.append([row.label(alone), *cells, *_counts(row.figures)])
        lines += [[f"    {name}", *ranges, "", ""] for name, ranges in _ranges(columns, row.figures, options)]
    return lines


def _ranges(
    columns: Sequence[_Column], figures: Figures, options: EvaluationOptions
) -> Iterator[tuple[str, list[str]]]:
    """Give the lines below a row: its intervals, and the bounds of figures that are not exact to the last digit."""
    both = ((f"{100 * options.draws.level:g} %", _Column.ends), ("bounds", _Column.bounds))
    for name, found in both:
        ends = [(column, found(column, figures)) for column in columns]
        cells = ["" if pair is None else [column.cell(end) for end in pair] for column, pair in ends]
        shown = [cell if cell and (name != "bounds" or cell[0] != cell[1]) else "" for cell in cells]
        if any(shown):
            yield name, [f"{cell[0]}..{cell[1]}" if cell else "" for cell in shown]


def _notes(systems: Sequence[Figures], rows: Sequence[_Row], options: EvaluationOptions) -> list[str]:
    points = "; ".join(
        f"p_target {point.p_target:g}, c_miss {point.c_miss:g}, c_fa {point.c_fa:g}" for point in options.points
    )
    lines = [f"DCF at {points}{'' if options.what.normalize else ', not normalized'}; EER by {options.eer_method}"]
    if any("bounds" in system["pooled"] for system in systems):
        lines.append("EER, minDCF and minCllr from a histogram: certain bounds are given where a digit is not")
    if options.what.equalize:
        lines.append(f"every {options.by[0]} weighs the same in the pooled figures")
    if any(row.column == PARTITION for row in rows):
        lines.append("every partition weighs the same; one without non-targets has no part in the false alarms")
    for system in systems:
        pooled, name = system["pooled"], "" if len(systems) == 1 else f"{system['scores']}: "
        lines.append(f"{name}EER threshold {pooled['eer_threshold']:.4g}, AUC {pooled['auc']:.4f}")
        if "dev_pav" in pooled:
            low, high = pooled["llr_bounds"]
            lines.append(
                f"{name}devPAV {pooled['dev_pav']:.4f}; the trials support LLRs from {low:.2f} to {high:.2f} "
                f"({low / math.log(10):.2f} to {high / math.log(10):.2f} to the base 10)"
            )
        if pooled["n_unknown"]:
            lines.append(f"{name}{pooled['n_unknown']} trials of unknown class were left out")
        if "intervals" in pooled:
            drawn = pooled["intervals"]
            lines.append(
                f"{name}intervals from {drawn['replicates']} draws of {drawn['n_speakers']} speakers, "
                f"known from {system['speakers_from']}"
            )
    for row in rows:
        problem = row.figures.get("problem") or row.figures.get("intervals", {}).get("problem")
        if problem and row.column != PARTITION:
            lines.append(f"! {row.column} = {row.condition}: {problem}")
    return lines


def _comparison_lines(found: Figures) -> list[str]:
    better, worse = ("system_a", "system_b") if found["difference"] < 0 else ("system_b", "system_a")
    interval, sure = found["interval"], found["p_value"] < 1 - found["interval"]["level"]
    verdict = f"{found[better]} is better than {found[worse]}" if sure else "neither is clearly better"
    values = f"{found['metric']} {found['a']:.4g} against {found['b']:.4g}, difference {found['difference']:.4g}"
    ends = f"{100 * interval['level']:g} % interval {interval['low']:.4g} to {interval['high']:.4g}"
    draws = f"{found['replicates']} draws of {found['n_speakers']} speakers, known from {found['speakers_from']}"
    return [
        f"{found['system_a']} and {found['system_b']}: {values}",
        f"{ends}, p = {found['p_value']:.3g}: {verdict}",
        draws,
    ]


def _csv_columns(points: Sequence[OperatingPoint]) -> list[_Column]:
    first = [_Column("eer", "", "eer"), _Column("eer_threshold", "", "eer_threshold")]
    costs = []
    for place, point in enumerate(points):
        mark = "" if place == 0 else f"_{point.p_target:g}_{point.c_miss:g}_{point.c_fa:g}"
        costs += [_Column(f"{kind}_dcf{mark}", "", f"{kind}_dcf", place) for kind in ("min", "act")]
    if len(points) > 1:
        costs += [_Column(f"{kind}_c_primary", "", f"{kind}_c_primary") for kind in ("min", "act")]
    return [*first, *costs, *(_Column(name, "", name) for name in (*_ALWAYS, "auc"))]


def _print_csv(rows: Sequence[_Row], options: EvaluationOptions) -> None:
    columns = _csv_columns(options.points)
    intervals = [c for c in columns if options.draws.number and c.metric not in _WITHOUT_INTERVAL]
    names = ["scores", "by", "condition", "n_target", "n_nontarget", *(column.name for column in columns)]
    names += [f"{column.name}_{end}" for column in intervals for end in ("low", "high")]
    bounded = [column for column in columns if any(column.bounds(row.figures) for row in rows)]
    names += [f"{column.name}_{end}" for column in bounded for end in ("least", "most")]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        values = [column.value(row.figures) for column in columns]
        values += [end for column in intervals for end in (column.ends(row.figures) or (None, None))]
        values += [end for column in bounded for end in (column.bounds(row.figures) or (None, None))]
        counts = _counts(row.figures)
        writer.writerow([row.system, row.column, row.condition, *counts, *("" if v is None else v for v in values)])


def _print_latex(lines: Sequence[Sequence[str]]) -> None:
    header, *rows = (
        [_escaped(cell) for cell in ("" if not at else line[0], *line[1:])] for at, line in enumerate(lines)
    )
    print_lines(
        [
            r"% needs \usepackage{booktabs}",
            rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}",
            r"\toprule",
            " & ".join(["", *header[1:]]) + r" \\",
            r"\midrule",
            *(" & ".join(row) + r" \\" for row in rows),
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def _escaped(text: str) -> str:
    """Return a cell as LaTeX writes it: indented, and with a dash between the ends of an interval."""
    plain = re.sub(r"[&%$#_{}~^\\]", lambda mark: _SPECIAL[mark[0]], text.strip())
    if text.startswith(" "):
        return r"\quad " + plain.replace(r" \%", r"\,\%")
    return re.sub(r"(?<=\d)\.\.(?=-?\d)", "--", plain)
