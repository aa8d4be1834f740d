"""Other scores for the same trials, where they are known to be sound."""

from __future__ import annotations

from copy import copy
from typing import Any, TypeVar

import numpy.typing as npt

from evenscore.tables.score_matrix import ScoreMatrix
from evenscore.tables.trial_list import TrialList

__all__ = ["rescored"]

Trials = TypeVar("Trials", bound=ScoreMatrix | TrialList)


def rescored(trials: Trials, scores: npt.NDArray[Any], n_missing: int = 0) -> Trials:
    """Return trials with other scores that are known to be finite, but for the missing ones of a matrix.

    The constructors would check ids, pairs and scores once more, which takes as long as normalizing.
    """
    result = copy(trials)
    scores.flags.writeable = False
    object.__setattr__(result, "scores", scores)
    if isinstance(result, ScoreMatrix):
        object.__setattr__(result, "n_missing", n_missing)
        result.__dict__.pop("missing", None)  # made for the other scores
    return result
