"""Which trials the score model ranks the wrong way round: those beyond the vertex of their LLR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from evenscore.errors import InputError
from evenscore.model.normalizer import ScoreModelNormalizer
from evenscore.model.parameters import ScoreModel
from evenscore.tables import NONTARGET, TARGET, LabelledBlocks
from evenscore.tables.labelled_blocks import labelled_parts

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["share_beyond_vertex"]

Array = np.ndarray


def share_beyond_vertex(model: ScoreModel, data: LabelledBlocks | Sequence[LabelledBlocks]) -> Float[Array, "2"]:
    """Return the share of each class's trials (non-target, target) beyond the vertex of their LLR.

    There a better score gets a worse LLR, see `LlrShape`; densities of residuals are taken for Gaussian. With a cohort,
    each trial has a vertex of its own; a trial's own speakers are left out of its cohort, as in `ScoreModelNormalizer`.

    Parameters
    ----------
    model
        The score model.
    data
        Labelled trials in memory, with or without cohort scores; one for each phrase or condition.

    Examples
    --------
    >>> from evenscore import LabelledBlocks, ScoreBlocks, ScoreMatrix, Labels
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[], []], beta=[[], []], sigma2=[1.0, 3.0])  # the vertex is at -2
    >>> scores = ScoreMatrix([[3.0, -1.0], [-2.5, 5.0]], ["a", "b"], ["c", "d"])
    >>> labels = Labels.from_speakers(["ann", "bob"], ["ann", "bob"], enroll_ids=["a", "b"], test_ids=["c", "d"])
    >>> share_beyond_vertex(model, LabelledBlocks(ScoreBlocks(scores), labels))
    array([0.5, 0. ])
    """
    model = model.with_residuals(None)  # other densities have no vertex
    beyond, count = np.zeros(2), np.zeros(2)
    step = float(np.sqrt(model.sigma2.max()))
    rising = 1.0 if model.mu[TARGET] >= model.mu[NONTARGET] else -1.0
    for part in labelled_parts(data, "labelled"):
        if not part.is_in_memory:
            raise InputError("the trials are not in memory, but are wanted there; read them first (in_memory)")
        scores = part.blocks.trials.scores
        if scores is None:
            raise InputError("the trials have no scores")
        normalizer = ScoreModelNormalizer(model, part.blocks)
        # The difference of a parabola over two steps is its slope between them: no approximation.
        above, below = (
            part.labelled(normalizer.normalize(part.blocks.replace(trials=part.blocks.trials.with_scores(moved))))
            for moved in (scores.astype(np.float64) + step, scores.astype(np.float64) - step)
        )
        assert above.scores is not None and below.scores is not None  # noqa: S101, PT018
        falls = rising * (above.scores - below.scores) < 0
        for h in (NONTARGET, TARGET):
            beyond[h] += np.count_nonzero(falls & (above.labels == h))
            count[h] += np.count_nonzero(above.labels == h)
    if not count.all():
        raise InputError("there are no trials of one class, but both are needed; check the labels")
    return beyond / count
