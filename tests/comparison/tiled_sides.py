"""Sides of a comparison in tiles of a few rows and columns, or in short runs of a list."""

from dataclasses import replace

from evenscore.tables.tile import Cuts

BLOCKS = ("trials", "enroll", "test", "cohort")


def in_tiles(part, tile_bytes=2000.0):
    """Return labelled blocks in tiles that do not divide the matrices evenly."""
    tables = {name: getattr(part.blocks, name) for name in BLOCKS}
    cut = {name: None if table is None else table.in_tiles(tile_bytes, (5, 7)) for name, table in tables.items()}
    return replace(part, blocks=part.blocks.replace(**cut))


def in_runs(part, size=37):
    """Return blocks whose trials are a list, in runs of a few trials."""
    trials = part.blocks.trials
    bounds = Cuts((*range(0, len(trials), size), len(trials)))
    return replace(part, blocks=part.blocks.replace(trials=trials.with_source(trials.source, layout=bounds)))
