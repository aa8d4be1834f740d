"""Scores of every enrolment against every test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from evenscore.data.side import Ids, IdsLike, Side, SpeakersLike, replaced, union
from evenscore.errors import InputError
from evenscore.large import Array, Formula, Scores as LazyScores, is_dask, map_pairs

if TYPE_CHECKING:
    from typing_extensions import Self

    from evenscore.data.labels import Labels
    from evenscore.data.trial_list import TrialList

__all__ = ["LARGEST_SCORE", "Pairs", "ScoreMatrix", "Scores", "as_scores", "first_bad_score"]

#: Scores are smaller than this, so that squares of their squares still fit into float64.
LARGEST_SCORE = float(np.float32(1e30))

Scores = npt.NDArray[np.floating]


class Pairs:
    """What a matrix of scores and a list of trials share: two sides, and the scores of all or some pairs of them."""

    enroll: Side
    test: Side
    scores: LazyScores

    def with_sides(self, enroll: Side, test: Side) -> Self:
        """Return the same scores with sides that know more about the same ids."""
        return replaced(self, enroll=enroll, test=test)

    def with_normalized(self, scores: LazyScores) -> Self:
        """Return other scores of the same pairs, which are not validated; a list drops trials whose score is NaN."""
        return replaced(self, scores=scores)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of enrolments and of tests."""
        return len(self.enroll), len(self.test)

    @property
    def enroll_ids(self) -> Ids:
        """Ids of the enrolments, each once."""
        return self.enroll.ids

    @property
    def test_ids(self) -> Ids:
        """Ids of the tests, each once."""
        return self.test.ids

    def needs_scores(self) -> LazyScores:
        """Return the scores; a list without scores is an error."""
        if self.scores is None:
            raise InputError("the trials have no scores; give a score file or a score matrix")
        return self.scores

    def map(
        self,
        formula: Formula,
        enroll: Sequence[Array] = (),
        test: Sequence[Array] = (),
        constants: Sequence[float] = (),
    ) -> Self:
        """Return ``formula(scores, *enroll, *test, *constants)``, given some numbers per enrolment and per test."""
        rows, cols = (getattr(self, name) for name in ("rows", "cols"))  # None for a matrix
        return self.with_normalized(map_pairs(formula, self.needs_scores(), enroll, test, constants, rows, cols))

    def with_speakers(self, enroll: SpeakersLike | None = None, test: SpeakersLike | None = None) -> Self:
        """Return the same trials with speakers; None keeps those that are known."""
        return self.with_sides(self.enroll.with_speakers(enroll), self.test.with_speakers(test))


