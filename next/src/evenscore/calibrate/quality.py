"""Quality measures of trials, from the columns of a table: numbers that a calibration weighs beside the score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenscore.calibrate.training import Floats
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.side import Side
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError

__all__ = ["quality_columns"]

_COMBINATIONS = {"min": np.minimum, "max": np.maximum}


def quality_columns(table: ScoreMatrix | TrialList, names: Sequence[str]) -> Floats:
    """Return the quality measures of the trials of a table, one more axis than its scores, the last.

    Parameters
    ----------
    table
        Trials whose sides, or which themselves, have columns of numbers.
    names
        A column of the trials, of one side, or ``enroll:NAME``, ``test:NAME``; ``min:NAME``, ``max:NAME``,
        ``diff:NAME`` (the higher minus the lower) and ``ratio:NAME`` (the higher over the lower) combine the columns of
        both sides, which are called NAME, or NAME_e and NAME_t. ``log:`` before any of them takes the logarithm.

    Examples
    --------
    >>> trials = TrialList(["e", "e"], ["t1", "t2"]).with_sides(
    ...     Side(["e"], columns={"dur": [3.0]}), Side(["t1", "t2"], columns={"dur": [1.0, 6.0]}))
    >>> quality_columns(trials, ["test:dur", "max:dur", "ratio:dur"])
    array([[1., 3., 3.],
           [6., 6., 2.]])
    """
    shape = table.shape if isinstance(table, ScoreMatrix) else (len(table),)
    columns = [np.broadcast_to(_measure(table, name), shape) for name in names]
    for name, values in zip(names, columns, strict=True):
        if not np.isfinite(values).all():
            raise InputError(f"the quality measure {name!r} is not a finite number in some trials; leave them out")
    return np.stack(columns, axis=-1)


def _measure(table: ScoreMatrix | TrialList, name: str) -> Floats:
    prefix, colon, rest = name.partition(":")
    if not colon:
        return _column(table, name)
    if prefix == "log":
        values = _measure(table, rest)
        return np.log(values, out=np.full(values.shape, np.nan), where=values > 0)
    if prefix in ("enroll", "test"):
        return _of_side(table, rest, prefix)
    enroll, test = _of_side(table, rest, "enroll"), _of_side(table, rest, "test")
    if prefix in _COMBINATIONS:
        return np.asarray(_COMBINATIONS[prefix](enroll, test))
    if prefix == "diff":
        return np.abs(enroll - test)
    if prefix == "ratio":
        low, high = np.minimum(enroll, test), np.maximum(enroll, test)
        return np.asarray(np.divide(high, low, out=np.full(low.shape, np.nan), where=low > 0))
    raise InputError(f"there is no quality measure {name!r}; use log:, enroll:, test:, min:, max:, diff: or ratio:")


def _column(table: ScoreMatrix | TrialList, name: str) -> Floats:
    """Return a column of the trials, or of the one side that has it."""
    if isinstance(table, TrialList) and name in table.columns:
        return table.columns[name].astype(np.float64)
    of_enroll, of_test = _known(table.enroll, name, "_e"), _known(table.test, name, "_t")
    if of_enroll is not None and of_test is not None:
        raise InputError(f"both sides have a column {name!r}; say enroll:{name} or test:{name}")
    return _of_side(table, name, "test" if of_enroll is None else "enroll")


def _known(side: Side, name: str, suffix: str) -> str | None:
    """Return the name under which a side has a measure: ``dur``, or ``dur_e`` of the enrolments."""
    stem = name.removesuffix(suffix)
    return next((known for known in (name, stem) if known in side.columns), None)


def _of_side(table: ScoreMatrix | TrialList, name: str, which: str) -> Floats:
    """Return the measure of each trial's enrolment or test; it can be broadcast over a matrix."""
    side, suffix = (table.enroll, "_e") if which == "enroll" else (table.test, "_t")
    if isinstance(table, TrialList) and name + suffix in table.columns:
        return table.columns[name + suffix].astype(np.float64)
    known = _known(side, name, suffix)
    if known is None:
        there = ", ".join(side.columns) or "none"
        raise InputError(f"the {which} side has no column {name!r}; its columns are: {there}")
    values = np.asarray(side.columns[known])
    if values.dtype.kind not in "fiu":
        raise InputError(f"the column {known!r} of the {which} side has no numbers, so it is no quality measure")
    values = values.astype(np.float64)
    if isinstance(table, TrialList):
        return values[table.rows if which == "enroll" else table.cols]
    return values[:, None] if which == "enroll" else values[None, :]
