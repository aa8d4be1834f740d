"""LLRs of the score model are calibrated on scores that come from it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from evenscore import Embeddings, InputError
from evenscore.experiments.ideal_calibration import (
    LOG_ODDS,
    MODEL,
    TRUE_MODEL,
    check_calibration,
    model_scores,
    phrase_scores,
)


@pytest.fixture(scope="module")
def on_model():
    return check_calibration(*model_scores(speakers=100, sets=3), truth=MODEL)


def test_the_score_model_is_calibrated_on_its_own_scores(on_model):
    found = on_model.summary()
    assert found["LGSM"]["cllr"] - found["LGSM"]["min_cllr"] < 0.01
    gap = on_model.gap("LGSM")
    seen = np.isfinite(gap)
    assert seen[np.abs(LOG_ODDS) < 2].all()
    assert np.nanmean(gap) < 0.02
    assert found["LGSM"]["cllr"] < found["ZT-norm, calibrated"]["cllr"] < found["raw, calibrated"]["cllr"]


def test_training_has_nearly_found_the_model(on_model):
    found = on_model.summary()
    assert_allclose(found["LGSM"]["cllr"], found[TRUE_MODEL]["cllr"], atol=0.005)


def test_a_wrong_scale_is_seen(on_model):
    wrong = on_model.systems["LGSM"]
    on_model.systems["overconfident"] = wrong.with_scores(2.5 * wrong.scores)
    try:
        assert on_model.summary()["overconfident"]["worst_gap"] > 5 * on_model.summary()["LGSM"]["worst_gap"]
    finally:
        del on_model.systems["overconfident"]


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


@pytest.fixture
def recordings():
    rng = np.random.default_rng(0)
    speakers = np.repeat([f"s{n}" for n in range(6)], 8)
    words = np.tile(np.repeat(["no", "yes"], 4), 6)
    return Embeddings([f"u{n}" for n in range(48)], rng.normal(size=(48, 5)), speakers, columns={"word": words})


def test_embeddings_of_phrases_become_scores_of_two_halves(recordings):
    training, evaluation = phrase_scores(recordings, phrase="word", takes=2)
    assert len(training) == len(evaluation) == 2
    blocks = evaluation[0].blocks
    assert blocks.trials.shape == (3, 6)
    assert set(blocks.enroll_speakers).isdisjoint(blocks.cohort_enroll_speakers)
    first = recordings.select(["u8", "u9"]).vectors.mean(axis=0)  # takes 1 and 2 of s1's "no"
    test = recordings.select(["u10"]).vectors[0]
    development = np.isin(recordings.speakers.astype(str), ["s0", "s2", "s4"])
    mean = recordings.vectors[development].mean(axis=0)
    a, b = first - mean, test - mean
    at = list(blocks.trials.enroll_ids).index("s1-model"), list(blocks.trials.test_ids).index("u10")
    assert_allclose(blocks.trials.scores[at], a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_embeddings_without_the_column_are_refused(recordings):
    with pytest.raises(InputError, match="need speakers and a column 'phrase'; there are \\['word'\\]"):
        phrase_scores(recordings, phrase="phrase")
