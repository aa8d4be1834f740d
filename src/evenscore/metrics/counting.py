"""One pass over the scores of a table: what metrics need of them, by bins; of all together, and of each group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.engine.engine import engine_for
from evenscore.errors import InputError
from evenscore.metrics.evaluation import figures_or_problem
from evenscore.metrics.evaluation_records import EvaluationBy
from evenscore.metrics.summary import BITS, ScoreSummary, summarize
from evenscore.progress import Progress, silent
from evenscore.tables.labels import UNKNOWN
from evenscore.tables.pair_values import (
    MATCHING_REMEDY,
    UNLISTED,
    ListedValues,
    PairValues,
    SideGroups,
    Unmatched,
    labels_for,
    refuse_unknown_choice,
)
from evenscore.tables.score_table import ScoreTable, Source
from evenscore.tables.tile import Place, Tile

__all__ = [
    "TableCounts",
    "count_table",
    "count_unlabelled",
    "equalized",
    "evaluate_groups",
    "summarize_groups",
    "summarize_table",
    "total",
]


@dataclass(frozen=True, kw_only=True, eq=False)
class TableCounts:
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

    def __add__(self, other: TableCounts) -> TableCounts:
        return TableCounts(
            summary=self.summary + other.summary,
            groups=tuple(_merged(*both) for both in zip(self.groups, other.groups, strict=True)),
            n_unknown=self.n_unknown + other.n_unknown,
            n_listed=self.n_listed + other.n_listed,
        )


def _merged(one: Mapping[int, ScoreSummary], other: Mapping[int, ScoreSummary]) -> dict[int, ScoreSummary]:
    return {**one, **{group: one[group] + part if group in one else part for group, part in other.items()}}


def summarize_table(
    scores: ScoreTable,
    labels: Any = None,
    *,
    unmatched: Unmatched = "drop",
    client: Any = None,
    progress: Progress = silent,
    **options: Any,
) -> ScoreSummary:
    """Count the labelled scores of a table, for all metrics at once.

    Parameters
    ----------
    scores
        The scores.
    labels
        As in `labels_for`.
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
    >>> from evenscore import Labels, ScoreMatrix, TrialList
    >>> scores = ScoreMatrix([[3.0, -1.0], [0.5, 2.0]], ["e1", "e2"], ["t1", "t2"])
    >>> summarize_table(scores, Labels.from_speakers(["a", "b"], ["a", "b"]))
    ScoreSummary(2 targets, 2 non-targets, 20 bits)
    >>> key = TrialList.from_pairs(["e2", "e1"], ["t1", "t1"], labels=[0, 1])
    >>> summarize_table(scores, key).evaluate().eer
    0.0
    """
    if not isinstance(scores, ScoreTable):
        raise InputError(
            f"the scores are a {type(scores).__name__}, but must be a table of scores; make one with "
            "as_table(scores, enroll_ids, test_ids)"
        )
    return count_table(scores, labels, unmatched=unmatched, client=client, progress=progress, options=options).summary


def count_unlabelled(scores: ScoreTable) -> ScoreSummary:
    """Count scores whatever their labels: all are of one class."""
    return count_table(scores, SideGroups.all_one()).summary


@dataclass(frozen=True, kw_only=True, eq=False)
class _Count:
    """What every tile needs."""

    source: Source
    labels: PairValues
    groupings: tuple[PairValues, ...]
    table: _Names
    strict: bool  #: whether scores and key must agree
    group_bits: int
    options: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class _Names:
    """How the pairs of a table are called, for messages."""

    enroll_ids: Any
    test_ids: Any

    def first(self, tile: Tile, which: npt.NDArray[np.bool_]) -> tuple[str, str]:
        row, column = tile.position(int(np.argmax(which)))
        return self.enroll_ids[row], self.test_ids[column]


def count_table(
    scores: ScoreTable,
    labels: Any = None,
    groupings: Sequence[PairValues] = (),
    *,
    group_bits: int = BITS,
    unmatched: Unmatched = "drop",
    client: Any = None,
    progress: Progress = silent,
    options: Mapping[str, Any] | None = None,
) -> TableCounts:
    """Count labelled scores, and those of each group of each grouping.

    ``labels`` are as in `labels_for`, ``options`` those of `summarize`. Where there are many groups, fewer bits
    (``group_bits``) save memory.
    """
    refuse_unknown_choice(unmatched)
    values = labels_for(scores, labels, unmatched)
    key = values if isinstance(values, ListedValues) and len(values) else None
    strict = unmatched == "error" and key is not None
    if strict and key is not None and key.beyond is not None and not scores.listed:
        raise InputError(f"the trial {key.beyond} of the key has no score; {MATCHING_REMEDY}")
    task = _Count(
        source=scores.source,
        labels=values,
        groupings=tuple(labels_for(scores, groups) for groups in groupings),
        table=_Names(scores.enroll_ids, scores.test_ids),
        strict=strict,
        group_bits=group_bits,
        options=dict(options or {}),
    )
    found: TableCounts = engine_for(client).total(
        _count, task, scores.places(), stage="counting scores", progress=progress
    )
    if key is not None:
        _refuse_mismatch(len(key), found.n_listed, strict)
    return found


def _refuse_mismatch(n_key: int, n_listed: int, strict: bool) -> None:
    if not n_listed:
        raise InputError("the key has none of these trials; do the two files belong together?")
    if n_listed > n_key:
        raise InputError(
            f"{n_listed} scores are of the {n_key} trials of the key, so some trials are listed more than once; "
            "leave out repeats"
        )
    if strict and n_listed < n_key:
        raise InputError(f"{n_key - n_listed} of the {n_key} trials of the key have no score; {MATCHING_REMEDY}")


def _count(task: _Count, place: Place) -> TableCounts:
    tile = task.source.read(place)
    scores, labels = tile.scores, np.broadcast_to(task.labels.of(tile), tile.scores.shape)
    scored = ~np.isnan(scores)
    if task.strict:
        _refuse_unlisted(task, tile, (labels == UNLISTED) & scored)
    if tile.labels is not None and isinstance(task.labels, ListedValues):
        _refuse_contradiction(task, tile, labels)
    key = np.maximum(labels, UNKNOWN).astype(np.int8, copy=False)
    groupings = [groups.of(tile) for groups in task.groupings]
    for numbers in groupings:
        _refuse_ungrouped(task, tile, np.broadcast_to(numbers, scores.shape), scored & (key != UNKNOWN))
    groups = tuple(summarize_groups(scores, key, numbers, **task.options) for numbers in groupings)
    summary = total(groups[0].values()) if groups and groups[0] else summarize(scores, key, **task.options)
    bits = min(task.group_bits, summary.bits)
    return TableCounts(
        summary=summary,
        groups=tuple({number: part.coarsened(bits) for number, part in parts.items()} for parts in groups),
        n_unknown=int(np.count_nonzero(scored & (labels == UNKNOWN))),
        n_listed=int(np.count_nonzero(scored & (labels != UNLISTED))),
    )


def _refuse_unlisted(task: _Count, tile: Tile, unlisted: npt.NDArray[np.bool_]) -> None:
    if unlisted.any():
        count, first = int(np.count_nonzero(unlisted)), task.table.first(tile, unlisted)
        raise InputError(f"at least {count} scored trials are not in the key, such as {first}; {MATCHING_REMEDY}")


def _refuse_ungrouped(task: _Count, tile: Tile, groups: npt.NDArray[Any], used: npt.NDArray[np.bool_]) -> None:
    if (groups < 0).any() and (used & (groups < 0)).any():
        first = task.table.first(tile, used & (groups < 0))
        raise InputError(
            f"it is not known to which group the trial {first} belongs; add it, or its ids, to the map or the metadata"
        )


def _refuse_contradiction(task: _Count, tile: Tile, labels: npt.NDArray[Any]) -> None:
    assert tile.labels is not None  # noqa: S101
    clash = (tile.labels != labels) & (tile.labels >= 0) & (labels >= 0)
    if clash.any():
        first = task.table.first(tile, clash)
        raise InputError(f"labels do not agree with the key, such as that of {first}; correct one of the two")


def summarize_groups(
    scores: npt.NDArray[Any], labels: npt.NDArray[np.int8], groups: npt.NDArray[np.integer], **options: Any
) -> dict[int, ScoreSummary]:
    """Count the scores of each group into a summary of its own.

    Parameters
    ----------
    scores, labels
        As in `summarize`, of any shape.
    groups
        A number from 0 for each score; scores of negative ones are left out. Of the same shape, or of one that NumPy
        can spread to it.
    **options
        Of `summarize`.

    Examples
    --------
    >>> found = summarize_groups(np.array([2.0, -1.0, 0.5]), np.array([1, 0, 1], np.int8), np.array([7, 7, 0]))
    >>> {group: (summary.n_target, summary.n_nontarget) for group, summary in found.items()}
    {0: (1, 0), 7: (1, 1)}
    """
    from evenscore.metrics.kernels import sort_by_group

    most = int(groups.max(initial=-1))
    if most >= 0 and (groups == most).all():
        return {most: summarize(scores, labels, **options)}
    code = np.broadcast_to(groups, scores.shape).ravel().astype(np.int64, copy=False)
    sizes = np.bincount(code[code >= 0], minlength=most + 1)
    ends = np.cumsum(sizes)
    values, key = (np.empty(sizes.sum(), dtype=dtype) for dtype in (scores.dtype, np.int8))
    sort_by_group(scores.ravel(), labels.ravel(), code, ends - sizes, values, key)
    parts = ((int(group), slice(ends[group] - sizes[group], ends[group])) for group in np.flatnonzero(sizes))
    return {group: summarize(values[part], key[part], **options) for group, part in parts}


def total(summaries: Iterable[ScoreSummary]) -> ScoreSummary:
    """Return the summary of all scores together; there is at least one summary."""
    return reduce(add, summaries)


def equalized(groups: Mapping[str, ScoreSummary]) -> ScoreSummary:
    """Return the summary in which every group weighs the same, see `evenscore.metrics.equalized_weights`.

    Examples
    --------
    >>> groups = {"f": summarize([2.0, 1.0, -1.0], [1, 0, 0]), "m": summarize([3.0, 1.0], [1, 0])}
    >>> equalized(groups).n_nontarget
    2
    """
    return total(
        summary.scaled(*(1 / max(count, 1) for count in (summary.n_nontarget, summary.n_target)))
        for summary in groups.values()
    )


def evaluate_groups(
    groups: Mapping[str, ScoreSummary],
    together: ScoreSummary | None = None,
    *,
    equalize: bool = False,
    normalize: bool = True,
) -> EvaluationBy:
    """Return what `evenscore.evaluate_by` returns, with bounds; see `ScoreSummary.evaluate`.

    ``together`` is a summary of all groups, where there is a finer one than the sum of theirs.

    Examples
    --------
    >>> groups = {"m": summarize([3.0, 1.0], [1, 0]), "f": summarize([2.0, 2.5], [1, 1])}
    >>> result = evaluate_groups(groups)
    >>> result.pooled.n_target, result.conditions["f"].problem
    (3, 'there are no non-target trials')
    """
    together = total(groups.values()) if together is None else together
    pooled = together.evaluate(normalize=normalize)
    if equalize:
        pooled = equalized(groups).evaluate(normalize=normalize)
        pooled = replace(pooled, n_target=together.n_target, n_nontarget=together.n_nontarget)
    conditions = {
        name: figures_or_problem(groups[name], points=groups[name].points, normalize=normalize)
        for name in sorted(groups)
    }
    return EvaluationBy(pooled=pooled, conditions=conditions, equalized=equalize)
