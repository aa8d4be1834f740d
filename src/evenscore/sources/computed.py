"""Scores that are computed from two vectors when somebody asks for them: what all such tables share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from evenscore.tables import ScoreMatrix, TrialList
from evenscore.tables.arrays import hashed
from evenscore.tables.axis import NOWHERE, Axis, positions_of_both
from evenscore.tables.score_table import LazyScores, ScoreTable
from evenscore.tables.tile import Cuts, Grid, Place, Tile

__all__ = ["ComputedScores", "ComputedTiles", "Places"]

Places = slice | npt.NDArray[np.intp]  #: some rows or columns
Scores = TypeVar("Scores", bound="ComputedScores")


class ComputedScores(ScoreTable):
    """Scores of every enrolment against every test, made from vectors: all, a rectangle, or listed pairs of them."""

    left: npt.NDArray[Any]  #: vectors of the enrolments
    right: npt.NDArray[Any]  #: vectors of the tests

    def block(self, rows: Places = slice(None), columns: Places = slice(None)) -> npt.NDArray[Any]:
        """Return the scores of some enrolments against some tests, given by slices or positions."""
        raise NotImplementedError

    def pairs(self, rows: npt.NDArray[np.integer], columns: npt.NDArray[np.integer]) -> npt.NDArray[Any]:
        """Return the scores of listed pairs of an enrolment and a test, given by positions."""
        raise NotImplementedError

    def numbers_identity(self) -> str:
        """Return a text that changes when the numbers change that scores are computed from."""
        raise NotImplementedError

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        """Type of the scores: float32 if both sides are, else float64."""
        return np.result_type(self.left, self.right)

    @property
    def source(self) -> ComputedTiles:  # type: ignore[override]
        """What makes tiles of scores."""
        return ComputedTiles(self.without_ids)

    @property
    def numbers(self) -> object:
        """The table itself, which holds the vectors."""
        return self

    @property
    def without_ids(self: Scores) -> Scores:
        """The same scores with ids that take no room: a source travels, and the axes stay with the table."""
        return self.with_axes(*(Axis(np.broadcast_to(np.array("", dtype=object), size)) for size in self.shape))

    @property
    def layout(self) -> Grid:  # type: ignore[override]
        """Tiles of the usual size."""
        return Grid(self.shape, self.dtype.itemsize)

    def in_memory(self) -> ScoreMatrix:
        """Return all scores."""
        return ScoreMatrix(self.block(), self.enroll_axis, self.test_axis)

    def without_itself(self) -> LazyScores:
        """Return the scores, but those of an utterance against itself: of an id that stands on both sides."""
        own = self.test_axis.find(self.enroll_ids)
        if (own < 0).all():
            return self.with_source(self.source)
        return self.with_source(replace(self.source, own=own))

    def of_trials(self, trials: TrialList) -> LazyScores:
        """Return listed trials on the axes of these scores, which are made when they are read."""
        rows, columns = self._places_of(trials)
        index = (rows[trials.enroll_index].astype(np.int32), columns[trials.test_index].astype(np.int32))
        listed = Tile(np.empty(0), *index, trials.labels, measures=dict(trials.measures))
        return self.with_source(ListedTiles(self.without_ids, listed), layout=Cuts.of(len(trials)))

    def score_trials(self, trials: TrialList) -> TrialList:
        """Return the trials with their scores; enrolments and tests are found by id."""
        rows, columns = self._places_of(trials)
        return trials.with_scores(self.pairs(rows[trials.enroll_index], columns[trials.test_index]))

    def _places_of(self, trials: TrialList) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        wanted = trials.enroll_ids, trials.test_ids
        return positions_of_both((self.enroll_axis, self.test_axis), wanted, "the embeddings")


@dataclass(frozen=True, eq=False)
class ComputedTiles:
    """Tiles of computed scores; ``own``: the column of each row's own utterance, whose score is missing, or -1."""

    scores: Any  #: a table of computed scores
    own: npt.NDArray[np.intp] | None = None

    def read(self, place: Place) -> Tile:
        """Return a tile."""
        tile = self.scores.block(place.rows, place.columns)
        if self.own is not None:
            at = np.where(self.own[place.rows] == NOWHERE, -1, self.own[place.rows] - place.columns.start)
            here = np.flatnonzero((at >= 0) & (at < tile.shape[1]))
            tile[here, at[here]] = np.nan
        return Tile(tile, place.rows, place.columns)

    def identity(self) -> str:
        """Return a hash of what the scores are computed from."""
        return hashed(self.scores.numbers_identity(), self.own)


@dataclass(frozen=True, eq=False)
class ListedTiles:
    """Runs of listed trials with the scores of their embeddings."""

    scores: ComputedScores
    trials: Tile  #: without scores

    def read(self, place: Place) -> Tile:
        """Return some trials."""
        at, whole = place.rows, self.trials
        rows, columns = whole.rows[at], whole.columns[at]
        labels = None if whole.labels is None else whole.labels[at]
        measures = {name: values[at] for name, values in whole.measures.items()}
        return Tile(self.scores.pairs(rows, columns), rows, columns, labels, measures=measures)

    def identity(self) -> str:
        """Return a hash of vectors and pairs."""
        whole = self.trials
        return hashed(self.scores.numbers_identity(), whole.rows, whole.columns, whole.labels)
