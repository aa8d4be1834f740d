"""What metrics and calibration do with scores that are not in memory: sum them up, and change each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.summary import ScoreSummary, summarize
from evenscore.progress import Progress, silent
from evenscore.scale.chunked_scores import ChunkedScores, TileReader, hashed
from evenscore.scale.chunked_trials import ChunkedTrials, TrialChunk, TrialReader
from evenscore.scale.engine import engine_for
from evenscore.scale.tile_sums import key_of_tile
from evenscore.tables import Labels, TrialList

__all__ = ["summarize_chunks", "transform_chunks"]

Function = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]


def summarize_chunks(
    scores: ChunkedScores | ChunkedTrials,
    labels: Labels | None = None,
    *,
    client: Any = None,
    progress: Progress = silent,
    **options: Any,
) -> ScoreSummary:
    """Count labelled scores that are not in memory, for all metrics at once.

    Parameters
    ----------
    scores
        The scores.
    labels
        Labels of a matrix; listed trials have labels of their own.
    client
        A `distributed.Client` whose workers do it; None does it here.
    progress
        Called with ``"counting scores"`` and the fraction done.
    **options
        Of `summarize`: ``points``, ``bits``.

    Examples
    --------
    >>> from evenscore import ScoreMatrix, as_chunked
    >>> scores = as_chunked(ScoreMatrix([[3.0, -1.0], [0.5, 2.0]], ["e1", "e2"], ["t1", "t2"]))
    >>> summarize_chunks(scores, Labels.from_speakers(["a", "b"], ["a", "b"]))
    ScoreSummary(2 targets, 2 non-targets, 20 bits)
    """
    places: list[Any]
    if isinstance(scores, ChunkedScores):
        if labels is None:
            raise InputError("labels are missing; make them with Labels.from_speakers")
        labels = labels.align(scores.enroll_ids, scores.test_ids)
        if labels.by_speaker:
            _ = labels.speaker_codes  # so that it is made once, not in every task
        places = scores.tiles()
    else:
        places = scores.chunks()
    task = _Summary(scores.reader, labels, options)
    total: ScoreSummary = engine_for(client).total(_summarize, task, places, stage="counting scores", progress=progress)
    return total


@dataclass(frozen=True, eq=False)
class _Summary:
    reader: Any
    labels: Labels | None
    options: dict[str, Any]


def _summarize(task: _Summary, place: Any) -> ScoreSummary:
    if isinstance(place, TrialChunk):
        return summarize(task.reader.read(place.trials), **task.options)
    assert task.labels is not None  # noqa: S101
    return summarize(task.reader.read(place.rows, place.columns), key_of_tile(task.labels, place), **task.options)


def transform_chunks(
    scores: ChunkedScores | ChunkedTrials, function: Function, identity: str
) -> ChunkedScores | ChunkedTrials:
    """Return scores that a function, such as a calibration, changes one by one when they are read.

    Parameters
    ----------
    scores
        The scores.
    function
        Takes and gives an array; on a cluster it travels to the workers.
    identity
        A text that changes when the function does, for runs that are continued.

    Examples
    --------
    >>> from evenscore import ScoreMatrix, as_chunked
    >>> scores = as_chunked(ScoreMatrix([[3.0, -1.0]], ["e1"], ["t1", "t2"]))
    >>> transform_chunks(scores, np.negative, "negative").matrix().scores
    array([[-3.,  1.]])
    """
    if isinstance(scores, ChunkedScores):
        return replace(scores, reader=_ChangedTiles(scores.reader, function, identity))
    return replace(scores, reader=_ChangedTrials(scores.reader, function, identity))


@dataclass(frozen=True, eq=False)
class _ChangedTiles:
    reader: TileReader
    function: Function
    name: str

    def read(self, rows: slice, columns: slice) -> npt.NDArray[Any]:
        scores = self.reader.read(rows, columns)
        return np.asarray(self.function(scores), dtype=scores.dtype)

    def identity(self) -> str:
        return hashed(self.reader.identity(), self.name)


@dataclass(frozen=True, eq=False)
class _ChangedTrials:
    reader: TrialReader
    function: Function
    name: str

    def read(self, trials: slice) -> TrialList:
        table = self.reader.read(trials)
        return table.with_scores(self.function(np.asarray(table.scores)), allow_infinite=True)

    def identity(self) -> str:
        return hashed(self.reader.identity(), self.name)
