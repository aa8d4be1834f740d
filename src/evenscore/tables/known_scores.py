"""Scores of a trial's own enrolment or test whose labels are known: targets among cohort scores, and further takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.tables.arrays import as_scores, hashed, same_array
from evenscore.tables.axis import Axis
from evenscore.tables.labels import NONTARGET, TARGET, UNKNOWN
from evenscore.tables.pair_values import PairValues
from evenscore.tables.score_matrix import ScoreMatrix
from evenscore.tables.score_table import ScoreTable, Source
from evenscore.tables.tile import Place, Tile

__all__ = ["OUTSIDE", "KnownScores", "without_labelled"]

OUTSIDE = -1  #: the member of a score against a recording that is not in the cohort

Index = npt.NDArray[np.intp]


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownScores:
    """Scores of the enrolments (or tests) of trials whose labels are known, few for each; all else is the cohort's.

    Attributes
    ----------
    axis
        The enrolments (or tests) of the trials.
    members
        The cohort's tests (or enrolments).
    element, member
        Where the two recordings of each score stand on these axes; `OUTSIDE` if the other one is not in the cohort.
    label
        Target, or, outside of the cohort, non-target, too.
    score
        The scores.
    """

    axis: Axis
    members: Axis
    element: Index
    member: Index
    label: npt.NDArray[np.int8]
    score: npt.NDArray[np.float64]

    @classmethod
    def of(cls, block: ScoreTable, labels: PairValues, inside: npt.NDArray[np.bool_], by_row: bool) -> KnownScores:
        """Find them in cohort scores with labels; ``inside`` tells which members are in the cohort.

        Of pairs inside the cohort only targets are taken, as its non-targets are where they belong already.
        """
        found = [_known(block, place, labels, inside, by_row) for place in block.places()]
        parts = [np.concatenate([part[n] for part in found]) if found else np.empty(0) for n in range(4)]
        axes = (block.enroll_axis, block.test_axis) if by_row else (block.test_axis, block.enroll_axis)
        return cls(
            axis=axes[0],
            members=axes[1],
            element=parts[0].astype(np.intp),
            member=parts[1].astype(np.intp),
            label=parts[2].astype(np.int8),
            score=parts[3].astype(np.float64),
        )

    @classmethod
    def of_one(cls, axis: Axis, members: Axis, linked: Index, scores: npt.NDArray[np.float64]) -> KnownScores:
        """Make targets of the one element of an axis: first those against members of the cohort, then others."""
        return cls(
            axis=axis,
            members=members,
            element=np.zeros(len(scores), dtype=np.intp),
            member=np.append(linked, np.full(len(scores) - len(linked), OUTSIDE)).astype(np.intp),
            label=np.full(len(scores), TARGET, dtype=np.int8),
            score=scores,
        )

    @classmethod
    def targets(cls, given: Mapping[str, npt.ArrayLike], axis: Axis, members: Axis | None, what: str) -> KnownScores:
        """Make targets outside of the cohort of scores by id."""
        scores = [as_scores(values, f"the known scores of {what} {name!r}", ndim=1) for name, values in given.items()]
        element = np.repeat(axis.positions(list(given), what, "the trials"), [len(values) for values in scores])
        score = np.concatenate([*scores, np.empty(0)]).astype(np.float64)
        if not np.isfinite(score).all():
            odd = list(given)[next(n for n, values in enumerate(scores) if not np.isfinite(values).all())]
            raise InputError(f"a known score of {what} {odd!r} is not finite; leave it out")
        return cls(
            axis=axis,
            members=Axis(np.empty(0, dtype=object)) if members is None else members,
            element=element,
            member=np.full(len(score), OUTSIDE, dtype=np.intp),
            label=np.full(len(score), TARGET, dtype=np.int8),
            score=score,
        )

    def __len__(self) -> int:
        return len(self.score)

    def align(self, axis: Axis, members: Axis | None) -> KnownScores:
        """Return what is known of other elements of a side, of which these may be some, and with another cohort."""
        nobody = np.full(len(self.members), OUTSIDE, dtype=np.intp)
        places = nobody if members is None else members.find(self.members.ids)
        element = axis.find(self.axis.ids)[self.element]
        kept = element >= 0
        member = np.append(places, OUTSIDE)[self.member][kept]
        everybody = self.members if members is None else members
        part = {name: getattr(self, name)[kept] for name in ("label", "score")}
        return KnownScores(axis=axis, members=everybody, element=element[kept], member=member, **part)

    def outside(self) -> KnownScores:
        """Return the same scores as if nobody were in the cohort."""
        return replace(self, member=np.full(len(self), OUTSIDE, dtype=np.intp))

    def linked(self) -> KnownScores:
        """Return the scores against members of the cohort."""
        return self._where(self.member >= 0)

    def _where(self, kept: npt.NDArray[np.bool_]) -> KnownScores:
        return replace(self, **{name: getattr(self, name)[kept] for name in ("element", "member", "label", "score")})

    def sums(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return for each element the numbers of scores outside of the cohort in either class, and their sums."""
        here = self._where(self.member < 0)
        size = len(self.axis)
        counts, totals = np.zeros((size, 2)), np.zeros((size, 2))
        for label in (NONTARGET, TARGET):
            at = here.element[here.label == label]
            counts[:, label] = np.bincount(at, minlength=size)
            totals[:, label] = np.bincount(at, here.score[here.label == label], minlength=size)
        return counts, totals

    def identity(self) -> str:
        """Return a hash of all scores and where they stand."""
        return hashed(self.axis.ids, self.members.ids, self.element, self.member, self.label, self.score)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KnownScores):
            return NotImplemented
        return all(
            same_array(getattr(self, name), getattr(other, name)) for name in ("element", "member", "label", "score")
        )

    __hash__ = None  # type: ignore[assignment]


