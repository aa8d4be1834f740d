"""Scores of every enrolment against every test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.tables.arrays import as_scores, extremes, frozen, in_type, no_score, same_array, span, usable
from evenscore.tables.axis import Axis, as_axis, merged
from evenscore.tables.ids import Ids, IdsLike
from evenscore.tables.score_table import Array, LazyScores, ScoreTable
from evenscore.tables.tile import Tile, Whole

if TYPE_CHECKING:
    from evenscore.tables.labels import Labels
    from evenscore.tables.trial_list import TrialList

__all__ = ["ScoreMatrix"]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class ScoreMatrix(ScoreTable):
    """Dense scores in memory: row i, column j is the score of enrolment i against test j.

    Parameters
    ----------
    scores
        K x L numbers; float32 and float64 are kept as they are and not copied, others become float64.
    enroll_ids, test_ids
        Unique ids of the K rows and the L columns, or axes, which may know their speakers.
    missing
        Which pairs have no score: a K x L array of truth values, or ``"nan"`` for the pairs whose score is NaN. By
        default none is missing, and a score that is not finite is an error.

    Attributes
    ----------
    scores
        The scores, read-only, with NaN where a pair is missing.

    Examples
    --------
    >>> matrix = ScoreMatrix([[1.5, -2.0], [0.5, 3.0]], ["e1", "e2"], ["t1", "t2"])
    >>> matrix
    ScoreMatrix(2 enrolments x 2 tests, float64, scores -2 to 3, 0 missing)
    >>> matrix.select(enroll_ids=["e2"]).scores
    array([[0.5, 3. ]])
    """

    scores: npt.NDArray[Any]
    enroll_axis: Axis
    test_axis: Axis
    n_missing: int = field(default=0)
    is_in_memory = True

    def __init__(
        self,
        scores: npt.ArrayLike,
        enroll_ids: IdsLike | Axis,
        test_ids: IdsLike | Axis,
        *,
        missing: npt.ArrayLike | Literal["nan"] | None = None,
    ) -> None:
        array = as_scores(scores, "scores", ndim=2)
        rows = as_axis(enroll_ids, "enroll_ids", array.shape[0])
        columns = as_axis(test_ids, "test_ids", array.shape[1])
        mask = _missing_mask(array, missing)
        n_missing = 0 if mask is None else int(np.count_nonzero(mask))
        if mask is not None and n_missing:
            array = np.where(mask, np.array(np.nan, dtype=array.dtype), array)
        found = extremes(array)
        if isinstance(missing, str):
            n_missing = found.n_nan
        if found.n_nan != n_missing or not found.are_scores:
            _refuse_no_scores(array, rows.ids, columns.ids, mask, allow_nan=isinstance(missing, str))
        found.refuse_tiny_spread("the scores")
        self._set(frozen(array), rows, columns, n_missing)

    def _set(self, scores: npt.NDArray[Any], enroll_axis: Axis, test_axis: Axis, n_missing: int) -> None:
        fields = {"scores": scores, "enroll_axis": enroll_axis, "test_axis": test_axis, "n_missing": n_missing}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def trusted(cls, scores: npt.NDArray[Any], enroll_axis: Axis, test_axis: Axis, n_missing: int = 0) -> ScoreMatrix:
        """Return scores that are known to be sound: looking through them takes as long as normalizing them."""
        matrix = object.__new__(cls)
        matrix._set(frozen(scores), enroll_axis, test_axis, n_missing)
        return matrix

    @classmethod
    def of_tiles(cls, table: LazyScores) -> ScoreMatrix:
        """Read all tiles of a matrix."""
        places, axes = table.places(), (table.enroll_axis, table.test_axis)
        if len(places) == 1:
            tile = table.read(places[0])
            if tile.n_missing is not None:
                return cls.trusted(tile.scores, *axes, tile.n_missing)
            return cls(tile.scores, *axes, missing="nan")
        whole = np.empty(table.shape, dtype=table.dtype)
        for place in places:
            whole[place.rows, place.columns] = table.read(place).scores
        return cls(whole, *axes, missing="nan")

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        """Type of the scores."""
        return self.scores.dtype

    @property
    def source(self) -> Array:  # type: ignore[override]
        """The scores themselves."""
        return Array(self.scores, self.n_missing)

    @property
    def numbers(self) -> object:
        """The array of scores."""
        return self.scores

    @property
    def layout(self) -> Whole:  # type: ignore[override]
        """One tile."""
        return Whole(self.shape)

    def in_memory(self) -> ScoreMatrix:
        """Return the scores as they are."""
        return self

    def rescored(self, scores: npt.NDArray[Any], n_missing: int = 0) -> ScoreMatrix:
        """Return other scores that are known to be finite, but for the missing ones, not looked through again."""
        return ScoreMatrix.trusted(scores, self.enroll_axis, self.test_axis, n_missing)

    def with_pairs(self, listed: TrialList, scores: npt.NDArray[Any]) -> ScoreMatrix:
        """Return a matrix with these scores of the pairs that `to_trials` lists; all others are missing."""
        whole = np.full(self.shape, np.nan, dtype=self.dtype)
        whole[listed.enroll_index, listed.test_index] = in_type(scores, self.dtype)
        return self.with_scores(whole)

    def as_tile(self, place: Tile) -> Tile:
        """Return the scores as a tile, in place of the one that they were made of."""
        return place.with_scores(self.scores, self.n_missing)

    @cached_property
    def missing(self) -> npt.NDArray[np.bool_]:
        """K x L truth values: which pairs have no score."""
        return frozen(np.isnan(self.scores) if self.n_missing else np.zeros(self.shape, dtype=bool))

    def select(self, enroll_ids: IdsLike | None = None, test_ids: IdsLike | None = None) -> ScoreMatrix:
        """Return the scores of these enrolments and tests, in this order; None takes all."""
        rows = None if enroll_ids is None else self.enroll_axis.positions(enroll_ids, "enrolment", "the scores")
        columns = None if test_ids is None else self.test_axis.positions(test_ids, "test", "the scores")
        return self.take(rows, columns)

    def take(
        self, rows: npt.NDArray[np.intp] | None = None, columns: npt.NDArray[np.intp] | None = None
    ) -> ScoreMatrix:
        """Return the rows and columns at these positions, in this order; None takes all."""
        scores = self.scores if rows is None else self.scores[rows]
        scores = scores if columns is None else scores[:, columns]
        return ScoreMatrix(
            scores,
            self.enroll_axis if rows is None else self.enroll_axis.take(rows),
            self.test_axis if columns is None else self.test_axis.take(columns),
            missing="nan" if self.n_missing else None,
        )

    @classmethod
    def concat(cls, parts: Sequence[ScoreMatrix]) -> ScoreMatrix:
        """Put matrices together by id: rows under each other, columns side by side, pairs in no part missing.

        A pair that stands in two parts is an error.

        Examples
        --------
        >>> left = ScoreMatrix([[1.0]], ["e1"], ["t1"])
        >>> right = ScoreMatrix([[2.0], [3.0]], ["e1", "e2"], ["t2"], missing=[[False], [False]])
        >>> ScoreMatrix.concat([left, right]).scores
        array([[ 1.,  2.],
               [nan,  3.]])
        """
        if not parts:
            raise InputError("there is nothing to concatenate; give at least one score matrix")
        rows = merged(part.enroll_axis for part in parts)
        columns = merged(part.test_axis for part in parts)
        whole = np.full((len(rows), len(columns)), np.nan, dtype=np.result_type(*(part.scores for part in parts)))
        for part in parts:
            at = np.ix_(rows.find(part.enroll_ids), columns.find(part.test_ids))
            before = whole[at]
            twice = ~(np.isnan(before) | np.isnan(part.scores))
            if twice.any():
                i, j = np.argwhere(twice)[0]
                pair = f"({part.enroll_ids[i]!r}, {part.test_ids[j]!r})"
                raise InputError(f"the pair {pair} stands in more than one of the matrices; keep it in one of them")
            whole[at] = np.where(np.isnan(before), part.scores, before)
        return cls(whole, rows, columns, missing="nan")

    def astype(self, dtype: npt.DTypeLike) -> ScoreMatrix:
        """Return the same scores in float32 or float64."""
        scores = self.scores.astype(dtype, copy=False)
        return self if scores is self.scores else self.with_scores(scores)

    def with_scores(self, scores: npt.ArrayLike) -> ScoreMatrix:
        """Return other scores for the same pairs; missing pairs stay missing (NaN)."""
        array = as_scores(scores, "scores", ndim=2)
        if array.shape != self.shape:
            raise InputError(f"scores have shape {array.shape}, but the pairs have shape {self.shape}")
        return ScoreMatrix(array, self.enroll_axis, self.test_axis, missing=self.missing if self.n_missing else None)

    def to_trials(self, labels: Labels | None = None) -> TrialList:
        """Return the scores in long form, row by row, without the missing pairs; with labels if given."""
        from evenscore.tables.trial_list import TrialList

        key = None if labels is None else labels.align(self.enroll_ids, self.test_ids).matrix
        if self.n_missing:
            rows, columns = np.nonzero(~self.missing)
            scores = self.scores[rows, columns]
            key = None if key is None else key[rows, columns]
        else:
            rows, columns = np.divmod(np.arange(self.scores.size), max(self.shape[1], 1))
            scores = np.ascontiguousarray(self.scores).reshape(-1)
            key = None if key is None else np.ascontiguousarray(key).reshape(-1)
        return TrialList(self.enroll_axis, self.test_axis, rows, columns, scores=scores, labels=key)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScoreMatrix):
            return NotImplemented
        return (
            self.scores.dtype == other.scores.dtype
            and same_array(self.enroll_ids, other.enroll_ids)
            and same_array(self.test_ids, other.test_ids)
            and same_array(self.scores, other.scores)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        k, size = self.shape
        kind = f"{k} enrolments x {size} tests, {self.scores.dtype}"
        return f"ScoreMatrix({kind}, {span(self.scores)}, {self.n_missing} missing)"


def _missing_mask(
    array: npt.NDArray[Any], missing: npt.ArrayLike | Literal["nan"] | None
) -> npt.NDArray[np.bool_] | None:
    if missing is None:
        return None
    if isinstance(missing, str):
        if missing != "nan":
            raise InputError(f"missing is {missing!r}, but must be 'nan', an array of truth values or None")
        return None  # it is marked already
    mask = np.asarray(missing)
    if mask.dtype != bool or mask.shape != array.shape:
        raise InputError(
            f"missing must be truth values of shape {array.shape}, but is {mask.dtype} of shape {mask.shape}"
        )
    return mask


def _refuse_no_scores(
    array: npt.NDArray[Any], rows: Ids, columns: Ids, mask: npt.NDArray[np.bool_] | None, *, allow_nan: bool
) -> None:
    bad = ~usable(array)
    if allow_nan:
        bad &= ~np.isnan(array)
    if mask is not None:
        bad &= ~mask
    i, j = np.argwhere(bad)[0]
    remedy = "" if np.isfinite(array[i, j]) else "; if the pair has no score, say so with missing='nan'"
    raise InputError(f"the score of ({rows[i]!r}, {columns[j]!r}) {no_score(array[i, j])}{remedy}")
