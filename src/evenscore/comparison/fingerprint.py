"""What a result depends on, as a short text: other data, options or versions have another one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from evenscore._version import __version__
from evenscore.comparison.comparison import Judging
from evenscore.comparison.methods import Method, plain_options
from evenscore.tables import LabelledBlocks, ScoreTable
from evenscore.tables.identity import hashed

__all__ = ["fingerprint_of", "inputs_digest"]


def fingerprint_of(method: Method, how: Judging, inputs: str) -> str:
    """Return the fingerprint of one method's results."""
    facts = {
        "evenscore": __version__,
        "norm": method.norm,
        "options": plain_options(method.options),
        "how": {**asdict(how), "calibration_options": plain_options(how.calibration_options)},
        "inputs": inputs,
    }
    return hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=20).hexdigest()


def inputs_digest(sides: Sequence[Sequence[LabelledBlocks]]) -> str:
    """Return the digest of all scores, ids, labels, speakers and names of the data.

    Examples
    --------
    >>> from evenscore import ScoreBlocks, TrialList
    >>> def digest(score):
    ...     trials = TrialList.from_pairs(["e"], ["t"], scores=[score], labels=[1])
    ...     return inputs_digest([[LabelledBlocks(ScoreBlocks(trials))]])
    >>> digest(1.0) == digest(1.0), digest(1.0) == digest(1.5)
    (True, False)
    """
    seen: dict[int, str] = {}  # a matrix that is its own cohort is read once
    facts = [[_facts(part, seen) for part in side] for side in sides]
    return hashlib.blake2b(json.dumps(facts).encode(), digest_size=20).hexdigest()


def _facts(part: LabelledBlocks, seen: dict[int, str]) -> list[Any]:
    blocks = part.blocks
    tables = [_table_facts(table, seen) for table in (blocks.trials, blocks.enroll, blocks.test, blocks.cohort)]
    cohort = None if blocks.cohort_labels is None else blocks.cohort_labels.identity()
    return [part.name, part.unmatched, part.values.identity(), cohort, tables]


def _table_facts(table: ScoreTable | None, seen: dict[int, str]) -> list[str] | None:
    if table is None:
        return None
    where = id(getattr(table, "scores", table.source))
    if where not in seen:
        seen[where] = table.source.identity()
    axes = (table.enroll_axis, table.test_axis)
    return [seen[where], *(hashed(axis.ids, axis.speakers) for axis in axes)]
