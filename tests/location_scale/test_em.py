"""Training the location-scale model: every step against its definition, and the bound never falls."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from designs import draw_scores, keys, models
from evenscore import InputError, Labels, ScoreMatrix, ScoreModel, TrialList, log_likelihood, simulate
from evenscore.location_scale import (
    LocationScaleModel,
    LocationScaleNormalizer,
    fit_location_scale,
    location_scale_bound,
)
from evenscore.location_scale.em import (
    bound,
    infer_location,
    infer_scales,
    initial,
    maximize_location,
    maximize_scale,
    precision_of,
)
from evenscore.location_scale.scales import ScalePosterior, update_scales
from evenscore.model.dense_scores import DenseScores, dense_scores
from reference.dense_location_scale import dense_weighted_posterior, loop_bound, monte_carlo_log_likelihood

MODEL = LocationScaleModel(
    ScoreModel(mu=[0.0, 3.0], alpha=[[0.6], [0.3]], beta=[[0.4], [0.5]], sigma2=[0.8, 1.2]),
    c=[0.7, 0.4],
    d=[0.5, -0.3],
    f=[0.4],
    g=[-0.2],
)


def draw(model, enroll, test, seed):
    """Scores of the location-scale model itself."""
    rng = np.random.default_rng(seed)
    labels = Labels.from_speakers(enroll, test)
    h, location = labels.matrix, model.location
    u, v = rng.normal(size=len(enroll)), rng.normal(size=len(test))
    x = rng.normal(size=(len(enroll), model.dim)) + np.outer(u, model.f)
    y = rng.normal(size=(len(test), model.dim)) + np.outer(v, model.g)
    mean = location.mu[h] + np.einsum("ijd,id->ij", location.alpha[h], x) + np.einsum("ijd,jd->ij", location.beta[h], y)
    spread = np.sqrt(location.sigma2[h] * np.exp(model.c[h] * u[:, None] + model.d[h] * v))
    return mean + spread * rng.normal(size=h.shape), labels


@st.composite
def location_scale_models(draw_from):
    location = draw_from(models(dims=(0, 1, 2)))
    rng = np.random.default_rng(draw_from(st.integers(0, 1000)))
    size = draw_from(st.sampled_from([0.1, 0.6]))
    return LocationScaleModel(
        location,
        c=size * rng.normal(size=2),
        d=size * rng.normal(size=2),
        f=size * rng.normal(size=location.dim),
        g=size * rng.normal(size=location.dim),
    )


def dense(key, seed):
    scores = draw_scores(key.shape, seed)
    return DenseScores(scores=np.where(key >= 0, scores, 0.0), present=key >= 0, key=key)


def assert_blocks(post, covariance):
    """Compare the blocks of the covariance that the posterior gives."""
    K, L, D = len(post.x), len(post.y), post.x.shape[1]
    whole = covariance.reshape(K + L, D, K + L, D).transpose(0, 2, 1, 3)
    rows, columns = np.arange(K), K + np.arange(L)
    np.testing.assert_allclose(post.x_covariance, whole[rows, rows], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(post.y_covariance, whole[columns, columns], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(post.cross, whole[:K, K:], rtol=1e-8, atol=1e-9)


@settings(max_examples=12, deadline=None)
@given(location_scale_models(), keys(largest=5), st.integers(0, 99))
def test_the_posterior_and_the_bound_are_those_of_the_definition(model, key, seed):
    data = dense(key, seed)
    state = infer_scales(model, infer_location(model, initial(data, model.dim)))
    state = infer_location(model, state)
    mean = np.concatenate([state.post.x.ravel(), state.post.y.ravel()])
    u, v = (list(zip(side.mean, side.variance, strict=True)) for side in (state.rows, state.columns))
    prior = np.concatenate([np.outer(state.rows.mean, model.f).ravel(), np.outer(state.columns.mean, model.g).ravel()])
    Lam, expected = dense_weighted_posterior(model.location, data.scores, precision_of(model, state), prior)
    np.testing.assert_allclose(mean, expected, rtol=1e-8, atol=1e-9)
    covariance = np.linalg.inv(Lam)
    assert_blocks(state.post, covariance)
    np.testing.assert_allclose(
        bound(model, [state]), loop_bound(model, data.scores, key, mean, covariance, u, v), rtol=1e-9, atol=1e-8
    )


@settings(max_examples=10, deadline=None)
@given(location_scale_models(), keys(largest=6, smallest=3), keys(largest=5, smallest=3), st.integers(0, 99))
def test_no_step_lowers_the_bound(model, first, second, seed):
    states = [infer_location(model, initial(dense(key, seed), model.dim)) for key in (first, second)]
    counts = [min(np.sum(key == h) for h in (0, 1)) for key in (first, second)]
    trace = [bound(model, states)]
    for _ in range(4):
        states = [infer_scales(model, state) for state in states]
        trace.append(bound(model, states))
        states = [infer_location(model, state) for state in states]
        trace.append(bound(model, states))
        if sum(counts) < 8:  # too few scores of a class to fit its parameters
            continue
        model, states = maximize_location(model, states)
        trace.append(bound(model, states))
        states = [infer_scales(model, state) for state in states]
        model, states = maximize_scale(model, states)
        trace.append(bound(model, states))
        states = [infer_location(model, state) for state in states]
        trace.append(bound(model, states))
    assert np.diff(trace).min() > -1e-8 * np.abs(trace).max()


@settings(max_examples=10, deadline=None)
@given(models(dims=(0, 1, 2)), keys(largest=6), st.integers(0, 99))
def test_without_scale_effects_the_bound_is_the_likelihood_of_the_score_model(model, key, seed):
    if not (key >= 0).any():
        return
    data = [(draw_scores(key.shape, seed), Labels.from_key(key))]
    np.testing.assert_allclose(
        location_scale_bound(LocationScaleModel(model), data), log_likelihood(model, data), rtol=1e-9, atol=1e-9
    )


def test_the_bound_lies_below_the_likelihood_and_near_it():
    key = np.array([[1, 0, 0], [0, 1, -1]], dtype=np.int8)
    scores = np.array([[2.9, 0.4, -0.8], [0.3, 4.1, 0.0]])
    exact = monte_carlo_log_likelihood(MODEL, scores, key, 20_000)
    labels = Labels.from_key(key, enroll_ids=["a", "b"], test_ids=["c", "d", "e"])
    matrix = ScoreMatrix(np.where(key < 0, np.nan, scores), ["a", "b"], ["c", "d", "e"], missing="nan")
    found = location_scale_bound(MODEL, [(matrix, labels)])
    assert exact - 0.3 < found < exact + 0.02  # the Monte Carlo error is below 0.02


@pytest.mark.parametrize("seed", range(4))
def test_log_scales_are_at_their_optimum(seed):
    rng = np.random.default_rng(seed)
    loading, counts, squares = rng.normal(size=2), rng.integers(0, 9, size=(2, 1)), rng.uniform(0, 20, size=(2, 1))
    pull, grip = rng.normal(size=1), 0.3

    def loss(theta):
        m, v = theta[0], np.exp(theta[1])
        fit = sum(counts[h, 0] * loading[h] * m + squares[h, 0] * np.exp(-loading[h] * m + loading[h] ** 2 * v / 2)
                  for h in range(2))  # fmt: skip
        return 0.5 * (fit + (1 + grip) * (m**2 + v) - np.log(v)) - pull[0] * m

    best = minimize(loss, [0.0, 0.0], tol=1e-12)
    found = update_scales(ScalePosterior.prior(1), loading, counts, squares, pull, grip)
    assert loss([found.mean[0], np.log(found.variance[0])]) <= best.fun + 1e-8


def test_training_finds_the_parameters_and_never_lowers_the_bound():
    speakers = [f"s{n % 20}" for n in range(40)]
    data = [draw(MODEL, speakers, speakers, seed) for seed in range(2)]
    result = fit_location_scale(data, dim=1, tol=1e-4)
    assert result.converged
    assert np.diff(result.bound).min() >= 0
    assert result.bound[-1] > result.linear_log_likelihood + 100
    np.testing.assert_allclose(result.model.c, MODEL.c, atol=0.3)
    np.testing.assert_allclose(result.model.d, MODEL.d, atol=0.3)
    np.testing.assert_allclose(result.model.location.mu, MODEL.location.mu, atol=0.4)


def test_scores_without_scale_effects_keep_the_linear_model():
    model = ScoreModel(mu=[0.0, 3.0], alpha=[[0.6], [0.3]], beta=[[0.4], [0.5]], sigma2=[0.8, 1.2])
    result = fit_location_scale(simulate(model, list("abcd"), list("aabbccddee"), seed=3), dim=1)
    assert result.model.is_linear
    assert "explain the scores no better" in result.notes[-1]


def test_units_do_not_matter():
    data = draw(MODEL, list("abcdefgh") * 2, list("abcdefgh") * 3, 5)
    one = fit_location_scale([data], dim=1, max_iter=5)
    other = fit_location_scale([(40.0 * data[0] - 7e3, data[1])], dim=1, max_iter=5)
    np.testing.assert_allclose(other.model.c, one.model.c, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(other.bound[-1], one.bound[-1] - data[0].size * np.log(40), rtol=1e-6)


def test_lists_and_matrices_with_missing_scores_are_the_same_data():
    scores, labels = draw(MODEL, list("abcdef"), list("abcdefgh"), 6)
    rng = np.random.default_rng(0)
    gone = rng.random(scores.shape) < 0.2
    ids = [f"e{n}" for n in range(6)], [f"t{n}" for n in range(8)]
    matrix = ScoreMatrix(np.where(gone, np.nan, scores), *ids, missing="nan")
    aligned = Labels.from_key(labels.matrix, enroll_ids=ids[0], test_ids=ids[1])
    listed = matrix.to_trials(aligned)
    assert isinstance(listed, TrialList)
    one, other = (fit_location_scale(data, dim=1, tol=0.1, max_iter=5) for data in ([(matrix, aligned)], listed))
    np.testing.assert_allclose(one.bound[-1], other.bound[-1], rtol=1e-9)
    assert one.n_scores == other.n_scores == tuple(np.bincount(aligned.matrix[~gone]))


def test_bad_input_is_refused():
    scores, labels = draw(MODEL, list("abc"), list("abc"), 0)
    with pytest.raises(InputError, match="tol is -1"):
        fit_location_scale([(scores, labels)], tol=-1)
    with pytest.raises(InputError, match="2 finite numbers"):
        LocationScaleModel(MODEL.location, c=[np.nan, 0.0])
    with pytest.raises(InputError, match="D = 1 finite numbers"):
        LocationScaleModel(MODEL.location, f=[1.0, 2.0])
    with pytest.raises(InputError, match="must be a ScoreModel"):
        LocationScaleModel("model")
    with pytest.raises(InputError, match="pairs"):
        dense_scores([scores])
    with pytest.raises(InputError, match="but labels are 3 x 3"):
        dense_scores([(scores[:2], labels)])
    with pytest.raises(InputError, match="must be finite"):
        dense_scores([(scores * np.inf, labels)])


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3, 1e9])
def test_log_scales_follow_residuals_of_any_size(size):
    loading, count = np.array([1.0, 0.5]), np.array([[30.0], [2.0]])
    found = ScalePosterior.prior(1)
    for _ in range(10):
        found = update_scales(found, loading, count, size**2 * count)
    m, v = found.mean[0], found.variance[0]
    e = size**2 * count[:, 0] * np.exp(-loading * m + 0.5 * loading**2 * v)
    balance = [-0.5 * loading @ count[:, 0] + 0.5 * loading @ e - m, -0.25 * loading**2 @ e - 0.5 + 0.5 / v]
    np.testing.assert_allclose(balance, 0.0, atol=1e-4)


def test_scores_that_are_all_alike_never_look_like_a_good_fit():
    speakers = [f"s{n % 10}" for n in range(30)]
    scores, labels = draw(MODEL, speakers[:20], speakers, seed=4)
    scores[:5] = 7.0
    with pytest.raises(InputError, match="all alike next to those of others, so that their spread falls to 0"):
        fit_location_scale([(scores, labels)], dim=1)


def test_a_cohort_of_equal_scores_is_refused():
    ids = [f"e{n}" for n in range(80)]
    model = LocationScaleModel(MODEL.location, c=[4.0, 4.0], d=[4.0, 4.0])
    with pytest.raises(InputError, match="of most of its members, are all alike"):
        LocationScaleNormalizer(model, ScoreMatrix(np.ones((80, 80)), ids, ids))
