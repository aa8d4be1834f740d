"""Lists of trials, made from the speakers of utterances."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from evenscore.data.side import Side, SpeakersLike
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError

__all__ = ["make_trials"]

Codes = npt.NDArray[np.intp]
_MOST = 200_000_000  # trials of a list, which is in memory
_POOL = 1 << 20  # pairs of one speaker to choose from


def make_trials(
    speakers: Mapping[str, str] | Side,
    *,
    targets: int | None = None,
    nontargets: int | None = None,
    conditions: SpeakersLike | None = None,
    seed: int = 0,
) -> TrialList:
    """Make a list of labelled trials of utterances; none is of an utterance with itself, or of two in both orders.

    Parameters
    ----------
    speakers
        The speaker of each utterance, or a `Side` that knows them; utterances without speaker are left out.
    targets, nontargets
        Most target and non-target trials of each speaker's enrolments, drawn at random; None: all pairs.
    conditions
        A condition of each utterance, such as gender or phrase: both utterances of a trial have the same one.
    seed
        Of the draws.

    Examples
    --------
    >>> make_trials({"a1": "ann", "a2": "ann", "b1": "bob", "b2": "bob"}, nontargets=1)
    TrialList(4 trials of 4 enrolments and 3 tests, 2 target, 2 non-target, 0 unknown, no scores)
    """
    side = speakers if isinstance(speakers, Side) else Side(speakers, speakers)
    if side.speakers is None or min(targets or 0, nontargets or 0) < 0:
        raise InputError("trials need the speakers of utterances, and numbers of trials that are 0 or more")
    values = None if conditions is None else side.with_speakers(conditions).speakers
    kept = np.flatnonzero(side.speakers != None)  # noqa: E711
    speaker = np.unique(side.speakers[kept].astype(str), return_inverse=True)[1]
    condition = np.zeros(len(kept), np.intp)
    if values is not None:
        condition = np.unique(values[kept].astype(str), return_inverse=True)[1]
    if None in (targets, nontargets) and len(kept) ** 2 // 2 > _MOST:
        raise InputError(f"{len(kept)} utterances have more than {_MOST} pairs; say how many per speaker to take")
    rng, parts = np.random.default_rng(seed), []
    for code in range(int(speaker.max(initial=-1)) + 1):
        own, others = np.flatnonzero(speaker == code), np.flatnonzero(speaker != code)
        parts += [_pairs(own, own, condition, targets, rng), _pairs(own, others, condition, nontargets, rng)]
    rows, cols = np.concatenate(parts, axis=1) if parts else np.empty((2, 0), np.intp)
    pair = np.minimum(rows, cols) * len(kept) + np.maximum(rows, cols)
    first = np.sort(np.unique(pair, return_index=True)[1])  # a pair may have been drawn for both of its speakers
    rows, cols = rows[first], cols[first]
    known = side.take(kept)
    trials = TrialList.from_codes(known, known, rows, cols, labels=speaker[rows] == speaker[cols])
    return trials.select(np.arange(len(trials)))


def _pairs(own: Codes, others: Codes, condition: Codes, most: int | None, rng: np.random.Generator) -> Codes:
    """Return pairs of the utterances of a speaker with some utterances, of one condition: rows and columns."""
    if most is not None and len(own) * len(others) > _POOL:
        others = np.sort(rng.choice(others, max(1, _POOL // len(own)), replace=False))
    possible = condition[own][:, None] == condition[others]
    if others is own:
        possible = np.triu(possible, 1)
    elif most is None:  # all pairs: each with the earlier utterance as enrolment
        possible &= own[:, None] < others
    at = np.flatnonzero(possible)
    if most is not None and most < len(at):
        at = np.sort(rng.choice(at, most, replace=False))
    return np.stack([own[at // max(len(others), 1)], others[at % max(len(others), 1)]])
