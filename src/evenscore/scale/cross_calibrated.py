"""Scores that are not in memory, calibrated by fits that never met their speakers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.calibrate import Calibration
from evenscore.scale.chunked_scores import ChunkedScores, TileReader, hashed
from evenscore.scale.chunked_trials import ChunkedTrials, TrialReader
from evenscore.scale.pair_values import SideGroups
from evenscore.tables import TrialList

__all__ = ["cross_calibrated"]

Fits = Mapping[tuple[int, int], Calibration]


def cross_calibrated(
    scores: ChunkedScores | ChunkedTrials, folds: SideGroups, fits: Fits
) -> ChunkedScores | ChunkedTrials:
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
    if isinstance(scores, ChunkedScores):
        sides = folds.align(scores.enroll_ids, scores.test_ids)
        return replace(scores, reader=_CrossTiles(scores.reader, sides, fits))
    return replace(scores, reader=_CrossTrials(scores.reader, folds, fits))


@dataclass(frozen=True, eq=False)
class _CrossTiles:
    reader: TileReader
    folds: SideGroups
    fits: Fits

    def read(self, rows: slice, columns: slice) -> npt.NDArray[Any]:
        scores = self.reader.read(rows, columns)
        assert self.folds.enroll is not None and self.folds.test is not None  # noqa: S101, PT018
        enroll, test = self.folds.enroll[rows], self.folds.test[columns]
        out = np.full_like(scores, np.nan)
        for i in np.unique(enroll[enroll >= 0]).tolist():
            for j in np.unique(test[test >= 0]).tolist():
                part = np.ix_(np.flatnonzero(enroll == i), np.flatnonzero(test == j))
                fit = self.fits.get((min(i, j), max(i, j)))
                if fit is not None:
                    out[part] = fit(scores[part])
        return out

    def identity(self) -> str:
        return _identity(self)


@dataclass(frozen=True, eq=False)
class _CrossTrials:
    reader: TrialReader
    folds: SideGroups
    fits: Fits

    def read(self, trials: slice) -> TrialList:
        table = self.reader.read(trials)
        groups = self.folds.of_trials(table)
        scores, llrs = np.asarray(table.scores), np.full(len(table), np.nan)
        for group in np.unique(groups[groups >= 0]).tolist():
            i, j = divmod(group, self.folds.n_test)
            fit = self.fits.get((min(i, j), max(i, j)))
            if fit is not None:
                llrs[groups == group] = fit(scores[groups == group])
        known = ~np.isnan(llrs)
        table = table if known.all() else table.select(known)
        return table.with_scores(llrs[known], allow_infinite=True)

    def identity(self) -> str:
        return _identity(self)


def _identity(reader: _CrossTiles | _CrossTrials) -> str:
    fits = [(pair, fit.to_dict()) for pair, fit in sorted(reader.fits.items())]
    return hashed(reader.reader.identity(), reader.folds.identity(), fits)
