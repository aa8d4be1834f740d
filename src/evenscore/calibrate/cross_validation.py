"""Calibration of trials by calibrations that have never met their speakers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.calibration import Calibration
from evenscore.calibrate.folds import assign_folds
from evenscore.calibrate.registry import calibration_class
from evenscore.errors import InputError
from evenscore.metrics.speakers import SpeakersLike, trial_speakers
from evenscore.metrics.trials import as_labels
from evenscore.tables import NONTARGET, TARGET, TrialList
from evenscore.tables.arrays import frozen

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["CrossCalibration", "cross_calibrate", "without_folds"]


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossCalibration:
    """LLRs of trials, and where they come from.

    Attributes
    ----------
    llr
        One per trial.
    speaker_folds
        The fold of each speaker.
    group
        For each trial which of ``calibrations`` made its LLR.
    calibrations
        One for each pair of folds that occurs: fitted without any trial of a speaker of these two folds.
    """

    llr: Float[np.ndarray, " n"]
    speaker_folds: dict[str, int]
    group: Int[np.ndarray, " n"]
    calibrations: list[Calibration]


def cross_calibrate(
    scores: npt.ArrayLike | TrialList,
    labels: npt.ArrayLike | None = None,
    *,
    enroll_speakers: SpeakersLike,
    test_speakers: SpeakersLike,
    calibration: str | type[Calibration] = "logistic",
    folds: int = 5,
    quality: npt.ArrayLike | None = None,
    options: Mapping[str, Any] | None = None,
) -> CrossCalibration:
    """Calibrate each trial with a calibration that was fitted without its speakers.

    Speakers are divided into folds. A trial of speakers in folds i and j is calibrated by a fit to the trials whose
    speakers, on both sides, are all in other folds. Speakers with many target trials are placed first, each into the
    fold with the fewest target trials so far, so that the result depends on nothing but the trials.

    Parameters
    ----------
    scores, labels
        As in the calibration's ``fit``. Trials with unknown label (-1) are calibrated, but never fitted to.
    enroll_speakers, test_speakers
        One speaker per trial; with a `TrialList` a mapping from id to speaker, or one speaker per id of each side.
    calibration
        A name in `CALIBRATIONS`, or a class.
    folds
        How many, at least 3.
    quality
        Quality measures, for the calibrations that take them.
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
    kind = calibration_class(calibration)
    values, key = _trial_arrays(scores, labels)
    measures = None if quality is None else np.asarray(quality)
    if measures is not None and len(measures) != len(key):
        raise InputError(f"quality has {len(measures)} rows, but there are {len(key)} trials")
    speakers = trial_speakers(scores, len(key), enroll_speakers, test_speakers)
    if folds < 3:
        raise InputError(f"folds is {folds}, but a trial's two speakers can be in two folds, and a third must be left")
    fold_of = assign_folds(speakers, key, folds)
    sides = np.sort(np.stack((fold_of[speakers.enroll], fold_of[speakers.test])), axis=0)
    pairs, group = np.unique(sides[0] * folds + sides[1], return_inverse=True)
    llr, fits = np.empty(len(key)), []
    for place, pair in enumerate(pairs):
        own = np.array(divmod(int(pair), folds))
        others = (key >= 0) & ~np.isin(sides[0], own) & ~np.isin(sides[1], own)
        fit = _fit(kind, values, key, measures, others, options or {}, own)
        members = group == place
        extra = {} if measures is None else {"quality": measures[members]}
        llr[members] = fit(values[members], **extra)
        fits.append(fit)
    names = dict(zip(speakers.names, fold_of.tolist(), strict=True))
    return CrossCalibration(llr=frozen(llr), speaker_folds=names, group=frozen(group), calibrations=fits)


def _trial_arrays(
    scores: npt.ArrayLike | TrialList, labels: npt.ArrayLike | None
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int8]]:
    if isinstance(scores, TrialList):
        labels = scores.labels if labels is None else labels
        if scores.scores is None:
            raise InputError("the trials have no scores; read a score file, or give them with with_scores")
        scores = scores.scores
    if labels is None:
        raise InputError("labels are missing; join the trials with a key first")
    values = np.asarray(scores)
    if values.ndim not in (1, 2):
        raise InputError(f"scores must be n numbers, or n x k numbers of k systems, but have shape {values.shape}")
    return values, as_labels(labels, len(values))


def _fit(
    kind: type[Any],
    values: npt.NDArray[Any],
    key: npt.NDArray[np.int8],
    measures: npt.NDArray[Any] | None,
    rows: npt.NDArray[np.bool_],
    options: Mapping[str, Any],
    own: npt.NDArray[np.intp],
) -> Any:
    counts = [int(np.count_nonzero(key[rows] == label)) for label in (TARGET, NONTARGET)]
    extra = {} if measures is None else {"quality": measures[rows]}
    with without_folds(int(own[0]), int(own[1]), *counts):
        return kind.fit(values[rows], key[rows], **extra, **options)


@contextmanager
def without_folds(first: int, second: int, n_target: int, n_nontarget: int) -> Iterator[None]:
    """Refuse a fit without trials, and say of one that fails which folds it was without."""
    where = f"without the speakers of folds {first} and {second}"
    if not n_target or not n_nontarget:
        raise InputError(
            f"{where} there are {n_target} target and {n_nontarget} non-target trials left to fit to; "
            "give more speakers, or another number of folds"
        )
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
