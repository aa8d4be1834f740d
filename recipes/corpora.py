"""Recordings of phrases by speakers: AudioMNIST, RSR2015 part I, or a list of your own; and sets of speakers."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import numpy as np

from evenscore import FileError, InputError

__all__ = ["ROLES", "Corpus", "Recording", "Split", "read_corpus", "role_permutations", "split_speakers"]

ROLES = ("background", "development", "evaluation")
_AUDIO = (".wav", ".flac", ".sph", ".ogg", ".aiff", ".au")
_GENDERS = {"male": "m", "m": "m", "female": "f", "f": "f", "": ""}
_RSR2015_LAST = {"m": (50, 100, 157), "f": (47, 94, 143)}  # number of the last speaker of each set


@dataclass(frozen=True, order=True)
class Recording:
    """One utterance of a phrase; ordered by speaker, phrase and session.

    Examples
    --------
    >>> Recording("m001", "m", "003", "01", Path("m001_01_003.sph")).name
    'm001-003-01'
    """

    speaker: str
    gender: str  #: "m", "f", or "" if it is not known
    phrase: str
    session: str
    path: Path

    @property
    def name(self) -> str:
        """Id of the recording in score tables."""
        return f"{self.model}-{self.session}"

    @property
    def model(self) -> str:
        """Id of the enrolment that the recording may be part of."""
        return f"{self.speaker}-{self.phrase}"


@dataclass(frozen=True)
class Split:
    """Three disjoint sets: the recognizer, the score models with their cohorts, and the trials are of one each."""

    background: tuple[str, ...]
    development: tuple[str, ...]
    evaluation: tuple[str, ...]

    def __post_init__(self) -> None:
        counts = Counter(self.background + self.development + self.evaluation)
        if not (self.background and self.development and self.evaluation) or max(counts.values()) > 1:
            raise InputError("background, development and evaluation need speakers, and none of them in two sets")


@dataclass(frozen=True)
class Corpus:
    """Recordings, the sessions that enrol (all others are tests), and the corpus' own sets of speakers, if any."""

    recordings: tuple[Recording, ...]
    enroll_sessions: tuple[str, ...]
    split: Split | None = None

    def __post_init__(self) -> None:
        names = Counter(recording.name for recording in self.recordings)
        if not names:
            raise InputError("there are no recordings; check the directory or the manifest")
        name, count = names.most_common(1)[0]
        if count > 1:
            raise InputError(f"there are {count} recordings {name!r} (speaker-phrase-session); give each a session")
        if not set(self.enroll_sessions) & {recording.session for recording in self.recordings}:
            raise InputError(f"no recording is of the enrolment sessions {', '.join(self.enroll_sessions)}")

    @property
    def speakers(self) -> list[str]:
        """All speakers, in order."""
        return sorted({recording.speaker for recording in self.recordings})

    @property
    def gender(self) -> dict[str, str]:
        """The gender of each speaker."""
        return {recording.speaker: recording.gender for recording in self.recordings}

    def select(self, speakers: Iterable[str]) -> list[Recording]:
        """Return the recordings of some speakers, in order."""
        wanted = set(speakers)
        return [recording for recording in self.recordings if recording.speaker in wanted]


def read_corpus(name: str, root: str | Path, enroll_sessions: Sequence[str] | None = None) -> Corpus:
    """Find the recordings of ``audiomnist``, ``rsr2015`` (part I), or of a ``manifest``.

    A manifest is a CSV file with the columns speaker, gender, phrase, session, path (relative to the file) and, if you
    like, set (background, development or evaluation). RSR2015 has the usual sets: m001-m050, m051-m100, m101-m157 and
    f001-f047, f048-f094, f095-f143; sessions 01, 04 and 07 enrol.
    """
    readers = {"audiomnist": _audiomnist, "rsr2015": _rsr2015, "manifest": _manifest}
    if name not in readers:
        raise InputError(f"there is no corpus {name!r}; give {', '.join(readers)}")
    usual = {"audiomnist": ("00", "01", "02"), "rsr2015": ("01", "04", "07")}
    sessions = enroll_sessions or usual.get(name)
    if sessions is None:
        raise InputError("a manifest does not say which sessions enrol; give them, such as 1,2,3")
    recordings, roles = readers[name](Path(root))
    sets = [tuple(speaker for speaker, role in sorted(roles.items()) if role == wanted) for wanted in ROLES]
    return Corpus(tuple(sorted(recordings)), tuple(sessions), Split(*sets) if all(sets) else None)


