"""The cohort-evidence model as one of the norms, under the name ``evidence``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenscore.errors import InputError
from evenscore.evidence.fit import train_evidence
from evenscore.evidence.model import CohortEvidence
from evenscore.evidence.normalizer import EvidenceNorm, EvidenceNormalizer
from evenscore.norms.fitting import FittedNorm
from evenscore.progress import Progress, silent
from evenscore.tables import LabelledBlocks, Labels, ScoreMatrix
from evenscore.tables.ids import IdsLike, shown

__all__ = ["fit_evidence_norm", "prepare_evidence"]


def prepare_evidence(
    method: str,
    *,
    model: CohortEvidence | None = None,
    cohort: ScoreMatrix | None = None,
    cohort_labels: Labels | None = None,
    cohort_enroll_speakers: IdsLike | None = None,
    cohort_test_speakers: IdsLike | None = None,
    **unknown: Any,
) -> EvidenceNorm | EvidenceNormalizer:
    """Return the cohort-evidence model as a norm: prepared for a cohort if one is given, else for any blocks."""
    if unknown:
        raise InputError(f"the norm {method!r} knows no option {shown(unknown)}; it takes `model` and the cohort")
    if not isinstance(model, CohortEvidence):
        raise InputError(f"the norm {method!r} needs a trained cohort-evidence model; give it as `model`")
    if cohort is None:
        return EvidenceNorm(model)
    return EvidenceNormalizer(
        model, cohort, cohort_labels, enroll_speakers=cohort_enroll_speakers, test_speakers=cohort_test_speakers
    )


def fit_evidence_norm(
    method: str, training: Sequence[LabelledBlocks], *, progress: Progress = silent, **options: Any
) -> FittedNorm:
    """Train the cohort-evidence model; ``options`` are those of `fit_evidence`."""
    fit = train_evidence(training, progress=progress, **options)
    return FittedNorm(
        method=method,
        normalizer=EvidenceNorm(fit.model),
        training_scores=fit.scores,
        model=fit.model,
        is_llr=True,
        notes=tuple(fit.model.report.lines()),
    )
