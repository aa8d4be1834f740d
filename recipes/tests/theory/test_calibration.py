"""LLRs of the score model are calibrated on scores that come from it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from recipes.theory.calibration import (
    LOG_ODDS,
    MODEL,
    TRUE_MODEL,
    check_calibration,
    model_scores,
)


@pytest.fixture(scope="module")
def on_model():
    return check_calibration(*model_scores(speakers=100, sets=3), truth=MODEL)


@pytest.mark.slow
def test_the_score_model_is_calibrated_on_its_own_scores(on_model):
    found = on_model.summary()
    assert found["LGSM"]["cllr"] - found["LGSM"]["min_cllr"] < 0.01
    gap = on_model.gap("LGSM")
    seen = np.isfinite(gap)
    assert seen[np.abs(LOG_ODDS) < 2].all()
    assert np.nanmean(gap) < 0.02
    assert found["LGSM"]["cllr"] < found["ZT-norm, calibrated"]["cllr"] < found["raw, calibrated"]["cllr"]


@pytest.mark.slow
def test_training_has_nearly_found_the_model(on_model):
    found = on_model.summary()
    assert_allclose(found["LGSM"]["cllr"], found[TRUE_MODEL]["cllr"], atol=0.005)


@pytest.mark.slow
def test_a_wrong_scale_is_seen(on_model):
    wrong = on_model.systems["LGSM"]
    on_model.systems["overconfident"] = wrong.with_scores(2.5 * wrong.scores)
    try:
        assert on_model.summary()["overconfident"]["worst_gap"] > 5 * on_model.summary()["LGSM"]["worst_gap"]
    finally:
        del on_model.systems["overconfident"]


@pytest.mark.slow
def test_points_with_few_errors_are_left_out():
    checked = check_calibration(*model_scores(speakers=60, sets=1))
    gap = checked.gap("LGSM")
    assert np.isnan(gap[[0, -1]]).all()
    found = checked.summary()["LGSM"]
    assert found["from"] > LOG_ODDS[0]
    trials = checked.systems["LGSM"]
    target, nontarget = (trials.scores[trials.labels == label] for label in (1, 0))
    for x in LOG_ODDS[np.isfinite(gap)]:
        assert min(np.count_nonzero(target < -x), np.count_nonzero(nontarget >= -x)) >= 30


@pytest.mark.slow
def test_on_real_scores_the_model_is_not_calibrated_everywhere():
    from evenscore import load_audiomnist_scores

    real = load_audiomnist_scores()
    found = check_calibration(real.development, real.evaluation).summary()
    assert found["LGSM"]["worst_gap"] > 0.2
    assert found["LGSM"]["worst_gap"] > 5 * found["ZT-norm, calibrated"]["worst_gap"]
    assert found["LGSM"]["min_cllr"] < found["raw, calibrated"]["min_cllr"]  # though it tells speakers apart better
