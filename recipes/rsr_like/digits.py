"""Speech of AudioMNIST as if it were RSR2015: phrases are rows of five digits, takes are sessions."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from evenscore import InputError
from recipes.text_dependent import Recording, read_audiomnist
from recipes.text_dependent.audio import read_audio
from recipes.text_dependent.recordings import ROLES
from recipes.text_dependent.rsr2015 import speakers_of_set

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["DigitSpeech"]

_DIGITS_OF_PHRASE = 5  # about three seconds, as the phrases of RSR2015


class DigitSpeech:
    """Rows of digits that real people said; all sessions are of one day, so that there is no channel to remove.

    Parameters
    ----------
    root
        Where AudioMNIST is.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = root

    @cached_property
    def _takes(self) -> dict[tuple[str, str], list[Recording]]:
        """The takes of each speaker and digit, in order."""
        takes: dict[tuple[str, str], list[Recording]] = {}
        for recording in read_audiomnist(self.root).recordings:
            takes.setdefault((recording.speaker, recording.phrase), []).append(recording)
        return takes

    @cached_property
    def _speakers(self) -> dict[str, list[str]]:
        facts = sorted({(takes[0].gender, speaker) for (speaker, _), takes in self._takes.items()})
        return {gender: [speaker for found, speaker in facts if found == gender] for gender in "mf"}

    def people(self, gender: str) -> int:
        """Return how many speakers of a gender each of the three sets can have."""
        return len(self._speakers[gender]) // len(ROLES)

    def utterance(self, speaker: str, phrase: int, session: int) -> Float[np.ndarray, " n"]:
        """Return what a speaker (m001 or f001) says in a session, at 16 kHz."""
        gender = speaker[0]
        row = np.random.default_rng(phrase).permutation(10)[:_DIGITS_OF_PHRASE]
        parts = []
        for digit in row.tolist():
            takes = self._takes.get((self._who(speaker), str(digit)), [])
            if len(takes) < session:
                raise InputError(f"AudioMNIST has no take {session} of digit {digit} for {gender}; ask for fewer")
            parts.append(read_audio(takes[session - 1].path))
        return np.concatenate(parts)

    def _who(self, speaker: str) -> str:
        """Return the speaker of AudioMNIST under a name of RSR2015: the sets follow each other."""
        gender = speaker[0]
        for place, role in enumerate(ROLES):
            names = speakers_of_set(gender, role)
            if speaker in names and names.index(speaker) < self.people(gender):
                return self._speakers[gender][place * self.people(gender) + names.index(speaker)]
        raise InputError(f"AudioMNIST has too few speakers to play {speaker}; ask for at most {self.people(gender)}")
