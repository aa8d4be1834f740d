"""One method from training to figures: fitted, calibrated, normalized, measured."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from evenscore.calibrate import Calibration, calibration_class, cross_calibrate
from evenscore.comparison.comparison import METRICS, Figures
from evenscore.comparison.methods import Method
from evenscore.comparison.trials import ComparedTrials
from evenscore.errors import InputError
from evenscore.metrics import OperatingPoint, bootstrap, evaluate
from evenscore.norms import FittedNorm, fit_norm
from evenscore.progress import Progress
from evenscore.tables import NONTARGET, TARGET, LabelledBlocks
from evenscore.tables.arrays import frozen

__all__ = ["Judged", "Judging", "Sides", "calibration_settings", "judge"]

# Small enough to change nothing where the classes overlap, and it keeps the weights finite where they do not.
_PENALTY = 1e-5


def calibration_settings(calibration: str, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options of a calibration's ``fit``; if none are given, the logistic one gets a tiny penalty.

    Examples
    --------
    >>> calibration_settings("logistic", None), calibration_settings("gaussian", None)
    ({'l2': 1e-05}, {})
    """
    calibration_class(calibration)
    if options is None:
        return {"l2": _PENALTY} if calibration == "logistic" else {}
    return dict(options)


@dataclass(frozen=True, kw_only=True)
class Judging:
    """How every method is judged: all of them the same way."""

    calibration: str
    calibration_options: Mapping[str, Any]
    points: tuple[OperatingPoint, ...]
    replicates: int
    level: float
    seed: int
    folds: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Judged:
    """What one method made of the trials; all that can be known without the other methods.

    ``replicates`` has for each metric its value in every draw of speakers; the other fields are those of
    `MethodResult`.
    """

    method: Method
    scores: Float[np.ndarray, " n"]
    llrs: Float[np.ndarray, " n"]
    figures: Figures
    conditions: Mapping[str, Figures]
    uncalibrated: Figures | None
    training: Figures | None
    replicates: Mapping[str, Float[np.ndarray, " b"]]
    calibration: Calibration
    model: Any
    is_llr: bool
    notes: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Sides:
    """The data of both sides."""

    training: Sequence[LabelledBlocks]
    evaluation: Sequence[LabelledBlocks]
    training_trials: ComparedTrials
    trials: ComparedTrials


def judge(method: Method, sides: Sides, how: Judging, progress: Progress) -> Judged:
    """Fit on the training side, calibrate there, normalize the evaluation trials once, and measure them."""
    start = time.perf_counter()
    fitted = fit_norm(
        method.norm, sides.training, progress=_part(progress, method.name, 0.0, 0.5), **dict(method.options)
    )
    notes = list(fitted.notes)
    trained, key = _training_scores(fitted, sides.training)
    calibration = calibration_class(how.calibration).fit(trained, key, **dict(how.calibration_options))  # type: ignore[attr-defined]
    if trained[key == TARGET].min() > trained[key == NONTARGET].max():
        notes.append("its training scores separate the classes without error, so the scale of its LLRs is a guess")
    training = _cross_calibrated(fitted, sides, how, notes)
    progress(method.name, 0.6)
    tables = [fitted.normalizer.normalize(part.blocks) for part in sides.evaluation]
    scores = sides.trials.pooled(tables, sides.evaluation)
    llrs = frozen(np.asarray(calibration(scores), dtype=np.float64))
    progress(method.name, 0.7)
    figures, replicates = _measured(llrs, sides.trials, how)
    judged = Judged(
        method=method,
        scores=scores,
        llrs=llrs,
        figures=figures,
        conditions=_by_condition(llrs, sides.trials, how),
        uncalibrated=_measured(scores, sides.trials, how)[0] if fitted.is_llr else None,
        training=training,
        replicates=replicates,
        calibration=calibration,
        model=fitted.model,
        is_llr=fitted.is_llr,
        notes=tuple(notes),
        seconds=time.perf_counter() - start,
    )
    progress(method.name, 1.0)
    return judged


def _part(progress: Progress, name: str, first: float, last: float) -> Progress:
    """Return a callback that reports the fraction of any stage as a part of the method's own."""

    def report(stage: str, fraction: float) -> None:
        progress(name, first + (last - first) * min(max(fraction, 0.0), 1.0))

    return report


def _training_scores(
    fitted: FittedNorm, training: Sequence[LabelledBlocks]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int8]]:
    lists = [part.labelled(table) for part, table in zip(training, fitted.training_scores, strict=True)]
    scores = np.concatenate([part.scores for part in lists])
    return scores, np.concatenate([part.labels for part in lists])


def _cross_calibrated(fitted: FittedNorm, sides: Sides, how: Judging, notes: list[str]) -> Figures | None:
    """Return figures of the training trials, none of which was calibrated by its own speakers."""
    trials = sides.training_trials
    try:
        scores = trials.known(trials.pooled(fitted.training_scores, sides.training))
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


def _measured(
    scores: npt.NDArray[Any], trials: ComparedTrials, how: Judging
) -> tuple[Figures, dict[str, npt.NDArray[np.float64]]]:
    values, key = trials.known(scores), trials.known(trials.labels)
    drawn = bootstrap(values, key, **trials.sides, replicates=how.replicates, points=how.points, seed=how.seed)
    figures = Figures(values=evaluate(values, key, points=how.points), intervals=drawn.to_dict(how.level))
    return figures, {metric: drawn.replicates(metric) for metric in METRICS}


def _by_condition(llrs: npt.NDArray[Any], trials: ComparedTrials, how: Judging) -> dict[str, Figures]:
    if len(trials.lists) < 2:
        return {}
    found = {}
    for name, part in zip(trials.names, trials.split(llrs), strict=True):
        classes = ((part.n_target, "target"), (part.n_nontarget, "non-target"))
        absent = [kind for count, kind in classes if not count]
        if absent:
            counts: dict[str, Any] = {"n_target": part.n_target, "n_nontarget": part.n_nontarget}
            found[name] = Figures(values=counts | {"problem": f"there are no {absent[0]} trials"})
        else:
            found[name] = Figures(values=evaluate(part, points=how.points))
    return found
