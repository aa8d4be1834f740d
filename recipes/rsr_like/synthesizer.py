"""Made-up voices: pulses and noise through formants, over a device and a room; quick, and no corpus is needed.

A speaker has a pitch, a length of the vocal tract and formants of his or her own. A phrase is a row of vowels and
fricatives. A speaker has three devices, as in RSR2015: sessions 1, 4 and 7 are with the first. So speakers, phrases and
channels differ in the ways that a recognizer has to tell apart; it is no speech that anybody would understand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recipes.text_dependent.audio import RATE

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["N_DEVICES", "Synthesizer"]

N_DEVICES = 3

_VOWELS = (  # formants in hertz
    (750, 1200, 2500),
    (500, 1900, 2550),
    (300, 2300, 3000),
    (500, 900, 2450),
    (320, 750, 2300),
    (650, 1700, 2400),
    (450, 1450, 2300),
    (600, 1000, 2500),
)
_FRICATIVES = (2600, 4200, 5800)  # where their noise is strongest, in hertz
_PITCH = {"m": (85.0, 150.0), "f": (165.0, 250.0)}
_TRACT = {"m": (0.92, 1.06), "f": (1.08, 1.24)}  # what formants are multiplied with
_FADE = 320  # samples in which one sound gives way to the next
_PAUSE = RATE // 10  # before and after a phrase


@dataclass(frozen=True)
class Synthesizer:
    """All voices, phrases and devices of one seed.

    Examples
    --------
    >>> speech = Synthesizer(seed=1).utterance("m001", 3, 9)
    >>> 1.5 < len(speech) / 16000 < 6.0
    True
    """

    seed: int = 0
    seconds: float = 3.0  #: length of a phrase, about

    def people(self, gender: str) -> int | None:
        """Return how many speakers there are at most: no limit."""
        return None

    def utterance(self, speaker: str, phrase: int, session: int) -> Float[np.ndarray, " n"]:
        """Return what a speaker (m001 or f001) says in a session, at 16 kHz."""
        take = self._drawn("take", speaker, phrase, session)
        day = self._drawn("day", speaker, session)
        speech = self._spoken(speaker, phrase, day.normal(1.0, 0.03), take)
        device = _gain(self._drawn("device", speaker, (session - 1) % N_DEVICES), 4.0)
        speech = _filtered(speech, device * _gain(day, 1.5))
        speech *= day.uniform(0.1, 0.4) / np.abs(speech).max()
        noise = np.std(speech) * 10.0 ** (-day.uniform(25.0, 40.0) / 20.0)
        return speech + noise * take.standard_normal(len(speech))

    def _drawn(self, *about: str | int) -> np.random.Generator:
        """Return a source of random numbers that belongs to something."""
        return np.random.default_rng([self.seed, *"/".join(map(str, about)).encode()])

    def _spoken(self, speaker: str, phrase: int, mood: float, take: np.random.Generator) -> Float[np.ndarray, " n"]:
        voice = self._drawn("voice", speaker)
        gender = speaker[0]
        pitch, tract = voice.uniform(*_PITCH[gender]) * mood, voice.uniform(*_TRACT[gender])
        own = tract * voice.normal(1.0, 0.04, size=(len(_VOWELS), 3))
        tilt = voice.uniform(0.6, 1.4)
        sounds, lengths = self._sounds(phrase)
        tempo = take.normal(1.0, 0.06, size=len(lengths)).clip(0.7, 1.3)
        lengths = _FADE * np.maximum(1, lengths * tempo * RATE / _FADE).astype(int)  # FFTs are slow at odd lengths
        source = _source(pitch * take.normal(1.0, 0.02), int(lengths.sum()) + _FADE, take)
        speech = np.zeros(len(source) + 2 * _PAUSE)
        fade = np.sin(0.5 * np.pi * (np.arange(_FADE) + 0.5) / _FADE) ** 2
        start = 0
        for sound, length in zip(sounds.tolist(), lengths.tolist(), strict=True):
            if sound < len(_VOWELS):
                formants = np.array(_VOWELS[sound]) * own[sound] * take.normal(1.0, 0.015, size=3)
                piece = _filtered(source[start : start + length + _FADE], _vowel(formants, tilt))
            else:
                centre = _FRICATIVES[sound - len(_VOWELS)] * tract
                piece = _filtered(0.3 * take.standard_normal(length + _FADE), _fricative(centre))
            piece[:_FADE] *= fade
            piece[-_FADE:] *= fade[::-1]
            speech[_PAUSE + start : _PAUSE + start + len(piece)] += piece
            start += length
        return speech

    def _sounds(self, phrase: int) -> tuple[np.ndarray, Float[np.ndarray, " k"]]:
        """Return the sounds of a phrase and how long they are, in seconds."""
        text = self._drawn("phrase", phrase)
        sounds = text.permutation(len(_VOWELS) + len(_FRICATIVES))[: text.integers(6, 10)]
        weights = text.uniform(0.6, 1.4, size=len(sounds))
        return sounds, self.seconds * weights / weights.sum()


def _source(pitch: float, length: int, take: np.random.Generator) -> Float[np.ndarray, " n"]:
    """Return pulses whose pitch falls and wavers a little, with some breath."""
    time = np.linspace(0.0, 1.0, length)
    melody = pitch * (1.08 - 0.16 * time + 0.03 * np.sin(2 * np.pi * (3.0 * time + take.uniform())))
    turns = np.floor(np.cumsum(melody) / RATE)
    pulses = np.diff(turns, prepend=0.0) * np.sqrt(RATE / pitch)  # as loud as noise of variance one
    return pulses + 0.05 * take.standard_normal(length)


def _filtered(sound: Float[np.ndarray, " n"], gain: Float[np.ndarray, " f"]) -> Float[np.ndarray, " n"]:
    """Return the sound with each frequency made louder or softer; the gain is of equally spaced frequencies."""
    spectrum = np.fft.rfft(sound)
    spectrum *= np.interp(np.linspace(0.0, 1.0, len(spectrum)), np.linspace(0.0, 1.0, len(gain)), gain)
    return np.fft.irfft(spectrum, len(sound))


_HERTZ = np.linspace(0.0, RATE / 2, 257)


def _vowel(formants: Float[np.ndarray, " k"], tilt: float) -> Float[np.ndarray, " f"]:
    peaks = 1.0 / (1.0 + ((_HERTZ - formants[:, None]) / (60.0 + 0.03 * formants[:, None])) ** 2)
    return (peaks.sum(axis=0) + 0.01) * (1.0 + _HERTZ / 500.0) ** -tilt


def _fricative(centre: float) -> Float[np.ndarray, " f"]:
    return 1.0 / (1.0 + ((_HERTZ - centre) / 900.0) ** 2)


def _gain(drawn: np.random.Generator, decibels: float) -> Float[np.ndarray, " f"]:
    """Return a smooth response of so many decibels, of equally spaced frequencies."""
    waves = np.cos(np.outer(np.arange(1, 6), np.pi * np.sqrt(_HERTZ / _HERTZ[-1])))
    return 10.0 ** (decibels * (drawn.standard_normal(5) @ waves) / np.sqrt(2.5) / 20.0)
