"""The score model by parts: each side's part of the predicted score of either class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.model.bilinear_cohort import cohort_weights as weights_of_vectors
from evenscore.model.normalizer import ScoreModelNormalizer, apply_shifts
from evenscore.model.parameters import ScoreModel
from evenscore.model.patterns import Exceptions, LabelledSums, SpeakerBlocks
from evenscore.model.prediction import predict_from_exceptions, predict_from_sums
from evenscore.model.score_weights import ScoreWeights, enroll_shifts, test_shifts
from evenscore.model.sums import ClassSums
from evenscore.model.table_sums import sum_cohort
from evenscore.norms.own_model_parts import OwnScoreModelParts
from evenscore.norms.parts import Part, Parts, Pass, speakers_meet
from evenscore.sources.bilinear import Products
from evenscore.tables import ScoreBlocks, ScoreMatrix, ScoreTable
from evenscore.tables.axis import Axis

__all__ = ["ScoreModelParts", "cohort_weights", "score_model_parts"]


def score_model_parts(norm: Any, blocks: ScoreBlocks, how: Pass) -> Parts | None:
    """Return a score model, or one that is prepared for a cohort, by parts; None where it has none for these blocks."""
    prepared = isinstance(norm, ScoreModelNormalizer)
    if speakers_meet(blocks, ("cohort",)):
        return None if prepared else OwnScoreModelParts.of(norm.model, blocks, how)
    if prepared:
        return ScoreModelParts.of_prepared(norm, blocks)
    return ScoreModelParts(weights=cohort_weights(norm.model, blocks, how))


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreModelParts:
    """The score model; the numbers are each side's part of the predicted score of either class."""

    width = 2
    sides_alike = False

    weights: ScoreWeights

    @classmethod
    def of_prepared(cls, normalizer: ScoreModelNormalizer, blocks: ScoreBlocks) -> ScoreModelParts:
        """Take the weights of a cohort that is in memory, in the order of the blocks' cohort scores."""
        weights = normalizer.weights(enroll=blocks.enroll is not None, test=blocks.test is not None)
        changed = {}
        for side, block, ids in (("enroll", blocks.enroll, "test_ids"), ("test", blocks.test, "enroll_ids")):
            if block is not None:
                known = Axis(getattr(normalizer, f"cohort_{ids}"))
                at = known.positions(getattr(block, ids), "cohort member", "the cohort of this normalizer")
                changed[side] = getattr(weights, side)[:, at]
        return cls(weights=replace(weights, **changed))

    def from_vectors(self, side: str, table: ScoreTable) -> Part | None:
        """Fold the cohort into one vector per class, (B3): two dot products for each element, whatever its size."""
        source = table.source
        if not isinstance(source, Products) or source.own is not None:
            return None
        weights, scores = self.weights, source.scores
        if side == "enroll":
            sums = scores.weighted_rows(weights.enroll) + weights.offset[:, None]
            return (sums - weights.center * weights.enroll.sum(axis=1)[:, None]).T
        return (scores.weighted_columns(weights.test) - weights.center * weights.test.sum(axis=1)[:, None]).T

    def enroll_part(self, scores: npt.NDArray[Any], rows: slice) -> Part:
        """Return the enrolments' part of the predicted scores."""
        return _nan_where_missing(enroll_shifts(self.weights, scores), scores, axis=1)

    def test_part(self, scores: npt.NDArray[Any], columns: slice) -> Part:
        """Return the tests' part of the predicted scores."""
        return _nan_where_missing(test_shifts(self.weights, scores), scores, axis=0)

    def apply(self, trials: Any, enroll: Part, test: Part) -> Any:
        """Return the log-likelihood ratios of the trials."""
        if not trials.listed and not np.isfinite(trials.scores.sum()):
            trials = ScoreMatrix(trials.scores, trials.enroll_axis, trials.test_axis, missing="nan")
        return apply_shifts(self.weights, trials, enroll, test)


def _nan_where_missing(part: Part, scores: npt.NDArray[Any], axis: int) -> Part:
    if np.isfinite(scores.sum()):
        return part
    return np.where(np.isfinite(scores).all(axis=axis)[:, None], part, np.nan)


def cohort_weights(model: ScoreModel, blocks: ScoreBlocks, how: Pass) -> ScoreWeights:
    """Condition a score model on the cohort of blocks, from sums of its scores."""
    sides = blocks.enroll is not None, blocks.test is not None
    cohort, labels = blocks.cohort, blocks.cohort_labels
    from_vectors = cohort is not None and isinstance(cohort.source, Products) and all(sides) and min(cohort.shape)
    if from_vectors and labels is not None and labels.by_speaker and not labels.n_unknown:
        vectors = cohort.source.scores.with_axes(cohort.enroll_axis, cohort.test_axis)
        return weights_of_vectors(model, vectors, labels)
    found = _cohort_sums(blocks, how)
    if isinstance(found.pattern, SpeakerBlocks):
        return ScoreWeights.of(model, predict_from_sums(model, found.sums, found.pattern, sides))
    return ScoreWeights.of(model, predict_from_exceptions(model, found.sums, found.pattern, sides))


def _cohort_sums(blocks: ScoreBlocks, how: Pass) -> LabelledSums:
    cohort, labels = blocks.cohort, blocks.cohort_labels
    if cohort is not None and labels is not None and min(cohort.shape):
        return sum_cohort(cohort, labels, client=how.client, progress=how.progress)
    sizes = [0 if ids is None else len(ids) for ids in (blocks.cohort_enroll_ids, blocks.cohort_test_ids)]
    nothing = np.empty(0, dtype=np.intp)
    row, column = (np.zeros((2, size)) for size in sizes)
    sums = ClassSums(center=0.0, rows=row, columns=column, squares=np.zeros(2), row_counts=row, column_counts=column)
    if not min(sizes):  # one of the cohorts, or both, has no members, so no pair is missing
        codes = [np.arange(size) for size in sizes]
        blocks_of = SpeakerBlocks(row_codes=codes[0], column_codes=codes[1], n_speakers=max(sizes))
        return LabelledSums(sums=sums, pattern=blocks_of)
    pattern = Exceptions(
        n_rows=sizes[0],
        n_columns=sizes[1],
        background=False,
        rows=nothing,
        columns=nothing,
        labels=np.empty(0, dtype=np.int8),
    )
    return LabelledSums(sums=sums, pattern=pattern)
