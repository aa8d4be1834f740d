"""Calibration of trials by calibrations that were fitted without their speakers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenscore.calibrate.base import Calibration, calibration_class
from evenscore.calibrate.trials import Speakers, Systems, Weights, as_trials, speaker_codes
from evenscore.data.labels import TARGET
from evenscore.errors import InputError
from evenscore.metrics.points import LabelsLike
from evenscore.norms.folds import assign_folds

__all__ = ["CrossValidation", "cross_validate"]


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """LLRs of trials, and the calibrations that made them."""

    llr: Any  #: an array or a table, as the scores were
    speaker_folds: dict[str, int]  #: the fold of each speaker
    calibrations: dict[tuple[int, int], Calibration]  #: by the two folds that each was fitted without, the lower first


def cross_validate(
    scores: Systems,
    labels: LabelsLike = None,
    weights: Weights = None,
    *,
    enroll_speakers: Speakers = None,
    test_speakers: Speakers = None,
    calibration: str | type[Calibration] = "logistic",
    folds: int = 5,
    quality: Any = None,
    **options: Any,
) -> CrossValidation:
    """Calibrate each trial with a calibration that was fitted without its speakers.

    Speakers are dealt out to folds, those with many target trials first. A trial of speakers in folds a and b is
    calibrated by a fit to the trials whose speakers, on both sides, are all in other folds.

    Parameters
    ----------
    scores, labels, weights, quality, **options
        As in `Calibration.fit`. Trials with unknown label (-1) are calibrated, but never fitted to.
    enroll_speakers, test_speakers
        One speaker per trial; of a table one per id, a mapping from id to speaker, or nothing if it knows them.
    calibration, folds
        A name in `CALIBRATIONS`, or a class, and the number of folds, at least 3.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> enroll, test = np.repeat(np.arange(12), 24), np.tile(np.repeat(np.arange(12), 2), 12)
    >>> scores = rng.normal(2.0 * (enroll == test), 1.0)
    >>> result = cross_validate(scores, enroll == test, enroll_speakers=enroll, test_speakers=test, folds=4)
    >>> result.llr.shape, len(result.calibrations)
    ((288,), 10)
    """
    kind: Any = calibration_class(calibration) if isinstance(calibration, str) else calibration
    trials = as_trials(scores, labels, weights, quality)
    names, enroll, test = speaker_codes(trials, enroll_speakers, test_speakers)
    if not 3 <= folds <= len(names):
        raise InputError(f"`folds` is {folds}, but {len(names)} speakers can be in 3 to {len(names)} folds")
    fold = assign_folds([*names, *(names[code] for code in enroll[trials.labels == TARGET])], folds)
    one, other = (np.array([fold[name] for name in names])[codes] for codes in (enroll, test))
    pair = np.minimum(one, other) * folds + np.maximum(one, other)
    llr, fits = np.empty(len(pair)), {}
    for a, b in (divmod(code, folds) for code in np.unique(pair).tolist()):
        members = trials.take(pair == a * folds + b)
        rest = trials.take(~np.isin(one, (a, b)) & ~np.isin(other, (a, b)))
        try:
            fits[a, b] = kind._fit_used(rest, options)
        except InputError as error:
            raise InputError(f"without the speakers of folds {a} and {b}: {error}; or give other folds") from None
        quality = (members.measures,) if members.measures.size else ()
        llr[pair == a * folds + b] = fits[a, b](members.scores, *quality)
    return CrossValidation(trials.with_llrs(llr), fold, fits)
