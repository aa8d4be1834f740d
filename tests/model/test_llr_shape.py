"""The floor or ceiling of the LLR, and the trials beyond it, against a grid, draws and the paper's formula."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from designs import models
from evenscore import (
    GaussianCalibration,
    InputError,
    LabelledBlocks,
    Labels,
    ScoreBlocks,
    ScoreMatrix,
    ScoreModel,
    ScoreModelNormalizer,
    fit_norm,
    load_audiomnist_scores,
    simulate,
)
from evenscore.model import LlrShape, share_beyond_vertex
from examples import examples
from reference.dense_score_model import dense_llr
from reference.llr_by_grid import drawn_share_beyond, turn

FLOOR = ScoreModel(mu=[-1.0, 3.0], alpha=[[0.6, 0.0], [0.8, 0.6]], beta=[[0.8, 0.0], [0.0, 1.5]], sigma2=[1.0, 2.0])
CEILING = ScoreModel(mu=[-1.0, 2.0], alpha=[[1.5, 0.3], [0.2, 0.1]], beta=[[0.9, 0.0], [0.1, 0.3]], sigma2=[2.0, 0.7])


def shape(mean, variance):
    return LlrShape(mean=np.array(mean, dtype=float), variance=np.array(variance, dtype=float))


@pytest.mark.parametrize("mean", [(0.0, 3.0), (2.0, -1.0), (1e6, 1e6 + 1)])
@pytest.mark.parametrize("variance", [(1.0, 4.0), (9.0, 2.0), (0.5, 0.9)])
def test_the_vertex_is_where_the_grid_finds_it(mean, variance):
    found = shape(mean, variance)
    score, llr = turn(mean, variance, found.vertex - 5, found.vertex + 5)
    assert found.vertex == pytest.approx(score, abs=1e-4)
    bound, other = (found.floor, found.ceiling) if variance[1] > variance[0] else (found.ceiling, found.floor)
    assert bound == pytest.approx(llr, abs=1e-6)
    assert math.isinf(other)


def test_equal_variances_have_neither_floor_nor_ceiling():
    line = shape((0.0, 2.0), (3.0, 3.0))
    assert (line.vertex, line.floor, line.ceiling) == (None, -math.inf, math.inf)
    assert line.beyond.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("mean", "variance", "below"),
    [((0, 2), (1, 4), True), ((0, 2), (4, 1), False), ((2, 0), (1, 4), False), ((2, 0), (4, 1), True)],
)
def test_the_class_means_are_not_beyond(mean, variance, below):
    found = shape(mean, variance)
    assert found.beyond_is_below == below
    assert all((value > found.vertex) == below for value in mean)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        FLOOR,
        CEILING,
        ScoreModel(mu=[1.0, -1.0], alpha=[[0.7], [0.4]], beta=[[0.0], [1.0]], sigma2=[1.0, 1.5]),  # distances
        ScoreModel(mu=[0.0, 1.0], alpha=[[], []], beta=[[], []], sigma2=[1.0, 3.0]),
    ],
)
def test_the_expected_share_is_that_of_drawn_trials(model, large):
    expected = drawn_share_beyond(model, large)
    np.testing.assert_allclose(model.llr_shape(large_cohort=large).beyond, expected, atol=0.003)


@pytest.mark.parametrize("model", [FLOOR, CEILING])
def test_a_large_cohort_gives_the_variances_of_the_normalizer(model):
    size = 500
    ids = [f"c{n}" for n in range(size)]
    normalizer = ScoreModelNormalizer(model, ScoreMatrix(np.zeros((size, size)), ids, ids))
    np.testing.assert_allclose(model.llr_shape(large_cohort=True).variance, normalizer.weights().variance, rtol=0.01)
    alone = ScoreModelNormalizer(model).weights().variance  # summed in another order on other processors
    np.testing.assert_allclose(model.llr_shape().variance, alone, rtol=1e-14)


def test_no_score_gets_beyond_the_bounds():
    for model in (FLOOR, CEILING):
        scores = ScoreMatrix(np.linspace(-40, 40, 2001)[None, :], ["e"], [f"t{n}" for n in range(2001)])
        llrs = ScoreModelNormalizer(model).normalize(ScoreBlocks(scores)).scores
        found = model.llr_shape()
        assert llrs.min() >= found.floor - 1e-12
        assert llrs.max() <= found.ceiling + 1e-12
        assert min(llrs.min() - found.floor, found.ceiling - llrs.max()) < 1e-3  # and one comes near


@examples(25)
@given(models(dims=(0, 1, 2)), st.integers(0, 2**32 - 1), st.booleans())
def test_the_measured_share_is_that_of_the_papers_formula(model, seed, with_cohort):
    rng = np.random.default_rng(seed)
    speakers = ["a", "b", "c", "d"]
    enroll, test = rng.choice(speakers, 3).tolist() + speakers[:1], rng.choice(speakers, 4).tolist() + speakers[:2]
    labels = Labels.from_speakers(enroll, test, enroll_ids=list("efgh"), test_ids=list("tuvwxy"))
    scores = ScoreMatrix(3 * rng.normal(size=(4, 6)) + model.mu.mean(), list("efgh"), list("tuvwxy"))
    part = LabelledBlocks.own_cohort(scores, labels) if with_cohort else LabelledBlocks(ScoreBlocks(scores), labels)
    beyond, count = np.zeros(2), np.zeros(2)
    for i in range(4):
        for j in range(6):
            rows = np.array([with_cohort and name not in (enroll[i], test[j]) for name in enroll])
            columns = np.array([with_cohort and name not in (enroll[i], test[j]) for name in test])
            at = np.ix_(rows, columns)
            cohort = scores.scores[i, columns], scores.scores[rows, j], scores.scores[at], labels.matrix[at]
            low, high = (dense_llr(model, scores.scores[i, j] + way, *cohort) for way in (-1.0, 1.0))
            beyond[labels.matrix[i, j]] += (high - low) * (1 if model.mu[1] >= model.mu[0] else -1) < 0
            count[labels.matrix[i, j]] += 1
    np.testing.assert_array_equal(share_beyond_vertex(model, part), beyond / count)


def test_the_measured_share_follows_the_expected_one_on_scores_of_the_model():
    speakers = [f"s{n % 60}" for n in range(120)]
    part = LabelledBlocks.own_cohort(*simulate(FLOOR, speakers, speakers, seed=3))
    with_cohort = share_beyond_vertex(FLOOR, [part])
    without = share_beyond_vertex(FLOOR, LabelledBlocks(ScoreBlocks(part.blocks.trials), part.labels))
    np.testing.assert_allclose(with_cohort, FLOOR.llr_shape(large_cohort=True).beyond, atol=0.01)
    np.testing.assert_allclose(without, FLOOR.llr_shape().beyond, atol=0.02)
    listed = LabelledBlocks(part.blocks.replace(trials=part.trials))
    np.testing.assert_array_equal(share_beyond_vertex(FLOOR, listed), with_cohort)


def test_the_real_scores_that_come_with_the_package_have_a_floor():
    development = load_audiomnist_scores().development
    fitted = fit_norm("lgsm", development, dim=0)
    found = fitted.model.llr_shape()
    trials = [part.trials for part in development]
    scores, labels = (np.concatenate([getattr(t, name) for t in trials]) for name in ("scores", "labels"))
    plain = GaussianCalibration.fit(scores, labels)
    assert found.floor == pytest.approx(-4.0835, abs=1e-3)
    assert plain(scores).min() == pytest.approx(found.floor, abs=1e-4)
    share = share_beyond_vertex(fitted.model, development)
    assert share.tolist() == [np.mean(scores[labels == 0] < found.vertex), 0.0]
    assert share[0] == pytest.approx(0.150, abs=1e-3)


def test_trials_that_cannot_be_judged_are_refused():
    scores = ScoreMatrix([[1.0, 2.0]], ["e"], ["t", "u"])
    same = Labels.from_key(np.ones((1, 2), dtype=np.int8))
    with pytest.raises(InputError, match="no trials of one class"):
        share_beyond_vertex(FLOOR, LabelledBlocks(ScoreBlocks(scores), same))
    with pytest.raises(InputError, match="not in memory"):
        share_beyond_vertex(FLOOR, LabelledBlocks(ScoreBlocks(scores.in_tiles()), same))
