"""Trials in long form: one line per pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.memory import refuse_too_large
from evenscore.tables.arrays import as_scores, extremes, frozen, no_score, same_array, span, usable
from evenscore.tables.axis import Axis, as_axis, merged
from evenscore.tables.ids import Ids, IdsLike, encode
from evenscore.tables.labels import NONTARGET, TARGET, UNKNOWN, Labels
from evenscore.tables.pairs import (
    any_repeated_pair,
    as_index,
    as_trial_labels,
    check_length,
    first_repeated_pair,
    match_pairs,
    pair_codes,
    slip_of_trial,
)
from evenscore.tables.score_matrix import ScoreMatrix
from evenscore.tables.score_table import Listed, ScoreTable
from evenscore.tables.tile import Cuts, Tile

__all__ = ["TrialList"]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class TrialList(ScoreTable):
    """A list of trials in memory; ids are stored once, and each trial holds two small numbers that point to them.

    Parameters
    ----------
    enroll_ids, test_ids
        Unique ids of the two sides, or axes, which may know their speakers.
    enroll_index, test_index
        For each trial the positions of its two ids. No pair may occur twice.
    scores
        One finite score per trial (float32 or float64), if there are scores.
    labels
        One label per trial, if there are labels: 1 (target), 0 (non-target), -1 (unknown).
    measures
        Further numbers per trial by name, such as quality measures; NaN where one is absent.
    allow_infinite
        Accept infinite scores, as log-likelihood ratios may be (-inf: certainly not a target).

    Examples
    --------
    >>> trials = TrialList.from_pairs(["e1", "e1", "e2"], ["t1", "t2", "t1"], scores=[2.0, -1.0, 0.5], labels=[1, 0, 0])
    >>> trials
    TrialList(3 trials of 2 enrolments and 2 tests, 1 target, 2 non-target, 0 unknown, scores -1 to 2)
    >>> trials.to_matrix().scores
    array([[ 2. , -1. ],
           [ 0.5,  nan]])
    """

    enroll_axis: Axis
    test_axis: Axis
    enroll_index: npt.NDArray[np.int32]
    test_index: npt.NDArray[np.int32]
    scores: npt.NDArray[Any] | None
    labels: npt.NDArray[np.int8] | None
    measures: Mapping[str, npt.NDArray[Any]]
    is_in_memory = True

    def __init__(
        self,
        enroll_ids: IdsLike | Axis,
        test_ids: IdsLike | Axis,
        enroll_index: npt.ArrayLike,
        test_index: npt.ArrayLike,
        *,
        scores: npt.ArrayLike | None = None,
        labels: npt.ArrayLike | None = None,
        measures: Mapping[str, npt.ArrayLike] | None = None,
        allow_infinite: bool = False,
    ) -> None:
        set_field = object.__setattr__
        set_field(self, "enroll_axis", as_axis(enroll_ids, "enroll_ids"))
        set_field(self, "test_axis", as_axis(test_ids, "test_ids"))
        set_field(self, "enroll_index", as_index(enroll_index, len(self.enroll_axis), "enroll"))
        set_field(self, "test_index", as_index(test_index, len(self.test_axis), "test"))
        size = len(self.enroll_index)
        check_length(len(self.test_index), size, "test_index")
        if any_repeated_pair(self.enroll_index, self.test_index, *self.shape):
            _, later = first_repeated_pair(self._codes())  # type: ignore[misc]
            raise InputError(f"the trial {self.pair(later)} is listed more than once; keep one of them")
        set_field(self, "scores", None if scores is None else self._checked_scores(scores, allow_infinite))
        set_field(self, "labels", None if labels is None else as_trial_labels(labels, size))
        checked = {}
        for name, values in (measures or {}).items():
            checked[name] = frozen(as_scores(values, f"measure {name!r}", ndim=1))
            check_length(len(checked[name]), size, f"measure {name!r}")
        set_field(self, "measures", MappingProxyType(checked))

    @classmethod
    def from_pairs(
        cls,
        enroll: IdsLike,
        test: IdsLike,
        *,
        scores: npt.ArrayLike | None = None,
        labels: npt.ArrayLike | None = None,
        measures: Mapping[str, npt.ArrayLike] | None = None,
    ) -> TrialList:
        """Make a trial list from the two ids of each trial.

        Examples
        --------
        >>> TrialList.from_pairs(["e1", "e2"], ["t1", "t1"])
        TrialList(2 trials of 2 enrolments and 1 tests, no labels, no scores)
        """
        enroll_ids, enroll_index = encode(enroll, "enroll")
        test_ids, test_index = encode(test, "test")
        return cls(enroll_ids, test_ids, enroll_index, test_index, scores=scores, labels=labels, measures=measures)

    @classmethod
    def trusted(cls, enroll: Axis, test: Axis, tile: Tile) -> TrialList:
        """Return the trials of a tile, which are known to be sound: no pair is there twice, no score is NaN."""
        trials = object.__new__(cls)
        index = (frozen(np.asarray(side, dtype=np.int32)) for side in (tile.rows, tile.columns))
        names = ("enroll_axis", "test_axis", "enroll_index", "test_index", "scores", "labels", "measures")
        values = (enroll, test, *index, frozen(tile.scores), tile.labels, tile.measures)
        for name, value in zip(names, values, strict=True):
            object.__setattr__(trials, name, value)
        return trials

    def kept(self, which: npt.NDArray[np.bool_]) -> TrialList:
        """Return some trials, with all ids where they were; `select` drops those that no trial has."""
        return TrialList.trusted(self.enroll_axis, self.test_axis, self.read(*self.places()).select(which))

    @classmethod
    def of_tiles(cls, enroll: Axis, test: Axis, tiles: Sequence[Tile], dtype: Any = np.float64) -> TrialList:
        """Put tiles of a list after each other."""

        def joined(pieces: list[Any], dtype: Any) -> Any:
            if any(piece is None for piece in pieces):
                return None
            return pieces[0] if len(pieces) == 1 else np.concatenate(pieces) if pieces else np.empty(0, dtype)

        names = [name for name in (tiles[0].measures if tiles else ()) if all(name in tile.measures for tile in tiles)]
        return cls(
            enroll,
            test,
            joined([tile.rows for tile in tiles], np.int32),
            joined([tile.columns for tile in tiles], np.int32),
            scores=joined([tile.scores for tile in tiles], dtype),
            labels=joined([tile.labels for tile in tiles], np.int8) if tiles else None,
            measures={name: joined([tile.measures[name] for tile in tiles], np.float64) for name in names},
            allow_infinite=True,
        )

    def __len__(self) -> int:
        return len(self.enroll_index)

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        """Type of the scores."""
        return np.dtype(np.float64) if self.scores is None else self.scores.dtype

    @property
    def source(self) -> Listed:  # type: ignore[override]
        """The trials themselves."""
        if self.scores is None:
            raise InputError("the trials have no scores; give a score file or a score matrix")
        return Listed(Tile(self.scores, self.enroll_index, self.test_index, self.labels, measures=dict(self.measures)))

    @property
    def numbers(self) -> object:
        """The array of scores."""
        return self.scores

    @property
    def layout(self) -> Cuts:  # type: ignore[override]
        """One tile."""
        return Cuts((0, len(self)))

    def in_memory(self) -> TrialList:
        """Return the trials as they are."""
        return self

    def to_trials(self) -> TrialList:
        """Return the trials as they are; a matrix makes a list of its scores."""
        return self

    def rescored(self, scores: npt.NDArray[Any], n_missing: int = 0) -> TrialList:
        """Return the trials with other scores that are known to be finite, which nobody looks through again."""
        trials = copy(self)
        object.__setattr__(trials, "scores", frozen(scores))
        return trials

    def with_pairs(self, listed: TrialList, scores: npt.NDArray[Any]) -> TrialList:
        """Return the trials with these scores; ``listed`` is what `to_trials` returns."""
        return self.with_scores(scores.astype(self.dtype))

    def as_tile(self, place: Tile) -> Tile:
        """Return the trials as a tile, in place of the one that they were made of."""
        return self.tile

    def pair(self, place: int) -> tuple[str, str]:
        """Return the two ids of one trial."""
        return self.enroll_ids[self.enroll_index[place]], self.test_ids[self.test_index[place]]

    @property
    def enroll(self) -> Ids:
        """The enrolment id of each trial."""
        return self.enroll_ids[self.enroll_index]

    @property
    def test(self) -> Ids:
        """The test id of each trial."""
        return self.test_ids[self.test_index]

    @cached_property
    def counts(self) -> tuple[int, int, int]:
        """Numbers of target, non-target and unknown trials."""
        if self.labels is None:
            return 0, 0, len(self)
        target, nontarget = (int(np.count_nonzero(self.labels == label)) for label in (TARGET, NONTARGET))
        return target, nontarget, len(self) - target - nontarget

    n_target = property(lambda self: self.counts[0], doc="Number of target trials.")
    n_nontarget = property(lambda self: self.counts[1], doc="Number of non-target trials.")
    n_unknown = property(lambda self: self.counts[2], doc="Number of trials without a known class.")

    def select(self, which: npt.ArrayLike) -> TrialList:
        """Return the trials that are True in a mask, or that stand at the given positions; unused ids are dropped."""
        at = np.asarray(which)
        if at.dtype == bool:
            check_length(len(at), len(self), "the mask")
            at = np.flatnonzero(at)
        rows, enroll_index = np.unique(self.enroll_index[at], return_inverse=True)
        columns, test_index = np.unique(self.test_index[at], return_inverse=True)
        return TrialList(
            self.enroll_axis.take(rows),
            self.test_axis.take(columns),
            enroll_index,
            test_index,
            scores=None if self.scores is None else self.scores[at],
            labels=None if self.labels is None else self.labels[at],
            measures={name: values[at] for name, values in self.measures.items()},
            allow_infinite=self._has_infinite,
        )

    def with_scores(self, scores: npt.ArrayLike, *, allow_infinite: bool = False) -> TrialList:
        """Return the same trials with other scores."""
        return self._replace(scores=scores, allow_infinite=allow_infinite)

    def with_labels(self, labels: npt.ArrayLike | None) -> TrialList:
        """Return the same trials with these labels, one per trial, or with none."""
        return self._replace(labels=labels)

    def join(self, key: TrialList | Labels, *, unmatched: Literal["error", "drop"] = "error") -> TrialList:
        """Return the trials with the labels of a key, found by id.

        Parameters
        ----------
        key
            Labelled trials, in any order, or labels with ids.
        unmatched
            What to do with trials that stand only here or only in the key: ``"error"`` names one, ``"drop"`` leaves
            them out.

        Examples
        --------
        >>> scores = TrialList.from_pairs(["e1", "e2"], ["t1", "t1"], scores=[2.0, -1.0])
        >>> key = TrialList.from_pairs(["e2", "e1"], ["t1", "t1"], labels=[0, 1])
        >>> scores.join(key).labels
        array([1, 0], dtype=int8)
        """
        if isinstance(key, Labels):
            return self._join_labels(key, unmatched)
        if key.labels is None:
            raise InputError("the key has no labels; give a list of trials with labels")
        match = self.match(key)
        if unmatched == "error":
            self._refuse_unmatched(key, match)
        labels = np.full(len(self), UNKNOWN, dtype=np.int8)
        labels[match >= 0] = key.labels[match[match >= 0]]
        joined = self._replace(labels=labels)
        return joined if (match >= 0).all() else joined.select(match >= 0)

    def match(self, other: TrialList) -> npt.NDArray[Any]:
        """Return for each trial its position in another list, or -1 where the pair is not listed there."""
        rows, columns = other.enroll_axis.find(self.enroll_ids), other.test_axis.find(self.test_ids)
        row, column = rows[self.enroll_index], columns[self.test_index]
        codes = pair_codes(row, column, len(other.test_ids))
        codes[(row < 0) | (column < 0)] = -1
        return match_pairs(codes, other._codes(), len(other.enroll_ids) * len(other.test_ids))

    def to_matrix(self, dtype: npt.DTypeLike | None = None) -> ScoreMatrix:
        """Return the scores as a matrix; pairs that are not listed are missing."""
        if self.scores is None:
            raise InputError("the trial list has no scores, so it cannot become a score matrix")
        shape = (len(self.enroll_ids), len(self.test_ids))
        kind = np.dtype(dtype or self.scores.dtype)
        what = f"a matrix of {shape[0]} x {shape[1]} scores"
        refuse_too_large(shape[0] * shape[1] * kind.itemsize, what, "keep the trials in long form")
        matrix = np.full(shape, np.nan, dtype=kind)
        matrix[self.enroll_index, self.test_index] = self.scores
        return ScoreMatrix(matrix, self.enroll_axis, self.test_axis, missing="nan")

    @classmethod
    def concat(cls, parts: Sequence[TrialList]) -> TrialList:
        """Put lists of trials after each other; scores, labels and measures stay if all parts have them."""
        if not parts:
            raise InputError("there is nothing to concatenate; give at least one trial list")
        enroll, test = merged(part.enroll_axis for part in parts), merged(part.test_axis for part in parts)
        tiles = []
        for part in parts:
            rows, columns = enroll.find(part.enroll_ids)[part.enroll_index], test.find(part.test_ids)[part.test_index]
            tiles.append(Tile(part.scores, rows, columns, part.labels, measures=part.measures))  # type: ignore[arg-type]
        return cls.of_tiles(enroll, test, tiles)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TrialList):
            return NotImplemented
        return (
            len(self) == len(other)
            and set(self.enroll_ids) == set(other.enroll_ids)
            and set(self.test_ids) == set(other.test_ids)
            and same_array(self.enroll_axis.find(other.enroll_ids)[other.enroll_index], self.enroll_index)
            and same_array(self.test_axis.find(other.test_ids)[other.test_index], self.test_index)
            and same_array(self.scores, other.scores)
            and same_array(self.labels, other.labels)
            and self.measures.keys() == other.measures.keys()
            and all(same_array(values, other.measures[name]) for name, values in self.measures.items())
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        size = f"{len(self)} trials of {len(self.enroll_ids)} enrolments and {len(self.test_ids)} tests"
        target, nontarget, unknown = self.counts
        key = "no labels" if self.labels is None else f"{target} target, {nontarget} non-target, {unknown} unknown"
        scores = "no scores" if self.scores is None else span(self.scores)
        measures = f", measures {', '.join(self.measures)}" if self.measures else ""
        return f"TrialList({size}, {key}, {scores}{measures})"

    def _codes(self) -> npt.NDArray[np.int64]:
        return pair_codes(self.enroll_index, self.test_index, len(self.test_ids))

    def _replace(self, **fields: Any) -> TrialList:
        kept = {"scores": self.scores, "labels": self.labels, "measures": self.measures} | fields
        kept.setdefault("allow_infinite", "scores" not in fields and self._has_infinite)
        return TrialList(self.enroll_axis, self.test_axis, self.enroll_index, self.test_index, **kept)

    @property
    def _has_infinite(self) -> bool:
        return self.scores is not None and not bool(np.isfinite(self.scores).all())

    def _checked_scores(self, values: npt.ArrayLike, allow_infinite: bool) -> npt.NDArray[Any]:
        scores = as_scores(values, "scores", ndim=1)
        check_length(len(scores), len(self), "scores")
        found = extremes(scores)
        if found.n_nan or not found.are_scores:
            good = usable(scores, infinite=allow_infinite)
            if not good.all():
                place = int(np.argmin(good))
                raise InputError(f"the score of {self.pair(place)} {no_score(scores[place])}; drop the trial")
        found.refuse_tiny_spread("the scores")
        return frozen(scores)

    def _join_labels(self, key: Labels, unmatched: str) -> TrialList:
        if key.enroll_ids is None or key.test_ids is None:
            raise InputError("these labels have no ids; make them with enroll_ids and test_ids")
        rows, columns = Axis(key.enroll_ids).find(self.enroll_ids), Axis(key.test_ids).find(self.test_ids)
        row, column = rows[self.enroll_index], columns[self.test_index]
        known = (row >= 0) & (column >= 0)
        if unmatched == "error" and not known.all():
            raise InputError(f"the trial {self.pair(int(np.argmin(known)))} has a score but no label in the key")
        labels = np.full(len(self), UNKNOWN, dtype=np.int8)
        labels[known] = key.of_pairs(row[known], column[known])
        return self._replace(labels=labels) if known.all() else self._replace(labels=labels).select(known)

    def _refuse_unmatched(self, key: TrialList, match: npt.NDArray[Any]) -> None:
        remedy = "; make the two lists agree, or leave out what does not match (unmatched='drop')"
        if (match < 0).any():
            pair, count = self.pair(int(np.argmin(match))), np.count_nonzero(match < 0)
            end = f"first {pair}{slip_of_trial(pair, key) or remedy}"
            raise InputError(f"{count} of the {len(self)} scored trials are not in the key, {end}")
        if len(key) > len(self):
            unused = np.ones(len(key), dtype=bool)
            unused[match] = False
            first = f"first {key.pair(int(np.argmax(unused)))}"
            raise InputError(f"{unused.sum()} of the {len(key)} trials of the key have no score, {first}{remedy}")
