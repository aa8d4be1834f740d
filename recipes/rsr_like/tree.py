"""A directory laid out as RSR2015 part I: SPHERE files, and the lists of enrolments and trials."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
import soundfile

from evenscore import InputError
from evenscore.progress import silent
from recipes.text_dependent.audio import RATE
from recipes.text_dependent.recordings import ROLES, Progress
from recipes.text_dependent.rsr2015 import ENROLL_SESSIONS, LIST_SETS, N_PHRASES, N_SESSIONS, speakers_of_set

__all__ = ["SetSize", "Source", "TreeOptions", "make_tree", "set_sizes"]

GENDER_FOLDERS = {"f": "female", "m": "male"}


class Source(Protocol):
    """Who speaks."""

    def people(self, gender: str) -> int | None:
        """Return how many speakers of a gender a set can have, None if there is no limit."""

    def utterance(self, speaker: str, phrase: int, session: int) -> np.ndarray:
        """Return the sound of one recording, at 16 kHz."""


@dataclass(frozen=True, kw_only=True)
class TreeOptions:
    """How large the corpus is.

    Examples
    --------
    >>> TreeOptions(sessions=5).enroll_sessions
    (1, 4)
    >>> TreeOptions(sessions=1)
    Traceback (most recent call last):
    ...
    evenscore.errors.InputError: sessions is 1, but must be from 2 to 9, as the first one enrols
    """

    speakers: int = 4  #: of each gender and set; no set gets more than it has in RSR2015
    phrases: int = 3
    sessions: int = N_SESSIONS

    def __post_init__(self) -> None:
        if self.speakers < 2:
            raise InputError(f"speakers is {self.speakers}, but must be at least 2, as a trial has two")
        if not 1 <= self.phrases <= N_PHRASES:
            raise InputError(f"phrases is {self.phrases}, but must be from 1 to {N_PHRASES}")
        if not 2 <= self.sessions <= N_SESSIONS:
            raise InputError(
                f"sessions is {self.sessions}, but must be from 2 to {N_SESSIONS}, as the first one enrols"
            )

    @property
    def enroll_sessions(self) -> tuple[int, ...]:
        """The sessions that enrol."""
        return tuple(int(session) for session in ENROLL_SESSIONS if int(session) <= self.sessions)

    @property
    def test_sessions(self) -> tuple[int, ...]:
        """The sessions that are tests."""
        return tuple(session for session in range(1, self.sessions + 1) if session not in self.enroll_sessions)


@dataclass(frozen=True)
class SetSize:
    """What one gender of one set has, and the trials within a phrase that this implies."""

    role: str
    gender: str
    speakers: tuple[str, ...]
    recordings: int
    target: int
    nontarget: int


def set_sizes(options: TreeOptions, source: Source) -> list[SetSize]:
    """Return the sizes of all sets; background speakers have no trials.

    Examples
    --------
    >>> from recipes.rsr_like.synthesizer import Synthesizer
    >>> sizes = set_sizes(TreeOptions(speakers=57, phrases=30), Synthesizer())
    >>> [(len(size.speakers), size.target, size.nontarget) for size in sizes if size.role == "evaluation"]
    [(49, 8820, 423360), (57, 10260, 574560)]
    """
    sizes = []
    for role in ROLES:
        for gender in GENDER_FOLDERS:
            limit = source.people(gender)
            number = options.speakers if limit is None else min(options.speakers, limit)
            speakers = speakers_of_set(gender, role)[:number]
            target = 0 if role == "background" else len(speakers) * options.phrases * len(options.test_sessions)
            sizes.append(
                SetSize(
                    role,
                    gender,
                    speakers,
                    len(speakers) * options.phrases * options.sessions,
                    target,
                    target * (len(speakers) - 1),
                )
            )
    return sizes


def make_tree(
    root: str | os.PathLike[str],
    source: Source,
    options: TreeOptions | None = None,
    *,
    pool: Executor | None = None,
    progress: Progress = silent,
) -> list[SetSize]:
    """Write the corpus: ``sph/male/m001/m001_01_001.sph`` and the lists in ``key/part1/``.

    Parameters
    ----------
    root
        The directory; files of the same names are written again.
    source
        Who speaks.
    options
        How large it is.
    pool
        Processes that share the work.
    progress
        Called with a stage name and the fraction done.
    """
    options = options or TreeOptions()
    sizes = set_sizes(options, source)
    speakers = [speaker for size in sizes for speaker in size.speakers]
    record = partial(_record, Path(root), source, options)
    for done, _ in enumerate((map if pool is None else pool.map)(record, speakers), start=1):
        progress("recordings", done / len(speakers))
    for size in sizes:
        if size.target:
            _write_lists(Path(root) / "key" / "part1", size, options)
    return sizes


def _record(root: Path, source: Source, options: TreeOptions, speaker: str) -> None:
    folder = root / "sph" / GENDER_FOLDERS[speaker[0]] / speaker
    folder.mkdir(parents=True, exist_ok=True)
    for session in range(1, options.sessions + 1):
        for phrase in range(1, options.phrases + 1):
            sound = source.utterance(speaker, phrase, session)
            path = folder / f"{_name(speaker, session, phrase)}.sph"
            soundfile.write(path, sound.clip(-1.0, 1.0), RATE, format="NIST", subtype="PCM_16")


def _name(speaker: str, session: int, phrase: int) -> str:
    return f"{speaker}_{session:02d}_{phrase:03d}"


def _write_lists(folder: Path, size: SetSize, options: TreeOptions) -> None:
    """Write who is enrolled with what, and all trials, also those with a wrong phrase, as in the corpus' lists."""
    short = next(short for short, role in LIST_SETS.items() if role == size.role)
    gender, phrases = size.gender, range(1, options.phrases + 1)
    enrolments = [
        f"{speaker}_{phrase:03d} "
        + ",".join(
            f"{GENDER_FOLDERS[gender]}/{speaker}/{_name(speaker, session, phrase)}.sph"
            for session in options.enroll_sessions
        )
        for speaker in size.speakers
        for phrase in phrases
    ]
    for kind, name, lines in (
        ("trn", f"3sesspwd_{short}_{gender}", iter(enrolments)),
        ("ndx", f"3sess-pwd_{short}_{gender}", _trials(size.speakers, phrases, options.test_sessions)),
    ):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        with (folder / kind / f"{name}.{kind}").open("w", encoding="ascii") as file:
            file.writelines(f"{line}\n" for line in lines)


def _trials(speakers: Sequence[str], phrases: Sequence[int], sessions: Sequence[int]) -> Iterator[str]:
    """Return the lines of a list of trials: model, file, and whether speaker and phrase are right.

    The marks are: right speaker and phrase, right speaker with a wrong phrase, an impostor with the right phrase, an
    impostor with a wrong one. Of the last, the corpus lists only half.
    """
    for model in speakers:
        for phrase in phrases:
            for speaker in speakers:
                for said in phrases:
                    own, right = speaker == model, said == phrase
                    if not own and not right and (said + phrase) % 2:
                        continue
                    marks = ",".join("NY"[mark] for mark in (own and right, own > right, own < right, not own | right))
                    for session in sessions:
                        yield f"{model}_{phrase:03d},{speaker}/{_name(speaker, session, said)}.sph,{marks}"
