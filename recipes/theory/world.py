"""Embeddings of people who never lived: drawn from a two-covariance PLDA whose parameters are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore import PLDA, Embeddings, InputError, LabelledBlocks, Labels, score_blocks

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["DIM", "Recordings", "Sizes", "draw_embeddings", "draw_recordings", "draw_truth", "labelled_scores"]

DIM = 20  #: components of an embedding
_BETWEEN = (4.0, 1.0)  # largest and smallest variance of the speakers
_WITHIN = (4.0, 0.5)  # and of the recordings of one speaker
_DEVELOPMENT, _EVALUATION = 3, 4  # recordings of a speaker, the first of which is the enrolment


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How many speakers there are.

    Attributes
    ----------
    development
        Speakers of the development set: cohort, training set of the score model and of the calibration.
    evaluation
        Speakers of the trials.
    """

    development: int = 100
    evaluation: int = 150


@dataclass(frozen=True, eq=False)
class Recordings:
    """Embeddings of the development and of the evaluation speakers of one session."""

    dev_enroll: Embeddings
    dev_test: Embeddings
    eval_enroll: Embeddings
    eval_test: Embeddings


def draw_truth(seed: int) -> PLDA:
    """Draw the parameters Theta: a mean, and two covariances whose axes do not agree.

    Examples
    --------
    >>> np.linalg.eigvalsh(draw_truth(0).within).round(1)[[0, -1]]
    array([0.5, 4. ])
    """
    rng = np.random.default_rng((seed, 0))
    between, within = (
        (axes * np.geomspace(*ends, DIM)) @ axes.T
        for ends, axes in ((ends, _rotation(rng)) for ends in (_BETWEEN, _WITHIN))
    )
    return PLDA(mean=rng.normal(size=DIM), between=between, within=within)


def draw_embeddings(
    truth: PLDA, speakers: Sequence[str], each: int, seed: Sequence[int], *, name: str = "u"
) -> Embeddings:
    """Draw recordings of new speakers.

    The same seed draws the same random numbers, which other parameters stretch and shift, so that two worlds differ
    by their parameters only.

    Parameters
    ----------
    truth
        The parameters.
    speakers
        Their names.
    each
        Recordings of each speaker.
    seed
        Of the random numbers.
    name
        What the ids of the recordings begin with.

    Examples
    --------
    >>> draw_embeddings(draw_truth(0), ["ann", "bob"], 3, [0])
    Embeddings(6 x 20, float64, 2 speakers)
    """
    rng = np.random.default_rng(seed)
    voices = truth.mean + rng.normal(size=(len(speakers), DIM)) @ _root(truth.between)
    noise = rng.normal(size=(len(speakers) * each, DIM)) @ _root(truth.within)
    ids = [f"{name}{place}" for place in range(len(noise))]
    return Embeddings(ids, np.repeat(voices, each, axis=0) + noise, np.repeat(np.array(speakers, object), each))


def draw_recordings(development: PLDA, evaluation: PLDA, sizes: Sizes, seed: int, session: int = 0) -> Recordings:
    """Draw the development and the evaluation set of one session; no speaker is in two sets or two sessions.

    Examples
    --------
    >>> truth = draw_truth(0)
    >>> recordings = draw_recordings(truth, truth, Sizes(development=10, evaluation=5), seed=0)
    >>> len(recordings.dev_enroll), len(recordings.dev_test), len(recordings.eval_test)
    (10, 20, 15)
    """
    sides = []
    for part, (truth, count, each) in enumerate(
        ((development, sizes.development, _DEVELOPMENT), (evaluation, sizes.evaluation, _EVALUATION))
    ):
        group = f"{'de'[part]}{session}"
        speakers = [f"{group}s{place}" for place in range(count)]
        drawn = draw_embeddings(truth, speakers, each, (seed, 1, session, part), name=f"{group}u")
        first = np.arange(len(drawn)) % each == 0
        sides += [drawn.take(first), drawn.take(~first)]
    return Recordings(*sides)


def labelled_scores(scorer: Any, recordings: Recordings) -> tuple[LabelledBlocks, LabelledBlocks]:
    """Score the development set against itself, and the trials with the development set as their cohort.

    Examples
    --------
    >>> truth = draw_truth(0)
    >>> recordings = draw_recordings(truth, truth, Sizes(development=10, evaluation=5), seed=0)
    >>> training, evaluation = labelled_scores(truth, recordings)
    >>> evaluation.blocks
    ScoreBlocks(trials 5 x 15, enroll 5 x 20, test 10 x 15, cohort 10 x 20, speakers of ...)
    """
    dev = (recordings.dev_enroll, recordings.dev_test)
    trials = (recordings.eval_enroll, recordings.eval_test)
    training = LabelledBlocks.own_cohort(scorer.score(*dev).in_memory(), _labels(*dev))
    return training, LabelledBlocks(score_blocks(scorer, *trials, *dev), _labels(*trials))


def _labels(enroll: Embeddings, test: Embeddings) -> Labels:
    if enroll.speakers is None or test.speakers is None:
        raise InputError("the embeddings have no speakers; give them with Embeddings.with_speakers")
    return Labels.from_speakers(enroll.speakers, test.speakers, enroll_ids=enroll.ids, test_ids=test.ids)


def _rotation(rng: np.random.Generator) -> Float[np.ndarray, "d d"]:
    return np.asarray(np.linalg.qr(rng.normal(size=(DIM, DIM)))[0])


def _root(covariance: npt.NDArray[np.float64]) -> Float[np.ndarray, "d d"]:
    """Return the symmetric root, which changes little when the covariance does."""
    values, axes = np.linalg.eigh(covariance)
    return np.asarray((axes * np.sqrt(np.maximum(values, 0.0))) @ axes.T)
