"""Sound from files, as one channel at 16 kHz."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import soundfile

from evenscore import FileError

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["RATE", "read_audio", "resampled"]

RATE = 16_000  #: samples per second everywhere in the recipe


def read_audio(path: str | os.PathLike[str]) -> Float[np.ndarray, " n"]:
    """Read a recording of any rate: the mean of its channels, at 16 kHz, between -1 and 1."""
    if not Path(path).is_file():
        raise FileError(path, "there is no such file; check the name")
    try:
        with soundfile.SoundFile(path) as file:
            expected, rate = file.frames, file.samplerate
            samples = file.read(dtype="float64", always_2d=True)
    except (soundfile.LibsndfileError, RuntimeError) as error:
        problem = str(error).removeprefix(f"Error opening {str(path)!r}: ").strip().rstrip(".")
        raise FileError(path, f"it cannot be read as audio ({problem}); convert it to wav or flac") from None
    if len(samples) < expected:
        raise FileError(path, f"it is cut off after {len(samples)} of {expected} samples; copy the file again")
    if not len(samples):
        raise FileError(path, "there is no sound in it; record it again")
    if not np.isfinite(samples).all():
        raise FileError(path, "some samples are not finite; convert it again")
    return resampled(samples.mean(axis=1), rate, RATE)


def resampled(samples: Float[np.ndarray, " n"], rate: int, wanted: int) -> Float[np.ndarray, " m"]:
    """Return the sound at another rate."""
    if rate == wanted:
        return samples
    from scipy.signal import resample_poly  # slow to import, and every process would wait for it

    divisor = math.gcd(rate, wanted)
    return resample_poly(samples, wanted // divisor, rate // divisor)
