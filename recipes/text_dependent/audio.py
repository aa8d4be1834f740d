"""Sound from files, as one channel at 16 kHz."""

from __future__ import annotations

import io
import math
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import soundfile

from evenscore import EvenscoreError, FileError

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["RATE", "MissingProgramError", "read_audio", "resampled"]

RATE = 16_000  #: samples per second everywhere in the recipe


class MissingProgramError(EvenscoreError):
    """A file needs a program that is not installed: nothing is wrong with the file, so that it is never skipped."""


def read_audio(path: str | os.PathLike[str]) -> Float[np.ndarray, " n"]:
    """Read a recording of any rate: the mean of its channels, at 16 kHz, between -1 and 1."""
    if not Path(path).is_file():
        raise FileError(path, "there is no such file; check the name")
    try:
        samples, rate, expected = _read(path)
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


def _read(path: str | os.PathLike[str]) -> tuple[Float[np.ndarray, "n channels"], int, int]:
    """Return the samples of a file, their rate, and how many the header promises."""
    packed = Path(path).suffix.lower() == ".sph" and _is_packed(path)
    with soundfile.SoundFile(_unpacked(path) if packed else path) as file:
        return file.read(dtype="float64", always_2d=True), file.samplerate, file.frames


def _is_packed(path: str | os.PathLike[str]) -> bool:
    """Tell whether the header of a SPHERE file, which is text, has a coding such as pcm,embedded-shorten-v2.00."""
    with Path(path).open("rb") as file:
        return b",embedded-" in file.read(1024)


def _unpacked(path: str | os.PathLike[str]) -> io.BytesIO:
    """Return a compressed SPHERE file as wav; libsndfile does not know how, but sph2pipe does."""
    program = shutil.which("sph2pipe")
    if program is None:
        raise MissingProgramError(
            f"{path} is a compressed SPHERE file; install sph2pipe, which unpacks it, or convert it"
        )
    command = [program, "-p", "-f", "wav", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # noqa: S603
        sound, complaint = process.communicate()
    if process.returncode:
        problem = complaint.decode(errors="replace").strip().rpartition("\n")[2]
        raise FileError(path, f"sph2pipe cannot unpack it ({problem}); copy the file again")
    return io.BytesIO(sound)


def resampled(samples: Float[np.ndarray, " n"], rate: int, wanted: int) -> Float[np.ndarray, " m"]:
    """Return the sound at another rate."""
    if rate == wanted:
        return samples
    from scipy.signal import resample_poly  # slow to import, and every process would wait for it

    divisor = math.gcd(rate, wanted)
    return resample_poly(samples, wanted // divisor, rate // divisor)
