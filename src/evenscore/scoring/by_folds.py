"""Training scores by scorers that have never met their speakers, for all that is trained on the training side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.folds import spread_speakers
from evenscore.errors import InputError
from evenscore.progress import Progress, silent
from evenscore.sources import Scorer
from evenscore.sources.blocks import cohort_matrix
from evenscore.sources.computed import ComputedScores, Places
from evenscore.tables import Axis, Embeddings, ScoreMatrix
from evenscore.tables.arrays import hashed

__all__ = ["ByFolds", "FoldScores", "score_by_folds"]

Pair = tuple[int, int]  # of folds
NOWHERE = -1  # the fold of who is not in the background


def score_by_folds(
    train: Callable[[Embeddings], Scorer],
    background: Embeddings,
    enroll: Embeddings | None = None,
    test: Embeddings | None = None,
    *,
    folds: int = 5,
    progress: Progress = silent,
) -> ScoreMatrix:
    """Score trials of speakers who are in a scorer's own training data, each by a scorer trained without its two.

    The speakers of the background are divided into folds. Trials between speakers of folds f and g are scored by what
    was trained without these two folds, so that they are like those of new speakers: for PLDA, LDA, whitening and
    whatever else is learned. A centre alone needs no folds: `LeftOutCenter` leaves out each trial's speakers exactly.

    Parameters
    ----------
    train
        Makes a scorer from embeddings, such as ``lambda part: fit_plda(part).model``. It is called once for each pair
        of folds.
    background
        What the scorer is trained on; every embedding needs its speaker.
    enroll, test
        The trials' embeddings with their speakers; by default the background, against itself. Who is not in the
        background is in no fold. An id that stands on both sides is one utterance, without a score against itself.
    folds
        How many, at least 3.
    progress
        Called with ``"scoring by folds"`` and the fraction done.

    Examples
    --------
    >>> from evenscore import fit_plda
    >>> rng = np.random.default_rng(0)
    >>> speakers = np.repeat(np.arange(30), 4)
    >>> takes = Embeddings(range(120), rng.normal(size=(30, 6))[speakers] + rng.normal(size=(120, 6)), speakers)
    >>> scores = score_by_folds(lambda part: fit_plda(part).model, takes)
    >>> scores.shape, scores.n_missing
    ((120, 120), 120)
    """
    scorer = ByFolds(train, background, folds=folds, progress=progress)
    enroll, test = (background if side is None else side for side in (enroll, test))
    return cohort_matrix(scorer.score(enroll, test))


@dataclass(frozen=True, eq=False, init=False)
class ByFolds:
    """The scorer of `score_by_folds`; what it trains for two folds, it keeps.

    Examples
    --------
    >>> from evenscore import Cosine
    >>> takes = Embeddings(range(6), np.eye(6), ["a", "a", "b", "b", "c", "c"])
    >>> ByFolds(lambda part: Cosine(part.vectors.mean(axis=0)), takes, folds=3).score(takes, takes)
    FoldScores(6 enrolments x 6 tests, 3 folds)
    """

    train: Callable[[Embeddings], Scorer]
    background: Embeddings
    _fold_of: dict[str, int]
    _own: npt.NDArray[np.intp]  # folds of the background
    _trained: dict[Pair, Scorer]
    _progress: Progress

    def __init__(
        self,
        train: Callable[[Embeddings], Scorer],
        background: Embeddings,
        *,
        folds: int = 5,
        progress: Progress = silent,
    ) -> None:
        if folds < 3:
            raise InputError(
                f"folds is {folds}, but a trial's two speakers can be in two folds, and a third must be left"
            )
        fold_of = _folds(background, folds)
        for name, value in {
            "train": train,
            "background": background,
            "_fold_of": fold_of,
            "_own": _on(background, "embedding", fold_of),
            "_trained": {},
            "_progress": progress,
        }.items():
            object.__setattr__(self, name, value)

    def concerns(self, embeddings: Embeddings) -> bool:
        """Tell whether somebody of these is in the background, so that folds change scores."""
        speakers = () if embeddings.speakers is None else embeddings.speakers
        return any(name in self._fold_of for name in speakers)

    def score(self, enroll: Embeddings, test: Embeddings) -> FoldScores:
        """Return the scores of every enrolment against every test, without forming them."""
        rows, columns = (_on(*side, self._fold_of) for side in ((enroll, "enrolment"), (test, "test")))
        parts = {}
        wanted = list(product(np.unique(rows).tolist(), np.unique(columns).tolist()))
        for number, (one, other) in enumerate(wanted):
            sides = enroll.take(rows == one), test.take(columns == other)
            parts[one, other] = self._scorer(min(one, other), max(one, other)).score(*sides)
            self._progress("scoring by folds", (number + 1) / len(wanted))
        return FoldScores(
            left=enroll.vectors,
            right=test.vectors,
            enroll_axis=enroll.axis,
            test_axis=test.axis,
            rows=_Part.of(rows),
            columns=_Part.of(columns),
            parts=parts,
        )

    def _scorer(self, *pair: int) -> Scorer:
        if pair not in self._trained:
            self._trained[pair] = self.train(self.background.take(~np.isin(self._own, pair)))  # type: ignore[index]
        return self._trained[pair]  # type: ignore[index]


@dataclass(frozen=True, eq=False)
class _Part:
    """The fold of each row or column, and its place among those of that fold."""

    fold: npt.NDArray[np.intp]
    place: npt.NDArray[np.intp]

    @classmethod
    def of(cls, folds: npt.NDArray[np.intp]) -> _Part:
        places = np.empty(len(folds), dtype=np.intp)
        for fold in np.unique(folds):
            here = np.flatnonzero(folds == fold)
            places[here] = np.arange(len(here))
        return cls(folds, places)

    def take(self, at: Any) -> _Part:
        return _Part(self.fold[at], self.place[at])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FoldScores(ComputedScores):
    """Scores of `ByFolds`: those of each pair of folds are a table of its own."""

    left: npt.NDArray[Any]
    right: npt.NDArray[Any]
    enroll_axis: Axis
    test_axis: Axis
    rows: _Part
    columns: _Part
    parts: Mapping[Pair, ComputedScores]

    def block(self, rows: Places = slice(None), columns: Places = slice(None)) -> npt.NDArray[Any]:
        """Return the scores of some enrolments against some tests, given by slices or positions."""
        row, column = self.rows.take(rows), self.columns.take(columns)
        out = np.empty((len(row.fold), len(column.fold)), dtype=self.dtype)
        for pair in product(np.unique(row.fold).tolist(), np.unique(column.fold).tolist()):
            here, there = np.flatnonzero(row.fold == pair[0]), np.flatnonzero(column.fold == pair[1])
            out[np.ix_(here, there)] = self.parts[pair].block(row.place[here], column.place[there])
        return out

    def pairs(self, rows: npt.NDArray[np.integer], columns: npt.NDArray[np.integer]) -> npt.NDArray[Any]:
        """Return the scores of listed pairs of an enrolment and a test, given by positions."""
        row, column = self.rows.take(rows), self.columns.take(columns)
        out = np.empty(len(rows), dtype=self.dtype)
        for pair in self.parts:
            here = np.flatnonzero((row.fold == pair[0]) & (column.fold == pair[1]))
            if len(here):
                out[here] = self.parts[pair].pairs(row.place[here], column.place[here])
        return out

    def take(self, rows: Any = None, columns: Any = None) -> FoldScores:
        """Return the scores of some enrolments and tests, at these positions; None takes all."""
        row, column = (slice(None) if at is None else at for at in (rows, columns))
        return replace(
            self,
            left=self.left[row],
            right=self.right[column],
            enroll_axis=self.enroll_axis.take(row),
            test_axis=self.test_axis.take(column),
            rows=self.rows.take(row),
            columns=self.columns.take(column),
        )

    def numbers_identity(self) -> str:
        """Return a hash of the tables and of who is where."""
        tables = [part.numbers_identity() for part in self.parts.values()]
        return hashed(*tables, *(part for side in (self.rows, self.columns) for part in (side.fold, side.place)))

    def __repr__(self) -> str:
        folds = len({fold for pair in self.parts for fold in pair})
        return f"FoldScores({self.shape[0]} enrolments x {self.shape[1]} tests, {folds} folds)"


def _folds(background: Embeddings, folds: int) -> dict[str, int]:
    """Return the fold of each speaker."""
    if background.speakers is None:
        raise InputError("the embeddings have no speakers to divide into folds; give them with with_speakers")
    names, counts = np.unique([name for name in background.speakers if name is not None], return_counts=True)
    found = spread_speakers(names.tolist(), counts, folds)
    return dict(zip(names.tolist(), found.tolist(), strict=True))


def _on(side: Embeddings, what: str, fold_of: dict[str, int]) -> npt.NDArray[np.intp]:
    """Return the fold of each row; nobody's speaker may be unknown."""
    speakers = [None] * len(side) if side.speakers is None else side.speakers.tolist()
    if None in speakers:
        raise InputError(f"the speaker of {what} {side.ids[speakers.index(None)]!r} is not known; give it, or drop it")
    return np.array([fold_of.get(str(name), NOWHERE) for name in speakers], dtype=np.intp)
