"""Trials in long form: one line per pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt

from evenscore.data.score_matrix import Pairs, ScoreMatrix, Scores, as_scores, first_bad_score
from evenscore.data.side import IdsLike, Side, as_strings, replaced, union
from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.data.labels import Labels

__all__ = ["TrialList", "encode_ids", "repeated_pair"]

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class TrialList(Pairs):
    """A list of trials in memory: ids are stored once, and each trial has two codes that point to them.

    Parameters
    ----------
    enroll_ids, test_ids
        The two ids of each trial. No pair may occur twice.
    scores
        One score per trial, if there are scores.
    labels
        One label per trial, if there are labels: 1 (target), 0 (non-target), -1 (unknown).
    columns
        Further numbers per trial by name, such as quality measures; NaN where one is absent.

    Examples
    --------
    >>> trials = TrialList(["e1", "e1", "e2"], ["t1", "t2", "t1"], scores=[2.0, -1.0, 0.5], labels=[1, 0, 0])
    >>> trials
    TrialList(3 trials of 2 enrolments and 2 tests, 1 target, 2 non-target, 0 unknown, scores)
    >>> trials.to_matrix().scores
    array([[ 2. , -1. ],
           [ 0.5,  nan]])
    """

    enroll: Side  #: the distinct enrolments
    test: Side  #: the distinct tests
    rows: Codes  #: position of each trial's enrolment
    cols: Codes  #: position of each trial's test
    scores: Scores | None
    labels: npt.NDArray[np.int8] | None
    columns: Mapping[str, npt.NDArray[np.floating]] = field(default_factory=dict)

    def __init__(
        self,
        enroll_ids: IdsLike,
        test_ids: IdsLike,
        scores: npt.ArrayLike | None = None,
        labels: npt.ArrayLike | None = None,
        columns: Mapping[str, npt.ArrayLike] | None = None,
    ) -> None:
        enroll, rows = encode_ids(enroll_ids, "enroll_ids")
        test, cols = encode_ids(test_ids, "test_ids")
        vars(self).update(vars(TrialList.from_codes(enroll, test, rows, cols, scores, labels, columns)))

    @classmethod
    def from_codes(
        cls,
        enroll: Side,
        test: Side,
        rows: npt.ArrayLike,
        cols: npt.ArrayLike,
        scores: npt.ArrayLike | None = None,
        labels: npt.ArrayLike | None = None,
        columns: Mapping[str, npt.ArrayLike] | None = None,
        *,
        infinite: bool = False,
    ) -> TrialList:
        """Make a list from the positions of each trial's ids; ``infinite`` accepts LLRs of plus and minus infinity."""
        trials = cls.trusted(enroll, test, np.asarray(rows, np.int32), np.asarray(cols, np.int32))
        for codes, side, name in ((trials.rows, enroll, "rows"), (trials.cols, test, "cols")):
            if codes.ndim != 1 or (codes.size and (codes.min() < 0 or codes.max() >= len(side))):
                raise InputError(f"{name} must be positions from 0 to {len(side) - 1}, one for each trial")
        if len(trials.cols) != len(trials):
            raise InputError(f"there are {len(trials)} enrolments, but {len(trials.cols)} tests; give one per trial")
        repeated = repeated_pair(trials)
        if repeated is not None:
            raise InputError(f"the trial {trials.pair(repeated)} is listed more than once; keep one of them")
        if scores is not None:
            trials = trials.with_scores(scores, infinite=infinite)
        if labels is not None:
            trials = trials.with_labels(labels)
        for name, values in (columns or {}).items():
            trials.columns[name] = trials._per_trial(values, f"column {name!r}")  # type: ignore[index]
        return trials

    @classmethod
    def trusted(
        cls,
        enroll: Side,
        test: Side,
        rows: Codes,
        cols: Codes,
        scores: Scores | None = None,
        labels: npt.NDArray[np.int8] | None = None,
        columns: Mapping[str, npt.NDArray[np.floating]] | None = None,
    ) -> TrialList:
        """Return a list of arrays that are known to be valid."""
        trials = object.__new__(cls)
        vars(trials).update(enroll=enroll, test=test, rows=rows, cols=cols, scores=scores, labels=labels)
        vars(trials)["columns"] = dict(columns or {})
        return trials

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def kind(self) -> Literal["scores", "trials"]:
        """What the list is, as files name it."""
        return "trials" if self.scores is None else "scores"

    def pair(self, at: int) -> tuple[str, str]:
        """Return the two ids of one trial."""
        return self.enroll_ids[self.rows[at]], self.test_ids[self.cols[at]]

    def with_scores(self, scores: npt.ArrayLike, *, infinite: bool = False) -> TrialList:
        """Return the same trials with other scores; ``infinite`` accepts LLRs of plus and minus infinity."""
        array = self._per_trial(scores, "scores")
        bad = first_bad_score(array, infinite=infinite, missing=False)
        if bad is not None:
            raise InputError(f"the score of {self.pair(bad)} is {array[bad]}, but must be finite; drop the trial")
        return replaced(self, scores=array)

    def with_normalized(self, scores: Scores) -> TrialList:
        """Return the trials with scores that are not validated; those whose score is NaN are dropped."""
        trials, missing = replaced(self, scores=scores), np.isnan(scores)
        return trials.select(~missing) if missing.any() else trials

    def with_labels(self, labels: npt.ArrayLike | None) -> TrialList:
        """Return the same trials with these labels, one per trial, or with none."""
        if labels is None:
            return replaced(self, labels=None)
        array = np.asarray(labels)
        if array.shape != (len(self),) or array.dtype.kind not in "biuf" or not np.isin(array, (-1, 0, 1)).all():
            raise InputError(f"labels must be {len(self)} numbers: 1 (target), 0 (non-target) or -1 (unknown)")
        return replaced(self, labels=array.astype(np.int8))

    def select(self, which: npt.ArrayLike) -> TrialList:
        """Return the trials of a mask or of positions; ids that no trial has any more are dropped."""
        at = np.asarray(which)
        at = np.flatnonzero(at) if at.dtype == bool else at.astype(np.intp)
        enroll, rows = np.unique(self.rows[at], return_inverse=True)
        test, cols = np.unique(self.cols[at], return_inverse=True)
        scores = None if self.scores is None else self.scores[at]
        labels = None if self.labels is None else self.labels[at]
        columns = {name: values[at] for name, values in self.columns.items()}
        positions = rows.astype(np.int32), cols.astype(np.int32)
        return TrialList.trusted(self.enroll.take(enroll), self.test.take(test), *positions, scores, labels, columns)

    def find(self, other: TrialList) -> npt.NDArray[np.intp]:
        """Return for each trial its position in another list, -1 where the pair is not listed there."""
        rows, cols = other.enroll.find(self.enroll.ids)[self.rows], other.test.find(self.test.ids)[self.cols]
        codes = np.where((rows < 0) | (cols < 0), -1, rows * len(other.test) + cols)
        there = other.rows.astype(np.int64) * len(other.test) + other.cols
        if len(codes) == len(there) and np.array_equal(codes, there):
            return np.arange(len(codes))
        order = np.argsort(there, kind="stable")
        if not len(order):
            return np.full(len(codes), -1)
        at = order[np.minimum(np.searchsorted(there, codes, sorter=order), len(order) - 1)]
        return np.where(there[at] == codes, at, -1)

    def join(self, key: TrialList | Labels, *, unmatched: Literal["error", "drop"] = "error") -> TrialList:
        """Return the trials with the labels of a key, found by id.

        ``unmatched`` says what to do with trials that are only here or only in the key: ``"error"`` names one,
        ``"drop"`` leaves them out.
        """
        if not isinstance(key, TrialList):
            return self.with_labels(key.align(self.enroll, self.test).pairs(self.rows, self.cols))
        if key.labels is None:
            raise InputError("the key has no labels; give a list of trials with labels")
        at = self.find(key)
        matched = at >= 0
        if unmatched == "error" and not (matched.all() and len(key) == len(self)):
            _refuse_unmatched(self, key, at)
        joined = replaced(self, labels=np.append(key.labels, np.int8(-1))[at])  # -1 is the position of the last one
        return joined if matched.all() else joined.select(matched)

    def to_trials(self) -> TrialList:
        """Return the list as it is; a matrix makes a list of its scores."""
        return self

    def to_matrix(self) -> ScoreMatrix:
        """Return the scores as a matrix; pairs that are not listed are missing."""
        scores = self.needs_scores()
        matrix = np.full((len(self.enroll), len(self.test)), np.nan, scores.dtype)
        matrix[self.rows, self.cols] = scores
        return ScoreMatrix.trusted(matrix, self.enroll, self.test)

    @classmethod
    def concat(cls, parts: Sequence[TrialList]) -> TrialList:
        """Put lists after each other; scores, labels and columns stay if all parts have them."""
        enroll, test = union([part.enroll for part in parts]), union([part.test for part in parts])

        def joined(values: list[Any]) -> Any:
            return None if any(value is None for value in values) else np.concatenate(values)

        rows = joined([enroll.find(part.enroll_ids)[part.rows] for part in parts])
        cols = joined([test.find(part.test_ids)[part.cols] for part in parts])
        scores, labels = joined([part.scores for part in parts]), joined([part.labels for part in parts])
        names = [name for name in parts[0].columns if all(name in part.columns for part in parts)]
        columns = {name: joined([part.columns[name] for part in parts]) for name in names}
        return cls.from_codes(enroll, test, rows, cols, scores, labels, columns, infinite=True)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TrialList):
            return NotImplemented
        mine, theirs = (
            {name: values for name, values in facts.items() if values is not None}
            for facts in ({"scores": one.scores, "labels": one.labels, **one.columns} for one in (self, other))
        )
        ordered = len(self) == len(other) and np.array_equal(self.find(other), np.arange(len(self)))
        same = ordered and mine.keys() == theirs.keys()
        return same and all(np.array_equal(mine[name], theirs[name], equal_nan=True) for name in mine)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        key = "no labels"
        if self.labels is not None:
            unknown, nontarget, target = (int(np.count_nonzero(self.labels == label)) for label in (-1, 0, 1))
            key = f"{target} target, {nontarget} non-target, {unknown} unknown"
        parts = ", ".join([key, "no scores" if self.scores is None else "scores", *self.columns])
        return f"TrialList({len(self)} trials of {self.shape[0]} enrolments and {self.shape[1]} tests, {parts})"

    def _per_trial(self, values: npt.ArrayLike, what: str) -> Scores:
        array = as_scores(values, what, ndim=1)
        if len(array) != len(self):
            raise InputError(f"{what} has {len(array)} values, but there are {len(self)} trials")
        return array


