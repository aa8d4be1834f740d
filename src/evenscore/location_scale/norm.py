"""The location-scale score model as one of the norms, under the name ``lssm``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evenscore.errors import InputError
from evenscore.location_scale.normalizer import LocationScaleNormalizer
from evenscore.location_scale.parameters import LocationScaleModel
from evenscore.norms.fitting import FittedNorm
from evenscore.progress import Progress, silent
from evenscore.tables import LabelledBlocks, Labels, ScoreBlocks, ScoreMatrix, TrialList
from evenscore.tables.ids import IdsLike, shown

__all__ = ["LocationScaleNorm", "fit_location_scale_norm", "prepare_location_scale"]


@dataclass(frozen=True, eq=False)
class LocationScaleNorm:
    """A location-scale model that takes the cohort from the blocks that it normalizes."""

    model: LocationScaleModel

    def normalize(self, blocks: ScoreBlocks) -> ScoreMatrix | TrialList:
        """Return the log-likelihood ratios of the trials, in the form of ``blocks.trials``."""
        return LocationScaleNormalizer(self.model, blocks).normalize(blocks)


def prepare_location_scale(
    method: str,
    *,
    model: LocationScaleModel | None = None,
    cohort: ScoreMatrix | None = None,
    cohort_labels: Labels | None = None,
    cohort_enroll_speakers: IdsLike | None = None,
    cohort_test_speakers: IdsLike | None = None,
    **unknown: Any,
) -> LocationScaleNorm | LocationScaleNormalizer:
    """Return the location-scale model as a norm: prepared for a cohort if one is given, else for any blocks.

    Examples
    --------
    >>> from evenscore import ScoreModel
    >>> location = ScoreModel(mu=[0, 4], alpha=[[1], [1]], beta=[[1], [1]], sigma2=[1, 1])
    >>> norm = prepare_location_scale("lssm", model=LocationScaleModel(location))
    >>> norm.normalize(ScoreBlocks(ScoreMatrix([[2.0, 3.0]], ["e"], ["t1", "t2"]))).scores.round(3)
    array([[0.   , 1.333]])
    """
    if unknown:
        raise InputError(f"the norm {method!r} knows no option {shown(unknown)}; it takes `model` and the cohort")
    if not isinstance(model, LocationScaleModel):
        raise InputError(f"the norm {method!r} needs a trained location-scale model; give it as `model`")
    if cohort is None:
        return LocationScaleNorm(model)
    return LocationScaleNormalizer(
        model, cohort, cohort_labels, enroll_speakers=cohort_enroll_speakers, test_speakers=cohort_test_speakers
    )


def fit_location_scale_norm(
    method: str, training: Sequence[LabelledBlocks], *, progress: Progress = silent, dim: int = 2, **options: Any
) -> FittedNorm:
    """Train the location-scale model; ``options`` are those of `fit_location_scale`."""
    from evenscore.location_scale.fit import fit_location_scale

    data = [part.trials if part.labels is None else (part.blocks.trials, part.labels) for part in training]
    result = fit_location_scale(data, dim, progress=progress, **options)
    norm = LocationScaleNorm(result.model)
    scores = []
    for place, part in enumerate(training):
        progress("normalizing the training scores", place / len(training))
        scores.append(norm.normalize(part.blocks))
    return FittedNorm(
        method=method, normalizer=norm, training_scores=scores, model=result.model, is_llr=True, notes=result.notes
    )
