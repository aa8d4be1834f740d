"""One method from training to figures: fitted, calibrated, normalized, measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, ParamSpec, TypeVar

import numpy as np

from evenscore.calibrate import Calibration, calibration_class, cross_calibrate
from evenscore.comparison.comparison import Figures, Judging, MethodResult
from evenscore.comparison.data import Sides
from evenscore.comparison.measuring import measured
from evenscore.comparison.methods import Method
from evenscore.comparison.trials import ComparedTrials
from evenscore.errors import EvenscoreError, InputError
from evenscore.metrics import evaluate
from evenscore.metrics.counting import summarize_table
from evenscore.metrics.points import Points
from evenscore.metrics.trials import Trials
from evenscore.norms import FittedNorm, fit_norm
from evenscore.norms.normalize import described_norm
from evenscore.progress import Progress, silent
from evenscore.tables import NONTARGET, TARGET, LabelledBlocks, ScoreTable

__all__ = ["Keep", "Trained", "judge", "or_reason", "train", "training_points"]

_SEPARATED = "its training scores separate the classes without error, so the scale of its LLRs is a guess"
_SUMMARIZED = "its training scores are not in memory: they are calibrated from a summary, and not cross-validated"

Given = ParamSpec("Given")
Result = TypeVar("Result")
Keep = Callable[[Sequence[ScoreTable], Progress], Sequence[ScoreTable]]  # writes scores, and gives what is written


def or_reason(judge: Callable[Given, Result], *given: Given.args, **named: Given.kwargs) -> Result | str:
    """Return what judging a candidate gives, or why it cannot be judged; anything but a refusal is a bug."""
    try:
        return judge(*given, **named)
    except EvenscoreError as error:
        return str(error)


def judge(method: Method, sides: Sides, how: Judging, progress: Progress, keep: Keep | None = None) -> MethodResult:
    """Fit on the training side, calibrate there, normalize the evaluation trials once, and measure them.

    Trials that are not in memory are written before they are measured, if they shall be kept.
    """
    start = time.perf_counter()

    def share(first: float, last: float) -> Progress:
        """Return a callback that reports the fraction of any stage as a part of the method's own."""
        return lambda stage, fraction: progress(method.name, first + (last - first) * min(max(fraction, 0.0), 1.0))

    client = sides.client
    trained = train(method, sides.training, how, trials=sides.training_trials, client=client, progress=share(0.0, 0.5))
    tables: Sequence[ScoreTable] = trained.normalized(sides.evaluation, client=client, progress=share(0.5, 0.6))
    begun = 0.6
    progress(method.name, begun)
    if keep is not None and not sides.trials.is_in_memory:
        tables, begun = keep(tables, share(0.6, 0.8)), 0.8
    is_llr = trained.norm.is_llr
    calibrations = [trained.calibration] * len(tables)
    found = measured(tables, calibrations, sides.trials, how, is_llr=is_llr, client=client, progress=share(begun, 1.0))
    progress(method.name, 1.0)
    return MethodResult(
        **vars(method),
        **vars(found),
        training=trained.training,
        calibration=trained.calibration,
        model=trained.norm.model,
        is_llr=is_llr,
        notes=trained.notes,
        seconds=time.perf_counter() - start,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Trained:
    """A fitted norm, its calibration, and cross-validated figures of the training side where there are any."""

    method: Method
    norm: FittedNorm
    calibration: Calibration
    training: Figures | None
    notes: tuple[str, ...]

    def normalized(
        self, evaluation: Sequence[LabelledBlocks], *, client: Any = None, progress: Progress = silent
    ) -> list[ScoreTable]:
        """Normalize new trials, one table for each condition."""
        described = described_norm(self.method.norm, self.method.options)
        return [self.norm.normalize(part.blocks, described, client=client, progress=progress) for part in evaluation]


def train(
    method: Method,
    training: Sequence[LabelledBlocks],
    how: Judging,
    *,
    trials: ComparedTrials | None = None,
    client: Any = None,
    progress: Progress = silent,
) -> Trained:
    """Fit a norm to the training side, and calibrate it there; with ``trials`` the training side is measured, too."""
    whole = all(part.blocks.is_in_memory for part in training)
    fitted = fit_norm(
        method.norm, training, client=None if whole else client, progress=progress, **dict(method.options)
    )
    counting: dict[str, Any] = {"client": client, "progress": progress, "points": how.points}
    points = training_points(training, fitted.training_scores, **counting)
    kind: Any = calibration_class(how.calibration)
    calibration = kind.fit(points, **dict(how.calibration_options))
    in_memory = all(part.is_in_memory for part in training)
    notes = list(fitted.notes) if in_memory else [*fitted.notes, _SUMMARIZED]
    targets, nontargets = (points.class_scores(label)[0] for label in (TARGET, NONTARGET))
    if targets.min() > nontargets.max():
        notes.append(_SEPARATED)
    figures = None if trials is None or not in_memory else _cross_calibrated(fitted, trials, how, notes)
    return Trained(method=method, norm=fitted, calibration=calibration, training=figures, notes=tuple(notes))


def training_points(
    training: Sequence[LabelledBlocks], tables: Sequence[ScoreTable] | None = None, **counting: Any
) -> Points:
    """Return what calibrations are fitted to: the training trials, or a summary of those that are not in memory.

    ``tables`` are other scores of the trials, such as normalized ones; ``counting`` is as in `summarize_table`.
    """
    pairs = list(zip(training, tables or [part.blocks.trials for part in training], strict=True))
    if all(part.is_in_memory for part in training):
        lists = [part.labelled(table) for part, table in pairs]
        values, key = (np.concatenate([getattr(one, name) for one in lists]) for name in ("scores", "labels"))
        return Trials(values=values, key=key)
    summaries = [summarize_table(table, part.values, **counting) for part, table in pairs]
    return reduce(add, summaries)


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
        return Figures(values=evaluate(found.llr, trials.known(trials.labels), points=how.points).to_dict())
    except InputError as error:
        notes.append(f"no cross-validated figures of the training side: {error}")
        return None
