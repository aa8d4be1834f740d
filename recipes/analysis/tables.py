"""The tables of the analysis, made once: in Markdown for the page and the documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recipes.analysis.systems import MODELS, SYSTEMS
from recipes.paper.tables import as_markdown

__all__ = ["analysis_tables"]

Row = Mapping[str, Any]
Table = list[list[str]]

_NONE = "–"
_SAME = 1e-9  # a deviation that comes from the last digit of equal figures
_NAMES = [system.name for system in SYSTEMS]
_SIDES = {"enroll": "enrolments", "test": "tests"}


def analysis_tables(numbers: Mapping[str, Any]) -> dict[str, str]:
    """Return all tables in Markdown, by name."""
    sizes, phrases = numbers["sizes"], numbers["phrases"]
    made = {
        "sizes-eer": _sizes(sizes, "eer", "EER (%), by cohort speakers", 100.0, 2),
        "sizes-own": _sizes(sizes, "cllr", "Cllr, own LLRs, by cohort speakers", 1.0, 3, list(MODELS.values())),
        "sizes-whole": _sizes(sizes, "cllr_whole", "Cllr, calibrated with the whole cohort", 1.0, 3),
        "sizes-same": _sizes(sizes, "cllr_same", "Cllr, calibrated with such a cohort", 1.0, 3),
        "blocks": _blocks(numbers["blocks"]),
        "phrases-eer": _phrases(phrases, sizes, "eer", "EER (%)", 100.0, 2),
        "phrases-cllr": _phrases(phrases, sizes, "cllr_whole", "Cllr, calibrated", 1.0, 3),
        "phrases-raw": _raw(phrases),
        "effects": _effects(numbers["effects"]),
        "variances": _variances(numbers["variances"]),
        "residuals": _residuals(numbers["residuals"]),
        "likelihood": _likelihood(numbers["likelihood"]),
    }
    return {name: as_markdown(table) for name, table in made.items()}


def _spread(figures: Row | None, unit: float, decimals: int) -> str:
    """Return the mean and, where several cohorts were drawn, the standard deviation."""
    if figures is None:
        return _NONE
    text = f"{unit * figures['mean']:.{decimals}f}"
    return text if figures["std"] < _SAME else f"{text} ± {unit * figures['std']:.{decimals}f}"


def _sizes(
    rows: Sequence[Row], metric: str, head: str, unit: float, decimals: int, names: Sequence[str] = _NAMES
) -> Table:
    """Return a row for each size of which the metric is known, a column for each system."""
    found = {(row["size"], row["system"]): row[metric] for row in rows}
    known = dict.fromkeys(row["size"] for row in rows if row[metric] is not None)
    cells = [[_spread(found.get((size, name)), unit, decimals) for name in names] for size in known]
    return [[head, *names], *([str(size), *line] for size, line in zip(known, cells, strict=True))]


def _blocks(rows: Sequence[Row]) -> Table:
    sizes = list(dict.fromkeys(row["size"] for row in rows))
    found = {(row["system"], row["blocks"], row["size"]): row for row in rows}
    heads = [f"{metric}, {size} speakers" for size in sizes for metric in ("EER (%)", "Cllr")]
    table = [["model, cohort scores", *heads]]
    for system, blocks in dict.fromkeys((row["system"], row["blocks"]) for row in rows):
        cells = []
        for size in sizes:
            row = found[system, blocks, size]
            cells += [_spread(row["eer"], 100.0, 2), _spread(row["cllr"], 1.0, 3)]
        table.append([f"{system}, {blocks}", *cells])
    return table


def _phrases(rows: Sequence[Row], sizes: Sequence[Row], metric: str, head: str, unit: float, decimals: int) -> Table:
    """Return a row for each phrase, one for their mean, and one of all trials pooled, with the whole cohort."""
    lines = {row["phrase"]: [row["systems"][name][metric] for name in _NAMES] for row in rows}
    whole = {row["system"]: row[metric]["mean"] for row in sizes if row["size"] == sizes[-1]["size"]}
    lines["mean"] = [sum(column) / len(rows) for column in zip(*lines.values(), strict=True)]
    lines["all phrases pooled"] = [whole[name] for name in _NAMES]
    cells = [[name, *(f"{unit * value:.{decimals}f}" for value in line)] for name, line in lines.items()]
    return [[f"{head}, by phrase", *_NAMES], *cells]


def _raw(rows: Sequence[Row]) -> Table:
    sides = ("development", "evaluation")
    classes = {"non": "non-targets", "tar": "targets"}
    table = [["raw scores, by phrase", *(f"{name}, {side}" for side in sides for name in classes.values())]]
    for row in rows:
        found = row["raw"]
        cells = [
            f"{found[side][f'mean_{name}']:.2f} ± {found[side][f'std_{name}']:.2f}"
            for side in sides
            for name in classes
        ]
        table.append([row["phrase"], *cells])
    return table


def _effects(rows: Sequence[Row]) -> Table:
    table = [["model, side, class", "number", "correlation", "slope", "correlation within phrases", "slope within"]]
    for row in rows:
        names = ("correlation", "slope", "correlation_within", "slope_within")
        name = f"{row['system']}, {_SIDES[row['side']]}, {row['class']}"
        table.append([name, str(row["n"]), *(f"{row[name]:.2f}" for name in names)])
    return table


def _variances(rows: Sequence[Row]) -> Table:
    heads = ["σ²_non", "ν_non, enrolment", "ν_non, test", "σ²_tar", "ν_tar, enrolment", "ν_tar, test"]
    table = [["", *heads, "correlation, enrolment", "correlation, test"]]
    for row in rows:
        names = [f"{name}_{end}" for end in ("non", "tar") for name in ("sigma2", "nu_enroll", "nu_test")]
        signs = [f"{row[f'correlation_{side}']:+.2f}" for side in _SIDES]
        table.append([f"{row['group']}, {row['system']}", *(f"{row[name]:.4f}" for name in names), *signs])
    return table


def _residuals(rows: Sequence[Row]) -> Table:
    heads = ["number", "mean", "deviation", "skewness", "excess kurtosis", "below -3 (%)", "above 3 (%)"]
    table = [["model, class", *heads], ["a Gaussian", "", "0", "1", "0", "0", "0.13", "0.13"]]
    for row in rows:
        shape = [f"{row[name]:.2f}" for name in ("mean", "std", "skewness", "excess_kurtosis")]
        tails = [f"{100 * row[name]:.2f}" for name in ("far_below", "far_above")]
        table.append([f"{row['system']}, {row['class']}", str(row["n"]), *shape, *tails])
    return table


def _likelihood(rows: Sequence[Row]) -> Table:
    columns = {
        "development": "development (trained on it)",
        "cross_validated": "development speakers left out",
        "evaluation": "evaluation",
        "given_cohort": "evaluation, given the cohort",
        "given_cohort_non-target": "non-targets, given the cohort",
        "given_cohort_target": "targets, given the cohort",
    }
    table = [["nats per score", *columns.values()]]
    return table + [[row["system"], *(f"{row[name]:.3f}" for name in columns)] for row in rows]
