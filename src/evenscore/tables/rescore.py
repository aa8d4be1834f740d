"""Other scores for the same trials, where they are known to be sound."""

from __future__ import annotations

from copy import copy
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.tables.axis import Axis
from evenscore.tables.score_matrix import ScoreMatrix
from evenscore.tables.tile import Tile
from evenscore.tables.trial_list import TrialList

__all__ = ["as_list", "rescored", "rescored_pairs", "table_of_tile", "tile_of_table"]

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


def table_of_tile(tile: Tile, enroll_axis: Axis, test_axis: Axis) -> ScoreMatrix | TrialList:
    """Return a tile as a table in memory, which nobody has looked through for missing and infinite scores.

    A list keeps all ids of the axes, so that its trials stand where they stood.
    """
    if not tile.listed:
        axes = enroll_axis.take(tile.rows), test_axis.take(tile.columns)
        return ScoreMatrix.trusted(tile.scores, *axes, tile.n_missing or 0)
    return TrialList.trusted(enroll_axis, test_axis, tile)


def tile_of_table(table: ScoreMatrix | TrialList, tile: Tile) -> Tile:
    """Return what became of the table of a tile; a list may have lost trials."""
    if isinstance(table, ScoreMatrix):
        return tile.with_scores(table.scores, table.n_missing)
    assert table.scores is not None  # noqa: S101
    return Tile(table.scores, table.enroll_index, table.test_index, table.labels, measures=table.measures)
