"""Score blocks in memory, and the same in tiny tiles."""

import numpy as np

from evenscore import ScoreMatrix, ScoreModel
from evenscore.tables.tile import Cuts

MODEL = ScoreModel(mu=[0.0, 3.0], alpha=[[0.5, 0.1], [0.4, 0.2]], beta=[[0.5, 0.2], [0.3, 0.3]], sigma2=[1.0, 1.2])


def ids(prefix, number):
    return [f"{prefix}{place}" for place in range(number)]


def matrix(rng, rows, columns, missing=0.0, dtype=np.float64):
    scores = rng.normal(size=(len(rows), len(columns))) + rng.normal(size=(len(rows), 1)) + 2.0
    scores[rng.random(scores.shape) < missing] = np.nan
    return ScoreMatrix(scores.astype(dtype), rows, columns, missing="nan")


#: Stored chunks and bytes of tiles: the whole matrix, tiles that do not divide it evenly, single rows.
TILINGS = {"one": ((99, 99), 1e9), "ragged": ((5, 7), 600.0), "one row": ((1, 99), 1.0)}


def in_tiles(scores, stored=(5, 7), tile_bytes=600.0):
    """Return scores in tiles of a few rows and columns, that do not divide the matrix evenly."""
    return scores.in_tiles(tile_bytes, stored)


def in_runs(trials, bounds):
    """Return a list that is read in runs of trials with these ends."""
    return trials.with_source(trials.source, layout=Cuts(tuple(bounds)))


def shuffled(rng, scores):
    return scores.take(rng.permutation(scores.shape[0]), rng.permutation(scores.shape[1]))


def contents(folder):
    """Return the bytes of all files of a directory."""
    return {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
