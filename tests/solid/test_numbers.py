"""The same numbers on one thread and on four, in NumPy and in dask, in any chunks: to 1e-10."""

import dask
import dask.array as da
import numpy as np
import pytest

from evenscore import ScoreBlocks, ScoreMatrix, ScoreModel, evaluate, log_likelihood, normalize, parallel
from evenscore.model import simulate_blocks

MODEL = ScoreModel(mu=[0.0, 3.0], alpha=[[0.7], [0.5]], beta=[[0.6], [0.5]], sigma2=[1.0, 1.5])
NORMS = {"s": {}, "as": {"top_k": 37}, "zt": {}, "lgsm": {"model": MODEL}}
CHUNKS = [(97, 113), ((1, 299), (350, 349, 1)), (300, 64)]
PARTS = ("trials", "enroll", "test", "cohort")


@pytest.fixture(scope="module")
def data():
    """Return 210,000 trials, which are more than one block, some of them missing, with cohort scores and labels."""
    speakers = [[f"{name}{i % people}" for i in range(size)] for name, size, people in (("s", 300, 60), ("s", 700, 60))]
    others = [[f"c{i % 50}" for i in range(size)] for size in (400, 500)]
    blocks, labels = simulate_blocks(MODEL, *speakers, *others, seed=1)
    trials = blocks.trials.scores.copy()
    trials[np.random.default_rng(0).random(trials.shape) < 0.01] = np.nan
    parts = {name: getattr(blocks, name) for name in PARTS}
    parts["trials"] = ScoreMatrix(trials, *(side.ids for side in (blocks.trials.enroll, blocks.trials.test)))
    return ScoreBlocks(**parts), labels


def everything(blocks, labels):
    """Return normalized scores, the likelihood of a score model, and metrics, as arrays."""
    found = {name: normalize(blocks, name, **options).compute().scores for name, options in NORMS.items()}
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
