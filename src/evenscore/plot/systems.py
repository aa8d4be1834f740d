"""The systems that a figure shows, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.trials import ScoresLike, SortedScores, sort_scores

__all__ = ["SystemsLike", "as_systems", "visible_range"]

SystemsLike: TypeAlias = "ScoresLike | Mapping[str, ScoresLike]"

_TAIL = 5e-4  # share of the scores of a class that may lie beyond either end of an axis of scores


def as_systems(scores: SystemsLike, labels: npt.ArrayLike | None) -> dict[str, SortedScores]:
    """Return sorted scores by name of system; one system alone has the empty name.

    Examples
    --------
    >>> as_systems({"raw": [1.0, 2.0], "normalized": [-1.0, 1.0]}, [0, 1])
    {'raw': SortedScores(1 targets, 1 non-targets, float64), 'normalized': SortedScores(1 targets, ...)}
    """
    if not isinstance(scores, Mapping):
        return {"": sort_scores(scores, labels)}
    if not scores:
        raise InputError("there is no system to draw; give at least one")
    return {str(name): _sorted(str(name), system, labels) for name, system in scores.items()}


def _sorted(name: str, system: ScoresLike, labels: npt.ArrayLike | None) -> SortedScores:
    try:
        return sort_scores(system, None if isinstance(system, SortedScores) else labels)
    except InputError as error:
        raise InputError(f"system {name!r}: {error}") from None


def visible_range(*sides: npt.NDArray[np.floating]) -> tuple[float, float]:
    """Return a range that shows nearly all finite scores, so that a few far ones do not squeeze the rest.

    The scores of each side are sorted.
    """
    lows, highs = [], []
    for side in sides:
        finite = side[np.searchsorted(side, -np.inf, side="right") : np.searchsorted(side, np.inf)]
        if finite.size:
            last = finite.size - 1
            lows.append(float(finite[int(_TAIL * last)]))
            highs.append(float(finite[last - int(_TAIL * last)]))
    if not lows:
        return -1.0, 1.0
    low, high = min(lows), max(highs)
    margin = 0.03 * (high - low) or max(abs(low), 1.0) / 2
    return low - margin, high + margin
