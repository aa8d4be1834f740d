"""A value for each trial from a column: of the score file itself, or of a metadata file about one side or both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.tables import TrialList
from evenscore.tables.ids import first_repeat, shown

if TYPE_CHECKING:
    from evenscore.files.metadata import Metadata

__all__ = ["EMPTY", "conditions_of", "named_column", "numbers_of", "only_side", "row_of_id"]

EMPTY = "(empty)"  #: the condition of trials for which the metadata has no value
_SIDES = {"enroll": "enrolment", "test": "test"}


def conditions_of(trials: TrialList, metadata: Metadata, column: str) -> npt.NDArray[np.object_]:
    """Return the text of a column for each trial.

    Parameters
    ----------
    trials
        The trials.
    metadata
        A row for each trial, or for each enrolment or test.
    column
        Name of a column; ``enroll:`` or ``test:`` before it says whose value is meant.

    Examples
    --------
    >>> from evenscore.files.metadata import Metadata
    >>> metadata = Metadata(path="meta", columns={"id": ["t1", "t2"], "phone": ["old", "new"]}, ids=("id",))
    >>> conditions_of(TrialList.from_pairs(["e1", "e1"], ["t2", "t1"]), metadata, "phone")
    array(['new', 'old'], dtype=object)
    """
    rows, values = _looked_up(trials, metadata, column)
    texts = np.array([value or EMPTY for value in values], dtype=object)
    return np.asarray(texts[rows])


def numbers_of(trials: TrialList, metadata: Metadata | None, column: str) -> npt.NDArray[np.float64]:
    """Return the number of a column for each trial: of the trials' own measures, else of the metadata.

    Examples
    --------
    >>> numbers_of(TrialList.from_pairs(["e1"], ["t1"], measures={"snr": [20]}), None, "snr")
    array([20.])
    """
    if column in trials.measures:
        numbers = trials.measures[column].astype(np.float64)
    elif metadata is None:
        own = f"they have {', '.join(trials.measures)}" if trials.measures else "they have none of their own"
        raise InputError(f"the scores have no measure {column!r} ({own}); give a file that has it with --metadata")
    else:
        rows, values = _looked_up(trials, metadata, column)
        numbers = np.array([_number(value, metadata.path, column) for value in values])[rows]
    absent = ~np.isfinite(numbers)
    if absent.any():
        pair = trials.pair(int(np.argmax(absent)))
        raise InputError(f"the measure {column!r} has no finite value for the trial {pair}; add it, or drop the trial")
    return numbers


def _number(text: str, path: str, column: str) -> float:
    try:
        return float(text) if text else math.nan
    except ValueError:
        raise InputError(f"{path}[{column}]: {text!r} is not a number, but a measure must be") from None


def _looked_up(trials: TrialList, metadata: Metadata, name: str) -> tuple[npt.NDArray[Any], Sequence[str]]:
    """Return for each trial its row in a column, and the column."""
    side, column = named_column(metadata, name)
    if len(metadata.ids) == 2:
        return _rows_of_pairs(trials, metadata), metadata.columns[column]
    return _rows_of_ids(trials, metadata, side, column), metadata.columns[column]


def named_column(metadata: Metadata, name: str) -> tuple[str | None, str]:
    """Return the side that is named before a column, if any, and the column."""
    prefix, colon, rest = name.partition(":")
    side = prefix if colon and prefix in _SIDES and name not in metadata.columns else None
    column = rest if side else name
    if column not in metadata.columns:
        raise InputError(f"{metadata.path} has no column {column!r}; it has {shown(metadata.columns, most=20)}")
    if len(metadata.ids) == 2 and side:
        raise InputError(f"the rows of {metadata.path} are about trials, not about one side; leave out '{side}:'")
    return side, column


def _rows_of_pairs(trials: TrialList, metadata: Metadata) -> npt.NDArray[Any]:
    enroll, test = (metadata.columns[name] for name in metadata.ids)
    try:
        rows = trials.match(TrialList.from_pairs(enroll, test))
    except InputError as error:
        raise InputError(f"{metadata.path}: {error}") from None
    if (rows < 0).any():
        count, pair = int(np.count_nonzero(rows < 0)), trials.pair(int(np.argmin(rows)))
        raise InputError(f"{metadata.path} has no row for {count} of the {len(trials)} trials, first {pair}; add it")
    return rows


def _rows_of_ids(trials: TrialList, metadata: Metadata, side: str | None, column: str) -> npt.NDArray[Any]:
    place = row_of_id(metadata)
    absent = {one: [name for name in getattr(trials, f"{one}_ids") if name not in place] for one in _SIDES}
    chosen = side or metadata.side or only_side(absent, metadata, column)
    if absent[chosen]:
        raise InputError(f"{metadata.path} has no row for {_SIDES[chosen]} {shown(absent[chosen])}; add it")
    rows = np.array([place[name] for name in getattr(trials, f"{chosen}_ids")], dtype=np.intp)
    return np.asarray(rows[getattr(trials, f"{chosen}_index")])


def row_of_id(metadata: Metadata) -> dict[str, int]:
    """Return the row of each id, where rows are about one side."""
    ids = metadata.columns[metadata.ids[0]]
    repeated = first_repeat(ids)
    if repeated is not None:
        raise InputError(f"{metadata.path} has {repeated!r} more than once in the column {metadata.ids[0]!r}; keep one")
    return {name: row for row, name in enumerate(ids)}


def only_side(absent: dict[str, list[str]], metadata: Metadata, column: str) -> str:
    """Return the side whose ids all stand in the metadata; if it is neither, that with fewer absent ids."""
    if not absent["enroll"] and not absent["test"]:
        raise InputError(
            f"{metadata.path} has both the enrolments and the tests, so {column!r} can mean two things; "
            f"say enroll:{column} or test:{column}"
        )
    return min(absent, key=lambda side: len(absent[side]))
