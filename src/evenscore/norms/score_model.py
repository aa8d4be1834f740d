"""The score model as one of the norms, under the name ``lgsm``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenscore.model.normalizer import ScoreModelNormalizer
from evenscore.model.parameters import ScoreModel
from evenscore.norms.fitting import FittedNorm
from evenscore.norms.model_norm import ModelNorm, fitted_model, prepare_model, training_data
from evenscore.norms.registry import refuse_unknown_options
from evenscore.progress import Progress, silent
from evenscore.tables import LabelledBlocks, ScoreBlocks

__all__ = ["PreparedScoreModel", "fit_score_model_norm", "prepare_score_model"]


class PreparedScoreModel(ScoreModelNormalizer):
    """A score model prepared for a cohort, that can be taken apart."""

    def parts(self, blocks: ScoreBlocks, how: Any) -> Any:
        """Return the norm by parts, see `score_model_parts`."""
        return _parts(self, blocks, how)


def _parts(norm: Any, blocks: ScoreBlocks, how: Any) -> Any:
    from evenscore.norms.score_model_parts import score_model_parts

    return score_model_parts(norm, blocks, how)


def prepare_score_model(method: str, **options: Any) -> Any:
    """Return the score model as a norm, see `prepare_model`.

    Examples
    --------
    >>> from evenscore import ScoreBlocks, ScoreMatrix
    >>> model = ScoreModel(mu=[0, 4], alpha=[[1], [1]], beta=[[1], [1]], sigma2=[1, 1])
    >>> norm = prepare_score_model("lgsm", model=model)
    >>> norm.normalize(ScoreBlocks(ScoreMatrix([[2.0, 3.0]], ["e"], ["t1", "t2"]))).scores.round(3)
    array([[0.   , 1.333]])
    """
    return prepare_model(method, ScoreModel, PreparedScoreModel, _parts, **options)


def fit_score_model_norm(
    method: str,
    training: Sequence[LabelledBlocks],
    *,
    client: Any = None,
    progress: Progress = silent,
    **options: Any,
) -> FittedNorm:
    """Train the score model; ``options`` are those of `fit_score_model`."""
    from evenscore.model.fit import fit_score_model

    refuse_unknown_options(method, fit_score_model, options)
    result = fit_score_model(training_data(training), client=client, progress=progress, **options)
    return fitted_model(
        method, ModelNorm(result.model, PreparedScoreModel, _parts), training, result.notes, progress, client
    )
