"""From labelled scores to the statistics of training: one pass over the scores, then standardized records.

After this no step looks at a score again. Every kind of data (a complete matrix, one with missing pairs, a list of
trials, scores that are a bilinear form of embeddings) ends as one of two records, and `expect` serves both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.model.block_posterior import expect_blocks
from evenscore.model.list_sums import independent_parts, pairs_of_list, sum_list
from evenscore.model.moments import Moments
from evenscore.model.parameters import ScoreModel
from evenscore.model.pattern_posterior import PatternStatistics, expect_pattern
from evenscore.model.patterns import Exceptions, LabelledSums, SpeakerBlocks, components, pattern_of_key
from evenscore.model.shapes import ShapeStatistics, compress, merge
from evenscore.model.sums import ClassSums, sum_matrix
from evenscore.progress import Progress, silent
from evenscore.tables import UNKNOWN, Labels, ScoreMatrix, TrialList
from evenscore.tables.arrays import as_scores

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = [
    "LabelledSums",
    "ScoreSource",
    "Statistics",
    "TiledSource",
    "TrainingData",
    "expect",
    "label_sums",
    "standardize",
    "without_empty",
]

Array = np.ndarray
Statistics = ShapeStatistics | PatternStatistics


@runtime_checkable
class ScoreSource(Protocol):
    """Scores of K enrolments against L tests that need not exist as a matrix."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of enrolments and tests."""

    def class_sums(self, labels: Labels) -> ClassSums:
        """Sum the scores of each class, for complete labels by speaker."""


@runtime_checkable
class TiledSource(Protocol):
    """Scores of a matrix that is read tile by tile, or of a list that is read chunk by chunk."""

    def labelled_sums(self, labels: Labels | None, *, client: Any, progress: Progress) -> list[LabelledSums]:
        """Sum the scores of each class, here or on the workers of a `distributed.Client`, by independent parts.

        None takes the labels of the scores themselves, if they have any.
        """


Scores = ScoreMatrix | TrialList | ScoreSource | TiledSource | npt.NDArray[Any]
_Item = TrialList | TiledSource | tuple[Scores, Labels]
TrainingData = _Item | Iterable[_Item]


def label_sums(data: TrainingData, *, client: Any = None, progress: Progress = silent) -> list[LabelledSums]:
    """Pass over the scores of each matrix or trial list, tiled ones on a `distributed.Client`: independent parts."""
    if isinstance(data, TrialList | TiledSource) or _is_pair(data):
        data = [data]
    items = list(data) if isinstance(data, Iterable) else [data]
    if not items:
        raise InputError("there are no scores; give at least one pair (scores, labels)")
    parts = [part for item in items for part in _parts(item, client, progress)]
    if not parts:
        raise InputError("no score has a known label; check that labels and scores belong together")
    if not all(np.isfinite(part.sums.squares).all() for part in parts):
        raise InputError("the scores are so large that their squares overflow; divide them by a constant first")
    return parts


def _is_pair(data: object) -> TypeGuard[tuple[Scores, Labels]]:
    return isinstance(data, tuple) and len(data) == 2 and isinstance(data[1], Labels)


def _parts(item: object, client: Any, progress: Progress) -> list[LabelledSums]:
    if isinstance(item, TrialList):
        return _sum_list(item)
    if isinstance(item, TiledSource):
        return item.labelled_sums(None, client=client, progress=progress)
    if not _is_pair(item):
        raise InputError(
            "data must be pairs (scores, labels) or labelled trial lists; make labels with Labels.from_..."
        )
    scores, labels = item
    if isinstance(scores, TrialList):
        return _sum_list(scores.join(labels))
    if isinstance(scores, ScoreMatrix):
        return [_sum_matrix(scores.scores, labels.align(scores.enroll_ids, scores.test_ids), scores.n_missing > 0)]
    if isinstance(scores, TiledSource):
        return scores.labelled_sums(labels, client=client, progress=progress)
    if isinstance(scores, ScoreSource):
        return [_sum_source(scores, labels)]
    if hasattr(scores, "dask"):
        raise InputError("a Dask array has no ids; give as_chunked(array, enroll_ids, test_ids) in its place")
    array = as_scores(scores, "scores", ndim=2)
    if not np.isfinite(array).all():
        raise InputError("scores must be finite; make a ScoreMatrix with missing='nan' if pairs have no score")
    return [_sum_matrix(array, labels, False)]


def _check_shape(shape: tuple[int, ...], labels: Labels) -> None:
    if len(shape) != 2:
        raise InputError(f"scores must have 2 dimensions, but have shape {shape}")
    if shape != labels.shape:
        raise InputError(f"scores are {shape[0]} x {shape[1]}, but labels are {labels.shape[0]} x {labels.shape[1]}")


def _sum_matrix(scores: npt.NDArray[Any], labels: Labels, has_missing: bool) -> LabelledSums:
    _check_shape(scores.shape, labels)
    sums = sum_matrix(scores, labels)
    pattern: SpeakerBlocks | Exceptions
    if labels.by_speaker and not has_missing and labels.n_unknown == 0:
        pattern = SpeakerBlocks.of(labels)
    else:
        key = np.where(np.isnan(scores), np.int8(UNKNOWN), labels.matrix) if has_missing else labels.matrix
        rows, columns = (sums.row_counts.sum(axis=0) > 0), (sums.column_counts.sum(axis=0) > 0)
        pattern = pattern_of_key(key[np.ix_(rows, columns)])
        sums = without_empty(sums)
    return LabelledSums(sums=sums, pattern=pattern)


def _sum_list(trials: TrialList) -> list[LabelledSums]:
    total = sum_list(trials)
    every = np.arange(len(trials.enroll_ids)), np.arange(len(trials.test_ids))
    return independent_parts(total, lambda wanted: [pairs_of_list(trials, *every, wanted)])


def _sum_source(source: ScoreSource, labels: Labels) -> LabelledSums:
    _check_shape(source.shape, labels)
    if not labels.by_speaker or labels.n_unknown:
        raise InputError("scores from embeddings need labels by speaker, with every speaker known")
    return LabelledSums(sums=source.class_sums(labels), pattern=SpeakerBlocks.of(labels))


def without_empty(sums: ClassSums) -> ClassSums:
    """Leave out rows and columns without any score: they say nothing about the parameters."""
    rows, columns = (sums.row_counts.sum(axis=0) > 0), (sums.column_counts.sum(axis=0) > 0)
    return replace(
        sums,
        rows=sums.rows[:, rows],
        columns=sums.columns[:, columns],
        row_counts=sums.row_counts[:, rows],
        column_counts=sums.column_counts[:, columns],
    )


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
    if isinstance(pattern, SpeakerBlocks):
        return compress(sums, pattern, center=center, scale=scale)
    return PatternStatistics(
        pattern=pattern,
        batches=components(pattern),
        sums=sums.standardized(center, scale),
        center=center,
        scale=scale,
    )


def expect(model: ScoreModel, statistics: list[Statistics]) -> Moments:
    """Return the E-step's moments over all matrices; `model` is in standardized units."""
    total: Moments | None = None
    for stats in statistics:
        moments = expect_blocks(model, stats) if isinstance(stats, ShapeStatistics) else expect_pattern(model, stats)
        total = moments if total is None else total + moments
    assert total is not None  # noqa: S101
    return total
