"""The number of threads changes no digit."""

import json

import numpy as np
import pytest

from comparison.compared_sides import evaluation_side, training_side
from evenscore import (
    Cosine,
    Embeddings,
    LabelledBlocks,
    LogisticCalibration,
    ScoreModel,
    UnsupervisedCalibration,
    compare,
    fit_evidence,
    fit_plda,
    fit_score_model,
    labels_for,
    normalize,
    score_embeddings,
    simulate,
)
from evenscore.tables.arrays import hashed

METHODS = ["z", "as:top_k=5", "lgsm:dim=1"]
SMALL = {"count": 8}
TIMES = ("run", "seconds")


def hashes(folder):
    """Return the hash of every file, without times."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".json":
            record = json.loads(path.read_text())
            found[path.relative_to(folder)] = {name: item for name, item in record.items() if name not in TIMES}
        elif path.is_file():
            found[path.relative_to(folder)] = hashed(path.read_bytes())
    return found


@pytest.mark.parametrize("few", [1 << 20, -1], ids=["NumPy", "compiled loops"])
def test_a_comparison_on_one_and_on_four_threads_is_the_same(tmp_path, monkeypatch, few):
    from evenscore import threads

    monkeypatch.setattr("evenscore.compiled.FEW", few)
    monkeypatch.setattr(threads, "_SMALL", 0)  # tiny data are shared out among threads, too
    for cores in (1, 4):
        monkeypatch.setattr(threads, "thread_count", lambda cores=cores: cores)
        threads._pool.cache_clear()
        compare(
            training_side(**SMALL), evaluation_side(**SMALL), METHODS, bootstrap=10, directory=tmp_path / str(cores)
        )
    threads._pool.cache_clear()
    one, four = (hashes(tmp_path / str(cores)) for cores in (1, 4))
    assert len(one) > 15
    assert one == four


def test_a_row_does_not_depend_on_the_rows_before_it():
    """The highest scores of a row were added up in an order that the rows before it had a say in."""
    from evenscore.norms.kernel_ranks import top_moments

    X = np.random.default_rng(0).normal(size=(40, 60)) * 10.0 ** np.arange(-3, 5).repeat(5)[:, None]
    X[3, ::2] = np.nan
    X[4, :50] = 1.0  # equal values at the border
    for drop in (0, 2):
        at_once, one_by_one = ((np.empty(40, np.int64), np.empty(40), np.empty(40)) for _ in range(2))
        top_moments(X, 9, drop, 0, 0, 40, *at_once)
        for row in range(40):
            top_moments(X, 9, drop, 0, row, row + 1, *one_by_one)
        assert [part.tobytes() for part in at_once] == [part.tobytes() for part in one_by_one]
        means = [np.sort(row[~np.isnan(row)])[::-1][drop : drop + 9].mean() for row in X]
        np.testing.assert_allclose(at_once[1], means, rtol=1e-13)


def voices(name, size, seed, speakers=40, dim=48):
    rng = np.random.default_rng(seed)
    codes = np.arange(size) % speakers
    vectors = np.random.default_rng(0).normal(size=(speakers, dim))[codes] + rng.normal(size=(size, dim))
    return Embeddings([f"{name}{n}" for n in range(size)], vectors.astype(np.float32), [f"s{code}" for code in codes])


def own_blocks():
    speakers = [f"s{n % 30}" for n in range(150)]
    return LabelledBlocks.own_cohort(*simulate(MODEL, speakers[:120], speakers, seed=1))


ENROLL, TEST, COHORT = voices("e", 300, 1), voices("t", 1300, 2), voices("c", 600, 3)
MODEL = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
LARGE = {
    "products": lambda: score_embeddings(ENROLL, TEST).scores,
    "a norm with a cohort": lambda: score_embeddings(ENROLL, TEST, cohort=COHORT, method="as", top_k=100).scores,
    "PLDA": lambda: fit_plda(TEST).model.within,
    "scores of PLDA": lambda: score_embeddings(ENROLL, TEST, scorer=PLDA_MODEL).scores,
    "training on embeddings": lambda: (
        fit_score_model((Cosine().score(ENROLL, TEST), labels_for(Cosine().score(ENROLL, TEST))), dim=1).model.alpha
    ),
    "a score model with own speakers": lambda: normalize(own_blocks().blocks, "lgsm", model=MODEL).scores,
    "evidence": lambda: normalize(own_blocks().blocks, "evidence", model=fit_evidence([own_blocks()])).scores,
    "a calibration": lambda: LogisticCalibration.fit(*calibrated_scores()).weights,
    "a calibration without labels": lambda: UnsupervisedCalibration.fit(calibrated_scores()[0]).mean,
}
PLDA_MODEL = fit_plda(voices("p", 200, 4)).model


def calibrated_scores():
    labels = np.arange(40_000) % 8 == 0
    return np.random.default_rng(0).normal(size=labels.size) + 2 * labels, labels


@pytest.mark.parametrize(
    "what", [*(name for name in LARGE if name != "evidence"), pytest.param("evidence", marks=pytest.mark.slow)]
)
def test_threads_of_blas_change_no_digit(monkeypatch, what):
    """Products that are large enough for BLAS to share them out, which changes their last digits."""
    from evenscore import threads

    control = pytest.importorskip("threadpoolctl")
    found = []
    for cores in (1, 3):
        monkeypatch.setattr(threads, "thread_count", lambda cores=cores: cores)
        threads._pool.cache_clear()
        with control.threadpool_limits(cores, user_api="blas"):
            found.append(np.ascontiguousarray(LARGE[what]()))
    threads._pool.cache_clear()
    assert found[0].tobytes() == found[1].tobytes()
