"""The recognizer: background model, eigenchannels, relevance-MAP enrolment and linear scoring.

In the units of `Statistics` the score of a test against an enrolled speaker is (Glembek et al., 2009)

    s = sum_c z_c' (f_c - n_c U_c x) / sum_c n_c                      (L1)

with z the speaker's MAP offset for the phrase, and x the channel factors of the test under the background model: the
first-order approximation of the log-likelihood ratio of a frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenscore import InputError
from evenscore.progress import silent
from recipes.text_dependent.eigenchannels import (
    channel_factors,
    class_offsets,
    compensated,
    fit_eigenchannels,
)
from recipes.text_dependent.features import FeatureOptions
from recipes.text_dependent.recordings import Progress, Recording
from recipes.text_dependent.statistics import Statistics, baum_welch
from recipes.text_dependent.ubm import DiagonalMixture, fit_mixture

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Recognizer", "RecognizerOptions", "enrolled", "linear_scores", "probe_vectors", "train_recognizer"]

Frames = dict[Recording, npt.NDArray[np.float32]]

#: Sets of speakers that may train a recognizer; evaluation speakers must be new to it.
TRAIN_SETS = (("background",), ("background", "development"))


@dataclass(frozen=True, kw_only=True)
class RecognizerOptions:
    """All settings of the recognizer; the defaults were chosen on development speakers of AudioMNIST.

    Examples
    --------
    >>> RecognizerOptions(n_gaussians=64).rank
    40
    """

    features: FeatureOptions = field(default_factory=FeatureOptions)
    n_gaussians: int = 128  #: of the background model
    max_frames: int = 400_000  #: the background model is trained on so many frames at most, drawn at random
    rank: int = 40  #: number of eigenchannels, 0 for none
    relevance: float = 8.0  #: relevance factor of MAP: frames that count as much as the background model
    gender_dependent: bool = False  #: a recognizer for each gender, with trials within it
    train_sets: tuple[str, ...] = ("background",)  #: whose speech trains it; the paper took "development", too
    seed: int = 0  #: of what is drawn at random

    def __post_init__(self) -> None:
        for name, least in {"n_gaussians": 1, "max_frames": 1, "rank": 0}.items():
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}, but must be at least {least}")
        if not self.relevance > 0:
            raise InputError(f"relevance is {self.relevance}, but must be positive")
        if self.train_sets not in TRAIN_SETS:
            choices = " or ".join(",".join(sets) for sets in TRAIN_SETS)
            raise InputError(f"train_sets is {','.join(self.train_sets)!r}, but must be {choices}")


@dataclass(frozen=True, eq=False)
class Recognizer:
    """What is learnt from the speech of the training sets."""

    mixture: DiagonalMixture
    eigenchannels: Float[np.ndarray, "c d rank"]
    options: RecognizerOptions

    def statistics(self, frames: Sequence[npt.NDArray[np.float32]]) -> Statistics:
        """Return the statistics of recordings."""
        return baum_welch(self.mixture, frames)


def train_recognizer(
    frames: Frames, options: RecognizerOptions | None = None, *, progress: Progress = silent
) -> Recognizer:
    """Train the background model and the eigenchannels on the features of recordings.

    Parameters
    ----------
    frames
        Features of each recording.
    options
        All settings.
    progress
        Called with a stage name and the fraction done.
    """
    options = options or RecognizerOptions()
    if not frames:
        raise InputError("there are no recordings to train on")
    recordings = sorted(frames)
    stacked = _drawn(np.concatenate([frames[recording] for recording in recordings]), options)
    mixture = fit_mixture(stacked, options.n_gaussians, progress=progress)
    _, classes = np.unique([recording.model for recording in recordings], return_inverse=True)
    statistics = baum_welch(mixture, [frames[recording] for recording in recordings])
    eigenchannels = fit_eigenchannels(statistics, classes, options.rank, relevance=options.relevance, progress=progress)
    return Recognizer(mixture, eigenchannels, options)


def _drawn(frames: npt.NDArray[np.float32], options: RecognizerOptions) -> npt.NDArray[np.float32]:
    """Return the frames, or as many of them at random as are wanted at most."""
    if len(frames) <= options.max_frames:
        return frames
    chosen = np.random.default_rng(options.seed).choice(len(frames), options.max_frames, replace=False)
    return frames[np.sort(chosen)]


def enrolled(
    recognizer: Recognizer, statistics: Statistics, models: npt.NDArray[np.intp], count: int
) -> Float[np.ndarray, "models size"]:
    """Return the offset of each enrolment from the statistics of its recordings, as a row.

    The channel of each recording, under the background model, is taken off first.

    Parameters
    ----------
    statistics
        Of the enrolment recordings.
    models
        For each recording the number of its enrolment.
    count
        Number of enrolments; each has a recording.
    """
    without = _without_channel(recognizer, statistics)
    return class_offsets(without, models, count, recognizer.options.relevance).reshape(count, -1)


def probe_vectors(recognizer: Recognizer, statistics: Statistics) -> Float[np.ndarray, "tests size"]:
    """Return the statistics of each test without its channel, for one frame, as a row."""
    without = _without_channel(recognizer, statistics)
    return (without.f / without.n.sum(axis=1)[:, None, None]).reshape(len(without), -1)


def _without_channel(recognizer: Recognizer, statistics: Statistics) -> Statistics:
    if not recognizer.options.rank:
        return statistics
    factors, _ = channel_factors(statistics, recognizer.eigenchannels)
    return compensated(statistics, recognizer.eigenchannels, factors)


def linear_scores(
    models: Float[np.ndarray, "models size"], tests: Float[np.ndarray, "tests size"]
) -> Float[np.ndarray, "models tests"]:
    """Return the score of every enrolment against every test (L1)."""
    return (models @ tests.T).astype(np.float64)
