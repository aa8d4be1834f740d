"""The location-scale score model as one of the norms, under the name ``lssm``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenscore.location_scale.normalizer import LocationScaleNormalizer
from evenscore.location_scale.parameters import LocationScaleModel
from evenscore.norms.fitting import FittedNorm
from evenscore.norms.model_norm import ModelNorm, fitted_model, prepare_model, training_data
from evenscore.progress import Progress, silent
from evenscore.tables import LabelledBlocks

__all__ = ["fit_location_scale_norm", "prepare_location_scale"]


def prepare_location_scale(method: str, **options: Any) -> Any:
    """Return the location-scale model as a norm, see `prepare_model`.

    Examples
    --------
    >>> from evenscore import ScoreBlocks, ScoreMatrix, ScoreModel
    >>> location = ScoreModel(mu=[0, 4], alpha=[[1], [1]], beta=[[1], [1]], sigma2=[1, 1])
    >>> norm = prepare_location_scale("lssm", model=LocationScaleModel(location))
    >>> norm.normalize(ScoreBlocks(ScoreMatrix([[2.0, 3.0]], ["e"], ["t1", "t2"]))).scores.round(3)
    array([[0.   , 1.333]])
    """
    return prepare_model(method, LocationScaleModel, LocationScaleNormalizer, **options)


def fit_location_scale_norm(
    method: str, training: Sequence[LabelledBlocks], *, progress: Progress = silent, dim: int = 2, **options: Any
) -> FittedNorm:
    """Train the location-scale model; ``options`` are those of `fit_location_scale`."""
    from evenscore.location_scale.fit import fit_location_scale

    result = fit_location_scale(training_data(training), dim, progress=progress, **options)
    return fitted_model(method, ModelNorm(result.model, LocationScaleNormalizer), training, result.notes, progress)
