"""Adaptive norms in which the other side of a trial says which cohort members a side takes.

select="cross"    the members with which the other side scores highest
select="profile"  the members whose own cohort scores are most like those of the other side: for the test's side, the
                  cohort models that are nearest to the trial's model (Sturim and Reynolds 2005)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evenscore.compiled import few
from evenscore.errors import InputError
from evenscore.norms.by_trial import TrialScores
from evenscore.norms.few_scores import best_members
from evenscore.norms.options import NormOptions
from evenscore.norms.sides import Codes, Rows, Side, Sides
from evenscore.norms.statistics import Summary, cross_statistics, one_row_statistics
from evenscore.tables import ScoreBlocks
from evenscore.tables.axis import Axis
from evenscore.tables.ids import shown
from evenscore.threads import in_parallel

__all__ = ["Ranking", "add_ranked_side", "ranked_one", "ranking_of"]

Array = npt.NDArray[Any]
Members = npt.NDArray[np.int32]


class Ranking(Protocol):
    """How the elements of one side of the trials rank cohort members for the other."""

    @property
    def other(self) -> Side:
        """The side that ranks."""
        ...

    @property
    def place(self) -> Members:
        """Where those that are ranked stand in the other side's cohort."""
        ...

    def near(self, rows: slice, left_out: Codes) -> Array:
        """Return how near those that are ranked are to some elements; NaN if that is not known.

        ``left_out`` are cohort members of the ranking side that must not be asked.
        """
        ...

    def askers(self, side: Side) -> Iterator[tuple[Rows, Codes]]:
        """Yield elements of the side that is ranked for, and whom of the ranking side's cohort they leave out."""
        ...


def ranking_of(select: str, side: Side, other: Side, sides: Sides, blocks: ScoreBlocks) -> Ranking:
    """Return how the elements of the other side rank the cohort of a side; blocks that have the cohort's scores."""
    if select == "profile":
        assert blocks.cohort_labels is not None  # noqa: S101  (the norm has seen to it)
        rows = "zt" if side.name == "test" else "tz"
        cohort = sides.cohort(blocks.cohort.scores, blocks.cohort_labels, rows)
        return ByProfile(other, side, cohort.scores(slice(0, cohort.shape[0])).astype(np.float64))
    odd = set(side.cohort_ids) ^ set(other.cohort_ids)
    if not odd:
        return ByMember(other, Axis(side.cohort_ids).find(other.cohort_ids).astype(np.int32))
    cohorts = {"enroll": "cohort_test", "test": "cohort_enroll"}
    ours, theirs = (sides.axes[cohorts[one.name]] for one in (side, other))
    assert ours is not None and theirs is not None  # noqa: S101, PT018  (there are scores of them)
    return BySpeaker.of(other, ours, theirs, odd)


def add_ranked_side(
    table: TrialScores, side: Side, ranking: Ranking, summary: Summary, options: NormOptions, factor: float
) -> None:
    """Add one side's normalized scores, times a factor, where the other side's elements rank its cohort."""
    most = int(side.groups.sizes[side.groups.present(side.speaker)].max(initial=0))
    length = min(side.shape[1], summary.k + summary.drop + most)
    number = ranking.other.shape[0]
    column = np.arange(number)
    for asking, left_out in ranking.askers(side):
        picked, taken = _ranked_members(ranking, left_out, length, ordered=summary.drop + most > 0)
        for rows in _pieces(side, asking, beside=42 * number):
            X = side.scores(rows)
            needed = table.needed(side.name, rows, column, number)
            needed = np.ones((len(X), number), dtype=bool) if needed is None else needed
            members = (side.groups.code, side.speaker[rows], picked, taken, needed)
            found = cross_statistics(X, members, summary, side.shape[0]).settled(options, side.ids[rows], side.what)
            at, mean, std = table.look_up(side.name, rows, column, found.mean, found.std)
            table.add(at, factor, mean, std)


def ranked_one(row: Array, other: Array, summary: Summary) -> tuple[int, float, float]:
    """Return count, location and scale of a single row over the members that the other side's row ranks highest."""
    from evenscore.norms.kernel_ranks import ranked_members

    picked, taken = np.empty((1, summary.k + summary.drop), dtype=np.int32), np.zeros(1, dtype=np.int64)
    ranked_members(other[None], summary.drop > 0, 0, 1, picked, taken)
    values = row[picked[0, summary.drop : taken[0]]]
    return one_row_statistics(values, replace(summary, k=values.size, drop=0, whole=True))


def _pieces(side: Side, rows: Rows, beside: int) -> Iterator[Rows]:
    if isinstance(rows, slice):
        yield from side.pieces(beside=beside)
        return
    for piece in side.pieces(beside=beside, within=(0, len(rows))):
        yield rows[piece]


def _ranked_members(ranking: Ranking, left_out: Codes, length: int, ordered: bool) -> tuple[Members, Codes]:
    """Return the cohort members that each element ranks highest, if ordered best first, and how many there are."""
    side = ranking.other
    picked = np.zeros((side.shape[0], length), dtype=np.int32)
    taken = np.zeros(side.shape[0], dtype=np.int64)
    for rows in side.pieces(beside=8 * len(ranking.place)):
        near = np.ascontiguousarray(ranking.near(rows, left_out))
        if few(side.shape[0], near.shape[1]):
            picked[rows], taken[rows] = best_members(near, length)
            continue
        from evenscore.norms.kernel_ranks import ranked_members

        ranks, lengths = picked[rows], taken[rows]
        in_parallel(lambda start, stop: ranked_members(near, ordered, start, stop, ranks, lengths), *near.shape)  # noqa: B023
    return ranking.place[picked], taken


