"""The last step of a norm: refuse what is infinite, and settle what to do with trials whose cohort vanished."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.norms.trial_scores import TrialScores
from evenscore.tables.ids import shown
from evenscore.tables.rescore import rescored
from evenscore.tables.score_matrix import ScoreMatrix
from evenscore.tables.score_table import ScoreTable
from evenscore.tables.trial_list import TrialList

__all__ = ["finished"]


def finished(table: TrialScores, finite: bool, vanished: str) -> ScoreMatrix | TrialList:
    """Return the normalized trials.

    Parameters
    ----------
    table
        Trials and results; NaN where the cohort vanished or the trial was missing.
    finite
        Whether all results are known to be finite, so that none needs to be looked at.
    vanished
        The policy for trials without a cohort, as in `NormOptions`.
    """
    trials = table.trials
    out = table.out.astype(np.asarray(trials.scores).dtype, copy=False)
    missing = 0 if trials.listed else trials.n_missing
    if not finite:
        infinite = np.isinf(out)
        if infinite.any():
            raise InputError(f"the normalized score of {_named(trials, infinite)} is infinite; give a larger std_floor")
        lost = np.isnan(out)
        if missing:
            lost &= ~trials.missing
        if lost.any():
            return _without_cohort(trials, out, lost, vanished)
    return rescored(trials, out, missing)


def _without_cohort(
    trials: Any, out: npt.NDArray[Any], lost: npt.NDArray[np.bool_], vanished: str
) -> ScoreMatrix | TrialList:
    if vanished == "error":
        raise InputError(
            f"{np.count_nonzero(lost)} trials have no cohort left, once their own speakers and missing scores are "
            f"left out: {_named(trials, lost)}; give a larger cohort, or decide with vanished='raw' or 'missing'"
        )
    if vanished == "raw":
        out[lost] = np.asarray(trials.scores)[lost]
    if not trials.listed:
        return rescored(trials, out, int(np.count_nonzero(np.isnan(out))))
    return rescored(trials, out) if vanished == "raw" else rescored(trials.kept(~lost), out[~lost])


def _named(trials: ScoreTable, which: npt.NDArray[np.bool_]) -> str:
    """Return the first few of these trials for a message."""
    places, tile = np.flatnonzero(which), trials.tile
    pairs = [" ".join(trials.pair_at(tile, place)) for place in places[:3].tolist()]
    return shown(pairs) + (f" and {len(places) - 3} more" if len(places) > 3 else "")
