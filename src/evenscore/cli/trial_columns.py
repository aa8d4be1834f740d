"""A value for each trial from a column: of the score file itself, or of a metadata file about one side or both."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.quality import measured
from evenscore.errors import InputError
from evenscore.tables import ScoreTable, TrialList
from evenscore.tables.ids import first_repeat, shown
from evenscore.tables.pair_values import ListedValues, PairValues, SideGroups, labels_for

if TYPE_CHECKING:
    from evenscore.files.metadata import Metadata

__all__ = ["conditions_of", "grouped_by", "numbers_of"]

EMPTY = "(empty)"  #: the condition of trials for which the metadata has no value
_SIDES = {"enroll": "enrolment", "test": "test"}


def grouped_by(scores: ScoreTable, metadata: Metadata, column: str) -> tuple[tuple[str, ...], PairValues]:
    """Return the conditions that a column of the metadata gives to trials: their names, and which one each pair has.

    The metadata have a row for each trial, or for each enrolment or test; ``enroll:`` or ``test:`` before the name of
    the column says whose value is meant.
    """
    side, name = _named_column(metadata, column)
    texts = [value or EMPTY for value in metadata.columns[name]]
    names = tuple(sorted(set(texts)))
    place = {text: number for number, text in enumerate(names)}
    return names, _of_rows(scores, metadata, side, name, np.array([place[text] for text in texts], dtype=np.int64))


def conditions_of(trials: TrialList, metadata: Metadata, column: str) -> npt.NDArray[np.object_]:
    """Return the text of a column for each trial in memory, as in `grouped_by`."""
    names, groups = grouped_by(trials, metadata, column)
    return np.asarray(np.array(names, dtype=object)[_of_each(trials, groups, metadata)])


def numbers_of(trials: TrialList, metadata: Sequence[Metadata], name: str) -> npt.NDArray[np.float64]:
    """Return the measure of each trial that a name spells, from the trials' own columns, else from the metadata.

    `evenscore.calibrate.quality` tells how names are spelled; ``enroll:`` or ``test:`` before the name of a column says
    whose value of the metadata is meant, and so does ``_e`` or ``_t`` after it.
    """
    own = name in trials.measures  # as it is spelled: somebody else has put it together
    numbers = _column(trials, metadata, name) if own else measured(name, partial(_column, trials, metadata))
    absent = ~np.isfinite(numbers)
    if absent.any():
        pair, above = trials.pair(int(np.argmax(absent))), "log:" in name or "ratio:" in name
        remedy = "logarithms and ratios need values above 0" if above else "add it, or drop the trial"
        raise InputError(f"the measure {name!r} has no finite value for the trial {pair}; {remedy}")
    return numbers


def _column(trials: TrialList, metadata: Sequence[Metadata], column: str) -> npt.NDArray[np.float64]:
    if column in trials.measures:
        return trials.measures[column].astype(np.float64)
    if not metadata:
        own = f"they have {', '.join(trials.measures)}" if trials.measures else "they have none of their own"
        raise InputError(f"the scores have no measure {column!r} ({own}); give a file that has it with --metadata")
    found = [table for table in metadata if _sided(table, column)[1] in table.columns]
    table = (found or metadata)[0]
    side, name = _named_column(table, column)
    values = [_number(value, table.path, name) for value in table.columns[name]]
    rows = _of_rows(trials, table, side, name, np.arange(len(values)))
    return np.array(values)[_of_each(trials, rows, table)]


def _number(text: str, path: str, column: str) -> float:
    try:
        return float(text) if text else math.nan
    except ValueError:
        raise InputError(f"{path}[{column}]: {text!r} is not a number, but a measure must be") from None


def _named_column(metadata: Metadata, name: str) -> tuple[str | None, str]:
    """Return the side that is named with a column, if any, and the column."""
    side, column = _sided(metadata, name)
    if column not in metadata.columns:
        raise InputError(f"{metadata.path} has no column {column!r}; it has {shown(metadata.columns, most=20)}")
    if len(metadata.ids) == 2 and side:
        raise InputError(f"the rows of {metadata.path} are about trials, not about one side; leave out '{side}:'")
    return side, column


def _sided(metadata: Metadata, name: str) -> tuple[str | None, str]:
    prefix, colon, rest = name.partition(":")
    if colon and prefix in _SIDES and name not in metadata.columns:
        return prefix, rest
    side = {"_e": "enroll", "_t": "test"}.get(name[-2:])
    if side is None or metadata.side is not None or len(metadata.ids) == 2:
        return None, name
    return side, name if name in metadata.columns or name[:-2] not in metadata.columns else name[:-2]


def _of_rows(
    scores: ScoreTable, metadata: Metadata, side: str | None, column: str, numbers: npt.NDArray[np.int64]
) -> PairValues:
    """Give each pair the number of its row."""
    if len(metadata.ids) == 2:
        enroll, test = (metadata.columns[name] for name in metadata.ids)
        try:
            pairs = TrialList.from_pairs(enroll, test)
        except InputError as error:
            raise InputError(f"{metadata.path}: {error}") from None
        return labels_for(scores, ListedValues.of_pairs(pairs, numbers.astype(np.int32)))
    known = dict(zip(_ids_of_rows(metadata), numbers.tolist(), strict=True))
    chosen = side or metadata.side or _only_side(scores, known, metadata, column)
    sides = (known, None) if chosen == "enroll" else (None, known)
    return labels_for(scores, SideGroups.by_name(*sides))


def _of_each(trials: TrialList, values: PairValues, metadata: Metadata) -> npt.NDArray[Any]:
    """Return the numbers of all trials; one without a number is an error that says what the metadata lacks."""
    bare = trials if trials.scores is not None else trials.with_scores(np.zeros(len(trials)))
    found = values.of(bare.read(*bare.places()))
    found = np.broadcast_to(found, len(trials))
    if found.min(initial=0) < 0:
        raise InputError(f"{metadata.path} has no row for {_absent(trials, values, found < 0)}; add it")
    return found


def _absent(trials: TrialList, values: PairValues, absent: npt.NDArray[np.bool_]) -> str:
    if isinstance(values, SideGroups):
        side = "test" if values.enroll is None else "enroll"
        index: npt.NDArray[Any] = getattr(trials, f"{side}_index")
        return f"{_SIDES[side]} {shown(getattr(trials, f'{side}_ids')[np.unique(index[absent])])}"
    first = trials.pair(int(np.argmax(absent)))
    return f"{np.count_nonzero(absent)} of the {len(trials)} trials, first {first}"


def _ids_of_rows(metadata: Metadata) -> Sequence[str]:
    """Return the ids of the rows, where rows are about one side."""
    ids: Sequence[str] = metadata.columns[metadata.ids[0]]
    repeated = first_repeat(ids)
    if repeated is not None:
        raise InputError(f"{metadata.path} has {repeated!r} more than once in the column {metadata.ids[0]!r}; keep one")
    return ids


def _only_side(scores: ScoreTable, known: Mapping[str, int], metadata: Metadata, column: str) -> str:
    """Return the side whose ids all stand in the metadata; if it is neither, that with fewer absent ids."""
    sides = {"enroll": scores.enroll_ids, "test": scores.test_ids}
    absent = {side: sum(name not in known for name in ids) for side, ids in sides.items()}
    if not absent["enroll"] and not absent["test"]:
        raise InputError(
            f"{metadata.path} has both the enrolments and the tests, so {column!r} can mean two things; "
            f"say enroll:{column} or test:{column}"
        )
    return min(absent, key=absent.__getitem__)
