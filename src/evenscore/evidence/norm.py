"""The cohort-evidence model as one of the norms, under the name ``evidence``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenscore.errors import InputError
from evenscore.evidence.fit import train_evidence
from evenscore.evidence.model import CohortEvidence
from evenscore.evidence.normalizer import EvidenceNormalizer
from evenscore.norms.fitting import FittedNorm
from evenscore.norms.model_norm import ModelNorm, prepare_model
from evenscore.norms.registry import refuse_unknown_options
from evenscore.progress import Progress, silent
from evenscore.tables import LabelledBlocks, ScoreBlocks

__all__ = ["fit_evidence_norm", "prepare_evidence"]


def prepare_evidence(method: str, **options: Any) -> Any:
    """Return the cohort-evidence model as a norm, see `prepare_model`."""
    return prepare_model(method, CohortEvidence, EvidenceNormalizer, _parts, **options)


def _parts(norm: ModelNorm, blocks: ScoreBlocks, how: Any) -> Any:
    return EvidenceNormalizer(norm.model).parts(blocks, how)


def fit_evidence_norm(
    method: str, training: Sequence[LabelledBlocks], *, client: Any = None, progress: Progress = silent, **options: Any
) -> FittedNorm:
    """Train the cohort-evidence model; ``options`` are those of `fit_evidence`."""
    if not all(part.is_in_memory for part in training):
        raise InputError("it is trained on scores in memory, but the training side is too large; give a smaller one")
    refuse_unknown_options(method, train_evidence, options)
    fit = train_evidence(training, progress=progress, **options)
    return FittedNorm(
        method=method,
        normalizer=ModelNorm(fit.model, EvidenceNormalizer, _parts),
        training_scores=fit.scores,  # of heads that have not met the trials' speakers
        model=fit.model,
        is_llr=True,
        notes=tuple(fit.model.report.lines()),
    )
