"""The results as tables, and as plain numbers for ``results.json``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from evenscore.comparison.comparison import METRICS, Comparison, Figures, MethodResult
from evenscore.comparison.layout import CALIBRATION, MODEL, method_folders, score_files
from evenscore.comparison.methods import RAW, plain_options
from evenscore.comparison.verdict import METRIC_NAMES, shown_metrics, shown_value
from evenscore.files.models import is_saved
from evenscore.metrics import PairedTest
from evenscore.model.parameters import ScoreModel
from evenscore.tables.html_table import html_table

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FORMAT", "VERSION", "condition_table", "html_view", "method_table", "plain", "results_of"]

FORMAT = "evenscore-comparison"
VERSION = 2  # 1 had neither `sides`, `worst_loss` nor `recommended`


def method_table(comparison: Comparison) -> pl.DataFrame:
    """Return one row per method, best first."""
    import polars as pl

    rows = []
    for rank, method in enumerate(comparison.methods, 1):
        row: dict[str, Any] = {"rank": rank, "method": method.name}
        for metric in METRICS:
            low, high = method.figures.interval(metric) or (None, None)
            row |= {metric: method.figures.values[metric], f"{metric}_low": low, f"{metric}_high": high}
        for other, tests in (("raw", method.to_raw), ("best", method.to_best)):
            test = tests[comparison.rank_by]
            name = f"{comparison.rank_by}_to_{other}"
            row |= {name: test.difference, f"{name}_low": test.interval.low, f"{name}_high": test.interval.high}
            row[f"p_to_{other}"] = test.p_value
        rows.append(row | {"best_share": method.best_share, "worst_loss": method.worst_loss, "seconds": method.seconds})
    return pl.DataFrame(rows)


def html_view(comparison: Comparison) -> str:
    """Return the verdict and a table for notebooks."""
    metrics = shown_metrics(comparison.how.points)
    rows = []
    for method in comparison.methods:
        test = method.to_raw[comparison.rank_by]
        ends = [shown_value(test.metric, value) for value in (test.difference, test.interval.low, test.interval.high)]
        mark = ", recommended" if method.name == comparison.verdict.use else ""
        figures = [shown_value(metric, method.figures.value(metric, point)) for _, metric, point in metrics]
        rows.append([method.name + mark, *figures, "" if method.name == RAW else "{} ({} to {})".format(*ends)])
    header = ["", *(title for title, *_ in metrics), f"{METRIC_NAMES[comparison.rank_by]} to raw"]
    return html_table(header, rows, comparison.verdict.text)


def condition_table(comparison: Comparison) -> pl.DataFrame:
    """Return one row per method and condition; figures are null where a condition has only one class."""
    import polars as pl

    counts = ("n_target", "n_nontarget")
    kinds: dict[str, Any] = {"method": pl.String, "condition": pl.String}
    kinds |= dict.fromkeys(METRICS, pl.Float64) | dict.fromkeys(counts, pl.Int64)
    rows = [
        {"method": method.name, "condition": name}
        | {figure: figures.values.get(figure) for figure in (*METRICS, *counts)}
        for method in comparison.methods
        for name, figures in method.conditions.items()
    ]
    return pl.DataFrame(rows, schema=kinds)


def results_of(comparison: Comparison) -> dict[str, Any]:
    """Return all but the scores as JSON can hold it; infinite numbers become the texts ``"inf"`` and ``"-inf"``.

    What differs from run to run (command, time, seconds) stands under ``run``.
    """
    files, how, verdict = _files(comparison), comparison.how, comparison.verdict
    run = asdict(comparison.run)
    run["method_seconds"] = {method.name: method.seconds for method in comparison.methods}
    found: dict[str, Any] = plain(
        {
            "format": FORMAT,
            "version": VERSION,
            "verdict": verdict,
            "best": comparison.best.name,
            "rank_by": comparison.rank_by,
            "calibration": how.calibration,
            "points": how.points,
            "bootstrap": {
                "replicates": how.replicates,
                "level": how.level,
                "seed": how.seed,
                "n_speakers": len(comparison.trials.speakers),
                "drawn": comparison.drawn,
                "speakers_from": comparison.trials.speakers_from,
            },
            "methods": {
                method.name: _method(method) | {"recommended": method.name == verdict.use, "files": files[method.name]}
                for method in comparison.methods
            },
            "not_run": comparison.not_run,
            "data": comparison.data,
            "cohorts": comparison.cohorts,
            "sides": {
                "unlike": comparison.unlike,
                "likeness": comparison.likeness,
                "too_few": comparison.too_few,
            },
            "warnings": comparison.warnings,
            "run": run,
        }
    )
    return found


def _method(method: MethodResult) -> dict[str, Any]:
    return {
        "norm": method.norm,
        "options": plain_options(method.options),
        "figures": method.figures,
        "conditions": method.conditions,
        "uncalibrated": method.uncalibrated,
        "training": method.training,
        "to_raw": {metric: _test(test) for metric, test in method.to_raw.items()},
        "to_best": {metric: _test(test) for metric, test in method.to_best.items()},
        "best_share": method.best_share,
        "worst_loss": method.worst_loss,
        "calibration": method.calibration.to_dict()["parameters"],
        "model": _variances(method.model) if isinstance(method.model, ScoreModel) else None,
        "is_llr": method.is_llr,
        "notes": method.notes,
    }


def _files(comparison: Comparison) -> dict[str, Any]:
    """Return the files of each method, relative to the folder of ``results.json``."""
    folders = method_folders(method.name for method in comparison.methods)
    found: dict[str, Any] = {}
    conditions = comparison.trials.names
    for method in comparison.methods:
        folder = folders[method.name]
        if method.summaries is None:
            named = {kind: score_files(kind, conditions) for kind in ("scores", "llrs")}
        else:  # what is not in memory, as far as it was written
            written = method.norm != RAW and len(method.scores) > 0
            named = {"scores": score_files("scores", conditions, tuple(method.scores)) if written else [], "llrs": []}
        found[method.name] = {kind: [f"{folder}/{name}" for name in names] for kind, names in named.items()}
        found[method.name]["calibration"] = f"{folder}/{CALIBRATION}"
        if is_saved(method.model):
            found[method.name]["model"] = f"{folder}/{MODEL}"
    return found


def _test(test: PairedTest) -> dict[str, Any]:
    ends = [test.interval.low, test.interval.high]
    return {"difference": test.difference, "interval": ends, "p_value": test.p_value}


def _variances(model: ScoreModel) -> dict[str, Any]:
    table = model.variances
    return {
        "dim": model.dim,
        "sigma2": table.sigma2,
        "nu_enroll": table.nu_enroll,
        "nu_test": table.nu_test,
        "share": table.share,
    }


def plain(value: Any) -> Any:
    """Return records, arrays and numbers as JSON can hold them."""
    if isinstance(value, Figures):
        return plain(value.values) | ({} if value.intervals is None else {"intervals": plain(value.intervals)})
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
