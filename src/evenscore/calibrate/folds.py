"""Folds of speakers: which trials a fit may see, and which ones judge it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.speakers import TrialSpeakers
from evenscore.tables import TARGET

__all__ = ["assign_folds", "judged_by_speaker", "spread_speakers"]

Masks = list[npt.NDArray[np.bool_]]


def assign_folds(speakers: TrialSpeakers, key: npt.NDArray[np.int8], folds: int) -> npt.NDArray[np.intp]:
    """Return the fold of each speaker, see `spread_speakers`."""
    targets = np.bincount(speakers.enroll[key == TARGET], minlength=len(speakers.names))
    return spread_speakers(speakers.names, targets, folds)


def spread_speakers(names: Sequence[str], targets: npt.NDArray[np.int64], folds: int) -> npt.NDArray[np.intp]:
    """Return the fold of each speaker, given how many target trials each has.

    Speakers with many target trials are placed first, each into the fold with the fewest target trials so far, so that
    the result depends on nothing but the trials.

    Examples
    --------
    >>> spread_speakers(["ann", "bob", "eve"], np.array([1, 5, 2]), 2)
    array([1, 0, 1])
    """
    number = len(names)
    if number < folds:
        raise InputError(f"there are {number} speakers, fewer than {folds} folds; give fewer folds (at least 3)")
    order = sorted(range(number), key=lambda speaker: (-targets[speaker], names[speaker]))
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
