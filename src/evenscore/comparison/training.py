"""The training side of one method: fitted, and calibrated on its own training scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.calibrate import Calibration, calibration_class, cross_calibrate
from evenscore.comparison.chunked_trials import AnyTrials, ChunkedCompared
from evenscore.comparison.cohorts import AnyBlocks
from evenscore.comparison.comparison import Figures
from evenscore.comparison.measuring import ChunkedTable, Judging
from evenscore.comparison.methods import RAW, Method
from evenscore.comparison.trials import ComparedTrials
from evenscore.errors import InputError
from evenscore.metrics import evaluate
from evenscore.metrics.summary import ScoreSummary
from evenscore.norms import CLASSICAL_METHODS, FittedNorm, fit_norm, norm_methods, prepare_norm
from evenscore.progress import Progress
from evenscore.scale import LabelledChunks
from evenscore.scale.counting import count_chunks
from evenscore.scale.normalize import described_norm, normalize_by, normalize_chunks
from evenscore.tables import NONTARGET, TARGET, LabelledBlocks, ScoreBlocks, TrialList

__all__ = ["Trained", "normalized_chunks", "train"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Trained:
    """A fitted norm, its calibration, and cross-validated figures of the training side where there are any."""

    norm: FittedNorm
    calibration: Calibration
    training: Figures | None
    notes: tuple[str, ...]


def train(
    method: Method,
    training: Sequence[AnyBlocks],
    trials: AnyTrials,
    how: Judging,
    *,
    client: Any,
    progress: Progress,
) -> Trained:
    """Fit a norm to the training side, and calibrate it there."""
    if isinstance(trials, ChunkedCompared):
        return _trained_on_chunks(method, trials.parts, how, client, progress)
    blocks = [part for part in training if isinstance(part, LabelledBlocks)]
    fitted = fit_norm(method.norm, blocks, progress=progress, **dict(method.options))
    notes = list(fitted.notes)
    scores, key = _training_scores(fitted, blocks)
    calibration = calibration_class(how.calibration).fit(scores, key, **dict(how.calibration_options))  # type: ignore[attr-defined]
    if scores[key == TARGET].min() > scores[key == NONTARGET].max():
        notes.append(_SEPARATED)
    figures = _cross_calibrated(fitted, blocks, trials, how, notes)
    return Trained(norm=fitted, calibration=calibration, training=figures, notes=tuple(notes))


_SEPARATED = "its training scores separate the classes without error, so the scale of its LLRs is a guess"


def _training_scores(
    fitted: FittedNorm, training: Sequence[LabelledBlocks]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int8]]:
    lists = [part.labelled(table) for part, table in zip(training, fitted.training_scores, strict=True)]
    scores = np.concatenate([part.scores for part in lists])
    return scores, np.concatenate([part.labels for part in lists])


def _cross_calibrated(
    fitted: FittedNorm, training: Sequence[LabelledBlocks], trials: ComparedTrials, how: Judging, notes: list[str]
) -> Figures | None:
    """Return figures of the training trials, none of which was calibrated by its own speakers."""
    try:
        scores = trials.known(trials.pooled(fitted.training_scores, training))
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


def _trained_on_chunks(
    method: Method, training: Sequence[LabelledChunks], how: Judging, client: Any, progress: Progress
) -> Trained:
    """Fit and calibrate where the training side is not in memory either: from sums and summaries of its scores."""
    fitted = _fitted_to_chunks(method, training, client, progress)
    summary: ScoreSummary | None = None
    for part in training:
        table = normalized_chunks(method, fitted, part, client=client, progress=progress)
        options = {"points": how.points}
        found = count_chunks(table, part.values, client=client, progress=progress, options=options).summary
        summary = found if summary is None else summary + found
    assert summary is not None  # noqa: S101
    kind: Any = calibration_class(how.calibration)
    calibration = kind.fit(summary, **dict(how.calibration_options))
    notes = [
        *fitted.notes,
        "its training scores are not in memory: they are calibrated from a summary, and not cross-validated",
    ]
    if summary.class_scores(TARGET)[0].min() > summary.class_scores(NONTARGET)[0].max():
        notes.append(_SEPARATED)
    return Trained(norm=fitted, calibration=calibration, training=None, notes=tuple(notes))


def _fitted_to_chunks(
    method: Method, training: Sequence[LabelledChunks], client: Any, progress: Progress
) -> FittedNorm:
    options = dict(method.options)
    if method.norm == RAW:
        small = LabelledBlocks(ScoreBlocks(TrialList(["e"], ["t"], [0], [0], scores=[0.0], labels=[TARGET])))
        return fit_norm(RAW, [small], **options)  # which learns nothing
    if method.norm in CLASSICAL_METHODS:
        return FittedNorm(method=method.norm, normalizer=prepare_norm(method.norm, **options), training_scores=())
    if method.norm != "lgsm":
        raise InputError("it is trained on scores in memory, but the training side is too large; give a smaller one")
    from evenscore.model.fit import fit_score_model

    tables = [part.table() for part in training]
    data: list[Any] = [
        part.blocks.trials if table is None else (part.blocks.trials, table)
        for part, table in zip(training, tables, strict=True)
    ]
    result = fit_score_model(data, **options, client=client, progress=progress)
    return FittedNorm(
        method=method.norm,
        normalizer=prepare_norm(method.norm, model=result.model),
        training_scores=(),
        model=result.model,
        is_llr=True,
        notes=result.notes,
    )


def normalized_chunks(
    method: Method, fitted: FittedNorm, part: LabelledChunks, *, client: Any, progress: Progress
) -> ChunkedTable:
    """Return the trials of chunked blocks, normalized when they are read."""
    if method.norm == RAW:
        return part.blocks.trials
    if method.norm not in norm_methods():
        described = described_norm(method.norm, {**method.options, "model": fitted.model})
        return normalize_by(fitted.normalizer, part.blocks, described)
    options = method.options if fitted.model is None else {"model": fitted.model}
    return normalize_chunks(part.blocks, method.norm, client=client, progress=progress, **options)
