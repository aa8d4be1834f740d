"""The protocol of RSR2015 part I: how files are named, which speaker is in which set, and the corpus' own lists."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from evenscore import FileError
from recipes.text_dependent.recordings import ROLES

__all__ = [
    "ENROLL_SESSIONS",
    "FILE_NAME",
    "LIST_SETS",
    "N_PHRASES",
    "N_SESSIONS",
    "Rsr2015Lists",
    "read_rsr2015_lists",
    "role_of_number",
    "speakers_of_set",
]

PathLike = str | os.PathLike[str]

FILE_NAME = re.compile(r"([mf])(\d{3})_(\d{2})_(\d{3})$")  #: gender, number of the speaker, session, phrase
N_PHRASES = 30  #: of part I; higher numbers are of parts II (commands) and III (digits), which are in the same tree
N_SESSIONS = 9
ENROLL_SESSIONS = ("01", "04", "07")  #: those with the first of a speaker's three devices

# Larcher et al. (2014) give the numbers of speakers per set: 50, 50 and 57 male, 47, 47 and 49 female. Those who use
# the corpus number them through the sets in this order; its own lists, where they are there, have the last word.
_LAST = {"m": (50, 100, 157), "f": (47, 94, 143)}  #: number of the last speaker of each set

# The lists that come with the corpus, under key/part1/; the formats are those that public programs read. SIDEKIT's
# tutorial has key/part1/trn/3sesspwd_eval_m.trn and key/part1/ndx/3sess-pwd_eval_m.ndx.
LIST_SETS = {"dev": "development", "eval": "evaluation"}  #: what the lists call the sets that have trials
_LIST_NAME = re.compile(r"3sess-?pwd[-_](dev|eval)[-_]([mf])$", re.IGNORECASE)
_MODEL = re.compile(r"[mf]\d{3}_\d{3}$")
# A trial is 'm101_001,m101/m101_02_001.sph,Y,N,N,N'. Only those with the phrase of the model are of interest, one in
# sixteen of nine million lines, so that it must be the pattern that finds them.
_SAME_PHRASE = re.compile(rb"^[mf]\d{3}_(\d{3})[,\s]+(?:\w+/)*([mf]\d{3}_\d{2}_\1)\b", re.MULTILINE)

_OTHERWISE = "or give the directory sph/ as the root, to go by the usual sets and sessions"


def speakers_of_set(gender: str, role: str) -> tuple[str, ...]:
    """Return the speakers of one gender and set, in order.

    Examples
    --------
    >>> men = speakers_of_set("m", "evaluation")
    >>> men[0], men[-1], len(men)
    ('m101', 'm157', 57)
    """
    place = ROLES.index(role)
    first = 1 if place == 0 else _LAST[gender][place - 1] + 1
    return tuple(f"{gender}{number:03d}" for number in range(first, _LAST[gender][place] + 1))


def role_of_number(speaker: str) -> str:
    """Return the set of a speaker by the number: m001-m050, m051-m100, m101-m157, f001-f047, f048-f094, f095-f143.

    Examples
    --------
    >>> role_of_number("f048")
    'development'
    """
    number, last = int(speaker[1:]), _LAST[speaker[0]]
    return next((role for role, end in zip(ROLES, last, strict=True) if number <= end), ROLES[-1])


@dataclass(frozen=True)
class Rsr2015Lists:
    """What the lists of the corpus say; recordings are named as their files, without the ending.

    Attributes
    ----------
    folder
        Where the lists are.
    role_of
        Set of each speaker who is listed: development or evaluation.
    enrolments
        Recordings that enrol.
    tests
        Recordings that are tested with their own phrase.
    enrolled_sets, tested_sets
        Sets and genders that have a list of enrolments, and of trials. Without a list of trials, all recordings of
        other sessions are tests.
    """

    folder: Path
    role_of: dict[str, str]
    enrolments: frozenset[str]
    tests: frozenset[str]
    enrolled_sets: frozenset[tuple[str, str]]
    tested_sets: frozenset[tuple[str, str]]

    @cached_property
    def enroll_sessions(self) -> tuple[str, ...]:
        """The sessions of the enrolments."""
        return tuple(sorted({_session(name) for name in self.enrolments}))

    def use(self, name: str) -> bool:
        """Tell whether a recording takes part: background speech does, and what is listed."""
        speaker = name.partition("_")[0]
        group = self.role_of.get(speaker, role_of_number(speaker)), speaker[0]
        if speaker not in self.role_of:
            return group not in self.enrolled_sets
        if name in self.enrolments or name in self.tests:
            return True
        return group not in self.tested_sets and _session(name) not in self.enroll_sessions

    def absent(self, found: set[str]) -> list[str]:
        """Return the recordings that are listed, but not there."""
        return sorted((self.enrolments | self.tests) - found)


def read_rsr2015_lists(root: PathLike) -> Rsr2015Lists | None:
    """Read the lists of part I with three enrolment sessions, ``key/part1/``; None if there are none."""
    folders = [Path(root) / "key" / "part1", *sorted(Path(root).glob("*/key/part1"))]
    folder = next((one for one in folders if _lists(one, "trn")), None)
    if folder is None:
        return None
    role_of: dict[str, str] = {}
    enrolments: set[str] = set()
    tests: set[str] = set()
    enrolled, tested = _lists(folder, "trn"), _lists(folder, "ndx")
    for (role, _), path in enrolled.items():
        names = set(_enrolments(path))
        role_of |= dict.fromkeys(sorted(name.partition("_")[0] for name in names), role)
        enrolments |= names
    for path in tested.values():
        tests |= _tests(path)
    lists = Rsr2015Lists(
        folder, role_of, frozenset(enrolments), frozenset(tests), frozenset(enrolled), frozenset(tested)
    )
    both = sorted(name for name in tests if _session(name) in lists.enroll_sessions)
    if both:
        raise FileError(folder, f"{both[0]} is tested, but its session enrols, too; check the lists, {_OTHERWISE}")
    return lists


def _lists(folder: Path, kind: str) -> dict[tuple[str, str], Path]:
    """Return the lists of one kind (``trn`` or ``ndx``), by set and gender."""
    found = {}
    for path in sorted((folder / kind).glob(f"*.{kind}")):
        match = _LIST_NAME.match(path.stem)
        if match:
            found[LIST_SETS[match[1].lower()], match[2].lower()] = path
    return found


def _enrolments(path: Path) -> Iterator[str]:
    """Return the recordings of 'm101_001 male/m101/m101_01_001.sph,male/m101/m101_04_001.sph,...'."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise FileError(path, f"it cannot be read ({error.strerror}); change its mode, {_OTHERWISE}") from None
    for number, line in enumerate(lines, start=1):
        model, *files = re.split(r"[,\s]+", line.strip())
        if not model:
            continue
        names = [re.sub(r"\.\w+$", "", file.rpartition("/")[2]) for file in files if file]
        own = re.compile(rf"{model[:4]}_\d{{2}}_{model[5:]}$")
        if not _MODEL.match(model) or not names or not all(own.match(name) for name in names):
            problem = "expected a model and its files, such as m101_001 male/m101/m101_01_001.sph,..."
            raise FileError(path, f"{problem}; check the list, {_OTHERWISE}", line=number)
        yield from names


def _tests(path: Path) -> set[str]:
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            found = {match[2].decode() for match in _SAME_PHRASE.finditer(text)}
    except (OSError, ValueError) as error:
        raise FileError(path, f"it cannot be read ({error}); copy it again, {_OTHERWISE}") from None
    if not found:
        problem = "there is no trial in it such as m101_001,m101/m101_02_001.sph,Y,N,N,N"
        raise FileError(path, f"{problem}; check the list, {_OTHERWISE}")
    return found


def _session(name: str) -> str:
    return name.split("_")[1]
