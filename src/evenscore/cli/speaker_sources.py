"""Who speaks on each side of a trial: from maps, or as far as the target trials tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenscore.cli.labelled import LabelSources, with_maps
from evenscore.errors import InputError
from evenscore.metrics.target_speakers import speakers_by_targets
from evenscore.tables import TrialList

__all__ = ["Speakers", "speakers_of"]


@dataclass(frozen=True, kw_only=True)
class Speakers:
    """The speaker of each id, and where that is known from."""

    enroll: Mapping[str, str]
    test: Mapping[str, str]
    origin: str

    @property
    def sides(self) -> dict[str, Any]:
        """The two maps, as the library's functions take them."""
        return {"enroll_speakers": self.enroll, "test_speakers": self.test}


def speakers_of(trials: TrialList, sources: LabelSources) -> Speakers:
    """Return the speakers by the maps that are given, else by the target trials.

    Without maps, two ids are of one speaker if they are equal, or if a chain of target trials leads from one to the
    other; an id without target trials is a speaker of its own.

    Examples
    --------
    >>> trials = TrialList.from_pairs(["m1", "m1", "m2"], ["a", "b", "b"], labels=[1, 0, 1])
    >>> found = speakers_of(trials, LabelSources())
    >>> found.enroll, found.test
    ({'m1': 'm1', 'm2': 'm2'}, {'a': 'm1', 'b': 'm2'})
    """
    if not sources.by_speaker:
        return _speakers_by_targets(trials)
    (_, enroll), (_, test) = maps = sources.read_speaker_maps()
    with_maps(trials, *maps)  # refuses a map that lacks somebody
    return Speakers(enroll=enroll, test=test, origin=sources.origin)


def _speakers_by_targets(trials: TrialList) -> Speakers:
    if trials.labels is None:
        raise InputError("the trials have no labels, so their speakers are not known; give --enroll-speakers")
    speaker = speakers_by_targets([trials])
    return Speakers(
        enroll={name: speaker[name] for name in trials.enroll_ids},
        test={name: speaker[name] for name in trials.test_ids},
        origin="the target trials",
    )
