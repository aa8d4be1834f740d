"""Norms as methods that are trained: the same call for all of them."""

import numpy as np
import pytest

from evenscore import InputError, LabelledBlocks, ScoreModel, ScoreModelNormalizer, fit_norm, normalize, simulate
from evenscore.norms import METHODS, FittedNorm, fit_methods, register_norm

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
