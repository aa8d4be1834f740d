"""Ways to spoil recordings, for dataset shift between training and use: telephone band, noise, codecs."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import soundfile

from evenscore import InputError
from recipes.text_dependent.audio import RATE, read_audio, resampled
from recipes.text_dependent.recordings import Recording

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["AdditiveNoise", "Codec", "Degradation", "TelephoneBand", "made_from", "with_background"]

_TELEPHONE_RATE = 8_000
_HEADROOM = 1.25  # resampling may go past the loudest sample
_TALKERS = 6  # in babble
_SOURCES = 120  # background recordings that noise is made from


class Degradation(Protocol):
    """What every degradation has: a frozen dataclass whose fields say all about it."""

    @property
    def name(self) -> str:
        """Short name for tables."""

    def apply(self, samples: Float[np.ndarray, " n"], recording: str) -> Float[np.ndarray, " n"]:
        """Return a recording at 16 kHz spoiled; its name makes chance the same in every run."""


@dataclass(frozen=True)
class TelephoneBand:
    """A band-pass, at 8 kHz and back.

    Examples
    --------
    >>> tone = np.sin(2 * np.pi * 5000 * np.arange(16000) / 16000)
    >>> bool(np.std(TelephoneBand().apply(tone, "a")) < 0.01 * np.std(tone))
    True
    """

    low_hz: float = 300.0
    high_hz: float = 3400.0

    def __post_init__(self) -> None:
        if not 0 < self.low_hz < self.high_hz < _TELEPHONE_RATE / 2:
            raise InputError(f"a band from {self.low_hz} to {self.high_hz} Hz does not fit into 0 to 4000 Hz")

    @property
    def name(self) -> str:
        """Short name for tables."""
        return "telephone"

    def apply(self, samples: Float[np.ndarray, " n"], recording: str) -> Float[np.ndarray, " n"]:
        """Return the recording as heard through the band."""
        from scipy.signal import butter, sosfilt

        band = butter(6, (self.low_hz, self.high_hz), "bandpass", fs=_TELEPHONE_RATE, output="sos")
        narrow = sosfilt(band, resampled(samples, RATE, _TELEPHONE_RATE))
        return _of_length(resampled(narrow, _TELEPHONE_RATE, RATE), len(samples))


@dataclass(frozen=True)
class AdditiveNoise:
    """Noise at a given ratio of mean powers, over the whole recording.

    Attributes
    ----------
    snr_db
        Speech to noise, in decibels.
    kind
        ``"white"``; ``"speech-shaped"``, which has the long-term spectrum of speech; or ``"babble"``, six talkers.
    seed
        Another number, other noise.
    sources
        Files with the speech that the last two are made from; `with_background` fills them in.

    Examples
    --------
    >>> tone = np.sin(np.arange(16000) / 10)
    >>> noise = AdditiveNoise(10.0).apply(tone, "a") - tone
    >>> round(float(10 * np.log10(np.mean(tone**2) / np.mean(noise**2))), 6)
    10.0
    """

    snr_db: float
    kind: Literal["white", "speech-shaped", "babble"] = "white"
    seed: int = 0
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in ("white", "speech-shaped", "babble"):
            raise InputError(f"noise is {self.kind!r}, but must be white, speech-shaped or babble")
        if not np.isfinite(self.snr_db):
            raise InputError(f"snr_db is {self.snr_db}, but must be finite")

    @property
    def name(self) -> str:
        """Short name for tables."""
        return f"{self.kind} noise {self.snr_db:g} dB"

    def apply(self, samples: Float[np.ndarray, " n"], recording: str) -> Float[np.ndarray, " n"]:
        """Return the recording with noise added."""
        generator = _generator(self.seed, recording)
        noise = self._noise(len(samples), generator)
        power = np.mean(noise**2)
        if power == 0:
            return samples
        wanted = np.mean(samples**2) / 10.0 ** (self.snr_db / 10.0)
        return samples + noise * np.sqrt(wanted / power)

    def _noise(self, length: int, generator: np.random.Generator) -> Float[np.ndarray, " n"]:
        white = generator.standard_normal(length)
        if self.kind == "white":
            return white
        if not self.sources:
            raise InputError(f"{self.kind} noise is made from background speech; see with_background")
        if self.kind == "speech-shaped":
            spectrum = _speech_spectrum(self.sources)
            at = np.linspace(0.0, 1.0, length // 2 + 1)
            shape = np.interp(at, np.linspace(0.0, 1.0, len(spectrum)), spectrum)
            return np.fft.irfft(np.fft.rfft(white) * shape, n=length)
        talkers = _talkers(self.sources)
        starts = [int(generator.integers(len(talker))) for talker in talkers]
        return np.sum(
            [np.resize(np.roll(talker, -start), length) for talker, start in zip(talkers, starts, strict=True)], axis=0
        )


@dataclass(frozen=True)
class Codec:
    """Speech coded and decoded.

    Attributes
    ----------
    kind
        ``"mu-law"`` and ``"a-law"`` (8 bits a sample) and ``"gsm"`` (GSM 06.10, 13 kbit/s), all at 8 kHz as on the
        telephone; ``"opus"`` at 16 kHz and the lowest rate that the library knows.

    Examples
    --------
    >>> tone = 0.5 * np.sin(2 * np.pi * 440 * np.arange(16000) / 16000)
    >>> coded = Codec("mu-law").apply(tone, "a")
    >>> len(coded), bool(0 < np.std(coded - tone) < 0.02)
    (16000, True)
    """

    kind: Literal["mu-law", "a-law", "gsm", "opus"]

    def __post_init__(self) -> None:
        if self.kind not in _CODECS:
            raise InputError(f"codec is {self.kind!r}, but must be one of {', '.join(_CODECS)}")

    @property
    def name(self) -> str:
        """Short name for tables."""
        return self.kind

    def apply(self, samples: Float[np.ndarray, " n"], recording: str) -> Float[np.ndarray, " n"]:
        """Return the recording after coding and decoding."""
        rate, container, subtype, extra = _CODECS[self.kind]
        coded = io.BytesIO()
        loudest = max(1.0, _HEADROOM * float(np.abs(samples).max(initial=0.0)))  # codecs clip beyond -1 to 1
        soundfile.write(
            coded, resampled(samples / loudest, RATE, rate), rate, format=container, subtype=subtype, **extra
        )
        coded.seek(0)
        decoded, found = soundfile.read(coded, dtype="float64")
        return _of_length(resampled(decoded, found, RATE), len(samples)) * loudest


_CODECS: dict[str, tuple[int, str, str, dict[str, Any]]] = {
    "mu-law": (_TELEPHONE_RATE, "WAV", "ULAW", {}),
    "a-law": (_TELEPHONE_RATE, "WAV", "ALAW", {}),
    "gsm": (_TELEPHONE_RATE, "WAV", "GSM610", {}),
    "opus": (RATE, "OGG", "OPUS", {"compression_level": 1.0}),
}


def with_background(degradation: Degradation, background: Sequence[Recording]) -> Degradation:
    """Return a degradation that has the background speech that it is made from, if it is."""
    if not isinstance(degradation, AdditiveNoise) or degradation.kind == "white" or degradation.sources:
        return degradation
    if not background:
        raise InputError(f"{degradation.name} is made from background speech, but there is none")
    ordered = sorted(background)
    step = max(1, len(ordered) // _SOURCES)
    return replace(degradation, sources=tuple(str(recording.path) for recording in ordered[::step][:_SOURCES]))


def made_from(degradation: Any) -> Any:
    """Return all about a degradation as plain values, for the key of a cache; it may be made of others."""
    if is_dataclass(degradation):
        values = {one.name: made_from(getattr(degradation, one.name)) for one in fields(degradation)}
        return {"kind of": type(degradation).__name__, **values}
    return [made_from(one) for one in degradation] if isinstance(degradation, tuple) else degradation


def _generator(seed: int, recording: str) -> np.random.Generator:
    digest = hashlib.sha256(f"{seed} {recording}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "little"))


def _of_length(samples: Float[np.ndarray, " n"], length: int) -> Float[np.ndarray, " m"]:
    return np.pad(samples[:length], (0, max(0, length - len(samples))))


@lru_cache(maxsize=4)
def _talkers(sources: tuple[str, ...]) -> list[Float[np.ndarray, " n"]]:
    """Return the speech of the sources as a few equally loud talkers."""
    speech = [read_audio(path) for path in sources]
    talkers = [np.concatenate(speech[first::_TALKERS]) for first in range(min(_TALKERS, len(speech)))]
    return [talker / max(np.sqrt(np.mean(talker**2)), 1e-10) for talker in talkers]


@lru_cache(maxsize=4)
def _speech_spectrum(sources: tuple[str, ...], size: int = 512) -> Float[np.ndarray, " bins"]:
    """Return the root mean square magnitude of the sources' spectrum, from 0 to 8 kHz."""
    speech = np.concatenate(_talkers(sources))
    frames = speech[: len(speech) // size * size].reshape(-1, size) * np.hanning(size)
    return np.sqrt(np.mean(np.abs(np.fft.rfft(frames, axis=1)) ** 2, axis=0))
