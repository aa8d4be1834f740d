"""From labelled scores to the statistics of training: one pass over the scores, then standardized records.

After this no step looks at a score again. Every kind of data (a complete matrix, one with missing pairs, a list of
trials, scores that are a bilinear form of embeddings) ends as one of two records, and `em.expect` serves both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.model.bilinear_sums import training_sums
from evenscore.model.em import Statistics
from evenscore.model.pattern_posterior import PatternStatistics
from evenscore.model.patterns import (
    Exceptions,
    LabelledSums,
    ShapeStatistics,
    components,
    compress,
    merge,
    paired_exceptions,
)
from evenscore.model.table_sums import sum_table
from evenscore.progress import Progress, silent
from evenscore.sources.bilinear import Bilinear
from evenscore.sources.computed import ComputedScores
from evenscore.tables import Labels, ScoreMatrix, ScoreTable, TrialList
from evenscore.tables.arrays import as_scores
from evenscore.tables.axis import as_axis
from evenscore.tables.door import refusing_infinite
from evenscore.tables.pair_values import PairValues

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = [
    "LabelledSums",
    "TrainingData",
    "label_sums",
    "standardize",
]

Array = np.ndarray


Scores = ScoreTable | npt.NDArray[Any]
_Item = ScoreTable | tuple[Scores, Labels]
TrainingData = _Item | Iterable[_Item]


def label_sums(
    data: TrainingData, *, keep_self_pairs: bool = False, client: Any = None, progress: Progress = silent
) -> list[LabelledSums]:
    """Pass over the scores of each matrix or trial list, tiled ones on a `distributed.Client`: independent parts."""
    if isinstance(data, ScoreTable) or _is_pair(data):
        data = [data]
    items = list(data) if isinstance(data, Iterable) else [data]
    if not items:
        raise InputError("there are no scores; give at least one pair (scores, labels)")
    parts = [part for item in items for part in _parts(item, keep_self_pairs, client, progress)]
    if not parts:
        raise InputError("no score has a known label; check that labels and scores belong together")
    return parts


def _is_pair(data: object) -> TypeGuard[tuple[Scores, Labels]]:
    return isinstance(data, tuple) and len(data) == 2 and isinstance(data[1], Labels | TrialList | PairValues)


def _parts(item: object, keep_self_pairs: bool, client: Any, progress: Progress) -> list[LabelledSums]:
    if isinstance(item, ScoreTable):
        item = (item, None)
    elif not _is_pair(item):
        raise InputError(
            "data must be pairs (scores, labels) or labelled trial lists; make labels with Labels.from_..."
        )
    scores: Any
    labels: Any
    scores, labels = refusing_infinite(item[0]), item[1]
    if isinstance(scores, Bilinear):
        labels = Labels.of_axes(scores.enroll_axis, scores.test_axis) if labels is None else labels
        return [training_sums(scores, labels, keep_self_pairs=keep_self_pairs)]
    if isinstance(scores, ComputedScores) and not keep_self_pairs:
        scores = scores.without_itself()
    if hasattr(scores, "dask"):
        raise InputError("a Dask array has no ids; give as_table(array, enroll_ids, test_ids) in its place")
    if not isinstance(scores, ScoreTable):
        scores = _named(scores, labels)
    if scores.listed and scores.is_in_memory and labels is not None:
        scores, labels = scores.join(labels), None
    return sum_table(scores, labels, client=client, progress=progress)


def _named(scores: Any, labels: Labels) -> ScoreMatrix:
    """Return an array as a matrix with the ids of its labels."""
    array = as_scores(scores, "scores", ndim=2)
    if array.shape != labels.shape:
        size, known_size = (f"{shape[0]} x {shape[1]}" for shape in (array.shape, labels.shape))
        raise InputError(f"scores are {size}, but labels are {known_size}")
    known = (labels.enroll_ids, labels.test_ids)
    rows, columns = (
        as_axis(range(size) if ids is None else ids, "ids") for size, ids in zip(array.shape, known, strict=True)
    )
    return ScoreMatrix(array, rows, columns)


def standardize(parts: list[LabelledSums]) -> list[Statistics]:
    """Centre all scores at their class means and divide them by one scale; compress what can be compressed."""
    center, scale = _class_means_and_scale(parts)
    statistics = [_standardized(part, center, scale) for part in parts]
    blocks = [stats for stats in statistics if isinstance(stats, ShapeStatistics)]
    return [*merge(blocks), *(stats for stats in statistics if isinstance(stats, PatternStatistics))]


def _class_means_and_scale(parts: list[LabelledSums]) -> tuple[Float[Array, "2"], float]:
    base = parts[0].sums.center
    sums = [part.sums.recentered(base) for part in parts]
    count = np.sum([s.count for s in sums], axis=0)
    total = np.sum([s.total for s in sums], axis=0)
    if not count.sum():
        raise InputError("no score has a known label; check that labels and scores belong together")
    mean = np.where(count > 0, total / np.maximum(count, 1), total.sum() / count.sum())
    within = np.sum([s.squares for s in sums], axis=0) - 2 * mean * total + count * mean**2
    scale = float(np.sqrt(max(within.sum(), 0.0) / count.sum()))
    return base + mean, scale if scale > 0 else 1.0


def _standardized(part: LabelledSums, center: Float[Array, "2"], scale: float) -> Statistics:
    sums, pattern = part.sums, part.pattern
    if isinstance(pattern, Exceptions):
        pattern = paired_exceptions(pattern) or pattern
    if not isinstance(pattern, Exceptions):
        return compress(sums, pattern, center=center, scale=scale)
    return PatternStatistics(
        pattern=pattern,
        batches=components(pattern),
        sums=sums.standardized(center, scale),
        center=center,
        scale=scale,
    )
