"""Scoring with the cohort-evidence model: four blocks of scores in, log-likelihood ratios out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenscore.evidence.features import evidence_features, pattern_of, restricted
from evenscore.evidence.model import CohortEvidence
from evenscore.tables import ScoreBlocks, ScoreMatrix, TrialList

__all__ = ["EvidenceNorm"]

Array = npt.NDArray[np.float64]


class EvidenceNorm:
    """A cohort-evidence model that takes the cohort from the blocks that it normalizes."""

    def __init__(self, model: CohortEvidence) -> None:
        self.model = model

    def normalize(self, blocks: ScoreBlocks) -> ScoreMatrix | TrialList:
        """Return the log-likelihood ratios of the trials, in the form of ``blocks.trials``."""
        pattern, head = self.model.head_for(pattern_of(blocks))
        blocks = restricted(blocks, pattern)
        features = evidence_features(blocks, pattern, self.model.score_model, self.model.scales, self.model.ridges)
        trials = blocks.trials
        assert trials.scores is not None  # noqa: S101
        return trials.with_scores(head.llr(features).astype(trials.scores.dtype))