_NOBODY: Codes = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class ByMember:
    """Both cohorts are the same: a member is as near as it scores."""

    other: Side
    place: Members

    def near(self, rows: slice, left_out: Codes) -> Array:
        """Return the scores."""
        return self.other.scores(rows)

    def askers(self, side: Side) -> Iterator[tuple[Rows, Codes]]:
        """Yield everybody: whom a trial leaves out is passed over in the ranking."""
        yield slice(0, side.shape[0]), _NOBODY


@dataclass(frozen=True, eq=False)
class BySpeaker:
    """The cohorts are different recordings of the same speakers: a member is as near as its speaker's mean score."""

    other: Side
    speaker: Codes  #: of each member of the other cohort
    asked: Codes  #: the speaker of each member that is ranked
    number: int  #: of speakers

    @classmethod
    def of(cls, other: Side, ours: Axis, theirs: Axis, odd: set[str]) -> BySpeaker:
        """Match two cohorts by speaker; a speaker who is not in both is an error."""
        names = [[] if axis.speakers is None else axis.speakers.tolist() for axis in (ours, theirs)]
        remedy = "use select='own', or select='profile' with the cohort against itself"
        if None in names[0] + names[1] or not all(names):
            raise InputError(
                "select='cross' needs the same cohort on both sides, or the speakers of all of its members, but "
                f"{shown(sorted(odd))} {_are(odd)} only in one of them; give speakers, or {remedy}"
            )
        apart = {*names[0]} ^ {*names[1]}
        if apart:
            raise InputError(
                "select='cross' needs the same members or the same speakers in both cohorts, but the speaker "
                f"{shown(sorted(apart))} {_are(apart)} only in one of them; {remedy}"
            )
        numbers = {name: at for at, name in enumerate(sorted({*names[0]}))}
        asked, known = (np.array([numbers[name] for name in side], dtype=np.int64) for side in names)
        return cls(other, known, asked, len(numbers))

    @cached_property
    def place(self) -> Members:
        """Everybody in order."""
        return np.arange(len(self.asked), dtype=np.int32)

    def near(self, rows: slice, left_out: Codes) -> Array:
        """Return the mean score with the recordings of each member's speaker."""
        X = self.other.scores(rows).astype(np.float64)
        there = X == X
        total, count = np.zeros((2, self.number, len(X)))
        np.add.at(total, self.speaker, np.where(there, X, 0.0).T)
        np.add.at(count, self.speaker, there.T)
        near = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)  # NaN: nothing is known
        return near[self.asked].T

    askers = ByMember.askers


def _are(some: set[str]) -> str:
    return "is" if len(some) == 1 else "are"


@dataclass(frozen=True, eq=False)
class ByProfile:
    """A member is the nearer, the less its scores against the other side's cohort differ from an element's scores."""

    other: Side
    ranked: Side  #: whose cohort is ranked
    cohort: npt.NDArray[np.float64]  #: scores of those that are ranked against the other side's cohort
    _sums: dict[tuple[int, int], tuple[Array, Array]] = field(default_factory=dict)  #: by rows

    @cached_property
    def place(self) -> Members:
        """Everybody in order."""
        return np.arange(len(self.cohort), dtype=np.int32)

    @cached_property
    def _left_out(self) -> Codes:
        """Speakers of the side that is ranked for who are in the ranking side's cohort."""
        return self.other.groups.present(self.ranked.speaker)

    def near(self, rows: slice, left_out: Codes) -> Array:
        """Return minus the mean distance of the scores that both have; an element's own speaker is not ranked."""
        X, C = self.other.scores(rows).astype(np.float64), self.cohort
        key = (rows.start, rows.stop)
        total, count = self._sums.get(key) or _distance_sums(X, C)
        if len(self._left_out):
            self._sums[key] = total, count  # those who leave out different speakers share them
        if len(left_out):
            less = _distance_sums(np.ascontiguousarray(X[:, left_out]), np.ascontiguousarray(C[:, left_out]))
            total, count = total - less[0], count - less[1]
        near = -np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)  # NaN: nothing of both
        own = self.other.speaker[rows]
        for group in self.ranked.groups.present(own):
            near[np.ix_(np.flatnonzero(own == group), self.ranked.groups.of(group))] = np.nan
        return near

    def askers(self, side: Side) -> Iterator[tuple[Rows, Codes]]:
        """Yield elements by speaker, if the ranking side's cohort knows the speaker, and all others together."""
        groups = self._left_out
        if not len(groups):
            yield slice(0, side.shape[0]), _NOBODY
            return
        rest = np.flatnonzero(~np.isin(side.speaker, groups))
        if len(rest):
            yield rest, _NOBODY
        for group in groups:
            yield np.flatnonzero(side.speaker == group), self.other.groups.of(int(group))


def _distance_sums(X: Array, C: Array) -> tuple[Array, Array]:
    """Return the sum of |x - c| over the columns that both have, and their number; all in double precision."""
    total, count = np.zeros((len(X), len(C))), np.zeros((len(X), len(C)), dtype=np.int64)
    if few(X.size, len(C)):
        apart = np.abs(X[:, None, :] - C[None])
        return np.nansum(apart, axis=2), np.count_nonzero(apart == apart, axis=2)
    from evenscore.norms.kernel_distances import distance_sums

    in_parallel(lambda start, stop: distance_sums(X, C, start, stop, total, count), len(X), C.size)
    return total, count
