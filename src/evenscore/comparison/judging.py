"""One method from training to figures: fitted, calibrated, normalized, measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore.calibrate import Calibration, calibration_class
from evenscore.comparison.chunked_trials import AnyTrials, ChunkedCompared
from evenscore.comparison.cohorts import AnyBlocks
from evenscore.comparison.comparison import Figures
from evenscore.comparison.measuring import ChunkedTable, Judging, Measured, measured_chunks, measured_scores
from evenscore.comparison.methods import Method
from evenscore.comparison.training import Trained, normalized_chunks, train
from evenscore.comparison.trials import ComparedTrials
from evenscore.progress import Progress
from evenscore.tables import LabelledBlocks
from evenscore.tables.arrays import frozen

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Judged", "Judging", "Keep", "Sides", "calibration_settings", "judge"]

# Small enough to change nothing where the classes overlap, and it keeps the weights finite where they do not.
_PENALTY = 1e-5


def calibration_settings(calibration: str, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options of a calibration's ``fit``; if none are given, those that weigh scores get a tiny penalty.

    Examples
    --------
    >>> calibration_settings("logistic", None), calibration_settings("gaussian", None)
    ({'l2': 1e-05}, {})
    """
    calibration_class(calibration)
    if options is None:
        return {"l2": _PENALTY} if calibration in ("logistic", "saturating") else {}
    return dict(options)


@dataclass(frozen=True, kw_only=True, eq=False)
class Judged:
    """What one method made of the trials; all that can be known without the other methods.

    The fields are those of `MethodResult`.
    """

    method: Method
    measured: Measured
    training: Figures | None
    calibration: Calibration
    model: Any
    is_llr: bool
    notes: tuple[str, ...]
    seconds: float

    @property
    def figures(self) -> Figures:
        """Metrics of the calibrated scores."""
        return self.measured.figures

    @property
    def replicates(self) -> Mapping[str, Float[np.ndarray, " b"]]:
        """Each metric in every draw of speakers."""
        return self.measured.replicates


@dataclass(frozen=True, kw_only=True, eq=False)
class Sides:
    """The data of both sides, and the Dask client that works on what is not in memory."""

    training: Sequence[AnyBlocks]
    evaluation: Sequence[AnyBlocks]
    training_trials: AnyTrials
    trials: AnyTrials
    client: Any = None


Keep = Callable[[Sequence[ChunkedTable], Progress], Sequence[ChunkedTable]]  # writes scores, and gives what is written


def judge(method: Method, sides: Sides, how: Judging, progress: Progress, keep: Keep | None = None) -> Judged:
    """Fit on the training side, calibrate there, normalize the evaluation trials once, and measure them."""
    start = time.perf_counter()
    trained = train(
        method,
        sides.training,
        sides.training_trials,
        how,
        client=sides.client,
        progress=_part(progress, method.name, 0.0, 0.5),
    )
    progress(method.name, 0.6)
    measure = _measured_chunks if isinstance(sides.trials, ChunkedCompared) else _measured_scores
    judged = Judged(
        method=method,
        measured=measure(method, trained, sides, how, progress, keep),
        training=trained.training,
        calibration=trained.calibration,
        model=trained.norm.model,
        is_llr=trained.norm.is_llr,
        notes=trained.notes,
        seconds=time.perf_counter() - start,
    )
    progress(method.name, 1.0)
    return judged


def _measured_scores(
    method: Method, trained: Trained, sides: Sides, how: Judging, progress: Progress, keep: Keep | None
) -> Measured:
    trials, evaluation = sides.trials, [part for part in sides.evaluation if isinstance(part, LabelledBlocks)]
    assert isinstance(trials, ComparedTrials)  # noqa: S101
    scores = trials.pooled([trained.norm.normalizer.normalize(part.blocks) for part in evaluation], evaluation)
    llrs = frozen(np.asarray(trained.calibration(scores), dtype=np.float64))
    progress(method.name, 0.7)
    return measured_scores(scores, llrs, trials, how, trained.norm.is_llr)


def _measured_chunks(
    method: Method, trained: Trained, sides: Sides, how: Judging, progress: Progress, keep: Keep | None
) -> Measured:
    trials, client = sides.trials, sides.client
    assert isinstance(trials, ChunkedCompared)  # noqa: S101
    cohort = _part(progress, method.name, 0.5, 0.6)
    tables: Sequence[ChunkedTable] = [
        normalized_chunks(method, trained.norm, part, client=client, progress=cohort) for part in trials.parts
    ]
    if keep is not None:
        tables = keep(tables, _part(progress, method.name, 0.6, 0.8))
    rest = _part(progress, method.name, 0.6 if keep is None else 0.8, 1.0)
    return measured_chunks(tables, trained.calibration, trials, how, trained.norm.is_llr, client=client, progress=rest)


def _part(progress: Progress, name: str, first: float, last: float) -> Progress:
    """Return a callback that reports the fraction of any stage as a part of the method's own."""

    def report(stage: str, fraction: float) -> None:
        progress(name, first + (last - first) * min(max(fraction, 0.0), 1.0))

    return report
