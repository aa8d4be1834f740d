"""The cohort scores of one side of the trials, read in pieces, with what must be left out marked as missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.tables.ids import Ids

__all__ = ["MEMORY", "NO_GROUP", "Codes", "Groups", "NormSides", "Rows", "Side", "coded", "speaker_codes"]

NO_GROUP = -1

#: Rows are read in pieces of about this size: large enough for matrix products, small beside anybody's memory.
PIECE_BYTES = 24e6
MEMORY = 1e9  #: bytes that cohort scores, and what is found for them, may take at a time
_ROWS, _MOST_BYTES = 128, 64e6  # of large cohorts more is read: products with few rows are slow

Rows = slice | npt.NDArray[np.intp]
Codes = npt.NDArray[np.int64]


def speaker_codes(cohort: list[Ids | None], trials: list[Ids | None]) -> dict[str, int]:
    """Give a number to each speaker that stands both in cohort and trials; only these have to be left out anywhere."""
    names = [{name for side in sides if side is not None for name in side.tolist()} for sides in (cohort, trials)]
    both = sorted((names[0] & names[1]) - {None})
    return {name: number for number, name in enumerate(both)}


def coded(values: Ids | None, codes: dict[str, int], size: int) -> Codes:
    """Return the number of each value, NO_GROUP where it has none."""
    if values is None or not codes:
        return np.full(size, NO_GROUP, dtype=np.int64)
    return np.fromiter((codes.get(name, NO_GROUP) for name in values.tolist()), dtype=np.int64, count=size)


@dataclass(frozen=True, eq=False)
class Groups:
    """Cohort members by speaker: the group of each member, and the members of each group."""

    code: Codes
    number: int

    @cached_property
    def start(self) -> Codes:
        """Where the members of each group begin in ``member``; one more entry than groups."""
        sizes = np.bincount(self.code[self.code >= 0], minlength=self.number)
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @cached_property
    def member(self) -> Codes:
        """Members of group 0, then of group 1, and so on."""
        order = np.argsort(self.code, kind="stable")
        return order[np.count_nonzero(self.code < 0) :].astype(np.int64)

    def of(self, group: int) -> Codes:
        """Return the members of one group."""
        return self.member[self.start[group] : self.start[group + 1]]

    @cached_property
    def sizes(self) -> Codes:
        """Number of members of each group."""
        return np.diff(self.start)

    def present(self, among: Codes) -> Codes:
        """Return the groups that occur among these codes and have members here, in order."""
        found = np.unique(among[among >= 0])
        return found[self.sizes[found] > 0]


@dataclass(frozen=True, kw_only=True, eq=False)
class Side:
    """Cohort scores of one side: a row for each of its elements, a column for each cohort member.

    Attributes
    ----------
    name
        ``"enroll"``, ``"test"`` or ``"cohort"``.
    ids, cohort_ids
        Ids of the rows and columns.
    read
        Gives the scores of some rows, in C order; NaN is missing. The next call of the same thread may overwrite them.
    fresh
        Whether what ``read`` gives may be written to.
    speaker
        Group of each row; the members of that group are left out of the row.
    groups
        Groups of the columns.
    condition, cohort_condition
        If given, a row with a condition (not NO_GROUP) keeps only the columns of the same one.
    columns
        A block of scores whose columns are this side's rows, if there is one: its sums need no transposed copy.
    itemsize
        Bytes of a score.
    """

    name: str
    ids: Ids
    cohort_ids: Ids
    read: Callable[[Rows], npt.NDArray[Any]]
    fresh: bool
    speaker: Codes
    groups: Groups
    condition: Codes | None = None
    cohort_condition: Codes | None = None
    columns: npt.NDArray[Any] | None = None
    itemsize: int = 8

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of cohort members."""
        return len(self.ids), len(self.cohort_ids)

    @cached_property
    def masks(self) -> bool:
        """Whether some scores are to be left out: own speakers, or other conditions."""
        return self.condition is not None or len(self.groups.present(self.speaker)) > 0

    def scores(self, rows: Rows) -> npt.NDArray[Any]:
        """Return the scores of some rows, NaN where one is missing or is to be left out."""
        X = self.read(rows)
        if not self.masks:
            return X
        X = X if self.fresh else X.copy()
        own = self.speaker[rows]
        for group in self.groups.present(own):
            X[np.ix_(np.flatnonzero(own == group), self.groups.of(group))] = np.nan
        if self.condition is not None and self.cohort_condition is not None:
            condition = self.condition[rows][:, None]
            X[(condition >= 0) & (condition != self.cohort_condition[None, :])] = np.nan
        return X

    def pieces(self, beside: int = 0, within: tuple[int, int] | None = None, share: int = 1) -> Iterator[slice]:
        """Split the rows so that the scores of a piece, and ``beside`` bytes more per row, fit into the memory.

        A piece has at least one row; ``within`` splits only a range of the rows; ``share``: how many pieces are worked
        on at a time.
        """
        each = self.shape[1] * self.itemsize * (2 if self.masks else 1) + beside
        wanted = max(PIECE_BYTES + beside, min(_ROWS * each, _MOST_BYTES))
        step = max(1, int(min(MEMORY / share, wanted) // max(each, 1)))
        first, last = (0, self.shape[0]) if within is None else within
        for start in range(first, last, step):
            yield slice(start, min(start + step, last))


@dataclass(frozen=True, kw_only=True, eq=False)
class NormSides:
    """The cohort scores that a norm reads: of the enrolments, of the tests, and of the cohort against itself.

    Attributes
    ----------
    enroll, test
        The two sides; a side that the method does not need may be None.
    cohort
        For ZT and TZ: its rows are the members that the second side is compared with (the enrolment cohort for ZT,
        the test cohort for TZ), its columns those of the first side; pairs that are not known to be non-targets are
        NaN.
    enroll_speaker, test_speaker
        Group of each enrolment and of each test of the trials.
    """

    enroll: Side | None
    test: Side | None
    cohort: Side | None = None
    enroll_speaker: Codes
    test_speaker: Codes

    def speaker_of_other(self, side: Side) -> Codes:
        """Return the groups of the elements of the other side."""
        return self.test_speaker if side.name == "enroll" else self.enroll_speaker

    @property
    def speakers_meet(self) -> bool:
        """Whether some statistics differ by trial: one side's speakers stand in a cohort that is not their own."""
        for side in (self.enroll, self.test):
            if side is not None and len(side.groups.present(self.speaker_of_other(side))):
                return True
        if self.cohort is None:
            return False
        return any(len(self.cohort.groups.present(codes)) for codes in (self.enroll_speaker, self.test_speaker))
