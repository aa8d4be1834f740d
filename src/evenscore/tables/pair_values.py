"""A whole number for each pair of an enrolment and a test: its label, its condition, its folds.

None of them is a table of all pairs. They travel to the workers of a cluster once, and tell the numbers of any tile.
`labels_for` is the one door through which labels come to a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.tables.arrays import hashed
from evenscore.tables.axis import Axis, SpeakersLike
from evenscore.tables.ids import IdsLike
from evenscore.tables.labels import TARGET, UNKNOWN, Labels
from evenscore.tables.score_table import ScoreTable
from evenscore.tables.tile import Place, Tile
from evenscore.tables.trial_list import TrialList

__all__ = [
    "MATCHING_REMEDY",
    "UNLISTED",
    "ListedValues",
    "OwnLabels",
    "PairValues",
    "SideGroups",
    "Unmatched",
    "labels_for",
    "refuse_unknown_choice",
    "table_of_labels",
]

UNLISTED = -2  #: the number of a pair that is not listed
MATCHING_REMEDY = "make the two files agree, or leave out what does not match (unmatched='drop')"

Numbers: TypeAlias = npt.NDArray[np.integer[Any]]
Unmatched: TypeAlias = Literal["error", "drop"]


@runtime_checkable
class PairValues(Protocol):
    """Numbers of the pairs of a table."""

    def of(self, tile: Tile) -> Numbers:
        """Return those of a tile, in its shape, or in one that NumPy can spread to it."""

    def identity(self) -> str:
        """Return a text that changes when the numbers change."""


def labels_for(table: ScoreTable, given: Any = None, unmatched: Unmatched = "drop") -> PairValues:
    """Return the labels of the trials of a table, wherever they come from.

    Parameters
    ----------
    table
        The scores.
    given
        `Labels`, found by id; a key, that is a list of labelled trials, which takes 9 bytes for each; a pair of maps
        from id to speaker, or of sequences, for enrolments and tests; or None for what the table knows itself: the
        labels of listed trials, else its speakers.
    unmatched
        What to do with ids of a list that `Labels` do not have: ``"drop"`` leaves their trials out, ``"error"``
        refuses them. Which trials a key lacks is seen when they are counted.

    Examples
    --------
    >>> from evenscore import ScoreMatrix
    >>> scores = ScoreMatrix([[2.0, -1.0]], ["e1"], ["t1", "t2"])
    >>> labels_for(scores, (["ann"], {"t1": "ann", "t2": "bob"})).of(scores.read(*scores.places()))
    array([[1, 0]], dtype=int8)
    >>> key = TrialList.from_pairs(["e1", "e9"], ["t2", "t1"], labels=[0, 1])
    >>> labels_for(scores, key).of(scores.read(*scores.places()))
    array([[-2,  0]], dtype=int8)
    """
    refuse_unknown_choice(unmatched)
    if given is None:
        return _own(table)
    if isinstance(given, TrialList):
        return ListedValues.of_key(given).align(table.enroll_axis, table.test_axis)
    if isinstance(given, Labels):
        return _aligned(given, table, unmatched)
    if isinstance(given, ListedValues | SideGroups):
        return given.align(table.enroll_axis, table.test_axis)
    if isinstance(given, PairValues):
        return given
    if isinstance(given, tuple) and len(given) == 2:
        return _by_speaker(*_sides(table, *given))
    raise InputError(f"labels are a {type(given).__name__}, but must be Labels, or a key: a list of labelled trials")


def table_of_labels(table: ScoreTable, labels: PairValues) -> Labels:
    """Return the labels of all pairs of a matrix; those of a key take a byte for each, and what it lacks is unknown."""
    if isinstance(labels, Labels):
        return labels
    whole = Place(0, slice(0, table.shape[0]), slice(0, table.shape[1]))
    shape = np.broadcast_to(np.float32(0), whole.shape)
    key = np.maximum(np.broadcast_to(labels.of(Tile(shape, whole.rows, whole.columns)), whole.shape), UNKNOWN)
    return Labels.from_key(key, enroll_ids=table.enroll_ids, test_ids=table.test_ids)


def refuse_unknown_choice(unmatched: object) -> None:
    """Refuse what is neither of the two things to do with trials that do not match."""
    if unmatched not in ("error", "drop"):
        raise InputError(f"unmatched is {unmatched!r}, but must be 'error' or 'drop'")


def _own(table: ScoreTable) -> PairValues:
    if table.own_labels:
        return OwnLabels()
    if table.enroll_axis.speakers is not None and table.test_axis.speakers is not None:
        return _by_speaker(table.enroll_axis, table.test_axis)
    if table.listed:
        raise InputError("the scores have no labels; give a key")
    raise InputError("labels are missing; make them with Labels.from_speakers, or give a key")


def _sides(table: ScoreTable, enroll: SpeakersLike, test: SpeakersLike) -> tuple[Axis, Axis]:
    known = table.enroll_axis.with_speakers(enroll, "enroll_speakers")
    return known, table.test_axis.with_speakers(test, "test_speakers")


def _by_speaker(enroll: Axis, test: Axis) -> Labels:
    labels = Labels.of_axes(enroll, test)
    _ = labels.speaker_codes  # so that it is made once, not in every task
    return labels


def _aligned(labels: Labels, table: ScoreTable, unmatched: Unmatched) -> PairValues:
    """Return labels in the order of a table; a list may have trials that they do not know."""
    if not table.listed:
        found = labels.align(table.enroll_ids, table.test_ids)
        if found.by_speaker:
            _ = found.speaker_codes
        return found
    if labels.enroll_ids is None or labels.test_ids is None:
        raise InputError("these labels have no ids; make them with enroll_ids and test_ids")
    places = Axis(labels.enroll_ids).find(table.enroll_ids), Axis(labels.test_ids).find(table.test_ids)
    if unmatched == "error" and any(at.size and at.min() < 0 for at in places):
        side = 0 if (places[0] < 0).any() else 1
        absent = (table.enroll_ids, table.test_ids)[side][int(np.argmin(places[side]))]
        raise InputError(f"the trials of {absent!r} have scores but no label in the key; {MATCHING_REMEDY}")
    if labels.by_speaker:
        _ = labels.speaker_codes
    return _Found(labels, *places)


@dataclass(frozen=True, eq=False)
class _Found:
    """Labels of a list, where each of its enrolments and tests stands among those of the labels, or -1."""

    labels: Labels
    rows: npt.NDArray[np.intp]
    columns: npt.NDArray[np.intp]

    def of(self, tile: Tile) -> Numbers:
        row, column = tile.pair(self.rows, self.columns)
        found = self.labels.of_pairs(row, column)
        found[(row < 0) | (column < 0)] = UNLISTED
        return found

    def identity(self) -> str:
        return hashed(self.labels.identity(), self.rows, self.columns)


@dataclass(frozen=True, eq=False)
class ListedValues:
    """Numbers of the pairs of a list, 9 bytes or more for each; all others are `UNLISTED`.

    Examples
    --------
    >>> key = TrialList.from_pairs(["e2", "e1"], ["t1", "t2"], labels=[0, 1])
    >>> values = ListedValues.of_key(key).align(Axis(np.array(["e1", "e2"])), Axis(np.array(["t1", "t2"])))
    >>> values.of(Tile(np.zeros((2, 2)), slice(0, 2), slice(0, 2)))
    array([[-2,  1],
           [ 0, -2]], dtype=int8)
    """

    enroll: Axis
    test: Axis
    codes: npt.NDArray[np.int64]  #: row times the number of columns plus column, rising
    values: Numbers
    n_beyond: int = 0  #: pairs of ids that these axes do not have
    beyond: tuple[str, str] | None = None  #: the first of them

    @classmethod
    def of_pairs(cls, pairs: TrialList, values: Numbers) -> ListedValues:
        """Take the pairs of a list, each with a number."""
        return cls._sorted(pairs.enroll_axis, pairs.test_axis, pairs.enroll_index, pairs.test_index, values)

    @classmethod
    def of_key(cls, key: TrialList) -> ListedValues:
        """Take the labels of a key."""
        if key.labels is None:
            raise InputError("the key has no labels; give a list of trials with labels")
        return cls.of_pairs(key, key.labels)

    @classmethod
    def _sorted(
        cls, enroll: Axis, test: Axis, rows: Numbers, columns: Numbers, values: Numbers, *beyond: Any
    ) -> ListedValues:
        codes = rows.astype(np.int64) * len(test) + columns
        if not (codes[1:] > codes[:-1]).all():  # as they are in most files
            order = np.argsort(codes)
            codes, values = codes[order], values[order]
        return cls(enroll, test, codes, values, *beyond)

    def __len__(self) -> int:
        """Return how many pairs are listed, those beyond the axes included."""
        return len(self.codes) + self.n_beyond

    def align(self, enroll: Axis, test: Axis) -> ListedValues:
        """Return the pairs of these enrolments and tests, numbered in this order; others are only counted."""
        rows, columns = enroll.find(self.enroll.ids), test.find(self.test.ids)
        row, column = np.divmod(self.codes, max(len(self.test), 1))
        new_row, new_column = rows[row], columns[column]
        here = (new_row >= 0) & (new_column >= 0)
        beyond = self.beyond
        if beyond is None and not here.all():
            at = int(np.argmin(here))
            beyond = self.enroll.ids[row[at]], self.test.ids[column[at]]
        count = self.n_beyond + int(np.count_nonzero(~here))
        return self._sorted(enroll, test, new_row[here], new_column[here], self.values[here], count, beyond)

    def of(self, tile: Tile) -> Numbers:
        """Return the numbers of a tile."""
        width = len(self.test)
        if tile.listed:
            if not len(self.codes):
                return np.full(tile.scores.shape, UNLISTED, dtype=self.values.dtype)
            codes = tile.rows.astype(np.int64) * width + tile.columns
            at = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
            return np.where(self.codes[at] == codes, self.values[at], self.values.dtype.type(UNLISTED))
        first, last = np.searchsorted(self.codes, [tile.rows.start * width, tile.rows.stop * width])
        row, column = np.divmod(self.codes[first:last], max(width, 1))
        inside = (column >= tile.columns.start) & (column < tile.columns.stop)
        found = np.full(tile.scores.shape, UNLISTED, dtype=self.values.dtype)
        found[row[inside] - tile.rows.start, column[inside] - tile.columns.start] = self.values[first:last][inside]
        return found

    def targets(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return where the enrolments and tests of the target pairs stand."""
        rows, columns = np.divmod(self.codes[self.values == TARGET], max(len(self.test), 1))
        return rows, columns

    def identity(self) -> str:
        """Return a hash of pairs and numbers."""
        return hashed(self.enroll.ids, self.test.ids, self.codes, self.values)


