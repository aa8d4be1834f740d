"""Calibrations of the scores of a table, which are changed when they are read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.calibration import Calibration
from evenscore.errors import InputError
from evenscore.tables.identity import hashed
from evenscore.tables.pair_values import PairValues, SideGroups
from evenscore.tables.score_table import LazyScores, ScoreTable, Source
from evenscore.tables.tile import Place, Tile

__all__ = ["calibrated", "cross_calibrated"]

Fits = Mapping[tuple[int, int], Calibration]


def calibrated(
    scores: ScoreTable, function: Callable[[npt.NDArray[Any]], npt.NDArray[Any]], identity: str | None = None
) -> LazyScores:
    """Return scores that a calibration, or another function, changes one by one when they are read.

    Parameters
    ----------
    scores
        The scores.
    function
        Takes and gives an array; on a cluster it travels to the workers.
    identity
        A text that changes when the function does, for runs that are continued; a calibration needs none.

    Examples
    --------
    >>> from evenscore import ScoreMatrix
    >>> scores = ScoreMatrix([[3.0, -1.0]], ["e1"], ["t1", "t2"])
    >>> calibrated(scores, np.negative, "negative").in_memory().scores
    array([[-3.,  1.]])
    """
    if not isinstance(scores, ScoreTable):
        raise InputError(f"the scores are a {type(scores).__name__}, but must be a table; make one with as_table")
    if not callable(function):
        raise InputError(f"the function is a {type(function).__name__}, which cannot be called; give a function")
    if identity is None:
        if not isinstance(function, Calibration):
            raise InputError("nothing tells when this function changes; give identity, a text that changes with it")
        identity = json.dumps(function.to_dict())
    return scores.map(function, identity)


def cross_calibrated(scores: ScoreTable, folds: SideGroups, fits: Fits) -> LazyScores:
    """Return scores that the fit of their pair of folds turns into LLRs when they are read.

    Parameters
    ----------
    scores
        The scores.
    folds
        The fold of each enrolment and of each test. Pairs of other ids are left out.
    fits
        A calibration for each pair of folds, the lower one first.
    """
    groups = folds.align(scores.enroll_axis, scores.test_axis)
    return scores.with_source(_CrossCalibrated(scores.source, groups, folds.n_test, fits))


@dataclass(frozen=True, eq=False)
class _CrossCalibrated:
    source: Source
    folds: PairValues
    n_folds: int
    fits: Fits

    def read(self, place: Place) -> Tile:
        tile = self.source.read(place)
        groups = np.broadcast_to(self.folds.of(tile), tile.scores.shape)
        llrs = np.full_like(tile.scores, np.nan)
        for group in np.unique(groups[groups >= 0]).tolist():
            i, j = divmod(group, self.n_folds)
            fit = self.fits.get((min(i, j), max(i, j)))
            if fit is not None:
                llrs[groups == group] = fit(tile.scores[groups == group])
        known = ~np.isnan(llrs)
        found = tile.with_scores(llrs)
        return found if known.all() or not tile.listed else found.select(known)

    def identity(self) -> str:
        fits = [(pair, fit.to_dict()) for pair, fit in sorted(self.fits.items())]
        return hashed(self.source.identity(), self.folds.identity(), fits)
