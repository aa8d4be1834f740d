"""Training statistics of a list of trials that is read chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.model.list_sums import ListedPairs, ListSums, independent_parts, pairs_of_list, sum_list
from evenscore.model.patterns import LabelledSums
from evenscore.progress import Progress, silent
from evenscore.scale.engine import engine_for
from evenscore.tables import Labels, TrialList
from evenscore.tables.ids import Ids

if TYPE_CHECKING:
    from evenscore.scale.chunked_trials import ChunkedTrials, TrialChunk, TrialReader

__all__ = ["label_chunks"]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Labelled:
    """What every chunk needs: trials, labels if they have none of their own, and a value near the scores."""

    reader: TrialReader
    labels: Labels | None
    center: float

    def read(self, chunk: TrialChunk) -> TrialList:
        trials = self.reader.read(chunk.trials)
        if self.labels is not None:
            return trials.join(self.labels)
        if trials.labels is None:
            raise InputError("the trials have no labels; give labels by speaker, or a list with a column of labels")
        return trials


@dataclass(frozen=True, kw_only=True, eq=False)
class _Wanted:
    """Which trials to list: those of some enrolments, by their numbers among all ids."""

    trials: _Labelled
    rows: dict[str, int]
    columns: dict[str, int]
    wanted: npt.NDArray[np.bool_]


def label_chunks(
    trials: ChunkedTrials, labels: Labels | None, *, client: Any = None, progress: Progress = silent
) -> list[LabelledSums]:
    """Pass over the chunks of a list once, or twice if some part of it is not a complete matrix of speaker blocks."""
    if not len(trials):
        raise InputError("the list of trials is empty; there is nothing to train on")
    if labels is not None and labels.by_speaker:
        _ = labels.speaker_codes  # so that it is made once, not in every task
    first = np.asarray(trials.reader.read(slice(0, 1)).scores)
    task = _Labelled(reader=trials.reader, labels=labels, center=float(first[0]) if first.size else 0.0)
    engine, chunks = engine_for(client), trials.chunks()
    total: ListSums = engine.total(_sum_chunk, task, chunks, stage="summing scores", progress=progress)

    def pairs(wanted: npt.NDArray[np.bool_]) -> Iterator[ListedPairs]:
        shared = _Wanted(trials=task, rows=_places(total.enroll.ids), columns=_places(total.test.ids), wanted=wanted)
        found = engine.map(_list_chunk, shared, chunks, stage="listing pairs", progress=progress)
        early: dict[int, ListedPairs] = {}
        awaited = 0
        for chunk, some in found:  # handed on in order, so that results do not depend on who is quicker
            early[chunk.number] = some
            while awaited in early:
                yield early.pop(awaited)
                awaited += 1

    return independent_parts(total, pairs)


def _sum_chunk(task: _Labelled, chunk: TrialChunk) -> ListSums:
    return sum_list(task.read(chunk), task.center)


def _list_chunk(shared: _Wanted, chunk: TrialChunk) -> ListedPairs:
    trials = shared.trials.read(chunk)
    rows, columns = (
        np.fromiter((place[name] for name in ids.tolist()), dtype=np.intp, count=len(ids))
        for place, ids in ((shared.rows, trials.enroll_ids), (shared.columns, trials.test_ids))
    )
    return pairs_of_list(trials, rows, columns, shared.wanted)


def _places(ids: Ids) -> dict[str, int]:
    return dict(zip(ids.tolist(), range(len(ids)), strict=True))
