"""Embeddings of a cohort and of trials, and models trained on others, for verifiers."""

import functools

import numpy as np

from evenscore import (
    Cosine,
    DotProduct,
    Embeddings,
    LabelledBlocks,
    LogisticCalibration,
    ScoreModel,
    fit_evidence,
    fit_norm,
    fit_plda,
    labels_for,
    score_embeddings,
)
from evenscore.scoring import Transformed, fit_transform


def made(prefix, n_speakers, takes, seed, dtype=np.float64):
    rng = np.random.default_rng(seed)
    centers = np.repeat(rng.normal(size=(n_speakers, 6)), takes, axis=0)
    speakers = [f"{prefix}s{n // takes}" for n in range(len(centers))]
    vectors = (centers + 0.7 * rng.normal(size=centers.shape)).astype(dtype)
    return Embeddings([f"{prefix}{n}" for n in range(len(centers))], vectors, speakers)


COHORT, ENROLLED, TESTED = made("c", 12, 3, seed=1), made("e", 4, 1, seed=2), made("t", 5, 1, seed=3)
CALIBRATION = LogisticCalibration(weights=[1.7], quality_weights=[], offset=-2.5)
SIMPLE = ScoreModel(mu=[0.0, 0.6], alpha=[[0.1], [0.1]], beta=[[0.05], [0.05]], sigma2=[0.1, 0.05])


@functools.cache
def scorers():
    return {
        "cosine": Cosine(mean=COHORT.vectors.mean(axis=0)),
        "dot": DotProduct(),
        "plda": fit_plda(COHORT).model,
        "transformed": Transformed(fit_transform(COHORT, ["center", "lda:4"], shrinkage=0.1).transform),
    }


@functools.cache
def trained(method):
    """Return a model that was trained on the cohort, with its cosines."""
    scores = score_embeddings(COHORT, COHORT, scorer=scorers()["cosine"])
    dev = LabelledBlocks.own_cohort(scores, labels_for(scores))
    return fit_evidence([dev]) if method == "evidence" else fit_norm("lgsm", [dev], dim=1).model