def _audio_files(root: Path) -> list[Path]:
    if not root.is_dir():
        raise FileError(root, "there is no such directory; check the name")
    return sorted(path for path in root.rglob("*") if path.suffix.lower() in _AUDIO)


def _audiomnist(root: Path) -> tuple[list[Recording], dict[str, str]]:
    """``data/01/7_01_23.wav`` is speaker 01, digit 7, take 23; genders are in ``audioMNIST_meta.txt``."""
    data = root / "data" if (root / "data").is_dir() else root
    try:
        facts = json.loads((data / "audioMNIST_meta.txt").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError(data / "audioMNIST_meta.txt", f"it cannot be read ({error}); get it again") from None
    found = []
    for path in _audio_files(data):
        match = re.fullmatch(r"(\d+)_(\w+)_(\d+)", path.stem)
        if match and match[2] == path.parent.name:
            gender = _GENDERS[str(facts[match[2]]["gender"]).lower()]
            found.append(Recording(match[2], gender, match[1], f"{int(match[3]):02d}", path))
    return found, {}


def _rsr2015(root: Path) -> tuple[list[Recording], dict[str, str]]:
    """``sph/male/m001/m001_01_003.sph`` is speaker m001, session 1, phrase 3; part I has 30 phrases."""
    found = []
    for path in _audio_files(root):
        match = re.fullmatch(r"([mf])(\d{3})_(\d{2})_(\d{3})", path.stem)
        if match and 1 <= int(match[4]) <= 30:
            found.append(Recording(match[1] + match[2], match[1], match[4], match[3], path))
    roles = {}
    for speaker in {recording.speaker for recording in found}:
        place = np.searchsorted(_RSR2015_LAST[speaker[0]], int(speaker[1:]))
        roles[speaker] = ROLES[min(int(place), 2)]
    return found, roles


def _manifest(path: Path) -> tuple[list[Recording], dict[str, str]]:
    found, roles = [], {}
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
    except OSError as error:
        raise FileError(path, f"it cannot be read ({error.strerror}); check the name") from None
    for number, row in enumerate(rows, start=2):
        absent = [name for name in ("speaker", "phrase", "session", "path") if not row.get(name)]
        gender = (row.get("gender") or "").lower()
        if absent or gender not in _GENDERS:
            problem = f"{absent[0]} is empty" if absent else f"gender is {gender!r}, but must be m, f or empty"
            raise FileError(path, f"{problem}; fill it in", line=number)
        place = path.parent / row["path"]
        found.append(Recording(row["speaker"], _GENDERS[gender], row["phrase"], row["session"], place))
        roles[row["speaker"]] = row.get("set") or ""
    return found, roles


def split_speakers(corpus: Corpus, seed: int = 0) -> Split:
    """Split the speakers into three sets of equal size, with the genders spread evenly.

    Examples
    --------
    >>> recordings = [Recording(f"{sex}{n}", sex, "0", "1", Path()) for sex in "fm" for n in range(6)]
    >>> split = split_speakers(Corpus(tuple(recordings), ("1",)))
    >>> [len(split.background), sum(speaker[0] == "f" for speaker in split.background)]
    [4, 2]
    """
    generator, gender, dealt = np.random.default_rng(seed), corpus.gender, 0
    sets: list[list[str]] = [[], [], []]
    for kind in sorted(set(gender.values())):
        members = [speaker for speaker in corpus.speakers if gender[speaker] == kind]
        for place in generator.permutation(len(members)):
            sets[dealt % 3].append(members[place])  # on from where the last gender ended
            dealt += 1
    return Split(*(tuple(sorted(group)) for group in sets))


def role_permutations(split: Split) -> list[Split]:
    """Return all six ways to give the three sets of speakers the three roles; the first is the split itself."""
    return [Split(*sets) for sets in permutations((split.background, split.development, split.evaluation))]
