"""The files of the paper's experiment: tables, figures, results, and the page that shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore import InputError, LabelledBlocks, Labels, ScoreBlocks, ScoreMatrix, __version__
from evenscore.files import ScoreSet
from recipes.paper.figures import draw_bayes, draw_det, draw_mean_det, draw_shift
from recipes.paper.page import page
from recipes.paper.reference import PAPER_EER, PAPER_VARIANCES
from recipes.paper.tables import (
    as_csv,
    as_markdown,
    metric_rows,
    metric_table,
    shift_rows,
    variance_rows,
    variance_table,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from recipes.paper.experiment import PaperResult

__all__ = ["paper_figures", "paper_texts", "single_precision"]


def paper_figures(result: PaperResult) -> dict[str, Figure]:
    """Return the figures by name of file."""
    figures = {"det.svg": draw_det(result.groups[0])}
    if len(result.groups) > 1:
        figures["det_mean.svg"] = draw_mean_det(result.groups)
    figures["bayes.svg"] = draw_bayes(result.groups[0])
    shifts = result.figures["shifts"]
    if shifts:
        figures["shift.svg"] = draw_shift(shifts)
    return figures


def paper_texts(result: PaperResult, figures: Mapping[str, object]) -> dict[str, str]:
    """Return all other files by name; ``figures`` are those that the page may show."""
    numbers = result.figures
    rows: list[list[object]] = []
    for models in numbers["summary"]:
        found = metric_rows([split["models"][models] for split in numbers["splits"]], models)
        rows += found if not rows else found[1:]
    texts = {
        "index.md": page(numbers, list(figures)),
        "metrics.csv": as_csv(rows),
        "metrics.md": as_markdown(metric_table(numbers["summary"]["per-gender"])),
        "results.json": _json(numbers),
        "stages.csv": as_csv([["stage", "seconds"], *([name, round(s, 2)] for name, s in result.seconds.items())]),
        "variances.csv": as_csv(variance_rows(numbers["variances"])),
        "variances.md": as_markdown(variance_table(numbers["variances"])),
    }
    if numbers["shifts"]:
        texts["shift.csv"] = as_csv(shift_rows(numbers["shifts"]))
    return texts


def _json(numbers: Mapping[str, Any]) -> str:
    paper = {"eer": {group: dict(rates) for group, rates in PAPER_EER.items()}}
    paper["variances"] = {group: dict(values) for group, values in PAPER_VARIANCES.items()}
    record = {"format": "evenscore-paper", "version": 1, "evenscore": __version__, **numbers, "paper": paper}
    return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def single_precision(scores: ScoreSet) -> ScoreSet:
    """Return the scores in single precision, which is half as large on disk and exact enough for any use of them."""
    development = [
        LabelledBlocks.own_cohort(_matrix(part.blocks.trials), _labels(part), name=part.name)
        for part in scores.development
    ]
    evaluation = []
    for part, own in zip(scores.evaluation, development, strict=True):
        old = part.blocks
        blocks = ScoreBlocks(
            _matrix(old.trials),
            enroll=_matrix(old.enroll),
            test=_matrix(old.test),
            cohort=own.blocks.cohort,
            enroll_speakers=old.enroll_speakers,
            test_speakers=old.test_speakers,
            cohort_enroll_speakers=old.cohort_enroll_speakers,
            cohort_test_speakers=old.cohort_test_speakers,
        )
        evaluation.append(LabelledBlocks(blocks, part.labels, part.name))
    return ScoreSet(tuple(development), tuple(evaluation), scores.gender)


def _matrix(scores: object) -> ScoreMatrix:
    if not isinstance(scores, ScoreMatrix):
        raise InputError("only score matrices can be saved")
    return scores.astype(np.float32)


def _labels(part: LabelledBlocks) -> Labels:
    if part.labels is None:
        raise InputError("the speakers must be known")
    return part.labels
