"""Where the score model's LLR ends: the floor or ceiling that its Gaussians give it, and the trials beyond."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenscore import LabelledBlocks, ScoreModel, ScoreModelNormalizer
from evenscore.model import LlrShape, share_beyond_vertex

__all__ = ["Bound", "bound_of"]


@dataclass(frozen=True)
class Bound:
    """How far the LLR of a score model goes.

    Attributes
    ----------
    ratio
        Variance of a target score over that of a non-target score, given the cohort.
    extreme
        The floor (if the ratio is above 1) or the ceiling of the LLR in an average trial.
    nontarget, target
        Shares of the trials of each class beyond the vertex, where a better score gets a worse LLR.
    """

    ratio: float
    extreme: float
    nontarget: float
    target: float


def bound_of(model: ScoreModel, trials: Sequence[LabelledBlocks]) -> Bound:
    """Return how far the LLR goes on these trials, given their cohorts, which must be of one size.

    Examples
    --------
    >>> from recipes.theory.calibration import MODEL, model_scores
    >>> bound = bound_of(MODEL, model_scores(speakers=20, sets=1)[1])
    >>> bound.ratio > 1, -12 < bound.extreme < -3, bound.nontarget < 0.2
    (True, True, True)
    """
    weights = ScoreModelNormalizer(model, trials[0].blocks).weights()
    shape = LlrShape(mean=model.mu, variance=weights.variance)
    nontarget, target = share_beyond_vertex(model, trials).tolist()
    ratio = float(weights.variance[1] / weights.variance[0])
    return Bound(ratio, shape.floor if ratio > 1 else shape.ceiling, nontarget, target)
