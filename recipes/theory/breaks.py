"""Ways to break the assumptions under which the raw score is all that one needs, each by more and more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore import PLDA, Cosine, InputError, LabelledBlocks, fit_plda
from recipes.theory.world import (
    DIM,
    Recordings,
    Sizes,
    draw_embeddings,
    draw_recordings,
    draw_truth,
    labelled_scores,
)

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["BREAKS", "Break", "ScoredWorld", "break_named"]

_SESSIONS = 5
_TRAINING_EACH = 4  # recordings of each speaker that PLDA is trained on


@dataclass(frozen=True, eq=False)
class ScoredWorld:
    """Scores of a world, one of each per session.

    Attributes
    ----------
    training
        The development set, its own cohort.
    evaluation
        The trials, with the development set as cohort.
    oracle
        The trials scored by who knows the true parameters: what there is to win back.
    """

    training: Sequence[LabelledBlocks]
    evaluation: Sequence[LabelledBlocks]
    oracle: Sequence[LabelledBlocks]


@dataclass(frozen=True, eq=False)
class Break:
    """An assumption and how far from it we go.

    Attributes
    ----------
    name
        For the command line and for files.
    assumption
        What is broken, in a few words.
    scale
        What ``levels`` count.
    levels
        Names of the levels, from ideal to most broken.
    make
        Returns the scores, called as ``make(level, sizes, seed)`` with the number of the level.
    ideal
        Name of the break that has the same first level.
    """

    name: str
    assumption: str
    scale: str
    levels: tuple[str, ...]
    make: Callable[[int, Sizes, int], ScoredWorld]
    ideal: str = "approximation"


def break_named(name: str) -> Break:
    """Return the break of this name.

    Examples
    --------
    >>> break_named("scaled-noise").levels
    ('1', '1.5', '2', '3', '4')
    """
    if name not in BREAKS:
        raise InputError(f"there is no break {name!r}; there are {', '.join(BREAKS)}")
    return BREAKS[name]


def _approximation(level: int, sizes: Sizes, seed: int) -> ScoredWorld:
    truth = draw_truth(seed)
    between, within = truth.between, truth.within
    equal = np.eye(DIM) / DIM
    scorers: list[Any] = [
        truth,
        PLDA(mean=truth.mean, between=np.diag(np.diag(between)), within=np.diag(np.diag(within))),
        PLDA(mean=truth.mean, between=np.trace(between) * equal, within=np.trace(within) * equal),
        Cosine(mean=truth.mean),
        Cosine(),
    ]
    return _scored(scorers[level], truth, draw_recordings(truth, truth, sizes, seed))


_TRAINING_SPEAKERS = (0, 400, 100, 50, 30)  # 0: the true parameters


def _little_data(level: int, sizes: Sizes, seed: int) -> ScoredWorld:
    truth = draw_truth(seed)
    recognizer = truth
    if count := _TRAINING_SPEAKERS[level]:
        # Speakers come one after the other from the same stream: fewer of them are the first ones.
        everybody = [f"b{place}" for place in range(max(_TRAINING_SPEAKERS))]
        drawn = draw_embeddings(truth, everybody, _TRAINING_EACH, (seed, 2), name="bu")
        recognizer = fit_plda(drawn.take(np.arange(count * _TRAINING_EACH)), length_normalize=False, shrinkage=0).model
    return _scored(recognizer, truth, draw_recordings(truth, truth, sizes, seed))


_NOISE = (1.0, 1.5, 2.0, 3.0, 4.0)


def _scaled_noise(level: int, sizes: Sizes, seed: int) -> ScoredWorld:
    truth = draw_truth(seed)
    actual = PLDA(mean=truth.mean, between=truth.between, within=truth.within * _NOISE[level])
    return _scored(truth, actual, draw_recordings(actual, actual, sizes, seed))


_DEGREES = (0, 10, 20, 30, 45)


def _rotated_noise(level: int, sizes: Sizes, seed: int) -> ScoredWorld:
    truth = draw_truth(seed)
    turn = _turn(truth.within, np.radians(_DEGREES[level]))
    actual = PLDA(mean=truth.mean, between=truth.between, within=turn @ truth.within @ turn.T)
    return _scored(truth, actual, draw_recordings(actual, actual, sizes, seed))


def _turn(covariance: Float[np.ndarray, "d d"], angle: float) -> Float[np.ndarray, "d d"]:
    """Return the rotation of the axis with the largest variance towards that with the smallest, and so on inwards."""
    axes = np.linalg.eigh(covariance)[1]
    turn = np.cos(angle) * np.eye(DIM)
    for place in range(DIM // 2):
        other = DIM - 1 - place
        turn[place, other], turn[other, place] = -np.sin(angle), np.sin(angle)
    return np.asarray(axes @ turn @ axes.T)


_SHIFTS = (0.0, 0.5, 1.0, 1.5, 2.0)  # in average standard deviations within a speaker


_SMALL_SHIFTS = (0.0, 0.25, 0.5, 0.75, 1.0)


def _session_shift(level: int, sizes: Sizes, seed: int) -> ScoredWorld:
    return _shifted(_SHIFTS[level], sizes, seed, cohort_elsewhere=False)


def _other_session(level: int, sizes: Sizes, seed: int) -> ScoredWorld:
    return _shifted(_SMALL_SHIFTS[level], sizes, seed, cohort_elsewhere=True)


def _shifted(shift: float, sizes: Sizes, seed: int, *, cohort_elsewhere: bool) -> ScoredWorld:
    truth = draw_truth(seed)
    unit = shift * np.sqrt(np.trace(truth.within) / DIM)
    trials_at, elsewhere = unit * np.random.default_rng((seed, 3)).normal(size=(2, _SESSIONS, DIM))
    cohort_at = elsewhere if cohort_elsewhere else trials_at
    small = Sizes(development=-(-sizes.development // 2), evaluation=-(-sizes.evaluation // 3))
    parts = []
    for session in range(_SESSIONS):
        cohort, trials = (_moved(truth, offsets[session]) for offsets in (cohort_at, trials_at))
        parts.append(_scored(truth, trials, draw_recordings(cohort, trials, small, seed, session)))
    return ScoredWorld(
        training=[part.training[0] for part in parts],
        evaluation=[part.evaluation[0] for part in parts],
        oracle=[part.oracle[0] for part in parts],
    )


def _moved(truth: PLDA, offset: Float[np.ndarray, " d"]) -> PLDA:
    return PLDA(mean=truth.mean + offset, between=truth.between, within=truth.within)


def _scored(recognizer: Any, actual: PLDA, recordings: Recordings) -> ScoredWorld:
    training, evaluation = labelled_scores(recognizer, recordings)
    return ScoredWorld([training], [evaluation], [labelled_scores(actual, recordings)[1]])


#: All breaks by name.
BREAKS = {
    found.name: found
    for found in (
        Break(
            "approximation",
            "approximate scoring",
            "scoring rule",
            ("exact LLR", "diagonal covariances", "equal variances", "cosine", "cosine, not centred"),
            _approximation,
        ),
        Break(
            "little-data",
            "too little training data",
            "speakers that PLDA is trained on",
            ("true parameters", *(str(count) for count in _TRAINING_SPEAKERS[1:])),
            _little_data,
        ),
        Break(
            "scaled-noise",
            "mismatched covariance: larger",
            "factor on the within-speaker covariance",
            tuple(f"{factor:g}" for factor in _NOISE),
            _scaled_noise,
        ),
        Break(
            "rotated-noise",
            "mismatched covariance: rotated",
            "degrees by which its axes turn",
            tuple(str(angle) for angle in _DEGREES),
            _rotated_noise,
        ),
        Break(
            "session-shift",
            "mean shifted per session, cohort of the same session",
            "size of the shift",
            tuple(f"{shift:g}" for shift in _SHIFTS),
            _session_shift,
            "session-shift",
        ),
        Break(
            "other-session",
            "mean shifted per session, cohort of other sessions",
            "size of the shift",
            tuple(f"{shift:g}" for shift in _SMALL_SHIFTS),
            _other_session,
            "session-shift",
        ),
    )
}