def encode_ids(ids: IdsLike, what: str) -> tuple[Side, Codes]:
    """Return the distinct ids in the order of their first appearance, and the position of each id among them."""
    names = as_strings(ids, what)
    index: dict[str, int] = {}
    codes = np.fromiter((index.setdefault(name, len(index)) for name in names.tolist()), np.int32, len(names))
    return Side(list(index), name=what), codes


def repeated_pair(trials: TrialList) -> int | None:
    """Return the position of a trial that is listed for the second time, or None."""
    codes = trials.rows.astype(np.int64)
    codes *= len(trials.test)
    codes += trials.cols
    if (codes[1:] > codes[:-1]).all():
        return None
    if (n_pairs := len(trials.enroll) * len(trials.test)) <= 32 * len(codes):
        seen = np.zeros(n_pairs, bool)  # many times faster than sorting
        seen[codes] = True
        distinct = np.count_nonzero(seen) == len(codes)
    else:
        codes.sort()  # in place: new memory would cost as much again
        distinct = bool((codes[1:] != codes[:-1]).all())
    if distinct:
        return None
    order = np.lexsort((trials.cols, trials.rows))
    again = (np.diff(trials.rows[order]) == 0) & (np.diff(trials.cols[order]) == 0)
    return int(order[1:][again].min())


def _refuse_unmatched(scores: TrialList, key: TrialList, at: npt.NDArray[np.intp]) -> NoReturn:
    remedy = "make the two lists agree, or leave out the others with `unmatched`='drop'"
    if (at < 0).any():
        pair = scores.pair(int(np.argmax(at < 0)))
        for one, side, other in ((pair[0], key.enroll, key.test), (pair[1], key.test, key.enroll)):
            side.positions([one], "id", "the key", other)  # an id that is absent has a cause of its own
        raise InputError(f"{np.count_nonzero(at < 0)} of the {len(scores)} trials are not in the key: {pair}; {remedy}")
    pair = key.pair(int(np.setdiff1d(np.arange(len(key)), at)[0]))
    n_absent = len(key) - len(scores)
    raise InputError(f"{n_absent} of the {len(key)} trials of the key have no score: {pair}; {remedy}")
