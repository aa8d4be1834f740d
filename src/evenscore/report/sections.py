"""From a comparison to the content of its page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evenscore.report.content import Content, System
from evenscore.report.numbers import percent
from evenscore.report.plot_data import (
    Curves,
    bayes_table,
    curves_of,
    det_table,
    histogram_table,
    plot_numbers,
    systems_of,
)
from evenscore.report.results_table import (
    condition_details,
    condition_table,
    failed_table,
    method_table,
    results_of,
    tiles_of,
)
from evenscore.report.side_tables import (
    cohort_sentences,
    cohort_tables,
    contributions_of,
    data_tables,
    likeness_tables,
    models_of,
    version_table,
)

if TYPE_CHECKING:
    from evenscore.comparison.comparison import Comparison

__all__ = ["content_of"]


def content_of(comparison: Comparison) -> Content:
    """Return all that the page says about a comparison."""
    systems = systems_of(comparison)
    curves = [curves_of(comparison, method) for method in comparison.methods]
    plots = plot_numbers(systems, curves, comparison.how.points)
    contributions = contributions_of(comparison)
    if contributions is not None:
        plots["contributions"] = contributions[1]
    several = len(systems) > 1
    run = comparison.run
    return Content(
        title="Which score normalization to use",
        origin=f"Made by evenscore {run.versions.get('evenscore', '')}, {run.time[:10]}",
        verdict=comparison.verdict.text,
        tiles=tiles_of(comparison),
        warnings=comparison.warnings,
        results=results_of(comparison),
        methods=method_table(comparison),
        failed=failed_table(comparison),
        systems=systems,
        det=det_table(systems, curves),
        det_description=_det_description(systems, curves),
        bayes=bayes_table(systems, curves),
        bayes_description=_bayes_description(systems),
        histograms=histogram_table(systems, curves) if several else None,
        histograms_description="Two histograms: scores of non-targets and of targets, on the left raw, on the right "
        "normalized with the chosen method.",
        conditions=condition_table(comparison),
        condition_details=condition_details(comparison),
        models=models_of(comparison),
        contributions=None if contributions is None else contributions[0],
        cohorts=cohort_tables(comparison.cohorts),
        cohort_sentences=cohort_sentences(comparison.cohorts) if comparison.cohorts else (),
        data=[*data_tables(comparison.data), *likeness_tables(comparison.likeness)],
        command=run.command,
        versions=version_table(run),
        plots=plots,
    )


def _det_description(systems: Sequence[System], curves: Sequence[Curves]) -> str:
    rates = ", ".join(f"{system.name} {percent(curve.det.eer)}" for system, curve in zip(systems, curves, strict=True))
    return f"DET curves of {len(systems)} methods on probit axes. Equal error rates: {rates}."


def _bayes_description(systems: Sequence[System]) -> str:
    return (
        f"Normalized Bayes error rates of {len(systems)} methods against the prior log-odds from -8 to 8, actual and "
        "minimum."
    )
