"""Labelled trials of all training blocks in one row, with their speakers' folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.folds import assign_folds
from evenscore.errors import InputError
from evenscore.metrics.speakers import TrialSpeakers, speakers_by_targets
from evenscore.tables import NONTARGET, TARGET, UNKNOWN, LabelledBlocks, Labels, ScoreMatrix, TrialList

__all__ = ["TrainingTrials", "sampled_own_cohort"]

_FOLDS = 5
_SPEAKERS_PER_FOLD = 2  # at least; two folds are left out at a time, and both classes must remain

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingTrials:
    """All trials of the training blocks, one after the other.

    Attributes
    ----------
    key
        Label of each trial, -1 where it is unknown or there is no score.
    enroll, test
        Number of the speaker of each side of each trial.
    enroll_fold, test_fold
        Fold of the two speakers of each trial.
    n_folds
        0 if there are too few speakers for any.
    n_speakers
        How many there are.
    ends
        Where the trials of each part end.
    """

    key: npt.NDArray[np.int8]
    enroll: Codes
    test: Codes
    enroll_fold: Codes
    test_fold: Codes
    n_folds: int
    n_speakers: int
    ends: npt.NDArray[np.int64]

    @classmethod
    def of(cls, training: Sequence[LabelledBlocks]) -> TrainingTrials:
        """Collect them; speakers come from labels or blocks, or else from the target trials."""
        keys = [_key(part) for part in training]
        known = None if all(_has_speakers(part) for part in training) else _by_targets(training)
        sides = [_speakers(part, known) for part in training]
        names = sorted({name for pair in sides for side in pair for name in side.tolist()})
        place = {name: at for at, name in enumerate(names)}
        enroll, test = (
            np.concatenate(
                [
                    np.array([place[name] for name in pair[at].tolist()])[_index(part, at)]
                    for part, pair in zip(training, sides, strict=True)
                ]
            )
            for at in (0, 1)
        )
        key = np.concatenate(keys)
        number = min(_FOLDS, len(names) // _SPEAKERS_PER_FOLD)
        number = number if number >= 3 else 0
        speakers = TrialSpeakers(names=names, enroll=enroll, test=test)
        fold = assign_folds(speakers, key, number) if number else np.zeros(len(names), dtype=np.intp)
        return cls(
            key=key,
            enroll=enroll,
            test=test,
            enroll_fold=fold[enroll],
            test_fold=fold[test],
            n_folds=number,
            n_speakers=len(names),
            ends=np.cumsum([len(part) for part in keys]),
        )

    def sample(self, most: int) -> npt.NDArray[np.intp]:
        """Return the labelled trials, with at most about so many non-targets, which are the same every time."""
        targets, others = np.flatnonzero(self.key == 1), np.flatnonzero(self.key == 0)
        return np.sort(np.concatenate([targets, spread_evenly(others, most)]))

    def split(self, values: Array) -> list[Array]:
        """Return what belongs to each part."""
        return np.split(values, self.ends[:-1])


def _key(part: LabelledBlocks) -> npt.NDArray[np.int8]:
    tile = part.blocks.trials.tile
    key = np.maximum(part.values.of(tile), UNKNOWN)
    return np.where(np.isfinite(tile.scores), key, np.int8(UNKNOWN)).astype(np.int8).reshape(-1)


def _has_speakers(part: LabelledBlocks) -> bool:
    if part.labels is not None and part.labels.by_speaker:
        return True
    return part.blocks.enroll_speakers is not None and part.blocks.test_speakers is not None


def _by_targets(training: Sequence[LabelledBlocks]) -> dict[str, str]:
    return speakers_by_targets([part.trials for part in training])


def _speakers(part: LabelledBlocks, known: dict[str, str] | None) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the speaker of each enrolment and of each test; who is unknown is a speaker of its own."""
    trials = part.blocks.trials
    if known is not None:
        found: list[Any] = [
            np.array([known.get(name, name) for name in ids.tolist()], dtype=object)
            for ids in (trials.enroll_ids, trials.test_ids)
        ]
    elif part.labels is not None and part.labels.by_speaker:
        found = [part.labels.enroll_speakers, part.labels.test_speakers]
    else:
        found = [part.blocks.enroll_speakers, part.blocks.test_speakers]
    sides = []
    for ids, names in zip((trials.enroll_ids, trials.test_ids), found, strict=True):
        if names is None:
            raise InputError("the training blocks have no speakers; make their labels with Labels.from_speakers")
        sides.append(
            np.array([f"unknown {i}" if name is None else name for i, name in zip(ids, names, strict=True)], object)
        )
    return sides[0], sides[1]


def _index(part: LabelledBlocks, side: int) -> npt.NDArray[Any]:
    trials = part.blocks.trials
    places = trials.tile.pair(*(np.arange(size) for size in trials.shape))
    return np.broadcast_arrays(*places)[side].reshape(-1)


def sampled_own_cohort(scores: ScoreMatrix, labels: Labels, *, most: int = 150_000) -> LabelledBlocks:
    """Return a labelled matrix as the cohort of some of its trials, the same ones every time.

    Features of trials take a hundred times the memory of their scores, and the head is fitted to a sample anyway.

    Parameters
    ----------
    scores, labels
        As in `LabelledBlocks.own_cohort`.
    most
        About how many trials of each class are taken, at most.

    Examples
    --------
    >>> from evenscore import ScoreModel, simulate
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> scores, labels = simulate(model, range(50), range(50), seed=1)
    >>> len(sampled_own_cohort(scores, labels, most=300).blocks.trials)
    349
    """
    whole = LabelledBlocks.own_cohort(scores, labels).blocks
    assert whole.cohort_labels is not None  # noqa: S101
    key = whole.cohort_labels.matrix
    if scores.n_missing:
        key = np.where(scores.missing, np.int8(UNKNOWN), key)
    chosen = np.sort(
        np.concatenate([spread_evenly(np.flatnonzero(key == label), most) for label in (TARGET, NONTARGET)])
    )
    rows, columns = np.divmod(chosen, scores.shape[1])
    trials = TrialList(
        whole.trials.enroll_axis,
        whole.trials.test_axis,
        rows,
        columns,
        scores=scores.scores[rows, columns],
        labels=key[rows, columns],
    )
    return LabelledBlocks(whole.replace(trials=trials))


def spread_evenly(places: npt.NDArray[np.intp], most: int) -> npt.NDArray[np.intp]:
    """Return about so many of the places, spread evenly over rows and columns by a multiplicative hash."""
    if len(places) <= most:
        return places
    mixed = (places.astype(np.uint64) * np.uint64(2654435761)) % np.uint64(1 << 32)
    return places[mixed < np.uint64(int(most / len(places) * (1 << 32)))]
