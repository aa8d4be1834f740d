"""The door for scores that are read tile by tile: what comes from outside is looked through where it is read.

Scores in memory are looked through when their table is made. What is computed from numbers that passed the door is not
looked through again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenscore.errors import InputError
from evenscore.tables.arrays import extremes, no_score, usable
from evenscore.tables.ids import Ids
from evenscore.tables.score_table import LazyScores
from evenscore.tables.tile import Place, Tile

__all__ = ["Checked", "looked_through"]


@dataclass(frozen=True, eq=False)
class Checked:
    """Another source, each tile of which is looked through once: what is no score is refused by its ids."""

    source: Any
    enroll_ids: Ids
    test_ids: Ids
    dtype: np.dtype[Any]  #: of the scores that come out
    infinite: bool = False  #: whether infinite ones are accepted

    def read(self, place: Place) -> Tile:
        """Return a tile of scores, NaN where one is missing."""
        tile: Tile = self.source.read(place)
        found = extremes(tile.scores)
        if not found.are_scores:
            good = usable(tile.scores, infinite=self.infinite) | np.isnan(tile.scores)
            if not good.all():
                self._refuse(tile, int(np.argmin(good)))
        found.refuse_tiny_spread("the scores")
        return tile.with_scores(tile.scores.astype(self.dtype, copy=False), found.n_nan)

    def _refuse(self, tile: Tile, at: int) -> None:
        row, column = tile.position(at)
        pair = f"({self.enroll_ids[row]!r}, {self.test_ids[column]!r})"
        raise InputError(f"the score of {pair} {no_score(tile.scores.reshape(-1)[at])}; drop it")

    def identity(self) -> str:
        """Return the other source's identity."""
        text: str = self.source.identity()
        return text


def looked_through(table: LazyScores, *, infinite: bool = False) -> LazyScores:
    """Return a table whose tiles come from outside, each of them looked through when it is read."""
    return table.with_source(Checked(table.source, table.enroll_ids, table.test_ids, table.dtype, infinite))
