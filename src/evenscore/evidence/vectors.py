"""The cohort-evidence model on embeddings: cohort scores are made in pieces, and S_I is never formed."""

from __future__ import annotations

import numpy as np

from evenscore.evidence.model import CohortEvidence
from evenscore.evidence.parts import EvidenceParts
from evenscore.evidence.vector_space import pair_space_of_vectors
from evenscore.progress import Progress, silent
from evenscore.sources.bilinear import Bilinear
from evenscore.sources.cohort_weights import cohort_labels
from evenscore.sources.normalize import BilinearNormalizer
from evenscore.tables import ScoreMatrix, TrialList
from evenscore.tables.ids import Ids, positions
from evenscore.threads import one_thread_if_small

__all__ = ["normalize_vectors", "parts_of_vectors"]

_PIECE_BYTES = 1 << 26  # of cohort scores that are made at a time, or less


def parts_of_vectors(model: CohortEvidence, cohort: Bilinear, speakers: Ids | None) -> EvidenceParts:
    """Prepare a model for a cohort of embeddings that serves both sides.

    Parameters
    ----------
    model
        The trained model.
    cohort
        Scores of the cohort against itself; those of an utterance with itself are left out.
    speakers
        Of the cohort's members; None if they are not known, which leaves less to be said about a trial.
    """
    with one_thread_if_small(cohort.left, cohort.right):
        return _parts(model, cohort, speakers)


def _parts(model: CohortEvidence, cohort: Bilinear, speakers: Ids | None) -> EvidenceParts:
    pattern, head = model.head_for("pair" if speakers is None else "full")
    weights = space = None
    if pattern == "full" and speakers is not None:
        if "score_model" in head.views:
            weights = BilinearNormalizer(model.score_model, cohort, cohort_labels(cohort, speakers)).weights
        if {"b", "w"} & set(head.extras):
            space = pair_space_of_vectors(cohort, speakers, model.ridges.rank)
    return EvidenceParts.of(model, pattern, weights, space)


def normalize_vectors(
    model: CohortEvidence,
    trials: ScoreMatrix | TrialList,
    enroll: Bilinear,
    test: Bilinear,
    cohort: Bilinear,
    speakers: Ids | None,
    *,
    memory: float = 2e9,
    progress: Progress = silent,
) -> ScoreMatrix | TrialList:
    """Return the log-likelihood ratios of trials whose utterances and speakers are not in the cohort.

    Parameters
    ----------
    model
        The trained model.
    trials
        Scored trials.
    enroll, test, cohort
        Scores of enrolments against the cohort, of the cohort against tests, and of the cohort against itself.
    speakers
        Of the cohort's members, if they are known.
    memory
        Bytes that cohort scores may take at a time.
    progress
        Called with ``"cohort scores"`` and the fraction that is made.
    """
    parts = parts_of_vectors(model, cohort, speakers)
    rows = positions(enroll.enroll_ids, trials.enroll_ids, "enrolment", "the embeddings")
    columns = positions(test.test_ids, trials.test_ids, "test", "the embeddings")
    limit = int(min(memory, _PIECE_BYTES)) // 8
    sizes = {"enroll": len(rows), "test": len(columns)}
    found, done = {name: np.empty((size, parts.width)) for name, size in sizes.items()}, 0
    for name, out in found.items():
        step = max(1, limit // max(cohort.shape[name == "enroll"], 1))
        for first in range(0, len(out), step):
            at = slice(first, min(first + step, len(out)))
            if name == "enroll":
                out[at] = parts.enroll_part(enroll.block(rows[at]), at)
            else:
                out[at] = parts.test_part(test.block(slice(None), columns[at]), at)
            done += at.stop - at.start
            progress("cohort scores", done / sum(sizes.values()))
    return parts.apply(trials, found["enroll"], found["test"])
