"""One pass over labelled scores that are not in memory: summaries of all of them, and of groups of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.summary import BITS, ScoreSummary, summarize
from evenscore.metrics.summary_groups import summarize_groups, total
from evenscore.progress import Progress, silent
from evenscore.scale.chunked_scores import ChunkedScores
from evenscore.scale.chunked_trials import ChunkedTrials, TrialChunk
from evenscore.scale.engine import engine_for
from evenscore.scale.pair_values import UNLISTED, ListedValues, Numbers, PairValues, SideGroups, TableLabels
from evenscore.tables import UNKNOWN, TrialList
from evenscore.tables.ids import Ids

__all__ = ["ChunkCounts", "aligned", "count_chunks", "refuse_unknown_choice"]

NameOfPair = Callable[[npt.NDArray[np.intp]], tuple[str, str]]
_REMEDY = "make the two files agree, or leave out what does not match (--unmatched drop)"


@dataclass(frozen=True, kw_only=True, eq=False)
class ChunkCounts:
    """What a pass counted; counts of parts are added with ``+``.

    Attributes
    ----------
    summary
        Of all scores whose class is known.
    groups
        For each way to group the scores the summaries of the groups, by number.
    n_unknown
        Scores whose class is not known.
    n_listed
        Scores that the key lists; of other labels, all of them.
    """

    summary: ScoreSummary
    groups: tuple[Mapping[int, ScoreSummary], ...]
    n_unknown: int
    n_listed: int

    def __add__(self, other: ChunkCounts) -> ChunkCounts:
        return ChunkCounts(
            summary=self.summary + other.summary,
            groups=tuple(_merged(*both) for both in zip(self.groups, other.groups, strict=True)),
            n_unknown=self.n_unknown + other.n_unknown,
            n_listed=self.n_listed + other.n_listed,
        )


def _merged(one: Mapping[int, ScoreSummary], other: Mapping[int, ScoreSummary]) -> dict[int, ScoreSummary]:
    return {**one, **{group: one[group] + part if group in one else part for group, part in other.items()}}


@dataclass(frozen=True, kw_only=True, eq=False)
class _Count:
    """What every chunk needs."""

    reader: Any
    labels: PairValues
    groupings: tuple[PairValues, ...]
    ids: tuple[Ids, Ids] | None  #: of a matrix, for messages
    strict: bool  #: whether scores and key must agree
    group_bits: int
    options: Mapping[str, Any]


def count_chunks(
    scores: ChunkedScores | ChunkedTrials,
    labels: PairValues,
    groupings: Sequence[PairValues] = (),
    *,
    group_bits: int = BITS,
    unmatched: Literal["error", "drop"] = "drop",
    client: Any = None,
    progress: Progress = silent,
    options: Mapping[str, Any] | None = None,
) -> ChunkCounts:
    """Count labelled scores, and those of each group of each grouping.

    ``options`` are those of `summarize`. Where there are many groups, fewer bits (``group_bits``) save memory.
    """
    places: list[Any]
    ids = None
    n_key = len(labels) if isinstance(labels, ListedValues) else 0
    strict = unmatched == "error" and n_key > 0
    if isinstance(scores, ChunkedScores):
        places, ids = scores.tiles(), (scores.enroll_ids, scores.test_ids)
        if strict:
            _refuse_others(labels, *ids)
        labels = aligned(labels, *ids)
        groupings = [aligned(groups, *ids) for groups in groupings]
    else:
        places = scores.chunks()
    task = _Count(
        reader=scores.reader,
        labels=labels,
        groupings=tuple(groupings),
        ids=ids,
        strict=strict,
        group_bits=group_bits,
        options=dict(options or {}),
    )
    found: ChunkCounts = engine_for(client).total(_count, task, places, stage="counting scores", progress=progress)
    if n_key and not found.n_listed:
        raise InputError("the key has none of these trials; do the two files belong together?")
    if n_key and found.n_listed > n_key:
        raise InputError(
            f"{found.n_listed} scores are of the {n_key} trials of the key, so some trials are listed more than once; "
            "leave out repeats"
        )
    if strict and found.n_listed < n_key:
        raise InputError(f"{n_key - found.n_listed} of the {n_key} trials of the key have no score; {_REMEDY}")
    return found


def refuse_unknown_choice(unmatched: object) -> None:
    """Refuse what is neither of the two things to do with trials that do not match."""
    if unmatched not in ("error", "drop"):
        raise InputError(f"unmatched is {unmatched!r}, but must be 'error' or 'drop'")


def _refuse_others(key: PairValues, enroll_ids: Ids, test_ids: Ids) -> None:
    """Refuse a key with ids that the scores do not have, before anything is read."""
    assert isinstance(key, ListedValues)  # noqa: S101
    pair = key.first_beyond(enroll_ids, test_ids)
    if pair is not None:
        raise InputError(f"the trial {pair} of the key has no score; {_REMEDY}")


def aligned(values: PairValues, enroll_ids: Ids, test_ids: Ids) -> PairValues:
    """Return the numbers of the pairs of a matrix, for its tiles."""
    if isinstance(values, ListedValues | SideGroups):
        return values.align(enroll_ids, test_ids)
    if isinstance(values, TableLabels):
        labels = values.labels.align(enroll_ids, test_ids)
        if labels.by_speaker:
            _ = labels.speaker_codes  # so that it is made once, not in every task
        return replace(values, labels=labels)
    return values


def _count(task: _Count, place: Any) -> ChunkCounts:
    scores, labels, groupings, pair = _read(task, place)
    scored = ~np.isnan(scores)
    n_unknown = int(np.count_nonzero(scored & (labels == UNKNOWN)))
    n_listed = int(np.count_nonzero(scored & (labels != UNLISTED)))
    key = np.maximum(labels, UNKNOWN).astype(np.int8, copy=False)
    for numbers in groupings:
        _refuse_ungrouped(np.broadcast_to(numbers, scores.shape), scored & (key != UNKNOWN), pair)
    groups = tuple(summarize_groups(scores, key, numbers, **task.options) for numbers in groupings)
    summary = total(groups[0].values()) if groups and groups[0] else summarize(scores, key, **task.options)
    bits = min(task.group_bits, summary.bits)
    coarse = tuple({number: part.coarsened(bits) for number, part in parts.items()} for parts in groups)
    return ChunkCounts(summary=summary, groups=coarse, n_unknown=n_unknown, n_listed=n_listed)


def _read(task: _Count, place: Any) -> tuple[npt.NDArray[Any], Numbers, list[Numbers], NameOfPair]:
    """Return scores, labels and groups of a chunk, and how its pairs are called; refuse labels that are not right."""
    if isinstance(place, TrialChunk):
        trials: TrialList = task.reader.read(place.trials)
        assert trials.scores is not None  # noqa: S101
        labels, scores = task.labels.of_trials(trials), trials.scores
        groupings = [groups.of_trials(trials) for groups in task.groupings]
        if isinstance(task.labels, ListedValues):
            _refuse_contradiction(trials, labels)

        def pair(at: npt.NDArray[np.intp]) -> tuple[str, str]:
            return trials.pair(int(at[0]))
    else:
        scores = task.reader.read(place.rows, place.columns)
        labels = task.labels.of_tile(place)
        groupings = [groups.of_tile(place) for groups in task.groupings]

        def pair(at: npt.NDArray[np.intp]) -> tuple[str, str]:
            assert task.ids is not None  # noqa: S101
            return task.ids[0][place.rows.start + at[0]], task.ids[1][place.columns.start + at[1]]

    if task.strict:
        _refuse_unlisted((labels == UNLISTED) & ~np.isnan(scores), pair)
    return scores, np.broadcast_to(labels, scores.shape), groupings, pair


def _refuse_unlisted(unlisted: npt.NDArray[np.bool_], pair: NameOfPair) -> None:
    if unlisted.any():
        count, first = int(np.count_nonzero(unlisted)), pair(np.argwhere(unlisted)[0])
        raise InputError(f"at least {count} scored trials are not in the key, such as {first}; {_REMEDY}")


def _refuse_ungrouped(groups: Numbers, used: npt.NDArray[np.bool_], pair: NameOfPair) -> None:
    if (groups < 0).any() and (used & (groups < 0)).any():
        first = pair(np.argwhere(used & (groups < 0))[0])
        raise InputError(
            f"it is not known to which group the trial {first} belongs; add it, or its ids, to the map or the metadata"
        )


def _refuse_contradiction(trials: TrialList, labels: Numbers) -> None:
    if trials.labels is None:
        return
    clash = (trials.labels != labels) & (trials.labels >= 0) & (labels >= 0)
    if clash.any():
        pair = trials.pair(int(np.argmax(clash)))
        raise InputError(f"labels do not agree with the key, such as that of {pair}; correct one of the two")