@dataclass(frozen=True, eq=False, repr=False, init=False)
class ScoreMatrix(Pairs):
    """Scores of every enrolment against every test.

    Parameters
    ----------
    scores
        K x L numbers, a NumPy or a dask array; NaN where a pair has no score. float32 and float64 are kept as they are
        and are not copied.
    enroll_ids, test_ids
        Unique ids of the K rows and of the L columns, or a `Side`, which may know their speakers.

    Examples
    --------
    >>> matrix = ScoreMatrix([[1.5, -2.0], [0.5, 3.0]], ["e1", "e2"], ["t1", "t2"])
    >>> matrix
    ScoreMatrix(2 enrolments x 2 tests, float64)
    >>> matrix.map(lambda s, mean: s - mean, enroll=[np.array([1.0, 2.0])]).scores
    array([[ 0.5, -3. ],
           [-1.5,  1. ]])
    """

    kind: ClassVar[Literal["scores"]] = "scores"
    rows: ClassVar[None] = None  # a list of trials has the positions of its ids here, a matrix has all pairs
    cols: ClassVar[None] = None
    labels: ClassVar[None] = None
    columns: ClassVar[Mapping[str, Scores]] = {}
    scores: LazyScores  #: K x L; NumPy or dask
    enroll: Side  #: the rows
    test: Side  #: the columns

    def __init__(self, scores: LazyScores, enroll_ids: IdsLike | Side, test_ids: IdsLike | Side) -> None:
        array = as_scores(scores, ndim=2)
        enroll = _as_side(enroll_ids, "enroll_ids", array.shape[0])
        test = _as_side(test_ids, "test_ids", array.shape[1])
        if not is_dask(array):
            bad = first_bad_score(array)
            if bad is not None:
                pair = enroll.ids[bad // len(test)], test.ids[bad % len(test)]
                raise InputError(f"the score of {pair} is {array.flat[bad]}; use NaN if it is missing")
        vars(self).update(scores=array, enroll=enroll, test=test)

    @classmethod
    def trusted(cls, scores: LazyScores, enroll: Side, test: Side) -> ScoreMatrix:
        """Return a matrix of scores that are known to be valid: checking them takes as long as normalizing them."""
        matrix = object.__new__(cls)
        vars(matrix).update(scores=scores, enroll=enroll, test=test)
        return matrix

    @property
    def T(self) -> ScoreMatrix:  # noqa: N802
        """The same scores with the sides swapped."""
        return ScoreMatrix.trusted(self.scores.T, self.test, self.enroll)

    def with_scores(self, scores: LazyScores) -> ScoreMatrix:
        """Return other scores of the same pairs, which are not validated."""
        return ScoreMatrix.trusted(scores, self.enroll, self.test)

    def take(self, rows: npt.ArrayLike | slice | None = None, cols: npt.ArrayLike | slice | None = None) -> ScoreMatrix:
        """Return the rows and columns at these positions, in this order; None takes all."""
        scores = self.scores if rows is None else self.scores[rows]
        scores = scores if cols is None else scores[:, cols]
        enroll = self.enroll if rows is None else self.enroll.take(rows)
        return ScoreMatrix.trusted(scores, enroll, self.test if cols is None else self.test.take(cols))

    def select(self, enroll_ids: IdsLike | None = None, test_ids: IdsLike | None = None) -> ScoreMatrix:
        """Return the scores of these ids, in this order; None takes all."""
        rows = None if enroll_ids is None else self.enroll.positions(enroll_ids, "enrolment", "the scores", self.test)
        cols = None if test_ids is None else self.test.positions(test_ids, "test", "the scores", self.enroll)
        return self.take(rows, cols)

    def align(self, enroll: Side, test: Side, where: str = "the scores") -> ScoreMatrix:
        """Return the scores in the order of these sides, which may be a part of the matrix; an error says ``where``."""
        same_rows, same_cols = self.enroll.same_ids(enroll), self.test.same_ids(test)
        rows = None if same_rows else self.enroll.positions(enroll.ids, "enrolment", where, self.test)
        cols = None if same_cols else self.test.positions(test.ids, "test", where, self.enroll)
        found = self.take(rows, cols)
        return ScoreMatrix.trusted(found.scores, enroll.completed_by(found.enroll), test.completed_by(found.test))

    def compute(self) -> ScoreMatrix:
        """Return the scores in memory."""
        return self.with_scores(self.scores.compute()) if is_dask(self.scores) else self

    @classmethod
    def concat(cls, parts: Sequence[ScoreMatrix]) -> ScoreMatrix:
        """Put matrices together by id; pairs that no part has are missing, a pair that two parts have is an error."""
        parts = [part.compute() for part in parts]
        enroll, test = union([part.enroll for part in parts]), union([part.test for part in parts])
        whole = np.full((len(enroll), len(test)), np.nan, np.result_type(*(part.scores for part in parts)))
        for part in parts:
            at = np.ix_(enroll.find(part.enroll_ids), test.find(part.test_ids))
            twice = np.argwhere(~(np.isnan(whole[at]) | np.isnan(part.scores)))
            if len(twice):
                pair = part.enroll_ids[twice[0][0]], part.test_ids[twice[0][1]]
                raise InputError(f"the pair {pair} is in two matrices; keep it in one")
            whole[at] = np.where(np.isnan(part.scores), whole[at], part.scores)
        return cls.trusted(whole, enroll, test)

    def to_trials(self, labels: Labels | None = None) -> TrialList:
        """Return the scores as a list, row by row, without the missing ones; with labels, if they are given."""
        from evenscore.data.trial_list import TrialList

        scores = self.compute().scores
        rows, cols = np.nonzero(~np.isnan(scores))
        rows, cols = rows.astype(np.int32), cols.astype(np.int32)
        key = None if labels is None else labels.align(self.enroll, self.test).pairs(rows, cols)
        return TrialList.from_codes(self.enroll, self.test, rows, cols, scores[rows, cols], key)

    def to_matrix(self) -> ScoreMatrix:
        """Return the matrix as it is; a list makes a matrix of its scores."""
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScoreMatrix):
            return NotImplemented
        same = self.enroll == other.enroll and self.test == other.test
        return same and np.array_equal(self.compute().scores, other.compute().scores, equal_nan=True)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        lazy = ", dask" if is_dask(self.scores) else ""
        return f"ScoreMatrix({self.shape[0]} enrolments x {self.shape[1]} tests, {self.scores.dtype}{lazy})"


def _as_side(ids: IdsLike | Side, name: str, length: int) -> Side:
    side = ids if isinstance(ids, Side) else Side(ids, name=name)
    if len(side) != length:
        raise InputError(f"{name} has {len(side)} ids, but the scores need {length}")
    return side


def as_scores(values: npt.ArrayLike, what: str = "scores", *, ndim: int) -> Scores:
    """Return scores as a float32 or float64 array in the machine's byte order; others become float64."""
    try:
        array: LazyScores = values if is_dask(values) else np.asarray(values)
    except ValueError:
        raise InputError(f"{what}: all rows must have the same length") from None
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise InputError(f"{what} has type {array.dtype}, but must be real numbers (float32 or float64)")
    if array.ndim != ndim:
        raise InputError(f"{what} must have {ndim} dimension{'s' * (ndim > 1)}, but has shape {array.shape}")
    dtype = array.dtype.newbyteorder("=")
    return array.astype(dtype if dtype in (np.float32, np.float64) else np.float64, copy=False)


def first_bad_score(scores: Scores, *, infinite: bool = False, missing: bool = True) -> int | None:
    """Return the flat position of the first number that is no score, or None; NaN is one if scores may be missing."""
    for start in range(0, len(scores), step := max(1, (1 << 20) * len(scores) // max(scores.size, 1))):
        part = scores[start : start + step]
        if part.size == 0 or (part.min() >= -LARGEST_SCORE and part.max() <= LARGEST_SCORE):
            continue
        good = abs(part) <= LARGEST_SCORE
        good |= np.isinf(part) if infinite else False
        good |= np.isnan(part) if missing else False
        if not good.all():
            return int(start * (scores.size // len(scores)) + np.argmin(good))
    return None
