"""Summaries of groups of scores, such as conditions, and what they tell together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.evaluation import figures_or_problem
from evenscore.metrics.summary import ScoreSummary, summarize

__all__ = ["equalized", "evaluate_groups", "summarize_groups", "total"]


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
    for name, summary in groups.items():
        for kind, count in (("target", summary.n_target), ("non-target", summary.n_nontarget)):
            if not count:
                raise InputError(
                    f"condition {name!r} has no {kind} trials, so it cannot weigh as much as the others; leave it out"
                )
    return total(summary.scaled(1 / summary.n_nontarget, 1 / summary.n_target) for summary in groups.values())


def evaluate_groups(
    groups: Mapping[str, ScoreSummary],
    together: ScoreSummary | None = None,
    *,
    equalize: bool = False,
    normalize: bool = True,
) -> dict[str, Any]:
    """Return what `evenscore.evaluate_by` returns, with bounds; see `ScoreSummary.evaluate`.

    ``together`` is a summary of all groups, where there is a finer one than the sum of theirs.

    Examples
    --------
    >>> groups = {"m": summarize([3.0, 1.0], [1, 0]), "f": summarize([2.0, 2.5], [1, 1])}
    >>> result = evaluate_groups(groups)
    >>> result["pooled"]["n_target"], result["conditions"]["f"]["problem"]
    (3, 'there are no non-target trials')
    """
    together = total(groups.values()) if together is None else together
    pooled = together.evaluate(normalize=normalize)
    if equalize:
        pooled = equalized(groups).evaluate(normalize=normalize)
        pooled |= {"n_target": together.n_target, "n_nontarget": together.n_nontarget}
    conditions = {
        name: figures_or_problem(groups[name], points=groups[name].points, normalize=normalize)
        for name in sorted(groups)
    }
    return {"pooled": pooled | {"equalized": equalize}, "conditions": conditions}
