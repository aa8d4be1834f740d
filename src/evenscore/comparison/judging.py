"""One method from training to figures: fitted, calibrated, normalized, measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenscore.calibrate import Calibration, calibration_and_options
from evenscore.comparison.comparison import Figures
from evenscore.comparison.measuring import Judging, Measured, measured
from evenscore.comparison.methods import Method
from evenscore.comparison.training import Trained, train
from evenscore.comparison.trials import ComparedTrials
from evenscore.norms.normalize import described_norm
from evenscore.progress import Progress
from evenscore.tables import LabelledBlocks, ScoreTable

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float

__all__ = ["Judged", "Judging", "Keep", "Sides", "calibration_settings", "judge"]

# Small enough to change nothing where the classes overlap, and it keeps the weights finite where they do not.
_PENALTY = 1e-5


def calibration_settings(calibration: str, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
    """Return a calibration and the options of its ``fit``; without any, those that weigh scores get a tiny penalty.

    Examples
    --------
    >>> calibration_settings("logistic"), calibration_settings("logistic:l2=0.1"), calibration_settings("gaussian")
    (('logistic', {'l2': 1e-05}), ('logistic', {'l2': 0.1}), ('gaussian', {}))
    """
    name, spelled = calibration_and_options(calibration)
    if options is None and not spelled:
        return name, {"l2": _PENALTY} if name in ("logistic", "saturating") else {}
    return name, {**spelled, **(options or {})}


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

    training: Sequence[LabelledBlocks]
    evaluation: Sequence[LabelledBlocks]
    training_trials: ComparedTrials
    trials: ComparedTrials
    client: Any = None


Keep = Callable[[Sequence[ScoreTable], Progress], Sequence[ScoreTable]]  # writes scores, and gives what is written


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
    judged = Judged(
        method=method,
        measured=_normalized_and_measured(method, trained, sides, how, progress, keep),
        training=trained.training,
        calibration=trained.calibration,
        model=trained.norm.model,
        is_llr=trained.norm.is_llr,
        notes=trained.notes,
        seconds=time.perf_counter() - start,
    )
    progress(method.name, 1.0)
    return judged


def _normalized_and_measured(
    method: Method, trained: Trained, sides: Sides, how: Judging, progress: Progress, keep: Keep | None
) -> Measured:
    """Normalize the evaluation trials, write them if they are not in memory and shall be kept, and measure them."""
    norm, trials, client = trained.norm, sides.trials, sides.client
    options = described_norm(method.norm, method.options)
    cohort = _part(progress, method.name, 0.5, 0.6)
    tables: Sequence[ScoreTable] = [
        norm.normalize(part.blocks, options, client=client, progress=cohort) for part in sides.evaluation
    ]
    begun = 0.6
    if keep is not None and not trials.is_in_memory:
        tables, begun = keep(tables, _part(progress, method.name, 0.6, 0.8)), 0.8
    rest = _part(progress, method.name, begun, 1.0)
    return measured(tables, trained.calibration, trials, how, norm.is_llr, client=client, progress=rest)


def _part(progress: Progress, name: str, first: float, last: float) -> Progress:
    """Return a callback that reports the fraction of any stage as a part of the method's own."""

    def report(stage: str, fraction: float) -> None:
        progress(name, first + (last - first) * min(max(fraction, 0.0), 1.0))

    return report
