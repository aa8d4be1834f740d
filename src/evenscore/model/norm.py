"""The score model as one of the norms, under the name ``lgsm``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evenscore.errors import InputError
from evenscore.model.normalizer import ScoreModelNormalizer
from evenscore.model.parameters import ScoreModel
from evenscore.norms.fitting import FittedNorm
from evenscore.progress import Progress, silent
from evenscore.tables import LabelledBlocks, Labels, ScoreBlocks, ScoreMatrix, TrialList
from evenscore.tables.ids import IdsLike, shown

__all__ = ["ScoreModelNorm", "fit_score_model_norm", "prepare_score_model"]


@dataclass(frozen=True, eq=False)
class ScoreModelNorm:
    """A score model that takes the cohort from the blocks that it normalizes."""

    model: ScoreModel

    def normalize(self, blocks: ScoreBlocks) -> ScoreMatrix | TrialList:
        """Return the log-likelihood ratios of the trials, in the form of ``blocks.trials``."""
        return ScoreModelNormalizer(self.model, blocks).normalize(blocks)


def prepare_score_model(
    method: str,
    *,
    model: ScoreModel | None = None,
    cohort: ScoreMatrix | None = None,
    cohort_labels: Labels | None = None,
    cohort_enroll_speakers: IdsLike | None = None,
    cohort_test_speakers: IdsLike | None = None,
    **unknown: Any,
) -> ScoreModelNorm | ScoreModelNormalizer:
    """Return the score model as a norm: prepared for a cohort if one is given, else for any blocks.

    Examples
    --------
    >>> model = ScoreModel(mu=[0, 4], alpha=[[1], [1]], beta=[[1], [1]], sigma2=[1, 1])
    >>> norm = prepare_score_model("lgsm", model=model)
    >>> norm.normalize(ScoreBlocks(ScoreMatrix([[2.0, 3.0]], ["e"], ["t1", "t2"]))).scores.round(3)
    array([[0.   , 1.333]])
    """
    if unknown:
        raise InputError(f"the norm {method!r} knows no option {shown(unknown)}; it takes `model` and the cohort")
    if not isinstance(model, ScoreModel):
        raise InputError(f"the norm {method!r} needs a trained score model; give it as `model`")
    if cohort is None:
        return ScoreModelNorm(model)
    return ScoreModelNormalizer(
        model, cohort, cohort_labels, enroll_speakers=cohort_enroll_speakers, test_speakers=cohort_test_speakers
    )


def fit_score_model_norm(
    method: str, training: Sequence[LabelledBlocks], *, progress: Progress = silent, dim: int = 2, **options: Any
) -> FittedNorm:
    """Train the score model; ``options`` are those of `fit_score_model`."""
    from evenscore.model.fit import fit_score_model

    data = [part.trials if part.labels is None else (part.blocks.trials, part.labels) for part in training]
    result = fit_score_model(data, dim, progress=progress, **options)
    norm = ScoreModelNorm(result.model)
    scores = [norm.normalize(part.blocks) for part in training]
    return FittedNorm(
        method=method, normalizer=norm, training_scores=scores, model=result.model, is_llr=True, notes=result.notes
    )
