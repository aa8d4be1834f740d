"""Norms as methods that are trained: the same call for all of them."""

import numpy as np
import pytest

from evenscore import (
    InputError,
    LabelledBlocks,
    ScoreBlocks,
    ScoreMatrix,
    ScoreModel,
    ScoreModelNormalizer,
    fit_norm,
    normalize,
    prepare_norm,
    simulate,
    simulate_blocks,
)
from evenscore.norms import METHODS, FittedNorm, fit_methods, register_norm
from evenscore.norms.fitting import ModelNorm
from reference.dense_score_model import dense_llr

MODEL = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
SPEAKERS = [f"s{n % 8}" for n in range(24)]
DEV = [LabelledBlocks.own_cohort(*simulate(MODEL, SPEAKERS, SPEAKERS, seed=seed)) for seed in (1, 2)]


@pytest.mark.parametrize("method", ["z", "t", "zt", "tz", "s", "as", "at", "az"])
def test_classical_norms_normalize_each_training_matrix_by_itself(method):
    fitted = fit_norm(method, DEV)
    assert fitted.training_scores == [normalize(dev.blocks, method) for dev in DEV]
    assert (fitted.model, fitted.is_llr) == (None, False)
    assert fitted.normalizer.normalize(DEV[0].blocks) == fitted.training_scores[0]


def test_raw_leaves_the_scores():
    fitted = fit_norm("raw", DEV)
    assert fitted.training_scores == [dev.blocks.trials for dev in DEV]


def test_score_model_is_trained_on_all_matrices_and_leaves_own_speakers_out():
    fitted = fit_norm("lgsm", DEV, dim=1)
    assert fitted.is_llr
    assert fitted.model.dim == 1
    for part, dev in zip(fitted.training_scores, DEV, strict=True):
        expected = ScoreModelNormalizer(fitted.model, dev.blocks).normalize(dev.blocks)
        np.testing.assert_allclose(part.scores, expected.scores, rtol=1e-12)


def sides_of(blocks, i, j):
    """Return the cohort scores of one trial on both sides, on either, and on none."""
    row, column = blocks.enroll.scores[i], blocks.test.scores[:, j]
    return [(row, column), (row, None), (None, column), (None, None), (np.where(row > 1, np.nan, row), column)]


@pytest.mark.parametrize("trained", [True, False])
def test_single_trials_of_a_score_model_know_nothing_of_the_cohort(trained):
    fitted = fit_norm("lgsm", DEV, dim=1, residuals="gaussian")
    norm = fitted.normalizer if trained else prepare_norm("lgsm", model=fitted.model)
    blocks, _ = simulate_blocks(MODEL, ["a", "b"], ["a", "c", "d"], ["x", "y", "z", "x"], ["x", "y", "v"], seed=3)
    unknown = np.full(blocks.cohort.shape, np.nan)
    for enroll, test in sides_of(blocks, 1, 2) + sides_of(blocks, 0, 1):
        filled = (np.full(3, np.nan) if enroll is None else enroll, np.full(4, np.nan) if test is None else test)
        expected = dense_llr(fitted.model, 1.7, *filled, unknown, np.full(unknown.shape, -1))
        for _ in range(2):  # prepared, and again
            assert norm.normalize_one(1.7, enroll, test) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("method", ["lgsm", "evidence"])
def test_single_trials_equal_blocks_without_the_cohort_against_itself(method):
    norm = fit_norm(method, DEV).normalizer
    blocks, _ = simulate_blocks(MODEL, ["a", "b"], ["a", "c", "d"], [*"uvwxyz"], [*"stuvwxyz"], seed=4)
    bare = {
        name: ScoreMatrix(table.scores, table.enroll_ids, table.test_ids)
        for name, table in (("trials", blocks.trials), ("enroll", blocks.enroll), ("test", blocks.test))
    }
    for kept in (("enroll", "test"), ("enroll",), ("test",), ()):
        some = ScoreBlocks(bare["trials"], **{name: bare[name] for name in kept})
        expected = norm.normalize(some).scores
        for i, j in np.ndindex(expected.shape):
            row = bare["enroll"].scores[i] if "enroll" in kept else None
            column = bare["test"].scores[:, j] if "test" in kept else None
            one = norm.normalize_one(bare["trials"].scores[i, j], row, column)
            assert one == pytest.approx(expected[i, j], rel=1e-9, abs=1e-9)


def test_single_trials_take_cohorts_of_any_size_and_prepare_each_once(monkeypatch):
    norm = prepare_norm("lgsm", model=MODEL)
    prepared = []
    make = norm.prepare
    norm = ModelNorm(MODEL, lambda *given: prepared.append(1) or make(*given))
    for size in (5, 5, 5, 8, 8, 0):
        assert np.isfinite(norm.normalize_one(2.0, np.zeros(size), np.ones(3)))
    assert len(prepared) == 3
    with pytest.raises(InputError, match="enroll_cohort_scores must be one row of scores, but has shape"):
        norm.normalize_one(2.0, np.zeros((2, 2)), np.ones(3))


def test_progress_is_reported():
    stages = []
    fit_norm("s", DEV, progress=lambda stage, fraction: stages.append(fraction))
    assert stages == [0.0, 0.5]


def test_own_method_can_be_registered(monkeypatch):
    monkeypatch.setitem(METHODS, "mine", None)  # is not there any more after the test
    del METHODS["mine"]

    def train(method, training, *, progress):
        return FittedNorm(method=method, normalizer=None, training_scores=[], notes=(f"{len(training)} matrices",))

    register_norm("mine", train=train)
    assert fit_norm("mine", DEV).notes == ("2 matrices",)
    assert "mine" in fit_methods()
    with pytest.raises(InputError, match="already"):
        register_norm("mine", train=train)


def test_bad_requests_are_refused():
    with pytest.raises(InputError, match="no method 'nonsense'"):
        fit_norm("nonsense", DEV)
    with pytest.raises(InputError, match="no training scores"):
        fit_norm("s", [])
    for wrong in (None, [None], [(DEV[0].blocks, DEV[0].labels)]):
        with pytest.raises(InputError, match=r"training scores are given as a .*, but must be LabelledBlocks"):
            fit_norm("evidence", wrong)


def test_blocks_alone_are_a_list_of_one():
    [alone], [listed] = (fit_norm("s", given).training_scores for given in (DEV[0], DEV[:1]))
    assert np.array_equal(alone.scores, listed.scores)
