"""Calibration of trials by calibrations that have never met their speakers.

A trial whose enrolment's speaker is in fold i and whose test's speaker is in fold j is in part (i, j); a fit takes the
sum of the parts that it may see, be they trials in memory or summaries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.calibration import Calibration
from evenscore.calibrate.folds import FoldPairs, assign_folds, held_out, pairs_of_folds
from evenscore.calibrate.logistic import trials_of
from evenscore.calibrate.registry import calibration_class
from evenscore.calibrate.saturating import SaturatingCalibration
from evenscore.errors import InputError
from evenscore.metrics.points import Points
from evenscore.metrics.speakers import SpeakersLike, trial_speakers
from evenscore.metrics.summary import ScoreSummary
from evenscore.metrics.trials import Trials, scores_and_labels
from evenscore.tables import NONTARGET, TARGET, TrialList
from evenscore.tables.arrays import frozen

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["CrossCalibration", "cross_calibrate", "cross_fits", "fit_to_folds", "summary_cllr", "summed_cost"]


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
    trials = trials_of(scores, labels, quality)
    values = np.asarray(scores_and_labels(scores, labels)[0])
    speakers = trial_speakers(scores, len(values), enroll_speakers, test_speakers)
    if folds < 3:
        raise InputError(f"folds is {folds}, but a trial's two speakers can be in two folds, and a third must be left")
    fold_of = assign_folds(speakers, trials.key, folds)
    pairs, group = pairs_of_folds(trials, speakers, fold_of)
    fits = list(cross_fits(kind, pairs, options or {}).values())
    llr = np.empty(len(values))
    for place, fit in enumerate(fits):
        members = group == place
        extra = {} if quality is None else {"quality": np.asarray(quality)[members]}
        llr[members] = fit(values[members], **extra)
    names = dict(zip(speakers.names, fold_of.tolist(), strict=True))
    return CrossCalibration(llr=frozen(llr), speaker_folds=names, group=frozen(group), calibrations=fits)


def cross_fits(kind: type[Any], pairs: FoldPairs, options: Mapping[str, Any]) -> dict[tuple[int, int], Any]:
    """Return for each pair of folds, the lower one first, a fit to the trials of all other folds.

    Examples
    --------
    >>> from evenscore import GaussianCalibration
    >>> from evenscore.metrics import summarize
    >>> parts = {(fold, fold): summarize([0.0, 2.0, 4.0 + fold, 8.0], [0, 0, 1, 1]) for fold in range(3)}
    >>> cross_fits(GaussianCalibration, parts, {})[0, 0].mean
    array([1.  , 6.75])
    """
    fits = {}
    for own in sorted({(min(pair), max(pair)) for pair in pairs}):
        others: Any = {pair: part for pair, part in pairs.items() if not set(pair) & set(own)}
        counts = [sum(getattr(part, name) for part in others.values()) for name in ("n_target", "n_nontarget")]
        with _without_folds(*own, *counts):
            fits[own] = fit_to_folds(kind, others, options)
    return fits


def fit_to_folds(
    kind: type[Any], pairs: FoldPairs, options: Mapping[str, Any], together: ScoreSummary | None = None
) -> Any:
    """Fit a calibration to all pairs of folds; one that is chosen by cross-validation uses the folds.

    ``together`` is a summary of all pairs, where there is a finer one than the sum of theirs.

    Examples
    --------
    >>> from evenscore import GaussianCalibration
    >>> from evenscore.metrics import summarize
    >>> fit_to_folds(GaussianCalibration, {(0, 0): summarize([0.0, 2.0, 4.0, 8.0], [0, 0, 1, 1])}, {}).mean
    array([1., 6.])
    """
    whole: Any = reduce(add, pairs.values()) if together is None else together
    if kind is not SaturatingCalibration or isinstance(whole, Trials):  # which it divides into folds itself
        return kind.fit(whole, **options)
    if not held_out(pairs):
        raise InputError(
            "the saturating calibration is chosen by folds of speakers, of which too few are left; give more folds "
            "(at least 4), or more speakers"
        )
    return kind.fit(whole, fold_pairs=pairs, **options)


@contextmanager
def _without_folds(first: int, second: int, n_target: int, n_nontarget: int) -> Iterator[None]:
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


def summed_cost(llrs: Callable[[Any], Any], found: Points) -> tuple[float, float]:
    """Return the sums of log(1 + exp(llr)) of the non-targets and of log(1 + exp(-llr)) of the targets, by bins."""
    costs = []
    for label, sign in ((NONTARGET, 1.0), (TARGET, -1.0)):
        means, counts = found.class_scores(label)
        costs.append(float(counts @ np.logaddexp(0.0, sign * llrs(means))) if means.size else 0.0)
    return costs[0], costs[1]


def summary_cllr(llrs: Callable[[Any], Any], found: Points) -> float:
    """Return the Cllr of scores after a calibration; all scores of a class in a bin have the LLR of their mean.

    Examples
    --------
    >>> from evenscore.metrics import summarize
    >>> summary_cllr(lambda scores: 0 * scores, summarize([2.0, -1.0], [1, 0]))
    1.0
    """
    nontarget, target = summed_cost(llrs, found)
    return (target / found.n_target + nontarget / found.n_nontarget) / (2 * math.log(2))
