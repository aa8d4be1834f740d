"""The cohort scores of one side of the trials, read in pieces, with what must be left out marked as missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.compiled import few
from evenscore.norms.conditions import NO_GROUP, Codes, Conditions, coded
from evenscore.tables import Axis, Labels, ScoreBlocks
from evenscore.tables.ids import Ids
from evenscore.tables.labels import NONTARGET
from evenscore.threads import in_parallel

__all__ = ["MEMORY", "NO_GROUP", "Codes", "Groups", "Rows", "Side", "Sides", "other_side", "turned"]

#: Rows are read in pieces of about this size: large enough for matrix products, small beside anybody's memory.
PIECE_BYTES = 24e6
MEMORY = 1e9  #: bytes that cohort scores, and what is found for them, may take at a time
_ROWS, _MOST_BYTES = 128, 64e6  # of large cohorts more is read: products with few rows are slow

Rows = slice | npt.NDArray[np.intp]


def other_side(name: str) -> str:
    """Return the name of the other side of the trials."""
    return "test" if name == "enroll" else "enroll"


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
    block
        The scores, in C order; NaN is missing. If they stand ``by_column``, its columns are the rows of this side.
    speaker
        Group of each row; the members of that group are left out of the row.
    groups
        Groups of the columns.
    condition, cohort_condition
        If given, a row with a condition (not NO_GROUP) keeps only the columns of the same one.
    """

    name: str
    ids: Ids
    cohort_ids: Ids
    block: npt.NDArray[Any]
    by_column: bool
    speaker: Codes
    groups: Groups
    condition: Codes | None = None
    cohort_condition: Codes | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of cohort members."""
        return len(self.ids), len(self.cohort_ids)

    @property
    def size(self) -> int:
        """Number of scores."""
        return self.block.size

    @property
    def what(self) -> str:
        """What a row is, for messages."""
        return {"enroll": "enrolment", "test": "test", "cohort": "cohort member"}[self.name]

    @cached_property
    def masks(self) -> bool:
        """Whether some scores are to be left out: own speakers, or other conditions."""
        return self.condition is not None or len(self.groups.present(self.speaker)) > 0

    def scores(self, rows: Rows) -> npt.NDArray[Any]:
        """Return the scores of some rows in C order, NaN where one is missing or is to be left out."""
        X = turned(self.block, rows) if self.by_column else np.ascontiguousarray(self.block[rows])
        if not self.masks:
            return X
        X = X if self.by_column else X.copy()
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
        each = self.shape[1] * self.block.itemsize * (2 if self.masks else 1) + beside
        wanted = max(PIECE_BYTES + beside, min(_ROWS * each, _MOST_BYTES))
        step = max(1, int(min(MEMORY / share, wanted) // max(each, 1)))
        first, last = (0, self.shape[0]) if within is None else within
        for start in range(first, last, step):
            yield slice(start, min(start + step, last))


@dataclass(frozen=True, eq=False)
class Sides:
    """Who stands on both sides of the trials and in their cohorts: from this follows what a side leaves out."""

    axes: Mapping[str, Axis | None]  #: ``enroll`` and ``test`` of the trials, ``cohort_enroll`` and ``cohort_test``
    conditions: Conditions

    @classmethod
    def of(cls, blocks: ScoreBlocks, conditions: Conditions | None = None) -> Sides:
        """Take the axes of blocks."""
        trials, rows, columns = blocks.trials, blocks.cohort_enroll_axis, blocks.cohort_test_axis
        axes = {"enroll": trials.enroll_axis, "test": trials.test_axis, "cohort_enroll": rows, "cohort_test": columns}
        return cls(axes, conditions or Conditions())

    @cached_property
    def _codes(self) -> dict[str, int]:
        """A number for each speaker who stands both in cohort and trials; only these must be left out anywhere."""
        trials, cohort = (
            {name for names in map(self._names, sides) if names is not None for name in names.tolist()}
            for sides in (("enroll", "test"), ("cohort_enroll", "cohort_test"))
        )
        return {name: number for number, name in enumerate(sorted((trials & cohort) - {None}))}

    @cached_property
    def speaker(self) -> dict[str, Codes]:
        """The group of each element, by the name of its axis; NO_GROUP of those who need not be left out."""
        return {
            name: coded(self._names(name), self._codes, 0 if axis is None else len(axis))
            for name, axis in self.axes.items()
        }

    def _names(self, name: str) -> Ids | None:
        axis = self.axes[name]
        return None if axis is None else axis.speakers

    def side(self, name: str, block: npt.NDArray[Any], at: slice | None = None) -> Side:
        """Return the cohort scores of the enrolments, or of the tests, or of some of them."""
        block, by_column = np.ascontiguousarray(block), name == "test"
        return self._side(name, block, by_column, (name, "cohort_enroll" if by_column else "cohort_test"), at)

    def cohort(
        self,
        block: npt.NDArray[Any],
        labels: Labels,
        method: str,
        rows: slice | None = None,
        columns: slice | None = None,
    ) -> Side:
        """Return the cohort against itself: for ZT its enrolments have rows, for TZ its tests.

        Pairs that are not known to be non-targets become NaN. As the labels leave out what is of one speaker, only the
        conditions of the two cohorts must agree.
        """
        if labels.n_nontarget != block.size:
            block = np.where(labels.matrix == NONTARGET, block, np.array(np.nan, dtype=block.dtype))
        names, at = ("cohort_enroll", "cohort_test"), rows
        if method == "tz":
            names, at = names[::-1], columns
        return self._side("cohort", np.ascontiguousarray(block), method == "tz", names, at)

    def _side(
        self, name: str, block: npt.NDArray[Any], by_column: bool, names: tuple[str, str], at: slice | None
    ) -> Side:
        axis, members = (self.axes[side] for side in names)
        assert axis is not None and members is not None  # noqa: S101, PT018  (there are scores of them)
        at = slice(None) if at is None else at
        ids, own = axis.ids[at], self.speaker[names[0]][at]
        condition, cohort_condition = self.conditions.codes(names[0], ids, names[1], members.ids)
        return Side(
            name=name,
            ids=ids,
            cohort_ids=members.ids,
            block=block,
            by_column=by_column,
            speaker=np.full(len(own), NO_GROUP, dtype=np.int64) if name == "cohort" else own,
            groups=self.groups(names[1]),
            condition=condition,
            cohort_condition=cohort_condition,
        )

    def groups(self, cohort: str) -> Groups:
        """Return the members of a cohort by speaker."""
        return Groups(self.speaker[cohort], len(self._codes))

    def others(self, name: str) -> Codes:
        """Return the groups that a side leaves out because of the speakers of the other side."""
        return self.groups("cohort_test" if name == "enroll" else "cohort_enroll").present(
            self.speaker[other_side(name)]
        )

    def meet(self, needs: tuple[str, ...]) -> bool:
        """Tell whether some statistics differ by trial: one side's speakers stand in a cohort that is not their own."""
        if "cohort" in needs:
            return bool(self._codes)
        return any(len(self.others(name)) for name in needs)


def turned(block: npt.NDArray[Any], columns: Rows = slice(None)) -> npt.NDArray[Any]:
    """Return some columns of a block as rows, in C order; never the block itself."""
    if few(block.size):
        return np.array(block[:, columns].T, order="C")
    from evenscore.norms.kernel_apply import transpose

    if isinstance(columns, slice):
        first, end, _ = columns.indices(block.shape[1])
    else:
        block, first, end = block[:, columns], 0, len(columns)
    block = np.ascontiguousarray(block)
    out = np.empty((end - first, len(block)), dtype=block.dtype)
    in_parallel(lambda start, stop: transpose(block, first, start, stop, out), *out.shape)
    return out
