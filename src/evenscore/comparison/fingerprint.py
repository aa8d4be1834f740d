"""What a result depends on, as a short text: other data, options or versions have another one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore._version import __version__
from evenscore.comparison.cohorts import AnyBlocks
from evenscore.comparison.judging import Judging
from evenscore.comparison.methods import Method, plain_options
from evenscore.scale import LabelledChunks
from evenscore.tables import Labels, ScoreMatrix, TrialList

__all__ = ["array_digest", "fingerprint_of", "inputs_digest"]

_PIECE = 1 << 26  # bytes hashed at a time, so that no matrix is copied whole
_SIDES = ("enroll_speakers", "test_speakers", "cohort_enroll_speakers", "cohort_test_speakers")


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


def inputs_digest(sides: Sequence[Sequence[AnyBlocks]]) -> str:
    """Return the digest of all scores, ids, labels, speakers and names of the data.

    Examples
    --------
    >>> from evenscore import LabelledBlocks, ScoreBlocks
    >>> def digest(score):
    ...     trials = TrialList.from_pairs(["e"], ["t"], scores=[score], labels=[1])
    ...     return inputs_digest([[LabelledBlocks(ScoreBlocks(trials))]])
    >>> digest(1.0) == digest(1.0), digest(1.0) == digest(1.5)
    (True, False)
    """
    seen: dict[int, str] = {}  # a matrix that is its own cohort is hashed once
    facts = [[_blocks_facts(part, seen) for part in side] for side in sides]
    return hashlib.blake2b(json.dumps(facts).encode(), digest_size=20).hexdigest()


def _blocks_facts(part: AnyBlocks, seen: dict[int, str]) -> list[Any]:
    if isinstance(part, LabelledChunks):
        return [part.name, part.blocks.identity(), part.values.identity()]
    blocks = part.blocks
    tables = [_table_facts(getattr(blocks, name), seen) for name in ("trials", "enroll", "test", "cohort")]
    speakers = [_of(getattr(blocks, name), seen) for name in _SIDES]
    labels = [_labels_facts(labels, seen) for labels in (part.labels, blocks.cohort_labels)]
    return [part.name, tables, speakers, labels]


def _table_facts(table: ScoreMatrix | TrialList | None, seen: dict[int, str]) -> Any:
    if table is None:
        return None
    names = ("enroll_ids", "test_ids", "scores")
    if isinstance(table, TrialList):
        names += ("enroll_index", "test_index", "labels")  # type: ignore[assignment]
    return [_of(getattr(table, name), seen) for name in names]


def _labels_facts(labels: Labels | None, seen: dict[int, str]) -> Any:
    if labels is None:
        return None
    if labels.by_speaker:
        return [_of(labels.enroll_speakers, seen), _of(labels.test_speakers, seen)]
    return _of(labels.matrix, seen)


def _of(array: npt.NDArray[Any] | None, seen: dict[int, str]) -> str | None:
    if array is None:
        return None
    if id(array) not in seen:
        seen[id(array)] = array_digest(array)
    return seen[id(array)]


def array_digest(array: npt.NDArray[Any]) -> str:
    """Return a digest of the shape, the type and the values of an array of numbers or ids."""
    digest = hashlib.blake2b(f"{array.dtype} {array.shape}".encode(), digest_size=20)
    if array.dtype == object:
        digest.update(json.dumps(array.tolist()).encode())
        return digest.hexdigest()
    rows = max(1, _PIECE // max(1, array[:1].nbytes)) if array.ndim else 1
    for start in range(0, len(array), rows):
        digest.update(np.ascontiguousarray(array[start : start + rows]).data)
    return digest.hexdigest()
