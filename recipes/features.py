"""Speech to features: sound at 16 kHz, ways to degrade it, and MFCC of the frames that hold speech."""

from __future__ import annotations

import hashlib
import io
import math
import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenscore import FileError, InputError

__all__ = ["RATE", "FeatureOptions", "degradation_named", "features", "read_audio"]

Samples = npt.NDArray[np.float64]
Frames = npt.NDArray[np.float32]

RATE = 16_000  #: samples per second
_TELEPHONE_RATE = 8_000
_FRAME = 400  # samples in 25 ms


def read_audio(path: str | os.PathLike[str]) -> Samples:
    """Read a recording of any rate: the mean of its channels, at 16 kHz, between -1 and 1."""
    import soundfile

    if not os.path.isfile(path):
        raise FileError(path, "there is no such file; check the name")
    try:
        samples, rate = soundfile.read(os.fspath(path), dtype="float64", always_2d=True)
    except (soundfile.LibsndfileError, RuntimeError) as error:
        problem = str(error).strip().rstrip(".")
        raise FileError(path, f"it cannot be read as audio ({problem}); convert it to wav or flac") from None
    if not len(samples) or not np.isfinite(samples).all():
        raise FileError(path, "it has no sound, or samples that are not finite; record it again")
    return _resampled(samples.mean(axis=1), rate, RATE)


def _resampled(samples: Samples, rate: int, wanted: int) -> Samples:
    if rate == wanted:
        return samples
    from scipy.signal import resample_poly

    divisor = math.gcd(rate, wanted)
    return resample_poly(samples, wanted // divisor, rate // divisor)


def degradation_named(name: str) -> Callable[[Samples, str], Samples]:
    """Return a function of (samples, id of the recording) that degrades speech: telephone, gsm, noise:DB, none.

    Examples
    --------
    >>> tone = np.sin(2 * np.pi * 5000 * np.arange(16000) / 16000)
    >>> bool(np.std(degradation_named("telephone")(tone, "a")) < 0.01 * np.std(tone))
    True
    """
    kind, _, level = name.partition(":")
    if kind == "noise":
        try:
            snr_db = float(level)
        except ValueError:
            raise InputError(f"the shift {name!r} has no level in decibels; write it as noise:10") from None
        return lambda samples, recording: _noisy(samples, recording, snr_db)
    known = {"telephone": _telephone, "gsm": _gsm, "none": lambda samples, recording: samples}
    if name not in known:
        raise InputError(f"there is no shift {name!r}; there are {', '.join(known)} and noise:DB")
    return known[name]


def _noisy(samples: Samples, recording: str, snr_db: float) -> Samples:
    """Add white noise; the name of the recording makes it the same in every run."""
    seed = int.from_bytes(hashlib.sha256(f"0 {recording}".encode()).digest()[:16], "little")
    noise = np.random.default_rng(seed).standard_normal(len(samples))
    power = np.mean(samples**2) / 10.0 ** (snr_db / 10.0)
    return samples + noise * np.sqrt(power / np.mean(noise**2))


def _telephone(samples: Samples, recording: str) -> Samples:
    """Pass 300 to 3400 Hz, at 8 kHz."""
    from scipy.signal import butter, sosfilt

    band = butter(6, (300.0, 3400.0), "bandpass", fs=_TELEPHONE_RATE, output="sos")
    narrow = sosfilt(band, _resampled(samples, RATE, _TELEPHONE_RATE))
    return _fitted(_resampled(narrow, _TELEPHONE_RATE, RATE), len(samples))


def _gsm(samples: Samples, recording: str) -> Samples:
    """Code and decode with GSM 06.10."""
    import soundfile

    coded = io.BytesIO()
    loudest = max(1.0, 1.25 * float(np.abs(samples).max(initial=0.0)))  # the codec clips beyond -1 to 1
    narrow = _resampled(samples / loudest, RATE, _TELEPHONE_RATE)
    soundfile.write(coded, narrow, _TELEPHONE_RATE, format="WAV", subtype="GSM610")
    coded.seek(0)
    decoded, rate = soundfile.read(coded, dtype="float64")
    return _fitted(_resampled(decoded, rate, RATE), len(samples)) * loudest


def _fitted(samples: Samples, length: int) -> Samples:
    return np.pad(samples[:length], (0, max(0, length - len(samples))))


@dataclass(frozen=True, kw_only=True)
class FeatureOptions:
    """How recordings become frames; the defaults were chosen on development speakers of AudioMNIST."""

    n_ceps: int = 20  #: cepstral coefficients, of which the first is the log energy
    n_mels: int = 26
    low_hz: float = 20.0
    high_hz: float = 7600.0
    speech_db: float = 40.0  #: frames that are further below the loudest one are no speech
    min_frames: int = 10


def features(samples: Samples, options: FeatureOptions) -> Frames:
    """Return MFCC and their deltas of the frames with speech, less their mean over the recording."""
    cepstra = _mfcc(samples, options)
    frames = np.hstack([cepstra, _deltas(cepstra)])
    loud = cepstra[:, 0]
    silent = np.log(_FRAME)  # log energy of a frame whose samples are as small as the last of 16 bits
    threshold = max(loud.max(initial=-np.inf) - options.speech_db * np.log(10.0) / 10.0, silent)
    speech = frames[loud > threshold]
    if len(speech) < options.min_frames:
        raise InputError(f"there are {len(speech)} frames of speech, but at least {options.min_frames} are needed")
    return (speech - speech.mean(axis=0)).astype(np.float32)


def _mfcc(samples: Samples, options: FeatureOptions) -> Samples:
    """Return Kaldi's MFCC, 100 frames a second, without dither; the first coefficient is the log energy."""
    import kaldi_native_fbank as knf

    settings = knf.MfccOptions()
    settings.frame_opts.samp_freq = RATE
    settings.frame_opts.dither = 0.0
    settings.mel_opts.num_bins = options.n_mels
    settings.mel_opts.low_freq = options.low_hz
    settings.mel_opts.high_freq = options.high_hz
    settings.num_ceps = options.n_ceps
    settings.use_energy = True
    settings.energy_floor = 1.0
    computer = knf.OnlineMfcc(settings)
    computer.accept_waveform(RATE, (samples * 32768.0).astype(np.float32))  # Kaldi's features are of 16-bit samples
    computer.input_finished()
    frames = [computer.get_frame(place) for place in range(computer.num_frames_ready)]
    return np.array(frames, dtype=np.float64).reshape(-1, options.n_ceps)


def _deltas(values: Samples) -> Samples:
    """Return the slope of each feature by regression over five frames; the ends are repeated."""
    if not len(values):
        return values
    padded, n = np.pad(values, ((2, 2), (0, 0)), mode="edge"), len(values)
    return (padded[3 : 3 + n] - padded[1 : 1 + n] + 2 * (padded[4 : 4 + n] - padded[:n])) / 10.0
