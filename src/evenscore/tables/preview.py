"""The first scores of a table, for notebooks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from evenscore.tables.html_table import html_table
from evenscore.tables.labels import NONTARGET, TARGET

if TYPE_CHECKING:
    from evenscore.tables.score_table import ScoreTable

__all__ = ["preview"]

_ROWS, _COLUMNS = 5, 8
_LABELS = {TARGET: "target", NONTARGET: "nontarget"}


def preview(table: ScoreTable) -> str:
    """Return what a table is, and its first scores if they are in memory, as HTML.

    Examples
    --------
    >>> from evenscore import TrialList
    >>> "<th>ann</th><td>utt1</td><td>4.2</td>" in preview(TrialList.from_pairs(["ann"], ["utt1"], scores=[4.2]))
    True
    """
    if not table.is_in_memory:
        return html_table([], [], repr(table))
    return _trials(table) if table.listed else _matrix(table)


def _matrix(table: Any) -> str:
    corner = table.scores[:_ROWS, :_COLUMNS]
    rest = ["…"] * (table.shape[1] > _COLUMNS)
    rows = [[name, *map(_number, row), *rest] for name, row in zip(table.enroll_ids[:_ROWS], corner, strict=True)]
    if table.shape[0] > _ROWS:
        rows.append(["…"] * (1 + corner.shape[1] + len(rest)))
    return html_table(["", *table.test_ids[:_COLUMNS], *rest], rows, repr(table))


def _trials(table: Any) -> str:
    columns: dict[str, list[str]] = {
        "enrolment": [table.enroll_ids[place] for place in table.enroll_index[:_ROWS]],
        "test": [table.test_ids[place] for place in table.test_index[:_ROWS]],
    }
    if table.scores is not None:
        columns["score"] = [_number(score) for score in table.scores[:_ROWS]]
    if table.labels is not None:
        columns["label"] = [_LABELS.get(label, "unknown") for label in table.labels[:_ROWS].tolist()]
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    if len(table) > _ROWS:
        rows.append(["…"] * len(columns))
    return html_table(list(columns), rows, repr(table))


def _number(score: float) -> str:
    return "" if math.isnan(score) else f"{score:.4g}"
