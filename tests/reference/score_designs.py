"""Models and labelled matrices of awkward shapes, drawn at random."""

import numpy as np

from evenscore import Labels
from evenscore.model import ScoreModel

KINDS = ("speakers", "self-pairs", "missing", "noise", "key", "list", "matched list", "rows without scores")


def draw_model(rng, dim):
    return ScoreModel(
        mu=np.array([-1.0, 2.0]) + rng.normal(size=2),
        alpha=rng.normal(size=(2, dim)),
        beta=rng.normal(size=(2, dim)),
        sigma2=rng.uniform(0.3, 2.0, 2),
    )


def draw_key(rng, kind, largest=9):
    """Return K x L labels (1, 0, -1) with groups of unequal sizes, and speakers if the labels follow from them."""
    K, L = rng.integers(1, largest, 2)
    rows, cols = rng.integers(0, 4, K), rng.integers(0, 4, L)
    if kind == "self-pairs":
        cols = rows
    key = (rows[:, None] == cols).astype(np.int8)
    if kind == "self-pairs":
        np.fill_diagonal(key, -1)
        if rng.random() < 0.3:
            key[rng.random(key.shape) < 0.1] = -1
    elif kind == "missing":
        key[rng.random(key.shape) < rng.choice([0.05, 0.3])] = -1
    elif kind == "noise":
        flip = rng.random(key.shape) < 0.1
        key[flip] = 1 - key[flip]
    elif kind == "key":
        key = rng.integers(-1, 2, key.shape).astype(np.int8)
    elif kind == "list":
        key[rng.random(key.shape) < 0.7] = -1
    elif kind == "matched list":
        key = np.full((K, K), -1, np.int8)
        np.fill_diagonal(key, rng.integers(0, 2, K))
    elif kind == "rows without scores":
        key[rng.random(len(key)) < 0.4] = -1
        key[:, rng.random(key.shape[1]) < 0.4] = -1
    return key, (rows, cols)


def draw_scores(rng, key):
    return np.where(key < 0, np.nan, 3.0 * key + 2 * rng.normal(size=key.shape))


def labels_of(rng, kind, key, speakers):
    """Return the labels in one of the forms that say the same about scores that are NaN where the key is -1."""
    if kind in ("speakers", "self-pairs", "missing", "list", "rows without scores") and rng.random() < 0.7:
        return Labels.from_speakers(*(list(map(str, side)) for side in speakers))
    return Labels.from_key(key)
