"""The cohort-evidence model prepared for a cohort of embeddings, whose scores against itself are never formed."""

from __future__ import annotations

from evenscore.evidence.model import CohortEvidence
from evenscore.evidence.parts import EvidenceParts
from evenscore.evidence.vector_space import pair_space_of_vectors
from evenscore.model.bilinear_cohort import cohort_labels
from evenscore.model.bilinear_normalizer import BilinearNormalizer
from evenscore.sources.bilinear import Bilinear
from evenscore.tables.ids import Ids
from evenscore.threads import one_thread_if_small

__all__ = ["parts_of_vectors"]


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
