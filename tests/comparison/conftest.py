"""Simulated training and evaluation sides, with what makes comparisons awkward."""

import numpy as np
import pytest

from evenscore import LabelledBlocks, ScoreBlocks, ScoreModel, simulate, simulate_blocks
from evenscore.comparison import compare
from evenscore.norms.registry import METHODS, register_norm

MODEL = ScoreModel(
    mu=np.array([0.0, 4.0]),
    alpha=np.array([[1.2], [1.0]]),
    beta=np.array([[0.8], [0.6]]),
    sigma2=np.array([1.0, 1.2]),
)


def make_sides(seed=0, n_training=24, n_evaluation=22, each=2, name=""):
    """Return a training side that is its own cohort, and an evaluation side with the same cohort."""
    known, new = (
        [f"{group}{n // each}" for n in range(each * size)]
        for group, size in (("known", n_training), ("new", n_evaluation))
    )
    blocks, labels = simulate_blocks(MODEL, new, new, known, known, seed=seed)
    training = LabelledBlocks.own_cohort(blocks.cohort, blocks.cohort_labels, name=name)
    return training, LabelledBlocks(blocks, labels, name)


def with_blocks(part, **changed):
    """Return labelled blocks with other trials or cohort scores."""
    names = ("trials", "enroll", "test", "cohort", "cohort_labels")
    fields = {name: getattr(part.blocks, name) for name in names} | changed
    return LabelledBlocks(ScoreBlocks(**fields), part.labels, part.name)


@pytest.fixture(scope="session")
def sides():
    return make_sides()


@pytest.fixture(scope="session")
def comparison(sides):
    """A comparison that several tests look at."""
    return compare(*sides, ["raw", "z", "s", "lgsm"], bootstrap=60, points=[0.05, (0.01, 10, 1)], seed=5)


@pytest.fixture
def own_norm():
    """Return a function that registers a norm for one test."""
    names = []

    def register(name, norm, **how):
        register_norm(name, norm, **how)
        names.append(name)
        return name

    yield register
    for name in names:
        del METHODS[name]


__all__ = ["MODEL", "make_sides", "simulate", "with_blocks"]
