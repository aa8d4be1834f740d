"""The cohort-evidence model: everything that the cohort scores say about a trial, weighed into one LLR."""

from evenscore.evidence.contributions import Contributions, contributions
from evenscore.evidence.features import evidence_features, predicted_shifts
from evenscore.evidence.fit import fit_evidence
from evenscore.evidence.head import EvidenceHead, Penalties
from evenscore.evidence.model import CohortEvidence, TrainingReport
from evenscore.evidence.moments import ScalePrior, shrunk_log_scale, trial_moments
from evenscore.evidence.normalizer import EvidenceNormalizer
from evenscore.evidence.own_pairs import Ridges
from evenscore.evidence.pair_space import (
    PairSpace,
    impostor_prediction,
    pair_space,
    within_speaker_part,
)
from evenscore.evidence.training_sample import sampled_own_cohort
from evenscore.evidence.vector_space import pair_space_of_vectors
from evenscore.evidence.vectors import normalize_vectors, parts_of_vectors

__all__ = [
    "CohortEvidence",
    "Contributions",
    "EvidenceHead",
    "EvidenceNormalizer",
    "PairSpace",
    "Penalties",
    "Ridges",
    "ScalePrior",
    "TrainingReport",
    "contributions",
    "evidence_features",
    "fit_evidence",
    "impostor_prediction",
    "normalize_vectors",
    "pair_space",
    "pair_space_of_vectors",
    "parts_of_vectors",
    "predicted_shifts",
    "sampled_own_cohort",
    "shrunk_log_scale",
    "trial_moments",
    "within_speaker_part",
]
