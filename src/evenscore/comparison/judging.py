"""One method from training to figures: fitted, calibrated, normalized, measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

from evenscore.comparison.comparison import MethodResult
from evenscore.comparison.measuring import measured
from evenscore.comparison.methods import Method
from evenscore.comparison.settings import Judging
from evenscore.comparison.sides import Sides
from evenscore.comparison.training import train
from evenscore.errors import EvenscoreError
from evenscore.progress import Progress
from evenscore.tables import ScoreTable

__all__ = ["Keep", "judge", "or_reason"]

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
