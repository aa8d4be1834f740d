"""The cohort-evidence model: everything that the cohort scores say about a trial, weighed into one LLR."""

from evenscore.evidence.features import evidence_features, predicted_shifts
from evenscore.evidence.fit import fit_evidence
from evenscore.evidence.head import EvidenceHead
from evenscore.evidence.model import CohortEvidence, TrainingReport
from evenscore.evidence.normalizer import EvidenceNorm

__all__ = [
    "CohortEvidence",
    "EvidenceHead",
    "EvidenceNorm",
    "TrainingReport",
    "evidence_features",
    "fit_evidence",
    "predicted_shifts",
]
