"""Hypothesis strategies for score models and awkward designs: unequal groups, one-sided speakers, missing pairs."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from evenscore import ScoreModel


@st.composite
def models(draw, dims=(0, 1, 2, 3)):
    dim = draw(st.sampled_from(dims))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spread = draw(st.sampled_from([0.0, 0.1, 1.0, 5.0]))
    return ScoreModel(
        mu=rng.normal(size=2) * 3,
        alpha=spread * rng.normal(size=(2, dim)),
        beta=rng.normal(size=(2, dim)),
        sigma2=np.exp(rng.normal(size=2)),
    )


@st.composite
def speaker_designs(draw, largest=7, smallest=1):
    """Speakers of rows and of columns: some on one side only, groups of any size."""
    name = st.sampled_from("abcdef")
    rows = draw(st.lists(name, min_size=smallest, max_size=largest))
    columns = draw(st.lists(name, min_size=smallest, max_size=largest))
    return rows, columns


@st.composite
def keys(draw, largest=7, smallest=1):
    """Any pattern of labels: 1 target, 0 non-target, -1 missing, from complete to nearly empty."""
    n_rows = draw(st.integers(smallest, largest))
    n_columns = draw(st.integers(smallest, largest))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    missing = draw(st.sampled_from([0.0, 0.1, 0.5, 0.9]))
    target = draw(st.sampled_from([0.0, 0.2, 0.8]))
    key = (rng.random((n_rows, n_columns)) < target).astype(np.int8)
    key[rng.random(key.shape) < missing] = -1
    if draw(st.booleans()) and n_rows > 1:
        key[rng.integers(n_rows)] = -1  # a row without any score
    return key


def draw_scores(shape, seed, offset=0.0, scale=2.0):
    return offset + scale * np.random.default_rng(seed).normal(size=shape)
