"""From the paths of a command line to tables and score blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenscore.data.blocks import ScoreBlocks
from evenscore.data.labels import Labels
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.side import Side
from evenscore.data.trial_list import TrialList
from evenscore.errors import FileError, InputError, quoted
from evenscore.files import read_scores, read_speakers, read_trials

__all__ = ["read_blocks", "read_matrix"]

CONDITION = "condition"  #: the column that --conditions gives to every side


def read_blocks(
    trials: str,
    enroll: str | None,
    test: str | None,
    cohort: str | None,
    keys: Mapping[str, str | None],
    speakers: str | None,
    cohort_speakers: str | None,
    conditions: str | None,
    cohort_conditions: str | None,
) -> ScoreBlocks:
    """Read trials and cohort scores, with their labels, speakers and conditions; ``keys`` are labels by block."""
    scores = read_scores(trials)
    blocks = {
        name: read_matrix(path) for name, path in (("enroll", enroll), ("test", test), ("cohort", cohort)) if path
    }
    labels: dict[str, Any] = {
        f"{name}_labels": _read_key(path, name, blocks.get(name)) for name, path in keys.items() if path
    }
    if speakers is not None:
        known = read_speakers(speakers)
        scores = scores.with_speakers(_values(known, scores.enroll, speakers), _values(known, scores.test, speakers))
    if conditions is not None:
        scores = _with_conditions(scores, conditions)
    members = cohort_speakers or speakers, cohort_conditions or conditions
    for name, block in blocks.items():
        if members[0] is not None:
            known = read_speakers(members[0])
            rows = None if name == "enroll" else _values(known, block.enroll, members[0])
            block = block.with_speakers(rows, None if name == "test" else _values(known, block.test, members[0]))
        blocks[name] = block if members[1] is None else _with_conditions(block, members[1])
    return ScoreBlocks(scores, blocks.get("enroll"), blocks.get("test"), blocks.get("cohort"), **labels)


def read_matrix(path: str) -> ScoreMatrix:
    """Read scores as a matrix; pairs that a list does not have are missing."""
    scores = read_scores(path)
    return scores.to_matrix() if isinstance(scores, TrialList) else scores


def _read_key(path: str, name: str, block: ScoreMatrix | None) -> Labels | TrialList:
    """Read the labels of a block of cohort scores; every pair that it lists must be there."""
    option = "--cohort-key" if name == "cohort" else f"--{name}-key"
    if block is None:
        raise InputError(f"{option} gives labels to cohort scores; give these, too")
    key = read_trials(path)
    rows, cols = block.enroll.find(key.enroll_ids), block.test.find(key.test_ids)
    for side, found in ((key.enroll, rows), (key.test, cols)):
        if (found < 0).any():
            raise FileError(path, f"{quoted(side.ids[found < 0])} not among the scores that {option} belongs to")
    if name != "cohort":
        return key
    return Labels.from_trials(key).align(block.enroll, block.test)


def _values(known: Mapping[str, Any], side: Side, path: str) -> list[Any]:
    """Return the value of each id in a map from a file."""
    absent = [name for name in side.ids.tolist() if name not in known]
    if absent:
        raise FileError(path, f"it has no line for {quoted(absent)}; add them")
    return [known[name] for name in side.ids.tolist()]


def _with_conditions(table: Any, path: str) -> Any:
    """Return a table whose sides know their conditions; '-' stands for unknown, and so does an id that is absent."""
    known = {name: "" if value == "-" else value for name, value in read_speakers(path).items()}
    enroll, test = (side.with_columns({CONDITION: _column(known, side)}) for side in (table.enroll, table.test))
    return table.with_sides(enroll, test)


def _column(known: Mapping[str, str], side: Side) -> Any:
    import numpy as np

    return np.array([known.get(name, "") for name in side.ids.tolist()], dtype=object)
