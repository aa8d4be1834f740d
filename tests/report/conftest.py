"""A small comparison of two conditions, and its page."""

import pytest

from evenscore import LabelledBlocks, ScoreModel, simulate, simulate_blocks
from evenscore.comparison import compare
from evenscore.report import render_report


@pytest.fixture(scope="session")
def comparison():
    model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.1], [0.9]], beta=[[0.8], [0.9]], sigma2=[1.0, 1.6])
    dev, coh, new = ([f"{group}{n // 2}" for n in range(40)] for group in ("dev", "coh", "new"))
    training, evaluation = [], []
    for seed, name in enumerate(("zero", "one")):
        training.append(LabelledBlocks.own_cohort(*simulate(model, dev, dev, seed=seed), name=name))
        evaluation.append(LabelledBlocks(*simulate_blocks(model, new, new, coh, coh, seed=10 + seed), name=name))
    return compare(training, evaluation, ["z", "s", "lgsm"], bootstrap=10)


@pytest.fixture(scope="session")
def page(comparison):
    return render_report(comparison)
