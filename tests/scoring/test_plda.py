"""PLDA: the bilinear form is the log-likelihood ratio, EM is maximum likelihood, adaptation is Kaldi's."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.linalg import eigh

from evenscore import Embeddings, InputError, read_model, write_model
from evenscore.scoring import PLDA, Projection, adapt_plda, average_embeddings, enroll_models, fit_plda
from reference.dense_plda import dense_llr, dense_log_likelihood, kaldi_llr


def covariance(rng, dim, rank=None):
    factor = rng.normal(size=(dim, rank or dim))
    return factor @ factor.T + (0 if rank else 0.1 * np.eye(dim))


def draw(rng, sizes, mean, between, within):
    """Vectors of speakers with these numbers of utterances, and the numbers of their speakers, mixed up."""
    codes = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    y = rng.multivariate_normal(mean, between, size=len(sizes))
    return y[codes] + rng.multivariate_normal(np.zeros(len(mean)), within, size=len(codes)), codes


def drawn_model(rng, dim=3, raw=3, length=False, **options):
    matrix = rng.normal(size=(raw, dim)) if raw != dim else None
    projection = Projection(rng.normal(size=raw), matrix, length)
    return PLDA(rng.normal(size=dim), covariance(rng, dim), covariance(rng, dim), projection, **options)


@given(st.integers(1, 5), st.integers(0, 2**32), st.booleans())
def test_scores_are_the_log_likelihood_ratios_of_the_model(dim, seed, deficient):
    rng = np.random.default_rng(seed)
    mean, within = rng.normal(size=dim), covariance(rng, dim)
    between = covariance(rng, dim, rank=max(dim - 1, 1) if deficient else None)
    enroll, test = 2 * rng.normal(size=(3, dim)), 2 * rng.normal(size=(4, dim))
    expected = [[dense_llr(mean, between, within, u, v) for v in test] for u in enroll]
    np.testing.assert_allclose(PLDA(mean, between, within)(enroll, test), expected, rtol=1e-8, atol=1e-8)


@given(st.integers(0, 2**32), st.lists(st.integers(1, 5), min_size=1, max_size=4), st.booleans())
def test_enrolments_of_several_utterances_are_scored_together(seed, sizes, length):
    rng = np.random.default_rng(seed)
    plda = drawn_model(rng, raw=4, length=length)
    takes, test = Embeddings(range(sum(sizes)), 2 * rng.normal(size=(sum(sizes), 4))), 2 * rng.normal(size=(2, 4))
    members = {f"m{k}": takes.ids[sum(sizes[:k]) :][:size].tolist() for k, size in enumerate(sizes)}
    scores = plda(enroll_models(plda, takes, members), test)
    for row, names in zip(scores, members.values(), strict=True):
        own = plda.projection(takes.select(names))
        expected = [dense_llr(plda.mean, plda.between, plda.within, own, one) for one in plda.projection(test)]
        np.testing.assert_allclose(row, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("normalize", [True, False])
def test_scores_are_kaldis_for_a_mean_and_its_number(normalize):
    rng = np.random.default_rng(1)
    plda = drawn_model(rng, model_length=normalize)
    takes, test = Embeddings(range(7), 2 * rng.normal(size=(7, 3))), 2 * rng.normal(size=(2, 3))
    members = {"one": ["0"], "two": ["1", "2"], "four": ["3", "4", "5", "6"]}
    psi, V = eigh(plda.between, plda.within)
    scores, mean = plda(enroll_models(plda, takes, members), test), plda.mean + plda.projection.center
    for row, names in zip(scores, members.values(), strict=True):
        own = takes.select(names).vectors.mean(axis=0)
        expected = [kaldi_llr(mean, V.T, psi, own, len(names), one, normalize=normalize) for one in test]
        np.testing.assert_allclose(row, expected, rtol=1e-8, atol=1e-8)


def test_length_normalized_means_are_scored_as_one_utterance():
    plda, rng = drawn_model(np.random.default_rng(2)), np.random.default_rng(3)
    takes, test = Embeddings(["a", "b"], rng.normal(size=(2, 3)), ["ann", "ann"]), rng.normal(size=(4, 3))
    unit = enroll_models(plda, takes, {"m": ["a", "b"]}, "before")
    np.testing.assert_array_equal(unit.vectors, average_embeddings(takes, {"m": ["a", "b"]}, "before").vectors)
    assert enroll_models(plda, takes, {"m": ["a", "b"]}).speakers.tolist() == ["ann"]
    with pytest.raises(InputError, match="side of the tests"):
        plda(test, enroll_models(plda, takes, {"m": ["a", "b"]}))


@pytest.mark.parametrize("share", [0, 0.3])
@pytest.mark.parametrize("options", [{}, {"length_normalize": False}, {"lda_dim": 2}, {"center": False}])
def test_em_never_lowers_the_likelihood_and_reports_it(options, share):
    rng = np.random.default_rng(3)
    vectors, codes = draw(rng, rng.integers(1, 8, 40), np.ones(3), covariance(rng, 3), covariance(rng, 3))
    fit = fit_plda(vectors, codes, tol=0, max_iter=12, shrinkage=share, **options)
    assert len(fit.log_likelihood) == 13
    assert np.diff(fit.log_likelihood).min() > -1e-8
    model = fit.model
    expected = dense_log_likelihood(model.mean, model.between, model.within, model.projection(vectors), codes)
    if not share:  # else the prior is part of it
        assert fit.log_likelihood[-1] == pytest.approx(expected, rel=1e-10)


def test_em_ends_at_a_maximum_for_unequal_numbers_of_utterances():
    rng = np.random.default_rng(4)
    vectors, codes = draw(rng, rng.integers(1, 9, 60), np.array([1.0, -2.0]), covariance(rng, 2), covariance(rng, 2))
    model = fit_plda(vectors, codes, length_normalize=False, tol=1e-12, max_iter=1500).model
    centered = vectors - vectors.mean(axis=0)
    best = dense_log_likelihood(model.mean, model.between, model.within, centered, codes)
    for change in (np.diag([1.0, 0]), np.diag([0, 1.0]), np.array([[0, 1.0], [1.0, 0]])):
        for step in (-1e-2 * change, 1e-2 * change):
            assert dense_log_likelihood(model.mean, model.between + step, model.within, centered, codes) < best
            assert dense_log_likelihood(model.mean, model.between, model.within + step, centered, codes) < best
    assert dense_log_likelihood(model.mean + 0.01, model.between, model.within, centered, codes) < best


def test_balanced_data_have_the_closed_form_solution():
    rng = np.random.default_rng(5)
    vectors, codes = draw(rng, [4] * 50, np.zeros(3), 4 * covariance(rng, 3), covariance(rng, 3))
    model = fit_plda(vectors, codes, length_normalize=False, tol=1e-13, max_iter=5000).model
    means = np.stack([vectors[codes == g].mean(axis=0) for g in range(50)])
    inner = vectors - means[codes]
    within = inner.T @ inner / 150
    between = np.cov(means.T, bias=True) - within / 4
    np.testing.assert_allclose(model.within, within, rtol=1e-4, atol=1e-4 * np.abs(within).max())
    np.testing.assert_allclose(model.between, between, rtol=1e-4, atol=1e-4 * np.abs(between).max())


def test_few_speakers_in_many_dimensions_need_shrinkage():
    rng = np.random.default_rng(6)
    vectors, codes = draw(rng, [2] * 12, np.zeros(40), np.eye(40), np.eye(40))
    with pytest.raises(InputError, match="12 speakers"):
        fit_plda(vectors, codes)
    fit = fit_plda(vectors, codes, shrinkage=0.5)
    assert fit.converged
    assert np.isfinite(fit.model(vectors, vectors)).all()


def test_files_and_float32_keep_the_scores(tmp_path):
    rng = np.random.default_rng(9)
    vectors, codes = draw(rng, [5] * 40, np.zeros(4), 4 * np.eye(4), np.eye(4))
    plda = fit_plda(vectors, codes, lda_dim=3).model
    write_model(plda, tmp_path / "plda.json")
    np.testing.assert_array_equal(read_model(tmp_path / "plda.json")(vectors, vectors), plda(vectors, vectors))
    single = vectors.astype(np.float32)
    assert plda(single, single).dtype == np.float32
    np.testing.assert_allclose(plda(single, single), plda(vectors, vectors), rtol=1e-3, atol=1e-4)
    assert np.isfinite(plda(vectors.mean(axis=0)[None], vectors)).all()  # a vector at the centre


def kaldis_adaptation(plda, vectors, within_scale, between_scale, mean_diff_scale):
    """The steps of Kaldi's PldaUnsupervisedAdaptor, in its own coordinates."""
    inverse = np.linalg.inv(np.linalg.cholesky(plda.within))
    psi, U = np.linalg.eigh(inverse @ plda.between @ inverse.T)
    mean = vectors.mean(axis=0)
    diff = mean - plda.mean
    variance = vectors.T @ vectors / len(vectors) - np.outer(mean, mean) + mean_diff_scale * np.outer(diff, diff)
    modified = U.T @ inverse / np.sqrt(1 + psi)[:, None]
    s, P = np.linalg.eigh(modified @ variance @ modified.T)
    W, B = P.T @ np.diag(1 / (1 + psi)) @ P, P.T @ np.diag(psi / (1 + psi)) @ P
    for i in range(len(s)):
        if s[i] > 1:
            W[i, i] += within_scale * (s[i] - 1)
            B[i, i] += between_scale * (s[i] - 1)
    back = np.linalg.inv(P.T @ modified)
    return mean, back @ B @ back.T, back @ W @ back.T


