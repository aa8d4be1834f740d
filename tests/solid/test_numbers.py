"""The same numbers on one thread and on four, in NumPy and in dask, in any chunks: to 1e-10."""

import dask
import dask.array as da
import numpy as np
import pytest

from evenscore import (
    ScoreBlocks,
    ScoreMatrix,
    ScoreModel,
    evaluate,
    fit_score_model,
    log_likelihood,
    normalize,
    parallel,
)
from evenscore.model import simulate_blocks

MODEL = ScoreModel(mu=[0.0, 3.0], alpha=[[0.7], [0.5]], beta=[[0.6], [0.5]], sigma2=[1.0, 1.5])
NORMS = {"s": {}, "as": {"top_k": 37}, "zt": {}, "lgsm": {"model": MODEL}}
CHUNKS = [(97, 113), ((1, 299), (350, 349, 1)), (300, 64)]
PARTS = ("trials", "enroll", "test", "cohort")


@pytest.fixture(scope="module")
def data():
    """Return 210,000 trials, which are more than one block, some of them missing, with cohort scores and labels."""
    speakers = [[f"{name}{i % people}" for i in range(size)] for name, size, people in (("s", 300, 60), ("s", 700, 60))]
    others = [[f"s{i % 80}" for i in range(size)] for size in (400, 500)]  # 60 of them in the trials, too
    blocks, labels = simulate_blocks(MODEL, *speakers, *others, seed=1)
    trials = blocks.trials.scores.copy()
    trials[np.random.default_rng(0).random(trials.shape) < 0.01] = np.nan
    return ScoreBlocks(blocks.trials.with_scores(trials), blocks.enroll, blocks.test, blocks.cohort), labels


def everything(blocks, labels):
    """Return normalized scores, a trained score model and its likelihood, and metrics, as arrays."""
    parts = {name: getattr(blocks, name) for name in PARTS}
    plain = ScoreBlocks(
        **{name: ScoreMatrix(part.scores, part.enroll.ids, part.test.ids) for name, part in parts.items()}
    )
    found = {name: normalize(plain, name, **options).compute().scores for name, options in NORMS.items()}
    found["own speakers"] = normalize(blocks, "as", folds=2, top_k=37).compute().scores
    complete = blocks.trials.map(np.nan_to_num, [], [])
    found["fit"] = fit_score_model(complete, labels, dim=1, residuals="gaussian").log_likelihood[-1:] / 1e5
    measured = evaluate(blocks.trials, labels)
    names = ("eer", "min_dcf", "act_dcf", "cllr", "min_cllr", "auc")
    found["metrics"] = np.array([getattr(measured, name) for name in names])
    found["likelihood"] = np.array(log_likelihood(MODEL, [(blocks.trials, labels)])) / 1e5
    return found


def assert_same(found, expected):
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-10, atol=1e-10, err_msg=name)


@pytest.fixture(scope="module")
def expected(data):
    with parallel.busy_thread():  # blocks follow one another
        return everything(*data)


@pytest.mark.parametrize("threads", [1, 4])
def test_threads(data, expected, threads, monkeypatch):
    monkeypatch.setattr(parallel, "thread_count", lambda: threads)
    parallel._pool.cache_clear()
    assert_same(everything(*data), expected)
    parallel._pool.cache_clear()


@pytest.mark.parametrize(("chunks", "threads"), list(zip(CHUNKS, (1, 4, 4), strict=True)), ids=str)
def test_dask(data, expected, chunks, threads):
    blocks, labels = data
    lazy = {}
    for name in PARTS:
        part = getattr(blocks, name)
        size = chunks if name == "trials" else tuple(np.max(one) for one in chunks)
        lazy[name] = part.with_scores(da.from_array(part.scores, chunks=size))
    scheduler = {"scheduler": "sync"} if threads == 1 else {"scheduler": "threads", "num_workers": threads}
    with dask.config.set(scheduler):
        assert_same(everything(ScoreBlocks(**lazy), labels), expected)
