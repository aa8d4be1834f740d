"""Numbers that no system gives: huge, tiny, equal, far from 0; every method works with them, or says what is wrong."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from evenscore import Embeddings, LabelledBlocks, Labels, ScoreMatrix, evaluate, fit_norm
from evenscore.calibrate.registry import CALIBRATIONS
from evenscore.norms import METHODS
from evenscore.scoring import score_embeddings

__all__ = ["use_odd_numbers"]

SCALES = (0.0, 1e-320, 1e-300, 1e-160, 1e-30, 1e-8, 1.0, 1e8, 1e30, 1e100, 1e150, 1e154, 1e160, 1e300)
SPEAKERS = [f"s{n % 6}" for n in range(12)]


def odd_scores(rng: random.Random, shape: tuple[int, int]) -> np.ndarray:
    """Return scores of one scale around another number, some of them of another scale."""
    random_numbers = np.random.default_rng(rng.randrange(1 << 32))
    scores = random_numbers.normal(size=shape) * rng.choice(SCALES) + rng.choice((0.0, 0.0, 1.0, -1.0)) * rng.choice(
        SCALES
    )
    if rng.random() < 0.4:
        scores[random_numbers.integers(shape[0]), random_numbers.integers(shape[1])] = rng.choice(SCALES)
    if rng.random() < 0.2:
        scores = np.round(scores)
    return scores.astype(rng.choice((np.float32, np.float64)))


def use_odd_numbers(rng: random.Random, folder: Path) -> None:
    """Train and use a norm and a calibration on odd scores, and evaluate what comes out."""
    with np.errstate(over="ignore"):  # casting to float32 is ours
        scores = odd_scores(rng, (6, 12))
    if rng.random() < 0.15:
        with np.errstate(over="ignore"):
            vectors = odd_scores(rng, (12, 4))
        one = Embeddings([f"e{n}" for n in range(12)], vectors, SPEAKERS)
        score_embeddings(
            one, one, cohort=Embeddings([f"c{n}" for n in range(12)], vectors[::-1].copy(), SPEAKERS), method="as"
        )
        return
    matrix = ScoreMatrix(scores, [f"e{n}" for n in range(6)], [f"t{n}" for n in range(12)])
    labels = Labels.from_speakers(SPEAKERS[:6], SPEAKERS, enroll_ids=matrix.enroll_ids, test_ids=matrix.test_ids)
    part = LabelledBlocks.own_cohort(matrix, labels)
    method = rng.choice(sorted(METHODS))
    options = {"max_iter": 20} if method == "lgsm" else {}
    normalized = fit_norm(method, [part], **options).normalizer.normalize(part.blocks)
    trials = part.labelled(normalized)
    evaluate(trials)
    calibration = CALIBRATIONS[rng.choice(sorted(CALIBRATIONS))]
    known = () if calibration.kind == "unsupervised" else (trials.labels,)
    calibration.fit(trials.scores, *known)(trials.scores)
