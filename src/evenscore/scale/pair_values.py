"""A whole number for each pair of an enrolment and a test, such as its label, without a table of all pairs.

They travel to the workers of a cluster once, and tell the numbers of a tile of a matrix, or of some listed trials.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.scale.chunked_scores import hashed
from evenscore.scale.tile_sums import key_of_tile
from evenscore.scale.tiles import Tile
from evenscore.tables import Labels, TrialList
from evenscore.tables.ids import Ids, as_ids, shown

__all__ = ["UNLISTED", "ListedValues", "OwnLabels", "PairValues", "SideGroups", "SpeakerLabels", "TableLabels"]

UNLISTED = -2  #: the number of a pair that is not listed

Numbers: TypeAlias = npt.NDArray[np.integer[Any]]


@runtime_checkable
class PairValues(Protocol):
    """Numbers of pairs."""

    def of_tile(self, tile: Tile) -> Numbers:
        """Return those of a tile, in its shape, or in one that NumPy can spread to it."""

    def of_trials(self, trials: TrialList) -> Numbers:
        """Return one for each trial."""

    def identity(self) -> str:
        """Return a text that changes when the numbers change."""


@dataclass(frozen=True, eq=False)
class ListedValues:
    """Numbers of the pairs of a list, 9 bytes or more for each; all others are `UNLISTED`.

    Examples
    --------
    >>> key = TrialList.from_pairs(["e2", "e1"], ["t1", "t2"], labels=[0, 1])
    >>> ListedValues.of(key, key.labels).align(["e1", "e2"], ["t1", "t2"]).of_tile(Tile(0, slice(0, 2), slice(0, 2)))
    array([[-2,  1],
           [ 0, -2]], dtype=int8)
    """

    enroll_ids: Ids
    test_ids: Ids
    codes: npt.NDArray[np.int64]  #: row times the number of columns plus column, rising
    values: Numbers

    @classmethod
    def of(cls, pairs: TrialList, values: Numbers) -> ListedValues:
        """Take the pairs of a list, each with a number."""
        return cls._sorted(pairs.enroll_ids, pairs.test_ids, pairs.enroll_index, pairs.test_index, values)

    @classmethod
    def of_key(cls, key: TrialList) -> ListedValues:
        """Take the labels of a key."""
        if key.labels is None:
            raise InputError("the key has no labels; give a list of trials with labels")
        return cls.of(key, key.labels)

    @classmethod
    def _sorted(cls, enroll_ids: Ids, test_ids: Ids, rows: Numbers, columns: Numbers, values: Numbers) -> ListedValues:
        codes = rows.astype(np.int64) * len(test_ids) + columns
        if (codes[1:] > codes[:-1]).all():  # as most files are
            return cls(enroll_ids, test_ids, codes, values)
        order = np.argsort(codes)
        return cls(enroll_ids, test_ids, codes[order], values[order])

    def __len__(self) -> int:
        return len(self.codes)

    def align(self, enroll_ids: Any, test_ids: Any) -> ListedValues:
        """Return the pairs of these enrolments and tests, numbered in this order; other pairs are left out."""
        new = as_ids(enroll_ids, "enroll_ids"), as_ids(test_ids, "test_ids")
        rows, columns = (
            _places(old, _place_of(ids)) for old, ids in zip((self.enroll_ids, self.test_ids), new, strict=True)
        )
        row, column = np.divmod(self.codes, max(len(self.test_ids), 1))
        row, column = rows[row], columns[column]
        here = (row >= 0) & (column >= 0)
        return self._sorted(*new, row[here], column[here], self.values[here])

    def of_tile(self, tile: Tile) -> Numbers:
        """Return the numbers of a tile."""
        width = len(self.test_ids)
        first, last = np.searchsorted(self.codes, [tile.rows.start * width, tile.rows.stop * width])
        row, column = np.divmod(self.codes[first:last], max(width, 1))
        inside = (column >= tile.columns.start) & (column < tile.columns.stop)
        found = np.full(tile.shape, UNLISTED, dtype=self.values.dtype)
        found[row[inside] - tile.rows.start, column[inside] - tile.columns.start] = self.values[first:last][inside]
        return found

    def of_trials(self, trials: TrialList) -> Numbers:
        """Return the numbers of trials."""
        if not len(self):
            return np.full(len(trials), UNLISTED, dtype=self.values.dtype)
        enroll, test = self._place_of
        row = _places(trials.enroll_ids, enroll)[trials.enroll_index]
        column = _places(trials.test_ids, test)[trials.test_index]
        codes = np.where((row < 0) | (column < 0), -1, row.astype(np.int64) * len(self.test_ids) + column)
        at = np.minimum(np.searchsorted(self.codes, codes), len(self) - 1)
        return np.where(self.codes[at] == codes, self.values[at], self.values.dtype.type(UNLISTED))

    def first_beyond(self, enroll_ids: Ids, test_ids: Ids) -> tuple[str, str] | None:
        """Return the first pair with an id that is not among these, None if there is none."""
        row, column = np.divmod(self.codes, max(len(self.test_ids), 1))
        beyond = (_places(self.enroll_ids, _place_of(enroll_ids)) < 0)[row]
        beyond |= (_places(self.test_ids, _place_of(test_ids)) < 0)[column]
        at = int(np.argmax(beyond)) if beyond.any() else -1
        return None if at < 0 else (self.enroll_ids[row[at]], self.test_ids[column[at]])

    def identity(self) -> str:
        """Return a hash of pairs and numbers."""
        return hashed(self.enroll_ids, self.test_ids, self.codes, self.values)

    @cached_property
    def _place_of(self) -> tuple[dict[str, int], dict[str, int]]:
        return _place_of(self.enroll_ids), _place_of(self.test_ids)


@dataclass(frozen=True, eq=False)
class TableLabels:
    """The labels of all pairs of a matrix, by speaker or in a table."""

    labels: Labels

    def of_tile(self, tile: Tile) -> Numbers:
        """Return the labels of a tile."""
        return key_of_tile(self.labels, tile)

    def of_trials(self, trials: TrialList) -> Numbers:
        """Return the labels of trials, found by id."""
        found = trials.join(self.labels).labels
        assert found is not None  # noqa: S101
        return found

    def identity(self) -> str:
        """Return a hash of the speakers, or of the table."""
        table = self.labels
        parts = (table.enroll_speakers, table.test_speakers) if table.by_speaker else (table.matrix,)
        return hashed(table.enroll_ids, table.test_ids, *parts)


@dataclass(frozen=True, eq=False)
class SpeakerLabels:
    """Labels of listed trials by the speakers of their ids; the names of the maps are for messages."""

    enroll: tuple[str, Mapping[str, str]]
    test: tuple[str, Mapping[str, str]]

    def of_tile(self, tile: Tile) -> Numbers:
        """Refuse: a tile has no ids; make `Labels` for a matrix."""
        raise NotImplementedError

    def of_trials(self, trials: TrialList) -> Numbers:
        """Return the labels of trials."""
        enroll = _looked_up(trials.enroll_ids, *self.enroll, "enrolment")
        test = _looked_up(trials.test_ids, *self.test, "test")
        return Labels.from_speakers(enroll, test).of_pairs(trials.enroll_index, trials.test_index)

    def identity(self) -> str:
        """Return a hash of the maps."""
        return hashed(*(sorted(side.items()) for _, side in (self.enroll, self.test)))


@dataclass(frozen=True, eq=False)
class OwnLabels:
    """The labels that listed trials bring with them."""

    def of_tile(self, tile: Tile) -> Numbers:
        """Refuse: a matrix has no labels of its own."""
        raise InputError("labels are missing; make them with Labels.from_speakers, or give a key")

    def of_trials(self, trials: TrialList) -> Numbers:
        """Return the labels of trials."""
        if trials.labels is None:
            raise InputError("the scores have no labels; give a key")
        return trials.labels

    def identity(self) -> str:
        """Return a fixed text: the labels belong to the scores."""
        return "own"


@dataclass(frozen=True, eq=False)
class SideGroups:
    """Groups of pairs by what is known of each side: a number for each enrolment, and one for each test.

    The group of a pair is ``n_test`` times the enrolment's number plus the test's; a side that does not matter is
    None. Pairs of an id that a side does not have are `UNLISTED`.

    Examples
    --------
    >>> groups = SideGroups(["e1", "e2"], np.array([0, 1]), ["t1"], np.array([2]), n_test=3)
    >>> groups.of_tile(Tile(0, slice(0, 2), slice(0, 1)))
    array([[2],
           [5]], dtype=int8)
    """

    enroll_ids: Any
    enroll: npt.NDArray[np.int64] | None
    test_ids: Any
    test: npt.NDArray[np.int64] | None
    n_test: int = 1

    def align(self, enroll_ids: Ids, test_ids: Ids) -> SideGroups:
        """Return the groups of these enrolments and tests, in this order."""
        enroll, test = self._place_of
        row, column = _taken(self.enroll, enroll_ids, enroll), _taken(self.test, test_ids, test)
        return SideGroups(enroll_ids, row, test_ids, column, self.n_test)

    def of_tile(self, tile: Tile) -> Numbers:
        """Return the groups of a tile; a side that does not matter has length 1."""
        row = np.zeros((1, 1), np.int64) if self.enroll is None else self.enroll[tile.rows][:, None]
        column = np.zeros((1, 1), np.int64) if self.test is None else self.test[tile.columns][None, :]
        return self._groups(row, column)

    def of_trials(self, trials: TrialList) -> Numbers:
        """Return the groups of trials."""
        sides = self.align(trials.enroll_ids, trials.test_ids)
        nothing = np.zeros(len(trials), dtype=np.int64)
        row = nothing if sides.enroll is None else sides.enroll[trials.enroll_index]
        column = nothing if sides.test is None else sides.test[trials.test_index]
        return self._groups(row, column)

    def _groups(self, row: npt.NDArray[np.int64], column: npt.NDArray[np.int64]) -> Numbers:
        most = self.n_test * (1 + int(row.max(initial=0))) + int(column.max(initial=0))
        small = np.min_scalar_type(-most - 1)  # a tile has many pairs
        groups = (self.n_test * row).astype(small) + column.astype(small)
        groups[np.broadcast_to((row < 0) | (column < 0), groups.shape)] = UNLISTED
        return groups

    def identity(self) -> str:
        """Return a hash of both sides."""
        return hashed(list(self.enroll_ids), self.enroll, list(self.test_ids), self.test, self.n_test)

    @cached_property
    def _place_of(self) -> tuple[dict[str, int], dict[str, int]]:
        return _place_of(self.enroll_ids), _place_of(self.test_ids)


def _place_of(ids: Any) -> dict[str, int]:
    return {name: place for place, name in enumerate(ids)}


def _places(ids: Ids, place_of: Mapping[str, int]) -> npt.NDArray[np.int64]:
    """Return where each id stands, -1 where it does not."""
    return np.fromiter((place_of.get(name, -1) for name in ids.tolist()), dtype=np.int64, count=len(ids))


def _taken(
    numbers: npt.NDArray[np.int64] | None, ids: Ids, place_of: Mapping[str, int]
) -> npt.NDArray[np.int64] | None:
    """Return the number of each id, -1 where it has none; None if the side does not matter."""
    if numbers is None:
        return None
    places = _places(ids, place_of)
    return np.append(numbers, -1)[places]


def _looked_up(ids: Ids, path: str, speakers: Mapping[str, str], side: str) -> list[str]:
    absent = [name for name in ids if name not in speakers]
    if absent:
        raise InputError(f"{path} has no speaker for {side} {shown(absent)}; add it to the map")
    return [speakers[name] for name in ids]
