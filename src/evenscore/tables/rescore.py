"""Other scores for the same trials, where they are known to be sound."""

from __future__ import annotations

from copy import copy
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.tables.score_matrix import ScoreMatrix
from evenscore.tables.trial_list import TrialList

__all__ = ["as_list", "rescored", "rescored_pairs"]

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


def as_list(trials: ScoreMatrix | TrialList) -> TrialList:
    """Return trials as a list of scores; the missing pairs of a matrix are not in it."""
    if isinstance(trials, ScoreMatrix):
        return trials.to_trials()
    if trials.scores is None:
        raise InputError("the trials have no scores; give a list with scores")
    return trials


def rescored_pairs(
    trials: ScoreMatrix | TrialList, listed: TrialList, scores: npt.NDArray[Any]
) -> ScoreMatrix | TrialList:
    """Return trials in their own form, with other scores for the pairs of `as_list`; checked as new ones are."""
    if isinstance(trials, TrialList):
        assert trials.scores is not None  # noqa: S101
        return trials.with_scores(scores.astype(trials.scores.dtype))
    whole = np.full(trials.shape, np.nan, dtype=trials.scores.dtype)
    whole[listed.enroll_index, listed.test_index] = scores
    return trials.with_scores(whole)
