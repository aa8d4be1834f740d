"""The speakers of the two sides of each trial, as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Int

from evenscore.errors import InputError
from evenscore.tables import TrialList
from evenscore.tables.ids import Ids, as_speakers, shown

__all__ = ["SpeakersLike", "TrialSpeakers", "trial_speakers"]

SpeakersLike: TypeAlias = "Mapping[str, str] | Iterable[Any]"


@dataclass(frozen=True, kw_only=True, eq=False)
class TrialSpeakers:
    """Which speaker stands on each side of each trial.

    Attributes
    ----------
    names
        The speakers, in order of first appearance.
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
    codes: dict[str, int] = {}
    sides = []
    for side, speakers in (("enroll", enroll_speakers), ("test", test_speakers)):
        what = f"{side}_speakers"
        ids: Ids | None = getattr(trials, f"{side}_ids") if isinstance(trials, TrialList) else None
        if isinstance(speakers, Mapping):
            speakers = _looked_up(speakers, ids, what)
        known = as_speakers(speakers, what, n_trials if ids is None else len(ids))
        absent = [place for place, name in enumerate(known) if name is None]
        if absent:
            where = f"{what}[{absent[0]}]" if ids is None else f"the {side} id {ids[absent[0]]!r}"
            raise InputError(f"{where} has no speaker, but every speaker must be known here; leave those trials out")
        code = np.fromiter((codes.setdefault(name, len(codes)) for name in known), dtype=np.int32, count=len(known))
        sides.append(code[getattr(trials, f"{side}_index")] if isinstance(trials, TrialList) else code)
    return TrialSpeakers(names=list(codes), enroll=sides[0], test=sides[1])


def _looked_up(speakers: Mapping[str, str], ids: Ids | None, what: str) -> list[str]:
    if ids is None:
        raise InputError(f"{what} is a mapping, but only a TrialList has ids to look up; give one speaker per trial")
    absent = [name for name in ids if name not in speakers]
    if absent:
        raise InputError(f"{what} has no speaker for {shown(absent)}; add them")
    return [speakers[name] for name in ids]
