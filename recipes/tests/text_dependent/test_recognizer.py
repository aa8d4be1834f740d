"""Mixture, statistics, eigenchannels and scores against loops over frames and Gaussians."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import InputError
from recipes.tests.reference import naive_recognizer as naive
from recipes.text_dependent.eigenchannels import (
    channel_factors,
    class_offsets,
    compensated,
    fit_eigenchannels,
)
from recipes.text_dependent.recognizer import (
    Recognizer,
    RecognizerOptions,
    enrolled,
    linear_scores,
    probe_vectors,
)
from recipes.text_dependent.statistics import Statistics, baum_welch
from recipes.text_dependent.ubm import DiagonalMixture, fit_mixture, posteriors, sum_moments


def random_mixture(rng, size, dim):
    weights = rng.dirichlet(np.ones(size))
    return DiagonalMixture(
        weights=weights, means=rng.normal(size=(size, dim)), variances=rng.uniform(0.3, 2.0, size=(size, dim))
    )


def random_recordings(rng, lengths, dim):
    return [rng.normal(rng.normal(size=dim), 1.0, size=(length, dim)).astype(np.float32) for length in lengths]


LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=5)


@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 99))
def test_posteriors_are_shares_of_the_density(size, dim, seed):
    rng = np.random.default_rng(seed)
    mixture, frames = random_mixture(rng, size, dim), rng.normal(2.0, 2.0, size=(7, dim))
    found, likelihood = posteriors(mixture, frames)
    assert found == pytest.approx(np.array([naive.shares(mixture, frame) for frame in frames]), abs=1e-10)
    assert likelihood == pytest.approx(np.array([naive.log_likelihood(mixture, frame) for frame in frames]), abs=1e-9)


def test_single_precision_is_enough_far_from_zero():
    rng = np.random.default_rng(1)
    mixture = random_mixture(rng, 4, 3)
    moved = DiagonalMixture(weights=mixture.weights, means=mixture.means + 300.0, variances=mixture.variances)
    frames = rng.normal(size=(20, 3))
    exact, _ = posteriors(mixture, frames)
    found, _ = posteriors(moved, (frames + 300.0).astype(np.float32))
    assert found == pytest.approx(exact, abs=1e-3)


def test_moments_add_up_over_chunks():
    rng = np.random.default_rng(2)
    mixture, frames = random_mixture(rng, 3, 2), rng.normal(size=(2500, 2))
    moments = sum_moments(mixture, frames)
    shares, likelihood = posteriors(mixture, frames)
    relative = frames - mixture.weights @ mixture.means
    assert moments.n == pytest.approx(shares.sum(axis=0))
    assert moments.first == pytest.approx(shares.T @ relative)
    assert moments.second == pytest.approx(shares.T @ relative**2)
    assert moments.log_likelihood == pytest.approx(likelihood.sum())


@pytest.mark.parametrize(("dtype", "slack"), [(np.float64, 1e-12), (np.float32, 1e-6)])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 16])
def test_the_likelihood_never_falls(dtype, slack, size):
    rng = np.random.default_rng(size)
    true = random_mixture(rng, 5, 4)
    parts = rng.choice(5, size=1500, p=true.weights)
    frames = (true.means[parts] * 3 + rng.normal(size=(1500, 4)) * np.sqrt(true.variances[parts])).astype(dtype)
    mixture = fit_mixture(frames, size, iterations=15)
    assert mixture.size == size
    assert len(mixture.log_likelihoods) == 15
    assert np.diff(mixture.log_likelihoods).min() > -slack
    assert mixture.weights.sum() == pytest.approx(1.0)
    again = fit_mixture(frames, size, iterations=15)
    assert np.array_equal(mixture.means, again.means)


def test_clusters_are_found():
    rng = np.random.default_rng(3)
    left, right = rng.normal([-4.0, 1.0], [1.0, 0.5], size=(300, 2)), rng.normal([4.0, 1.0], [0.5, 2.0], size=(100, 2))
    mixture = fit_mixture(np.concatenate([left, right]), 2)
    order = np.argsort(mixture.means[:, 0])
    assert mixture.weights[order] == pytest.approx([0.75, 0.25], abs=0.01)
    assert mixture.means[order] == pytest.approx(np.array([left.mean(axis=0), right.mean(axis=0)]), abs=0.01)
    assert mixture.variances[order] == pytest.approx(np.array([left.var(axis=0), right.var(axis=0)]), rel=0.02)


def test_variances_have_a_floor():
    frames = np.repeat(np.array([[0.0, 1.0], [5.0, 1.0]]), 20, axis=0)
    mixture = fit_mixture(frames, 2)
    assert mixture.variances[:, 0] == pytest.approx(0.01 * 6.25)
    assert (mixture.variances[:, 1] > 0).all()
    assert np.isfinite(mixture.log_likelihoods).all()


def test_too_few_frames_are_refused():
    with pytest.raises(InputError, match="5 frames are too few for a mixture of 4 Gaussians"):
        fit_mixture(np.zeros((5, 2)), 4)


@given(LENGTHS, st.integers(1, 4), st.integers(0, 99))
def test_statistics_are_sums_over_frames(lengths, size, seed):
    rng = np.random.default_rng(seed)
    mixture, recordings = random_mixture(rng, size, 3), random_recordings(rng, lengths, 3)
    found = baum_welch(mixture, recordings)
    n, f = naive.statistics(mixture, recordings)
    assert found.n == pytest.approx(n, abs=1e-4)
    assert found.f == pytest.approx(f, abs=1e-3)
    assert len(found.take([0])) == 1


def test_statistics_of_many_recordings_are_those_of_each():
    rng = np.random.default_rng(4)
    mixture = random_mixture(rng, 3, 2)
    recordings = random_recordings(rng, [6000, 1, 3000, 5000, 12], 2)
    together = baum_welch(mixture, recordings)
    for row, frames in enumerate(recordings):
        alone = baum_welch(mixture, [frames])
        assert together.f[row] == pytest.approx(alone.f[0], rel=1e-4, abs=1e-2)
        assert together.n[row] == pytest.approx(alone.n[0], rel=1e-4)
        assert together.n[row].sum() == pytest.approx(len(frames), rel=1e-5)


def random_statistics(rng, rows, size, dim):
    return Statistics(rng.uniform(0, 20, size=(rows, size)), rng.normal(size=(rows, size, dim)) * 5)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.floats(0.5, 30.0), st.integers(0, 99))
def test_offsets_are_relevance_map(numbers, relevance, seed):
    rng = np.random.default_rng(seed)
    _, classes = np.unique(numbers, return_inverse=True)
    statistics = random_statistics(rng, len(classes), 3, 2)
    count = int(classes.max()) + 1
    expected = naive.map_offsets(statistics.n, statistics.f, classes, count, relevance)
    assert class_offsets(statistics, classes, count, relevance) == pytest.approx(expected)


@given(st.integers(1, 4), st.integers(0, 99))
def test_channel_factors_are_the_posterior_mean(rank, seed):
    rng = np.random.default_rng(seed)
    statistics, loadings = random_statistics(rng, 3, 4, 2), rng.normal(size=(4, 2, rank))
    offsets = rng.normal(size=(3, 4, 2))
    found, covariance = channel_factors(statistics, loadings, offsets)
    assert found == pytest.approx(naive.channel_factors(statistics.n, statistics.f, loadings, offsets), abs=1e-8)
    assert np.linalg.eigvalsh(covariance).min() > 0
    plain, _ = channel_factors(statistics, loadings)
    assert plain == pytest.approx(naive.channel_factors(statistics.n, statistics.f, loadings, 0 * offsets), abs=1e-8)


@given(st.sampled_from([0, 1, 3]), st.integers(0, 99))
def test_scores_are_linear_in_statistics_without_their_channel(rank, seed):
    rng = np.random.default_rng(seed)
    options = RecognizerOptions(rank=rank, relevance=4.0)
    loadings = 0.2 * rng.normal(size=(4, 2, rank))
    recognizer = Recognizer(random_mixture(rng, 4, 2), loadings, options)
    enrolment, tests = random_statistics(rng, 5, 4, 2), random_statistics(rng, 3, 4, 2)
    models = np.array([1, 0, 0, 2, 1])
    found = linear_scores(enrolled(recognizer, enrolment, models, 3), probe_vectors(recognizer, tests))
    none = np.zeros((5, 4, 2))
    x = naive.channel_factors(enrolment.n, enrolment.f, loadings, none)
    clean = np.array([enrolment.f[r] - enrolment.n[r][:, None] * (loadings @ x[r]) for r in range(5)])
    offsets = naive.map_offsets(enrolment.n, clean, models, 3, 4.0)
    y = naive.channel_factors(tests.n, tests.f, loadings, none[:3])
    expected = [
        [naive.linear_score(offsets[m], tests.n[t], tests.f[t], loadings, y[t]) for t in range(3)] for m in range(3)
    ]
    assert found == pytest.approx(np.array(expected), rel=1e-4, abs=1e-4)


def planted(rng, rank, classes=40, takes=6, size=6, dim=5):
    """Return statistics drawn from the model of eigenchannels, the classes, and the true U."""
    truth = rng.normal(size=(size, dim, rank))
    n = rng.uniform(5, 15, size=(classes * takes, size))
    number = np.repeat(np.arange(classes), takes)
    z = rng.normal(size=(classes, size, dim))[number]
    x = rng.normal(size=(classes * takes, rank))
    noise = rng.normal(size=z.shape) * np.sqrt(n)[:, :, None]
    f = n[:, :, None] * (z + np.einsum("cdk,rk->rcd", truth, x))
    return Statistics(n.astype(np.float32), (f + noise).astype(np.float32)), number, truth


def test_eigenchannels_span_what_varies_within_classes():
    rng = np.random.default_rng(5)
    statistics, classes, truth = planted(rng, rank=2)
    mixed = rng.permutation(len(classes))
    found = fit_eigenchannels(statistics.take(mixed), classes[mixed], 2, relevance=1.0, iterations=10)
    true, learnt = truth.reshape(-1, 2), found.reshape(-1, 2)
    cosines = np.linalg.svd(np.linalg.qr(true)[0].T @ np.linalg.qr(learnt)[0], compute_uv=False)
    assert cosines.min() > 0.99
    # The offset of a class takes a part of what its six takes have in common by chance.
    assert 0.5 < np.linalg.norm(learnt @ learnt.T) / np.linalg.norm(true @ true.T) < 1.0


def test_blocks_of_recordings_give_what_all_at_once_give(monkeypatch):
    rng = np.random.default_rng(8)
    statistics, classes, _ = planted(rng, rank=2, classes=9, takes=5)
    mixed = rng.permutation(len(classes))  # a class has recordings in several blocks
    statistics, classes = statistics.take(mixed), classes[mixed]
    whole = fit_eigenchannels(statistics, classes, 2, relevance=1.0)
    for rows in (1, 7):
        monkeypatch.setattr("recipes.text_dependent.eigenchannels._BLOCK", rows * statistics.f[0].nbytes)
        assert fit_eigenchannels(statistics, classes, 2, relevance=1.0) == pytest.approx(whole, abs=1e-5)


def test_compensation_brings_takes_together():
    rng = np.random.default_rng(6)
    statistics, classes, _ = planted(rng, rank=2)
    found = fit_eigenchannels(statistics, classes, 2, relevance=1.0)

    def spread(one):
        means = one.f / one.n[:, :, None]
        return sum(means[classes == number].var(axis=0).sum() for number in range(classes.max() + 1))

    factors, _ = channel_factors(statistics, found)
    assert spread(compensated(statistics, found, factors)) < 0.5 * spread(statistics)


def test_no_eigenchannels_are_none():
    rng = np.random.default_rng(7)
    statistics, classes, _ = planted(rng, rank=1, classes=3, takes=2)
    assert fit_eigenchannels(statistics, classes, 0, relevance=1.0).shape == (6, 5, 0)
    with pytest.raises(InputError, match="6 recordings of 3 speakers and phrases are too few for 4 eigenchannels"):
        fit_eigenchannels(statistics, classes, 4, relevance=1.0)


@pytest.mark.parametrize("wrong", [{"n_gaussians": 0}, {"rank": -1}, {"relevance": 0.0}, {"max_frames": 0}])
def test_options_are_checked(wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))} is"):
        RecognizerOptions(**wrong)
