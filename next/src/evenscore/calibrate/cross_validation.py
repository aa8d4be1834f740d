"""Calibration of trials by calibrations that were fitted without their speakers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.base import Calibration, calibration_class
from evenscore.calibrate.logistic import _as_measures
from evenscore.calibrate.saturating import speaker_folds
from evenscore.calibrate.training import SystemsLike, Training, trial_speakers
from evenscore.data.labels import TARGET
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.side import SpeakersLike
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.metrics.points import LabelsLike

__all__ = ["CrossCalibration", "cross_calibrate"]


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossCalibration:
    """LLRs of trials, and which calibration made each.

    Attributes
    ----------
    llr
        One per trial, an array or a table as the scores were.
    speaker_folds
        The fold of each speaker.
    group
        For each trial (of a matrix: those with a score, row by row) which of ``calibrations`` made its LLR.
    calibrations
        One for each pair of folds that occurs: fitted without any trial of a speaker of these two folds.
    """

    llr: Any
    speaker_folds: dict[str, int]
    group: npt.NDArray[np.intp]
    calibrations: list[Calibration]


def cross_calibrate(
    scores: SystemsLike,
    labels: LabelsLike = None,
    weights: npt.ArrayLike | None = None,
    *,
    enroll_speakers: SpeakersLike | None = None,
    test_speakers: SpeakersLike | None = None,
    calibration: str | type[Calibration] = "logistic",
    folds: int = 5,
    quality: npt.ArrayLike | None = None,
    options: Mapping[str, Any] | None = None,
) -> CrossCalibration:
    """Calibrate each trial with a calibration that was fitted without its speakers.

    Speakers are divided into folds. A trial of speakers in folds i and j is calibrated by a fit to the trials whose
    speakers, on both sides, are all in other folds. Speakers are dealt out to the folds in turn, those with many target
    trials first, so that the result depends on nothing but the trials.

    Parameters
    ----------
    scores, labels, weights
        As in the calibration's ``fit``. Trials with unknown label (-1) are calibrated, but never fitted to.
    enroll_speakers, test_speakers
        One speaker per trial; for a table a mapping from id to speaker, one speaker per id of each side, or nothing if
        its sides know their speakers.
    calibration
        A name in `CALIBRATIONS`, or a class.
    folds
        How many, at least 3.
    quality
        Quality measures, for the calibration ``logistic``.
    options
        Further options of ``fit``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> enroll, test = np.repeat(np.arange(12), 24), np.tile(np.repeat(np.arange(12), 2), 12)
    >>> scores = rng.normal(2.0 * (enroll == test), 1.0)
    >>> result = cross_calibrate(scores, enroll == test, enroll_speakers=enroll, test_speakers=test, folds=4)
    >>> result.llr.shape, len(result.calibrations)
    ((288,), 10)
    """
    kind: Any = calibration_class(calibration)
    trials = Training.from_scores(scores, labels, weights, infinite=kind.accepts_infinite)
    names, enroll, test = trial_speakers(trials, enroll_speakers, test_speakers)
    if folds < 3:
        raise InputError(f"folds is {folds}, but a trial's two speakers can be in two folds, and a third must be left")
    if len(names) < folds:
        raise InputError(f"there are {len(names)} speakers, fewer than {folds} folds; give fewer folds (at least 3)")
    fold = speaker_folds(names, enroll[trials.labels == TARGET], folds)
    one, other = fold[enroll], fold[test]
    low, high = np.minimum(one, other), np.maximum(one, other)
    pairs, group = np.unique(low * folds + high, return_inverse=True)
    measures = None if quality is None else _as_measures(quality, trials.table, len(trials.labels))
    llr, fits = np.empty(len(trials.labels)), []
    for at, pair in enumerate(pairs.tolist()):
        a, b = divmod(pair, folds)
        others = ~np.isin(one, (a, b)) & ~np.isin(other, (a, b))
        given = dict(options or {}) | ({} if measures is None else {"quality": measures[others]})
        part, members = trials.take(others), group == at
        try:
            part.refuse_one_class()
            fits.append(kind.fit(part.scores, part.labels, part.weights, **given))
        except InputError as error:
            where = f"without the speakers of folds {a} and {b}"
            raise InputError(f"{where}: {error}; or give another number of folds") from None
        extra = {} if measures is None else {"quality": measures[members]}
        llr[members] = fits[-1](trials.scores[members], **extra)
    return CrossCalibration(
        llr=_like(scores, llr, trials.table),
        speaker_folds=dict(zip(names.tolist(), fold.tolist(), strict=True)),
        group=group,
        calibrations=fits,
    )


def _like(scores: Any, llr: npt.NDArray[np.float64], table: TrialList | None) -> Any:
    """Return LLRs in the form of the scores: a table for a table (of several systems: the first)."""
    if table is None:
        return llr if np.ndim(scores) != 2 or len(llr) != np.size(scores) else llr.reshape(np.shape(scores))
    first = scores if isinstance(scores, ScoreMatrix | TrialList) else scores[0]
    if isinstance(first, TrialList):
        return table.with_scores(llr, infinite=True)
    matrix = np.full(first.shape, np.nan)
    matrix[table.rows, table.cols] = llr
    return first.with_scores(matrix)
