"""Cepstral features: MFCC with deltas of the frames that hold speech, normalized per recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import kaldi_native_fbank as knf
import numpy as np

from evenscore import InputError
from recipes.text_dependent.audio import RATE

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

__all__ = ["FeatureOptions", "NoSpeechError", "deltas", "features", "mfcc", "normalized", "speech_frames"]

_FRAME = 400  # samples in 25 ms
_SCALE = 32768.0  # Kaldi's features are of 16-bit samples
_SILENT = np.log(_FRAME * 1.0)  # log energy of a frame whose samples are as small as the last of 16 bits
_HALF_WINDOW = 2  # frames to each side in the regression of deltas


class NoSpeechError(InputError):
    """A recording without enough frames of speech."""


@dataclass(frozen=True, kw_only=True)
class FeatureOptions:
    """How recordings become frames of features; the defaults were chosen on development speakers of AudioMNIST.

    Examples
    --------
    >>> FeatureOptions().dimension
    40
    """

    n_ceps: int = 20  #: cepstral coefficients, of which the first is the log energy
    n_mels: int = 26  #: bands of the mel filter bank
    low_hz: float = 20.0  #: where the lowest band begins
    high_hz: float = 7600.0  #: where the highest band ends
    delta_orders: int = 1  #: 0 (none), 1 (deltas), 2 (and their deltas)
    speech_db: float = 40.0  #: frames that are further below the loudest one are no speech
    normalize: Literal["none", "mean", "mean-variance"] = "mean"  #: over the speech of a recording
    min_frames: int = 10  #: a recording with fewer frames of speech is refused

    def __post_init__(self) -> None:
        if not 1 < self.n_ceps <= self.n_mels:
            raise InputError(f"n_ceps is {self.n_ceps}, but must be from 2 to n_mels = {self.n_mels}")
        if not 0 <= self.low_hz < self.high_hz <= RATE / 2:
            raise InputError(f"bands from {self.low_hz} to {self.high_hz} Hz do not fit into 0 to {RATE // 2} Hz")
        if self.delta_orders not in (0, 1, 2):
            raise InputError(f"delta_orders is {self.delta_orders}, but must be 0, 1 or 2")
        if self.normalize not in ("none", "mean", "mean-variance"):
            raise InputError(f"normalize is {self.normalize!r}, but must be none, mean or mean-variance")
        if self.min_frames < 1 or self.speech_db <= 0:
            raise InputError("min_frames and speech_db must be positive")

    @property
    def dimension(self) -> int:
        """Number of features of a frame."""
        return self.n_ceps * (1 + self.delta_orders)


def features(samples: Float[np.ndarray, " n"], options: FeatureOptions) -> Float[np.ndarray, "frames dim"]:
    """Return the features of the frames with speech of a recording at 16 kHz."""
    cepstra = mfcc(samples, options)
    orders = [cepstra]
    for _ in range(options.delta_orders):
        orders.append(deltas(orders[-1]))
    speech = speech_frames(cepstra[:, 0], options.speech_db)
    found = int(np.count_nonzero(speech))
    if found < options.min_frames:
        raise NoSpeechError(
            f"there are {found} frames of speech in it, but at least {options.min_frames} are needed; leave it out"
        )
    return normalized(np.hstack(orders)[speech], options.normalize).astype(np.float32)


def mfcc(samples: Float[np.ndarray, " n"], options: FeatureOptions) -> Float[np.ndarray, "frames ceps"]:
    """Return Kaldi's MFCC, 100 frames a second, without dither; the first coefficient is the log energy."""
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
    computer.accept_waveform(RATE, (samples * _SCALE).astype(np.float32))
    computer.input_finished()
    frames = [computer.get_frame(place) for place in range(computer.num_frames_ready)]
    return np.array(frames, dtype=np.float64).reshape(-1, options.n_ceps)


def deltas(values: Float[np.ndarray, "frames dim"]) -> Float[np.ndarray, "frames dim"]:
    """Return the slope of each feature by regression over five frames; the ends are repeated."""
    padded = np.pad(values, ((_HALF_WINDOW, _HALF_WINDOW), (0, 0)), mode="edge") if len(values) else values
    steps = range(1, _HALF_WINDOW + 1)
    slope = np.zeros_like(values)
    for step in steps:
        ahead = padded[_HALF_WINDOW + step : _HALF_WINDOW + step + len(values)]
        behind = padded[_HALF_WINDOW - step : _HALF_WINDOW - step + len(values)]
        slope += step * (ahead - behind)
    return slope / (2 * sum(step * step for step in steps))


def speech_frames(log_energy: Float[np.ndarray, " frames"], speech_db: float) -> Bool[np.ndarray, " frames"]:
    """Tell which frames are loud: near the loudest one, and louder than the noise of 16-bit samples."""
    if not len(log_energy):
        return np.zeros(0, dtype=bool)
    threshold = max(log_energy.max() - speech_db * np.log(10.0) / 10.0, _SILENT)
    return log_energy > threshold


def normalized(frames: Float[np.ndarray, "frames dim"], how: str) -> Float[np.ndarray, "frames dim"]:
    """Take the mean off each feature and, if wished, bring its variance to one; a constant feature becomes zero."""
    if how == "none":
        return frames
    frames = frames - frames.mean(axis=0)
    if how == "mean-variance":
        deviation = frames.std(axis=0)
        frames = frames / np.where(deviation > 1e-10, deviation, 1.0)
    return frames