@pytest.mark.parametrize("scale", [2.0, 0.5, 0.05])
def test_adaptation_is_kaldis(scale):
    rng = np.random.default_rng(0)
    plda = PLDA(rng.normal(size=3), covariance(rng, 3), covariance(rng, 3))
    new = rng.normal(size=(200, 3)) @ covariance(rng, 3) * scale + rng.normal(size=3)
    adapted = adapt_plda(plda, new, within=0.4, between=0.5, mean_shift=0.7)
    mean, between, within = kaldis_adaptation(plda, new, 0.4, 0.5, 0.7)
    np.testing.assert_allclose(adapted.mean, mean, atol=1e-12)
    np.testing.assert_allclose(adapted.between, between, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(adapted.within, within, rtol=1e-6, atol=1e-6)


def test_the_centre_moves_with_the_domain():
    rng = np.random.default_rng(1)
    plda, new = drawn_model(rng, dim=2, raw=3, length=True), rng.normal(size=(50, 3)) + 2
    np.testing.assert_allclose(adapt_plda(plda, new).projection.center, new.mean(axis=0))
    with pytest.raises(InputError, match="several embeddings"):
        adapt_plda(plda, new[:1])


@pytest.mark.parametrize("codes", [None, ["a", None, "a", "b", "b", "b"], ["a"] * 6, list("abcdef"), ["a", "a"]])
def test_training_data_that_cannot_be_used_are_refused(codes):
    with pytest.raises(InputError):
        fit_plda(np.random.default_rng(12).normal(size=(6, 2)), codes)


@pytest.mark.parametrize(
    "parts", [([0.0], np.eye(2), np.eye(1)), ([0.0], [[np.nan]], [[1.0]]), ([0, 0], [[1, 2], [0, 1]], np.eye(2))]
)
def test_parameters_that_are_no_model_are_refused(parts):
    with pytest.raises(InputError):
        PLDA(*parts)
