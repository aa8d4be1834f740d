"""The same scores whole and cut: what is true of a table is true of it in any tiles."""

import contextlib
from itertools import product
from unittest import mock

import numpy as np
import pytest

from evenscore.tables.tile import Cuts

WHOLE = "whole"  #: in memory, that is one tile
RAGGED = "ragged"  #: tiles, or runs of listed trials, that do not divide the table evenly
SINGLE = "single"  #: one row, or one listed trial, at a time
TILINGS = (WHOLE, RAGGED, SINGLE)
ROUTES = ("few scores", "many scores")  #: worked on in NumPy, or in compiled loops

over_tilings = pytest.mark.parametrize("tiling", TILINGS)
cut_tilings = pytest.mark.parametrize("tiling", TILINGS[1:])  #: for laws that compare with the whole


@contextlib.contextmanager
def on_route(route):
    """Work as with few scores, in NumPy, or as with many, in compiled loops, as the fixture `route` does."""
    with mock.patch("evenscore.compiled.FEW", -1) if route == "many scores" else contextlib.nullcontext():
        yield


def every_way(tilings=TILINGS):
    """Yield a tiling and a route (see `on_route`), for tests whose examples take longer to make than to work on."""
    return product(tilings, ROUTES)


def tiled(table, tiling):
    """Return a table of scores cut so; None stays None."""
    if table is None or tiling == WHOLE:
        return table
    if table.listed:
        size = table.size
        bounds = range(size + 1) if tiling == SINGLE else sorted({0, min(1, size), size // 3, size})
        return table.with_source(table.source, layout=Cuts(tuple(bounds)))
    rows, columns = table.shape
    return table.in_tiles(1.0, (1, columns) if tiling == SINGLE else (rows // 3 + 1, columns // 3 + 1))


def tiled_blocks(blocks, tiling):
    """Return blocks whose tables are all cut so; ragged ones lie back to front, so that they are found by id."""
    cut = {name: getattr(blocks, name) for name in ("trials", "enroll", "test", "cohort")}
    if tiling == RAGGED:
        cut |= {name: _backwards(cut[name]) for name in ("enroll", "test")}
    return blocks.replace(**{name: tiled(table, tiling) for name, table in cut.items()})


def _backwards(table):
    """Return a matrix with its last row and column first."""
    return None if table is None else table.take(*(np.arange(size)[::-1] for size in table.shape))
