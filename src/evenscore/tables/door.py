"""The door for scores that are read tile by tile: what comes from outside is looked through where it is read.

Scores in memory are looked through when their table is made. What is computed from numbers that passed the door is not
looked through again. Infinite numbers may come in, as log-likelihood ratios can be infinite, and are evaluated; where
scores are normalized or trained on (`ScoreBlocks`) they are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from evenscore.errors import InputError
from evenscore.tables.arrays import extremes, no_score, usable
from evenscore.tables.ids import Ids
from evenscore.tables.score_table import LazyScores
from evenscore.tables.tile import Place, Tile

__all__ = ["Checked", "looked_through", "refusing_infinite"]

Table = TypeVar("Table")


@dataclass(frozen=True, eq=False)
class Checked:
    """Another source, each tile of which is looked through once: what is no score is refused by its ids."""

    source: Any
    enroll_ids: Ids
    test_ids: Ids
    dtype: np.dtype[Any]  #: of the scores that come out
    infinite: bool = True  #: whether infinite ones are accepted

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

    @cached_property
    def finite(self) -> Checked:
        """The same source without infinite scores: one object for all tables that share it."""
        return replace(self, infinite=False) if self.infinite else self

    def _refuse(self, tile: Tile, at: int) -> None:
        row, column = tile.position(at)
        pair = f"({self.enroll_ids[row]!r}, {self.test_ids[column]!r})"
        raise InputError(
            f"the score of {pair} {no_score(tile.scores.reshape(-1)[at])}; drop it, or read it with missing='skip'"
        )

    def identity(self) -> str:
        """Return the other source's identity."""
        text: str = self.source.identity()
        return text


def looked_through(table: LazyScores) -> LazyScores:
    """Return a table whose tiles come from outside, each of them looked through when it is read."""
    return table.with_source(Checked(table.source, table.enroll_ids, table.test_ids, table.dtype))


def refusing_infinite(table: Table) -> Table:
    """Return a table, wherever its scores are, in which infinite ones are refused when they are read."""
    if not isinstance(table, LazyScores):
        return table
    source = _finite(table.source)
    return table if source is table.source else replace(table, source=source)


def _finite(source: Any) -> Any:
    """Return a source whose own door, or that of the source within it, refuses infinite scores."""
    if isinstance(source, Checked):
        return source.finite
    inner = getattr(source, "source", None)
    if inner is None:
        return source
    found = _finite(inner)
    return source if found is inner else replace(source, source=found)
