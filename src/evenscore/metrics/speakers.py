"""The speakers of the two sides of each trial: as numbers, and as far as the target trials tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from evenscore.errors import InputError
from evenscore.tables import TARGET, TrialList
from evenscore.tables.axis import merged
from evenscore.tables.ids import Ids, as_speakers, shown
from evenscore.tables.pairs import connect

if TYPE_CHECKING:
    from jaxtyping import Int

__all__ = ["SpeakersLike", "TrialSpeakers", "speakers_by_targets", "trial_speakers"]

SpeakersLike: TypeAlias = "Mapping[str, str] | Iterable[Any]"


@dataclass(frozen=True, kw_only=True, eq=False)
class TrialSpeakers:
    """Which speaker stands on each side of each trial.

    Attributes
    ----------
    names
        The speakers, sorted.
    enroll, test
        For each trial the place of its two speakers in ``names``.
    """

    names: list[str]
    enroll: Int[np.ndarray, " n"]
    test: Int[np.ndarray, " n"]


def trial_speakers(
    trials: object, n_trials: int, enroll_speakers: SpeakersLike, test_speakers: SpeakersLike
) -> TrialSpeakers:
    """Return the speakers of each trial.

    With a `TrialList`, speakers are a mapping from id to speaker, or a sequence in the order of ``enroll_ids`` and
    ``test_ids``; else they are sequences with one speaker per trial. A speaker has the same name on both sides.
    """
    sides = []
    for side, speakers in (("enroll", enroll_speakers), ("test", test_speakers)):
        what = f"{side}_speakers"
        ids: Ids | None = getattr(trials, f"{side}_ids") if isinstance(trials, TrialList) else None
        if isinstance(speakers, Mapping):
            speakers = _looked_up(speakers, ids, what)
        known, code = _distinct(speakers, what, n_trials if ids is None else len(ids))
        absent = np.flatnonzero([name is None for name in known])
        if absent.size:
            at = int(np.argmax(code == absent[0]))
            where = f"{what}[{at}]" if ids is None else f"the {side} id {ids[at]!r}"
            raise InputError(f"{where} has no speaker, but every speaker must be known here; leave those trials out")
        sides.append((known, code[getattr(trials, f"{side}_index")] if isinstance(trials, TrialList) else code))
    names = sorted({name for known, _ in sides for name in known})
    place = {name: at for at, name in enumerate(names)}
    enroll, test = (np.array([place[name] for name in known], dtype=np.int32)[code] for known, code in sides)
    return TrialSpeakers(names=names, enroll=enroll, test=test)


def _distinct(speakers: Iterable[Any], what: str, length: int) -> tuple[Ids, Int[np.ndarray, " n"]]:
    """Return the distinct speakers, and which of them each entry is; arrays of numbers or text are quick."""
    if isinstance(speakers, np.ndarray) and speakers.dtype.kind in "iuU" and speakers.shape == (length,):
        values, code = np.unique(speakers, return_inverse=True)
        return as_speakers(values, what), code
    known = as_speakers(speakers, what, length)
    codes: dict[str | None, int] = {}
    code = np.fromiter((codes.setdefault(name, len(codes)) for name in known.tolist()), np.int32, count=length)
    return as_speakers(list(codes), what), code


def _looked_up(speakers: Mapping[str, str], ids: Ids | None, what: str) -> list[str]:
    if ids is None:
        raise InputError(f"{what} is a mapping, but only a TrialList has ids to look up; give one speaker per trial")
    absent = [name for name in ids if name not in speakers]
    if absent:
        raise InputError(f"{what} has no speaker for {shown(absent)}; add them")
    return [speakers[name] for name in ids]


def speakers_by_targets(lists: Sequence[TrialList]) -> dict[str, str]:
    """Return the speaker of each id: the first id that a chain of target trials leads to.

    An id is the same utterance or model on both sides and in all lists; one without target trials is a speaker of its
    own.

    Examples
    --------
    >>> trials = TrialList.from_pairs(["m1", "m1", "m2"], ["a", "b", "b"], labels=[1, 0, 1])
    >>> speakers_by_targets([trials])
    {'m1': 'm1', 'm2': 'm2', 'a': 'm1', 'b': 'm2'}
    """
    every = merged(axis for part in lists for axis in (part.enroll_axis, part.test_axis))
    rows, columns = [], []
    for part in lists:
        if part.labels is None:
            raise InputError("the trials have no labels, so their speakers are not known; give a map of speakers")
        targets = part.labels == TARGET
        rows.append(every.find(part.enroll_ids)[part.enroll_index[targets]])
        columns.append(every.find(part.test_ids)[part.test_index[targets]])
    group = connect(np.concatenate(rows), np.concatenate(columns), len(every))
    _, first = np.unique(group, return_index=True)
    return dict(zip(every.ids.tolist(), every.ids[first[group]].tolist(), strict=True))
