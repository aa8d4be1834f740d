"""Folds of speakers: which trials a fit may see, and which ones judge it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.speakers import TrialSpeakers
from evenscore.tables import TARGET

__all__ = ["assign_folds", "judged_by_speaker"]

Masks = list[npt.NDArray[np.bool_]]


def assign_folds(speakers: TrialSpeakers, key: npt.NDArray[np.int8], folds: int) -> npt.NDArray[np.intp]:
    """Return the fold of each speaker.

    Speakers with many target trials are placed first, each into the fold with the fewest target trials so far, so that
    the result depends on nothing but the trials.
    """
    number = len(speakers.names)
    if number < folds:
        raise InputError(f"there are {number} speakers, fewer than {folds} folds; give fewer folds (at least 3)")
    targets = np.bincount(speakers.enroll[key == TARGET], minlength=number)
    order = sorted(range(number), key=lambda speaker: (-targets[speaker], speakers.names[speaker]))
    load, size = np.zeros(folds, dtype=np.int64), np.zeros(folds, dtype=np.int64)
    fold_of = np.empty(number, dtype=np.intp)
    for speaker in order:
        fold = min(range(folds), key=lambda k: (load[k], size[k], k))
        fold_of[speaker] = fold
        load[fold] += targets[speaker]
        size[fold] += 1
    return fold_of


def judged_by_speaker(speakers: TrialSpeakers, key: npt.NDArray[np.int8], folds: int) -> tuple[Masks, Masks]:
    """Return for each fold the trials to fit to, none of whose speakers is in it, and the trials within it."""
    fold_of = assign_folds(speakers, key, min(folds, len(speakers.names)))
    enroll, test = fold_of[speakers.enroll], fold_of[speakers.test]
    numbers = range(int(fold_of.max(initial=-1)) + 1)
    fitted = [(enroll != fold) & (test != fold) for fold in numbers]
    return fitted, [(enroll == fold) & (test == fold) for fold in numbers]
