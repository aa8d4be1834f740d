"""What metrics and calibration do with scores that are not in memory: sum them up, and change each of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evenscore.calibrate import Calibration
from evenscore.errors import InputError
from evenscore.metrics.summary import ScoreSummary
from evenscore.progress import Progress, silent
from evenscore.scale.chunked_scores import ChunkedScores, TileReader, hashed
from evenscore.scale.chunked_trials import ChunkedTrials, TrialReader, refuse_unless_chunked
from evenscore.scale.counting import count_chunks, refuse_unknown_choice
from evenscore.scale.pair_values import ListedValues, OwnLabels, PairValues, SideGroups, TableLabels
from evenscore.tables import Labels, TrialList

__all__ = ["count_unlabelled", "summarize_chunks", "transform_chunks"]

Function = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]


def summarize_chunks(
    scores: ChunkedScores | ChunkedTrials,
    labels: Labels | TrialList | None = None,
    *,
    unmatched: Literal["error", "drop"] = "drop",
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
        `Labels` of a matrix, or a key: a list of labelled trials, in any order, which takes 9 bytes for each. Listed
        trials may have labels of their own.
    unmatched
        What to do with trials that stand only in the scores or only in the key: ``"drop"`` leaves them out, ``"error"``
        refuses them.
    client
        A `distributed.Client` whose workers do it; None does it here.
    progress
        Called with ``"counting scores"`` and the fraction done.
    **options
        Of `summarize`: ``points``, ``bits``.

    Examples
    --------
    >>> from evenscore import ScoreMatrix
    >>> from evenscore.scale import as_chunked
    >>> scores = as_chunked(ScoreMatrix([[3.0, -1.0], [0.5, 2.0]], ["e1", "e2"], ["t1", "t2"]))
    >>> summarize_chunks(scores, Labels.from_speakers(["a", "b"], ["a", "b"]))
    ScoreSummary(2 targets, 2 non-targets, 20 bits)
    >>> key = TrialList.from_pairs(["e2", "e1"], ["t1", "t1"], labels=[0, 1])
    >>> summarize_chunks(scores, key).evaluate()["eer"]
    0.0
    """
    refuse_unless_chunked(scores)
    values: PairValues = OwnLabels()
    if isinstance(labels, TrialList):
        values = ListedValues.of_key(labels)
    elif isinstance(labels, Labels):
        values = TableLabels(labels)
    elif labels is not None:
        raise InputError(f"labels are a {type(labels).__name__}, but must be Labels, or a list of labelled trials")
    refuse_unknown_choice(unmatched)
    return count_chunks(scores, values, unmatched=unmatched, client=client, progress=progress, options=options).summary


def count_unlabelled(scores: ChunkedScores | ChunkedTrials) -> ScoreSummary:
    """Count scores whatever their labels: all are of one class."""
    return count_chunks(scores, SideGroups([], None, [], None)).summary


def transform_chunks(
    scores: ChunkedScores | ChunkedTrials, function: Function, identity: str | None = None
) -> ChunkedScores | ChunkedTrials:
    """Return scores that a function, such as a calibration, changes one by one when they are read.

    Parameters
    ----------
    scores
        The scores.
    function
        Takes and gives an array; on a cluster it travels to the workers.
    identity
        A text that changes when the function does, for runs that are continued; a calibration needs none.

    Examples
    --------
    >>> from evenscore import ScoreMatrix
    >>> from evenscore.scale import as_chunked
    >>> scores = as_chunked(ScoreMatrix([[3.0, -1.0]], ["e1"], ["t1", "t2"]))
    >>> transform_chunks(scores, np.negative, "negative").matrix().scores
    array([[-3.,  1.]])
    """
    refuse_unless_chunked(scores)
    if not callable(function):
        raise InputError(f"the function is a {type(function).__name__}, which cannot be called; give a function")
    if identity is None:
        if not isinstance(function, Calibration):
            raise InputError("nothing tells when this function changes; give identity, a text that changes with it")
        identity = json.dumps(function.to_dict())
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
        return _checked(self.function(scores), scores)

    def identity(self) -> str:
        return hashed(self.reader.identity(), self.name)


@dataclass(frozen=True, eq=False)
class _ChangedTrials:
    reader: TrialReader
    function: Function
    name: str

    def read(self, trials: slice) -> TrialList:
        table = self.reader.read(trials)
        scores = np.asarray(table.scores)
        return table.with_scores(_checked(self.function(scores), scores), allow_infinite=True)

    def identity(self) -> str:
        return hashed(self.reader.identity(), self.name)


def _checked(found: Any, scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return changed scores, in the type of the scores; refuse more or fewer of them."""
    changed = np.asarray(found, dtype=scores.dtype)
    if changed.shape != scores.shape:
        raise InputError(
            f"the function made scores of shape {changed.shape} of those of shape {scores.shape}; it must change each "
            "of them by itself"
        )
    return changed
