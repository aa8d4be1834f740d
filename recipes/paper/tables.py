"""The tables of the paper's experiment, as CSV for programs and as Markdown for people."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from recipes.paper.metrics import METRICS
from recipes.paper.reference import PAPER_EER, PAPER_VARIANCES

__all__ = [
    "as_csv",
    "as_markdown",
    "eer_table",
    "interval_table",
    "metric_rows",
    "metric_table",
    "scale_table",
    "set_table",
    "shift_rows",
    "shift_table",
    "variance_rows",
    "variance_table",
]

Table = list[list[str]]  #: the first row is the header

_VARIANCES = ("sigma2_non", "nu_non", "sigma2_tar", "nu_tar")
_SHARES = ("share_non", "share_tar")
_HEADS = {
    "eer": "EER (%)",
    "min_dcf": "minDCF",
    "min_cllr": "minCllr",
    "cllr": "Cllr",
    "cllr_calibrated": "Cllr, calibrated",
}
_NONE = "–"


def as_csv(rows: Sequence[Sequence[object]]) -> str:
    """Return rows as CSV; None is an empty cell, numbers have 6 digits.

    Examples
    --------
    >>> print(as_csv([["system", "eer"], ["raw", 0.0123456789], ["ZT", None]]))
    system,eer
    raw,0.0123457
    ZT,
    <BLANKLINE>
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    for row in rows:
        writer.writerow(["" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row])
    return stream.getvalue()


def as_markdown(table: Table) -> str:
    """Return a table in Markdown; all columns but the first stand to the right.

    Examples
    --------
    >>> print(as_markdown([["system", "EER (%)"], ["raw", "1.24"]]))
    | system | EER (%) |
    |---|---:|
    | raw | 1.24 |
    <BLANKLINE>
    """
    head, *rows = table
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    texts = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    texts[1] = texts[1].replace(" ", "")
    return "\n".join(texts) + "\n"


def variance_rows(summary: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]) -> list[list[object]]:
    """Return the table of variances for programs: mean and standard deviation over the splits."""
    names = (*_VARIANCES, *_SHARES)
    rows: list[list[object]] = [["gender", "model", *(f"{name}{end}" for name in names for end in ("", "_std"))]]
    for gender, models in summary.items():
        for model, figures in models.items():
            rows.append([gender, model, *(figures[name][end] for name in names for end in ("mean", "std"))])
    return rows


def variance_table(summary: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]) -> Table:
    """Return the paper's table of variances, ours and the paper's."""
    table = [["", "σ²_non", "ν_non", "σ²_tar", "ν_tar", "ν share non (%)", "ν share tar (%)"]]
    for gender, models in summary.items():
        for model, figures in models.items():
            cells = [_spread(figures[name]) for name in _VARIANCES]
            shares = [_spread(figures[name], 100.0, 0) for name in _SHARES]
            table.append([f"{gender}, {model}", *cells, *shares])
        if gender in PAPER_VARIANCES:
            known = PAPER_VARIANCES[gender]
            shares = [
                f"{100 * known[f'nu_{of}'] / (known[f'nu_{of}'] + known[f'sigma2_{of}']):.0f}" for of in ("non", "tar")
            ]
            table.append([f"{gender}, paper (RSR2015)", *(f"{known[name]:.1f}" for name in _VARIANCES), *shares])
    return table


def scale_table(summary: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]) -> Table:
    """Return why the scale of cohort scores differs, see `scales`."""
    names = {"enroll": "enrolments", "test": "tests"}
    table = [["", "sd of log sd", "phrase (%)", "its own (%)", "sampling (%)", "sd of its own part"]]
    for sides in summary.values():
        for side, figures in sides.items():
            shares = [_spread(figures[name], 100.0, 0) for name in ("phrase", "member", "sampling")]
            table.append([names[side], _spread(figures["spread"]), *shares, _spread(figures["member_spread"])])
    return table


def set_table(summaries: Mapping[str, Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]]) -> Table:
    """Return how raw scores of development and evaluation speakers differ, by the name of what was trained."""
    table = [["trained on, scores of", "EER (%)", "mean target score", "mean non-target score"]]
    for trained, summary in summaries.items():
        for side, figures in summary["raw"].items():
            means = [_spread(figures[name]) for name in ("mean_tar", "mean_non")]
            table.append([f"{trained}, {side}", _metric(figures["eer"], "eer"), *means])
    return table


