"""The training side of one method: fitted, and calibrated on its own training scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from evenscore.calibrate import Calibration, calibration_class, cross_calibrate
from evenscore.comparison.comparison import Figures
from evenscore.comparison.measuring import Judging
from evenscore.comparison.methods import Method
from evenscore.comparison.trials import ComparedTrials
from evenscore.errors import InputError
from evenscore.metrics import evaluate
from evenscore.metrics.counting import summarize_table
from evenscore.norms import FittedNorm, fit_norm
from evenscore.progress import Progress
from evenscore.tables import NONTARGET, TARGET, LabelledBlocks

__all__ = ["Trained", "train"]

_SEPARATED = "its training scores separate the classes without error, so the scale of its LLRs is a guess"
_SUMMARIZED = "its training scores are not in memory: they are calibrated from a summary, and not cross-validated"


@dataclass(frozen=True, kw_only=True, eq=False)
class Trained:
    """A fitted norm, its calibration, and cross-validated figures of the training side where there are any."""

    norm: FittedNorm
    calibration: Calibration
    training: Figures | None
    notes: tuple[str, ...]


def train(
    method: Method,
    training: Sequence[LabelledBlocks],
    trials: ComparedTrials,
    how: Judging,
    *,
    client: Any,
    progress: Progress,
) -> Trained:
    """Fit a norm to the training side, and calibrate it there."""
    whole = all(part.blocks.is_in_memory for part in training)
    fitted = fit_norm(
        method.norm, training, client=None if whole else client, progress=progress, **dict(method.options)
    )
    points = _points(fitted, trials, how, client, progress)
    kind: Any = calibration_class(how.calibration)
    calibration = kind.fit(*points, **dict(how.calibration_options))
    notes = list(fitted.notes) if trials.is_in_memory else [*fitted.notes, _SUMMARIZED]
    if _separated(*points):
        notes.append(_SEPARATED)
    figures = _cross_calibrated(fitted, trials, how, notes) if trials.is_in_memory else None
    return Trained(norm=fitted, calibration=calibration, training=figures, notes=tuple(notes))


def _points(
    fitted: FittedNorm, trials: ComparedTrials, how: Judging, client: Any, progress: Progress
) -> tuple[Any, ...]:
    """Return what calibrations are fitted to: scores and labels, or a summary of scores that are not in memory."""
    if trials.is_in_memory:
        lists = trials.labelled(fitted.training_scores)
        return tuple(np.concatenate([getattr(part, name) for part in lists]) for name in ("scores", "labels"))
    summaries = [
        summarize_table(table, part.values, client=client, progress=progress, points=how.points)
        for part, table in zip(trials.parts, fitted.training_scores, strict=True)
    ]
    return (reduce(add, summaries),)


def _separated(scores: Any, key: Any = None) -> bool:
    """Tell whether every target scores higher than every non-target."""
    targets, nontargets = (
        scores.class_scores(label)[0] if key is None else scores[key == label] for label in (TARGET, NONTARGET)
    )
    return bool(targets.min() > nontargets.max())


def _cross_calibrated(fitted: FittedNorm, trials: ComparedTrials, how: Judging, notes: list[str]) -> Figures | None:
    """Return figures of the training trials, none of which was calibrated by its own speakers."""
    try:
        scores = trials.known(trials.pooled(fitted.training_scores))
        found = cross_calibrate(
            scores,
            trials.known(trials.labels),
            **trials.sides,
            calibration=how.calibration,
            folds=how.folds,
            options=how.calibration_options,
        )
        return Figures(values=evaluate(found.llr, trials.known(trials.labels), points=how.points))
    except InputError as error:
        notes.append(f"no cross-validated figures of the training side: {error}")
        return None
