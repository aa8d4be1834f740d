"""The page of the analysis, and the results for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evenscore import __version__
from recipes.analysis.tables import analysis_tables

__all__ = ["analysis_texts"]

# What stands on the page: titles, tables and figures in their order, with what is needed to read them.
_PAGE = (
    "# Looking inside the score model",
    "Systems are trained on the development scores, with all development speakers; everything is measured on the "
    "evaluation trials. Seed {seed}; {draws} draws of the cohorts of each size, but one of the whole cohort.",
    "## Smaller cohorts",
    "![EER and Cllr over the size of the cohort](sizes.svg)",
    "Only the cohort at run time shrinks. Means ± standard deviations over the draws (in the figure: from the least to "
    "the greatest). The draws share speakers, so large cohorts are more alike than they would be elsewhere.",
    "[sizes-eer]",
    "The score models' own LLRs:",
    "[sizes-own]",
    "After a logistic calibration of all systems that was trained on development trials with the whole cohort but for "
    "their own speakers:",
    "[sizes-whole]",
    "After one that was trained with the same small cohort, on trials of the development speakers outside of it:",
    "[sizes-same]",
    "## Blocks of cohort scores",
    "S_e: the trial's enrolment against the cohort's tests; S_t: the cohort's enrolments against the trial's test; "
    "S_I: the cohort against itself. The models' own LLRs:",
    "[blocks]",
    "## Phrases",
    "[phrases-eer]",
    "The calibrations are those of all phrases together:",
    "[phrases-cllr]",
    "Mean ± standard deviation:",
    "[phrases-raw]",
    "![Raw scores by phrase](phrases.svg)",
    "## Hidden variables",
    "Posterior means of the effects given the side's cohort scores, against mean scores of the evaluation trials. The "
    "line is what a posterior mean that is right on average follows (slope 1).",
    "![Effects](effects.svg)",
    "[effects]",
    "Variances of the effects, and correlations of an element's effects on the two classes:",
    "[variances]",
    "## Residuals",
    "![Quantiles of the residuals](residuals.svg)",
    "[residuals]",
    "## Likelihood",
    "The columns have different shares of targets, so compare rows, not columns.",
    "[likelihood]",
)


def analysis_texts(numbers: Mapping[str, Any]) -> dict[str, str]:
    """Return all files but the figures, by name."""
    tables = analysis_tables(numbers)
    record = {"format": "evenscore-analysis", "version": 1, "evenscore": __version__, **numbers}
    texts = {f"{name}.md": table for name, table in tables.items()}
    texts["results.json"] = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    texts["index.md"] = "\n\n".join(_filled(part, tables, numbers) for part in _PAGE) + "\n"
    return texts


def _filled(part: str, tables: Mapping[str, str], numbers: Mapping[str, Any]) -> str:
    name = part.removeprefix("[").removesuffix("]")
    if part == f"[{name}]":
        return tables[name].rstrip()
    return part.format(seed=numbers["seed"], draws=numbers["draws"])