def metric_rows(splits: Sequence[Mapping[str, Mapping[str, Mapping[str, Any]]]], models: str) -> list[list[object]]:
    """Return all figures for programs, one row for each split, group and system."""
    ends = [f"{name}{end}" for name in METRICS for end in ("", "_low", "_high")]
    rows: list[list[object]] = [["models", "split", "group", "system", *ends, "n_target", "n_nontarget", "n_speakers"]]
    for place, groups in enumerate(splits, 1):
        for group, systems in groups.items():
            for system, figures in systems.items():
                intervals = figures.get("intervals", {})
                cells: list[object] = []
                for name in METRICS:
                    cells += [figures[name], *(intervals.get(name) or (None, None))]
                counts = [figures[name] for name in ("n_target", "n_nontarget", "n_speakers")]
                rows.append([models, place, group, system, *cells, *counts])
    return rows


def metric_table(summary: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]) -> Table:
    """Return mean and standard deviation over the splits, for people."""
    table = [["group, system", *_HEADS.values()]]
    for group, systems in summary.items():
        for system, figures in systems.items():
            cells = [_metric(figures.get(name), name) for name in _HEADS]
            table.append([f"{group}, {system}", *cells])
    return table


def interval_table(groups: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Table:
    """Return the figures of one split with their intervals, for people."""
    table = [["group, system", *_HEADS.values(), "EER against raw (%)"]]
    for group, systems in groups.items():
        for system, figures in systems.items():
            intervals = figures.get("intervals", {})
            cells = [_with_interval(figures[name], intervals.get(name), name) for name in _HEADS]
            against = figures.get("against_raw")
            change = _NONE
            if against is not None:
                low, high = against["interval"]
                change = f"{100 * against['difference']:+.2f} [{100 * low:+.2f}, {100 * high:+.2f}]"
            table.append([f"{group}, {system}", *cells, change])
    return table


def eer_table(summary: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]) -> Table:
    """Return our EER next to the paper's."""
    table = [["EER (%)", *(head for group in summary for head in _eer_heads(group))]]
    systems = list(next(iter(summary.values())))
    for system in systems:
        cells: list[str] = []
        for group in summary:
            cells.append(_metric(summary[group][system]["eer"], "eer"))
            if group in PAPER_EER:
                known = PAPER_EER[group].get(system)
                cells.append(_NONE if known is None else f"{100 * known:.2f}")
        table.append([system, *cells])
    return table


def shift_rows(shifts: Sequence[Mapping[str, Any]]) -> list[list[object]]:
    """Return the figures under shift for programs: spread over the splits."""
    names = ("eer", "min_dcf", "min_cllr", "cllr", "cllr_calibrated")
    ends = [f"{name}{end}" for name in names for end in ("", "_std")]
    rows: list[list[object]] = [["shift", "models", "group", "system", *ends]]
    for shift in shifts:
        for models, summary in shift["summary"].items():
            for group, systems in summary.items():
                for system, figures in systems.items():
                    cells: list[object] = []
                    for name in names:
                        found = figures.get(name, {})
                        cells += [found.get("mean"), found.get("std")]
                    rows.append([shift["name"], models, group, system, *cells])
    return rows


def shift_table(shifts: Sequence[Mapping[str, Any]], models: str, group: str, metric: str) -> Table:
    """Return one metric of one group over the shifts, for people: a row for each shift, a column for each system."""
    first = shifts[0]["summary"][models][group]
    systems = [system for system in first if metric in first[system]]
    table = [[_HEADS[metric], *systems]]
    for shift in shifts:
        found = shift["summary"][models][group]
        table.append([shift["name"], *(_metric(found[system][metric], metric) for system in systems)])
    return table


def _eer_heads(group: str) -> list[str]:
    return [f"{group}", f"{group}, paper"] if group in PAPER_EER else [group]


def _spread(figures: Mapping[str, float], unit: float = 1.0, decimals: int = 2) -> str:
    """Return mean and, where it says something, standard deviation."""
    text = f"{unit * figures['mean']:.{decimals}f}"
    return text if figures["std"] == 0 else f"{text} ± {unit * figures['std']:.{decimals}f}"


def _metric(figures: Mapping[str, float] | None, name: str) -> str:
    if figures is None:
        return _NONE
    return _spread(figures, 100.0) if name == "eer" else _spread(figures, decimals=3)


def _with_interval(value: float | None, ends: Sequence[float] | None, name: str) -> str:
    if value is None:
        return _NONE
    unit, decimals = (100.0, 2) if name == "eer" else (1.0, 3)
    text = f"{unit * value:.{decimals}f}"
    return text if not ends else f"{text} [{unit * ends[0]:.{decimals}f}, {unit * ends[1]:.{decimals}f}]"
