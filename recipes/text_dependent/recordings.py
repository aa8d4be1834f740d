"""Recordings and corpora: who said which phrase, when, and where the file is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path

import numpy as np

from evenscore import InputError

__all__ = ["Corpus", "Progress", "Recording", "Split", "role_permutations", "split_speakers"]

Progress = Callable[[str, float], None]  #: called with the name of the stage and the fraction of it that is done

ROLES = ("background", "development", "evaluation")


@dataclass(frozen=True, order=True)
class Recording:
    """One utterance of a phrase; recordings are ordered by speaker, phrase and session.

    Examples
    --------
    >>> Recording("m001", "m", "003", "01", Path("sph/male/m001/m001_01_003.sph")).name
    'm001-003-01'
    """

    speaker: str
    gender: str  #: ``"m"``, ``"f"``, or '' if it is not known
    phrase: str
    session: str  #: session or take; no speaker says a phrase twice in one
    path: Path

    @property
    def name(self) -> str:
        """Id of the recording in score tables."""
        return f"{self.speaker}-{self.phrase}-{self.session}"

    @property
    def model(self) -> str:
        """Id of the enrolment that the recording may be part of: one for each speaker and phrase."""
        return f"{self.speaker}-{self.phrase}"


@dataclass(frozen=True)
class Split:
    """Three sets of speakers that have nobody in common.

    Attributes
    ----------
    background
        The recognizer is trained on them.
    development
        Score models and calibrations are trained on their scores, and they are the cohorts.
    evaluation
        The trials of interest are theirs.

    Examples
    --------
    >>> Split(("ann",), ("bob",), ("bob",))
    Traceback (most recent call last):
    ...
    evenscore.errors.InputError: speaker 'bob' is in two sets; background, development and evaluation must not overlap
    """

    background: tuple[str, ...]
    development: tuple[str, ...]
    evaluation: tuple[str, ...]

    def __post_init__(self) -> None:
        for role in ROLES:
            object.__setattr__(self, role, tuple(sorted(set(getattr(self, role)))))
            if not getattr(self, role):
                raise InputError(f"there are no {role} speakers; each of the three sets needs some")
        counts = Counter(self.background + self.development + self.evaluation)
        twice = sorted(speaker for speaker, count in counts.items() if count > 1)
        if twice:
            raise InputError(
                f"speaker {twice[0]!r} is in two sets; background, development and evaluation must not overlap"
            )


@dataclass(frozen=True)
class Corpus:
    """Recordings in order, and how they are meant to be used.

    Attributes
    ----------
    recordings
        In order of speaker, phrase and session.
    enroll_sessions
        A speaker is enrolled with the recordings of these sessions; all others are tests.
    split
        The corpus' own sets of speakers, None if it has none: see `split_speakers`.
    skipped
        Files that were left out, and why.

    Examples
    --------
    >>> recordings = [Recording("ann", "f", "0", take, Path(f"{take}.wav")) for take in "12"]
    >>> corpus = Corpus(recordings, enroll_sessions=("1",))
    >>> corpus.speakers, corpus.phrases, corpus.gender
    (('ann',), ('0',), {'ann': 'f'})
    """

    recordings: tuple[Recording, ...] = field(repr=False)
    enroll_sessions: tuple[str, ...]
    split: Split | None = field(default=None, repr=False)
    skipped: tuple[str, ...] = ()

    def __init__(
        self,
        recordings: Iterable[Recording],
        enroll_sessions: Sequence[str],
        split: Split | None = None,
        skipped: Sequence[str] = (),
    ) -> None:
        ordered = tuple(sorted(recordings))
        _check(ordered, enroll_sessions)
        for name, value in {
            "recordings": ordered,
            "enroll_sessions": tuple(enroll_sessions),
            "split": split,
            "skipped": tuple(skipped),
        }.items():
            object.__setattr__(self, name, value)

    @property
    def speakers(self) -> tuple[str, ...]:
        """All speakers, in order."""
        return tuple(sorted({recording.speaker for recording in self.recordings}))

    @property
    def phrases(self) -> tuple[str, ...]:
        """All phrases, in order."""
        return tuple(sorted({recording.phrase for recording in self.recordings}))

    @property
    def gender(self) -> dict[str, str]:
        """The gender of each speaker."""
        return {recording.speaker: recording.gender for recording in self.recordings}

    def is_enrolment(self, recording: Recording) -> bool:
        """Tell whether a recording is for enrolment, else it is a test."""
        return recording.session in self.enroll_sessions

    def of(self, speakers: Iterable[str]) -> list[Recording]:
        """Return the recordings of some speakers, in order."""
        wanted = set(speakers)
        return [recording for recording in self.recordings if recording.speaker in wanted]

    def only(self, speakers: Iterable[str]) -> Corpus:
        """Return the corpus of some of its speakers, without its split."""
        return Corpus(self.of(speakers), self.enroll_sessions, skipped=self.skipped)


def _check(recordings: Sequence[Recording], enroll_sessions: Sequence[str]) -> None:
    if not recordings:
        raise InputError("there are no recordings; check the directory or the manifest")
    for recording in recordings:
        for what in ("speaker", "phrase", "session"):
            value = getattr(recording, what)
            if not value or any(character.isspace() for character in value):  # ids stand in text files, too
                raise InputError(f"{what} {value!r} of {recording.path} is empty or has a space in it; rename it")
    names = Counter(recording.name for recording in recordings)
    name, count = names.most_common(1)[0]
    if count > 1:
        raise InputError(f"there are {count} recordings {name!r} (speaker-phrase-session); give each its own session")
    genders: dict[str, str] = {}
    for recording in recordings:
        if genders.setdefault(recording.speaker, recording.gender) != recording.gender:
            raise InputError(f"speaker {recording.speaker!r} has two genders; give all recordings the same")
    if not set(enroll_sessions) & {recording.session for recording in recordings}:
        raise InputError(f"no recording is of the enrolment sessions {', '.join(enroll_sessions) or '(none)'}")


def split_speakers(corpus: Corpus, *, seed: int = 0) -> Split:
    """Split the speakers into three sets of equal size, with the genders spread evenly; another seed, other sets.

    Examples
    --------
    >>> recordings = [Recording(f"{sex}{n}", sex, "0", "1", Path()) for sex in "fm" for n in range(6)]
    >>> split = split_speakers(Corpus(recordings, ["1"]))
    >>> [len(split.background), len(split.development), len(split.evaluation)]
    [4, 4, 4]
    >>> sum(speaker[0] == "f" for speaker in split.background)
    2
    """
    if len(corpus.speakers) < len(ROLES):
        raise InputError(f"{len(corpus.speakers)} speakers cannot be split into three sets; give at least three")
    generator = np.random.default_rng(seed)
    gender = corpus.gender
    sets: list[list[str]] = [[], [], []]
    dealt = 0
    for kind in sorted(set(gender.values())):
        members = [speaker for speaker in corpus.speakers if gender[speaker] == kind]
        for place in generator.permutation(len(members)):
            sets[dealt % len(sets)].append(members[place])  # dealt like cards, on from where the last gender ended
            dealt += 1
    return Split(*(tuple(group) for group in sets))


def role_permutations(split: Split) -> list[Split]:
    """Return all six ways to give the three sets of speakers the three roles; the first is the split itself.

    Examples
    --------
    >>> [roles.background for roles in role_permutations(Split(("a",), ("b",), ("c",)))]
    [('a',), ('a',), ('b',), ('b',), ('c',), ('c',)]
    """
    return [Split(*sets) for sets in permutations((split.background, split.development, split.evaluation))]