def _known(
    block: ScoreTable, place: Place, labels: PairValues, inside: npt.NDArray[np.bool_], by_row: bool
) -> tuple[Any, ...]:
    """Return elements, members, labels and scores of the known scores of a place, which is read only if it has any."""
    key = labels.of(Tile(np.broadcast_to(np.float32(0), place.shape), place.rows, place.columns))
    own = inside[place.columns][None, :] if by_row else inside[place.rows][:, None]
    rows, columns = np.nonzero(np.broadcast_to((key == TARGET) | ((key == NONTARGET) & ~own), place.shape))
    scores = block.read(place).scores[rows, columns] if len(rows) else np.empty(0)
    there = ~np.isnan(scores)
    rows, columns = rows[there], columns[there]
    at = rows + place.rows.start, columns + place.columns.start
    element, member = at if by_row else at[::-1]
    member = np.where(inside[member], member, OUTSIDE)
    return element, member, np.broadcast_to(key, place.shape)[rows, columns], scores[there]


def without_labelled(block: ScoreTable, labels: PairValues) -> Any:
    """Return cohort scores in which those that are not known to be non-targets are missing."""
    source = _Nontargets(block.source, labels)
    if not block.is_in_memory:
        return block.with_source(source)
    whole = Place(0, slice(0, block.shape[0]), slice(0, block.shape[1]))
    scores = source.read(whole).scores
    return (
        block if scores is block.tile.scores else ScoreMatrix(scores, block.enroll_axis, block.test_axis, missing="nan")
    )


@dataclass(frozen=True, eq=False)
class _Nontargets:
    """Another source of cohort scores, of which only the non-targets are left; what has no label is one."""

    source: Source
    labels: PairValues

    def read(self, place: Place) -> Tile:
        """Return a tile."""
        tile = self.source.read(place)
        key = self.labels.of(tile)
        gone = np.broadcast_to((key == TARGET) | (key == UNKNOWN), tile.scores.shape)
        if not gone.any():
            return tile
        return tile.with_scores(np.where(gone, np.array(np.nan, dtype=tile.scores.dtype), tile.scores))

    def identity(self) -> str:
        """Return the other source's identity, and that of the labels."""
        return hashed(self.source.identity(), self.labels.identity())