@dataclass(frozen=True, eq=False)
class OwnLabels:
    """The labels that listed trials bring with them."""

    def of(self, tile: Tile) -> Numbers:
        """Return the labels of a tile."""
        if tile.labels is None:
            raise InputError("the scores have no labels; give a key")
        return tile.labels

    def identity(self) -> str:
        """Return a fixed text: the labels belong to the scores."""
        return "own"


@dataclass(frozen=True, eq=False)
class SideGroups:
    """Groups of pairs by what is known of each side: a number for each enrolment, and one for each test.

    The group of a pair is ``n_test`` times the enrolment's number plus the test's; a side that does not matter is
    None. Pairs of an id that a side does not have, or whose number is negative, are `UNLISTED`.

    Examples
    --------
    >>> groups = SideGroups(Axis(np.array(["e1", "e2"])), np.array([0, 1]), Axis(np.array(["t1"])), np.array([2]), 3)
    >>> groups.of(Tile(np.zeros((2, 1)), slice(0, 2), slice(0, 1)))
    array([[2],
           [5]], dtype=int8)
    """

    enroll_axis: Axis
    enroll: npt.NDArray[np.int64] | None
    test_axis: Axis
    test: npt.NDArray[np.int64] | None
    n_test: int = 1

    @classmethod
    def all_one(cls) -> SideGroups:
        """Put all pairs into one group."""
        nobody = Axis(np.empty(0, dtype=object))
        return cls(nobody, None, nobody, None)

    @classmethod
    def by_name(cls, enroll: Mapping[str, int] | None, test: Mapping[str, int] | None, n_test: int = 1) -> SideGroups:
        """Take maps from id to number; None where a side does not matter."""
        from evenscore.tables.ids import as_ids

        def side(numbers: Mapping[str, int] | None) -> tuple[Axis, Any]:
            ids: IdsLike = () if numbers is None else numbers
            values = None if numbers is None else np.array(list(numbers.values()), dtype=np.int64)
            return Axis(as_ids(ids, "ids")), values

        return cls(*side(enroll), *side(test), n_test)

    def align(self, enroll: Axis, test: Axis) -> SideGroups:
        """Return the groups of these enrolments and tests, in this order."""
        rows = None if self.enroll is None else np.append(self.enroll, -1)[self.enroll_axis.find(enroll.ids)]
        columns = None if self.test is None else np.append(self.test, -1)[self.test_axis.find(test.ids)]
        return SideGroups(enroll, rows, test, columns, self.n_test)

    def of(self, tile: Tile) -> Numbers:
        """Return the groups of a tile; a side that does not matter has length 1."""
        nothing = np.zeros(1, np.int64)
        row = nothing if self.enroll is None else self.enroll[tile.rows]
        column = nothing if self.test is None else self.test[tile.columns]
        if not tile.listed:
            row, column = row[:, None], column[None, :]
        most = self.n_test * (1 + int(row.max(initial=0))) + int(column.max(initial=0))
        small = np.min_scalar_type(-most - 1)  # a tile has many pairs
        groups = (self.n_test * row).astype(small) + column.astype(small)
        groups[np.broadcast_to((row < 0) | (column < 0), groups.shape)] = UNLISTED
        return groups

    def identity(self) -> str:
        """Return a hash of both sides."""
        return hashed(self.enroll_axis.ids, self.enroll, self.test_axis.ids, self.test, self.n_test)


@dataclass(frozen=True, eq=False)
class Renumbered:
    """Other numbers for groups: a pair of number n gets ``numbers[n]``; what is not listed stays so.

    Examples
    --------
    >>> groups = SideGroups.by_name({"e1": 0, "e2": 1}, None).align(Axis(np.array(["e2", "e1"])), Axis(np.array(["t"])))
    >>> Renumbered(groups, np.array([5, 7])).of(Tile(np.zeros((2, 1)), slice(0, 2), slice(0, 1)))
    array([[7],
           [5]], dtype=int16)
    """

    values: SideGroups
    numbers: npt.NDArray[np.int64]

    def of(self, tile: Tile) -> Numbers:
        """Return the numbers of a tile."""
        found = self.values.of(tile)
        return np.where(found < 0, UNLISTED, self.numbers.astype(np.int16)[found])

    def identity(self) -> str:
        """Return a hash of both."""
        return hashed(self.values.identity(), self.numbers)
