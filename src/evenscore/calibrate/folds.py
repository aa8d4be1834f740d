"""Folds of speakers: which trials a fit may see, and which ones judge it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.speakers import TrialSpeakers
from evenscore.metrics.summary import ScoreSummary
from evenscore.metrics.trials import Trials
from evenscore.tables import TARGET

__all__ = ["FoldPairs", "assign_folds", "held_out", "pairs_of_folds", "spread_speakers"]

#: The trials of each pair of folds, that of the enrolment's speaker and that of the test's; they add up.
FoldPairs: TypeAlias = Mapping[tuple[int, int], Trials] | Mapping[tuple[int, int], ScoreSummary]


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


def pairs_of_folds(
    trials: Trials, speakers: TrialSpeakers, fold_of: npt.NDArray[np.intp]
) -> tuple[dict[tuple[int, int], Trials], npt.NDArray[np.intp]]:
    """Return the trials of each pair of folds, the lower one first, and for each trial which pair it is of."""
    low, high = np.sort(np.stack((fold_of[speakers.enroll], fold_of[speakers.test])), axis=0)
    folds = int(fold_of.max(initial=0)) + 1
    codes, group = np.unique(low * folds + high, return_inverse=True)
    return {divmod(code, folds): trials.part(group == place) for place, code in enumerate(codes.tolist())}, group


def held_out(pairs: FoldPairs) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Return for each fold, given as a pair, the pairs that have nothing of it; folds that leave nothing are left out.

    Examples
    --------
    >>> held_out(dict.fromkeys([(0, 0), (0, 1), (1, 1), (1, 2)]))
    {(0, 0): [(1, 1), (1, 2)], (1, 1): [(0, 0)]}
    """
    folds = sorted(fold for fold, other in pairs if fold == other)
    others = {(fold, fold): [pair for pair in pairs if fold not in pair] for fold in folds}
    return {own: left for own, left in others.items() if left}
