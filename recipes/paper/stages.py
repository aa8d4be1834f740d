"""How long each stage of the experiment takes."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["StageClock"]

# What the recognizer calls its stages, and what they are called in reports.
_NAMES = {"background model": "UBM", "statistics": "scores"}


class StageClock:
    """A progress callback that keeps time: what passed since the last report belongs to the stage that reports now.

    Examples
    --------
    >>> clock = StageClock(lambda stage, fraction: None)
    >>> clock("features", 0.5)
    >>> clock("features", 1.0)
    >>> list(clock.seconds)
    ['features']
    """

    def __init__(self, progress: Callable[[str, float], None]) -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress
        self._last = time.perf_counter()

    def __call__(self, stage: str, fraction: float) -> None:
        """Report on a stage."""
        name = _NAMES.get(stage, stage)
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._last
        self._last = now
        self._progress(name, fraction)

    def whole(self, fraction: float) -> None:
        """Report how much of the whole experiment is done."""
        self._progress("experiment", fraction)
