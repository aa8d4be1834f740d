"""A value for each trial from a column: of the score file itself, or of a metadata file about one side or both."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.quality import measured
from evenscore.errors import InputError
from evenscore.tables import Axis, Place, ScoreTable, Tile, TrialList
from evenscore.tables.arrays import hashed
from evenscore.tables.ids import first_repeat, shown
from evenscore.tables.pair_values import ListedValues, PairValues, Renumbered, SideGroups, labels_for

if TYPE_CHECKING:
    from evenscore.files.metadata import Metadata

__all__ = ["Measures", "conditions_of", "grouped_by"]

EMPTY = "(empty)"  #: the condition of trials for which the metadata has no value
_SIDES = {"enroll": "enrolment", "test": "test"}
_OF_BOTH = ("pair", "same")  # what stands before a column whose values of both sides count


def grouped_by(scores: ScoreTable, metadata: Metadata, column: str) -> tuple[tuple[str, ...], PairValues]:
    """Return the conditions that a column of the metadata gives to trials: their names, and which one each pair has.

    The metadata have a row for each trial, or for each enrolment or test; ``enroll:`` or ``test:`` before the name of
    the column says whose value is meant. With ``pair:`` it is the values of both, with ``same:`` whether they agree.
    """
    kind, _, rest = column.partition(":")
    if kind in _OF_BOTH and column not in metadata.columns:
        return _by_both(scores, metadata, kind, rest)
    side, name = _named_column(metadata, column)
    texts = [value or EMPTY for value in metadata.columns[name]]
    names = tuple(sorted(set(texts)))
    place = {text: number for number, text in enumerate(names)}
    return names, _of_rows(scores, metadata, side, name, np.array([place[text] for text in texts], dtype=np.int64))


def _by_both(
    scores: ScoreTable, metadata: Metadata, kind: str, column: str
) -> tuple[tuple[str, ...], SideGroups | Renumbered]:
    """Return the conditions that the two values of a pair make."""
    _, name = _named_column(metadata, column)
    if len(metadata.ids) == 2 or metadata.side is not None:
        about = "trials" if len(metadata.ids) == 2 else "one side"
        raise InputError(
            f"'{kind}:{name}' looks at both sides of a trial, but the rows of {metadata.path} are about {about}; give "
            "a file with a row for each id"
        )
    texts = [value or EMPTY for value in metadata.columns[name]]
    values = sorted(set(texts))
    place = {text: number for number, text in enumerate(values)}
    known = {key: place[text] for key, text in zip(_ids_of_rows(metadata), texts, strict=True)}
    groups = SideGroups.by_name(known, known, len(values)).align(scores.enroll_axis, scores.test_axis)
    pairs = list(product(values, values))
    if kind == "pair":
        return tuple(f"{enroll}-{test}" for enroll, test in pairs), groups
    agreement = [EMPTY if EMPTY in pair else "same" if pair[0] == pair[1] else "different" for pair in pairs]
    names = tuple(sorted(set(agreement)))
    return names, Renumbered(groups, np.array([names.index(text) for text in agreement]))


def conditions_of(trials: TrialList, metadata: Metadata, column: str) -> npt.NDArray[np.object_]:
    """Return the text of a column for each trial in memory, as in `grouped_by`."""
    names, groups = grouped_by(trials, metadata, column)
    tile = Tile(np.empty(len(trials)), trials.enroll_index, trials.test_index)
    axes = trials.enroll_axis, trials.test_axis
    return np.asarray(np.array(names, dtype=object)[_of_each(tile, axes, groups, metadata.path)])


@dataclass(frozen=True, eq=False)
class Measures:
    """Quality measures of any tile of a table, from its own columns, else from metadata.

    `evenscore.calibrate.quality` tells how names are spelled; ``enroll:`` or ``test:`` before the name of a column says
    whose value of the metadata is meant, and so does ``_e`` or ``_t`` after it.
    """

    names: tuple[str, ...]
    columns: Mapping[str, _Column]  #: those of the metadata
    axes: tuple[Axis, Axis]

    @classmethod
    def on(cls, scores: ScoreTable, metadata: Sequence[Metadata], names: Sequence[str]) -> Measures:
        """Find the columns that the names need; one that is nowhere is refused."""
        first = scores.source.read(Place(0, slice(0, min(1, scores.size)))) if scores.listed else None
        own = () if first is None else tuple(first.measures)
        columns: dict[str, _Column] = {}

        def look_up(column: str) -> npt.NDArray[np.float64]:
            if column not in own and column not in columns:
                columns[column] = _Column.on(scores, metadata, column, own)
            return np.empty(0)

        for name in names:
            if name not in own:  # else it is there as it is spelled: somebody has put it together
                measured(name, look_up)
        return cls(tuple(names), columns, (scores.enroll_axis, scores.test_axis))

    def of(self, tile: Tile) -> npt.NDArray[np.float64]:
        """Return the measures of a tile, along one more axis."""

        def look_up(column: str) -> npt.NDArray[np.float64]:
            if column in tile.measures:
                return tile.measures[column].astype(np.float64)
            return self.columns[column].of(tile, self.axes)

        found = [look_up(name) if name in tile.measures else measured(name, look_up) for name in self.names]
        for name, values in zip(self.names, found, strict=True):
            absent = ~np.isfinite(values).reshape(-1)
            if absent.any():
                place = tile.position(int(np.argmax(absent)))
                pair = tuple(axis.ids[at] for axis, at in zip(self.axes, place, strict=True))
                above = "log:" in name or "ratio:" in name
                remedy = "logarithms and ratios need values above 0" if above else "add it, or drop the trial"
                raise InputError(f"the measure {name!r} has no finite value for the trial {pair}; {remedy}")
        return np.stack(found, axis=-1)

    def identity(self) -> str:
        """Return a text that changes when the measures change; those of the table itself are in its own."""
        return hashed(*self.names, *(part for column in self.columns.values() for part in column.identities))


@dataclass(frozen=True, eq=False)
class _Column:
    """Numbers of the rows of metadata, and which row each pair has."""

    path: str
    values: npt.NDArray[np.float64]
    rows: PairValues

    @classmethod
    def on(cls, scores: ScoreTable, metadata: Sequence[Metadata], column: str, own: Sequence[str]) -> _Column:
        if not metadata:
            known = f"they have {', '.join(own)}" if own else "they have none of their own"
            raise InputError(
                f"the scores have no measure {column!r} ({known}); give a file that has it with --metadata"
            )
        found = [table for table in metadata if _sided(table, column)[1] in table.columns]
        table = (found or metadata)[0]
        side, name = _named_column(table, column)
        values = [_number(value, table.path, name) for value in table.columns[name]]
        return cls(table.path, np.array(values), _of_rows(scores, table, side, name, np.arange(len(values))))

    def of(self, tile: Tile, axes: tuple[Axis, Axis]) -> npt.NDArray[np.float64]:
        return np.asarray(self.values[_of_each(tile, axes, self.rows, self.path)])

    @property
    def identities(self) -> tuple[Any, ...]:
        return self.values, self.rows.identity()


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


def _of_each(tile: Tile, axes: tuple[Axis, Axis], values: PairValues, path: str) -> npt.NDArray[Any]:
    """Return the numbers of all trials; one without a number is an error that says what the metadata lacks."""
    found = np.broadcast_to(values.of(tile), tile.scores.shape)
    if found.min(initial=0) < 0:
        raise InputError(f"{path} has no row for {_absent(tile, axes, values, found < 0)}; add it")
    return found


def _absent(tile: Tile, axes: tuple[Axis, Axis], values: PairValues, absent: npt.NDArray[np.bool_]) -> str:
    places = [tile.position(at) for at in np.flatnonzero(absent.reshape(-1)).tolist()]
    values = values.values if isinstance(values, Renumbered) else values
    if isinstance(values, SideGroups):
        for side, known in enumerate((values.enroll, values.test)):
            lacking = sorted({place[side] for place in places if known is not None and known[place[side]] < 0})
            if lacking:
                return f"{tuple(_SIDES.values())[side]} {shown(axes[side].ids[lacking])}"
    first = tuple(axis.ids[at] for axis, at in zip(axes, places[0], strict=True))
    return f"{len(places)} of the {absent.size} trials, first {first}"


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
