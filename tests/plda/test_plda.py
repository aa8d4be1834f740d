"""PLDA: the bilinear form is the log-likelihood ratio, EM is maximum likelihood, files are checked."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import Embeddings, InputError, Labels
from evenscore.files.models import load_plda, save_plda
from evenscore.model.fit import log_likelihood
from evenscore.model.parameters import ScoreModel
from evenscore.plda import PLDA, fit_plda
from evenscore.plda.projection import Projection
from evenscore.sources import Scorer
from reference.dense_plda import dense_llr, dense_log_likelihood


def covariance(rng, dim, rank=None):
    factor = rng.normal(size=(dim, rank or dim))
    return factor @ factor.T + (0 if rank else 0.1 * np.eye(dim))


def draw(rng, sizes, mean, between, within):
    """Vectors of speakers with these numbers of utterances, and the numbers of their speakers, mixed up."""
    codes = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    y = rng.multivariate_normal(mean, between, size=len(sizes))
    return y[codes] + rng.multivariate_normal(np.zeros(len(mean)), within, size=len(codes)), codes


def embeddings(vectors, codes=None, prefix="u"):
    return Embeddings([f"{prefix}{n}" for n in range(len(vectors))], vectors, codes)


@given(st.integers(1, 5), st.integers(0, 2**32), st.booleans())
def test_scores_are_the_log_likelihood_ratios_of_the_model(dim, seed, deficient):
    rng = np.random.default_rng(seed)
    mean, within = rng.normal(size=dim), covariance(rng, dim)
    between = covariance(rng, dim, rank=max(dim - 1, 1) if deficient else None)
    enroll, test = 2 * rng.normal(size=(3, dim)), 2 * rng.normal(size=(4, dim))
    plda = PLDA(mean=mean, between=between, within=within)
    scores = plda.score(embeddings(enroll), embeddings(test)).in_memory().scores
    expected = [[dense_llr(mean, between, within, u, v) for v in test] for u in enroll]
    np.testing.assert_allclose(scores, expected, rtol=1e-8, atol=1e-8)


def test_a_speaker_who_does_not_differ_from_others_gives_zero():
    plda = PLDA(mean=[0.0, 1.0], between=np.zeros((2, 2)), within=np.eye(2))
    some = embeddings(np.random.default_rng(0).normal(size=(3, 2)))
    np.testing.assert_array_equal(plda.score(some, some).in_memory().scores, np.zeros((3, 3)))


def test_the_projection_comes_first():
    rng = np.random.default_rng(1)
    center, matrix = rng.normal(size=4), rng.normal(size=(4, 2))
    mean, between, within = rng.normal(size=2), covariance(rng, 2), covariance(rng, 2)
    projection = Projection(center=center, matrix=matrix, length_normalize=True)
    plda = PLDA(mean=mean, between=between, within=within, projection=projection)
    u, v = rng.normal(size=(2, 4))
    phi, chi = ((w - center) @ matrix / np.linalg.norm((w - center) @ matrix) for w in (u, v))
    score = plda.score(embeddings(u[None]), embeddings(v[None])).in_memory().scores[0, 0]
    assert score == pytest.approx(dense_llr(mean, between, within, phi, chi), rel=1e-10)


def test_plda_scores_are_a_source_for_training_the_score_model():
    rng = np.random.default_rng(2)
    vectors, codes = draw(rng, rng.integers(1, 6, 30), np.zeros(4), 3 * covariance(rng, 4), np.eye(4))
    plda = fit_plda(embeddings(vectors, codes), length_normalize=False).model
    assert isinstance(plda, Scorer)
    source = plda.score(embeddings(vectors[::2]), embeddings(vectors[1::2], prefix="t"))
    labels = Labels.from_speakers(codes[::2], codes[1::2])
    model = ScoreModel(mu=[-5, 3], alpha=[[1.0, 0], [0.5, 1]], beta=[[1.0, 0], [0.5, 1]], sigma2=[9.0, 4.0])
    assert log_likelihood(model, (source, labels)) == pytest.approx(
        log_likelihood(model, (source.in_memory(), labels)), rel=1e-9
    )


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("share", [0, 0.3])
@pytest.mark.parametrize(
    "options", [{}, {"length_normalize": False}, {"lda_dim": 2}, {"whiten": True, "center": False}]
)
def test_em_never_lowers_the_likelihood_and_reports_it(options, share, equal):
    rng = np.random.default_rng(3)
    sizes = [4] * 40 if equal else rng.integers(1, 8, 40)
    vectors, codes = draw(rng, sizes, np.ones(3), covariance(rng, 3), covariance(rng, 3))
    data = embeddings(vectors, codes)
    fit = fit_plda(data, tol=0, max_iter=50, shrinkage=share, **options)
    assert len(fit.log_likelihood) == fit.n_iter + 1
    assert np.diff(fit.log_likelihood).min() > -1e-8
    phi = fit.model.projection.apply_all(embeddings(vectors))
    expected = dense_log_likelihood(fit.model.mean, fit.model.between, fit.model.within, phi, codes)
    if share:
        target = fit_plda(data, method="moments", shrinkage=share, **options).model  # of equal traces
        for name, count in (("between", 40), ("within", len(vectors))):
            own = getattr(fit.model, name)
            variance = np.trace(getattr(target, name)) / len(own)
            log_prior = np.linalg.slogdet(own)[1] + variance * np.trace(np.linalg.inv(own))
            expected -= share / (1 - share) * count / 2 * log_prior
    assert fit.log_likelihood[-1] == pytest.approx(expected, rel=1e-10)


def test_em_ends_at_a_maximum_for_unequal_numbers_of_utterances():
    rng = np.random.default_rng(4)
    vectors, codes = draw(rng, rng.integers(1, 9, 60), np.array([1.0, -2.0]), covariance(rng, 2), covariance(rng, 2))
    fit = fit_plda(embeddings(vectors, codes), length_normalize=False, shrinkage=0, tol=1e-12, max_iter=1500)
    mean, between, within = fit.model.mean, fit.model.between, fit.model.within
    vectors = vectors - vectors.mean(axis=0)
    best = dense_log_likelihood(mean, between, within, vectors, codes)
    bump = np.array([[0, 1.0], [1.0, 0]])
    for change in (np.diag([1.0, 0]), np.diag([0, 1.0]), bump):
        for size in (-1e-2, 1e-2):
            assert dense_log_likelihood(mean, between + size * change, within, vectors, codes) < best
            assert dense_log_likelihood(mean, between, within + size * change, vectors, codes) < best
    assert dense_log_likelihood(mean + 0.01, between, within, vectors, codes) < best


def test_balanced_data_have_the_closed_form_solution():
    rng = np.random.default_rng(5)
    n_speakers, size = 50, 4
    vectors, codes = draw(rng, [size] * n_speakers, np.zeros(3), 4 * covariance(rng, 3), covariance(rng, 3))
    fit = fit_plda(embeddings(vectors, codes), length_normalize=False, shrinkage=0, tol=1e-13, max_iter=5000)
    means = np.stack([vectors[codes == g].mean(axis=0) for g in range(n_speakers)])
    inner = vectors - means[codes]
    within = inner.T @ inner / (len(vectors) - n_speakers)
    between = np.cov(means.T, bias=True) - within / size
    np.testing.assert_allclose(fit.model.within, within, rtol=1e-4, atol=1e-4 * np.abs(within).max())
    np.testing.assert_allclose(fit.model.between, between, rtol=1e-4, atol=1e-4 * np.abs(between).max())
    np.testing.assert_allclose(fit.model.mean, vectors.mean(axis=0) - vectors.mean(axis=0), atol=1e-6)


def test_moments_and_em_agree_on_much_data_and_recover_the_parameters():
    rng = np.random.default_rng(6)
    mean, between, within = np.array([1.0, 0, -1]), 2 * covariance(rng, 3), covariance(rng, 3)
    vectors, codes = draw(rng, [6] * 4000, mean, between, within)
    data = embeddings(vectors, codes)
    em = fit_plda(data, length_normalize=False, center=False, shrinkage=0).model
    moments = fit_plda(data, length_normalize=False, center=False, method="moments", shrinkage=0).model
    for name, truth in (("between", between), ("within", within)):
        scale = np.abs(truth).max()
        np.testing.assert_allclose(getattr(em, name), getattr(moments, name), atol=2e-3 * scale)
        # a standard error of a variance is sqrt(2 / n) of it: 0.022 for the speakers; four of them
        np.testing.assert_allclose(getattr(em, name), truth, atol=0.09 * scale)
    np.testing.assert_allclose(em.mean, mean, atol=4 * np.sqrt(np.diag(between).max() / 4000) + 0.01)


def test_lda_finds_the_directions_that_differ_and_whitens():
    rng = np.random.default_rng(7)
    within = covariance(rng, 5)
    between = np.zeros((5, 5))
    between[:2, :2] = 30 * np.eye(2)
    vectors, codes = draw(rng, [10] * 300, np.zeros(5), between, within)
    data = embeddings(vectors, codes)
    fit = fit_plda(data, lda_dim=2, length_normalize=False, shrinkage=0)
    np.testing.assert_allclose(fit.model.within, np.eye(2), atol=0.01)
    assert fit.model.projection.matrix.shape == (5, 2)
    full = fit_plda(data, whiten=True, length_normalize=False, shrinkage=0)
    np.testing.assert_allclose(full.model.within, np.eye(5), atol=0.03)
    plain = fit_plda(data, length_normalize=False, shrinkage=0, tol=1e-10)
    scores = full.model.score(data.take(np.arange(9)), data.take(np.arange(20, 40))).in_memory().scores
    same = plain.model.score(data.take(np.arange(9)), data.take(np.arange(20, 40))).in_memory().scores
    np.testing.assert_allclose(scores, same, rtol=0.05, atol=0.05)  # whitening alone changes no ratio


def test_directions_that_never_vary_are_left_out():
    rng = np.random.default_rng(8)
    vectors, codes = draw(rng, [4] * 40, np.zeros(3), 4 * np.eye(3), np.eye(3))
    padded = np.hstack([vectors, np.full((len(vectors), 1), 7.0), vectors[:, :1]])
    for options in ({}, {"lda_dim": 2}):
        fit = fit_plda(embeddings(padded, codes), **options)
        assert fit.model.projection.dim == options.get("lda_dim", 3)
        assert np.isfinite(fit.model.score(embeddings(padded), embeddings(padded)).in_memory().scores).all()


def test_float32_embeddings_give_float32_scores_of_the_same_value():
    rng = np.random.default_rng(9)
    vectors, codes = draw(rng, [5] * 40, np.zeros(4), 4 * np.eye(4), np.eye(4))
    plda = fit_plda(embeddings(vectors, codes)).model
    single, double = (embeddings(vectors.astype(kind)) for kind in (np.float32, np.float64))
    scores = plda.score(single, single).in_memory().scores
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, plda.score(double, double).in_memory().scores, rtol=1e-3, atol=1e-4)


def test_training_reports_progress_and_says_when_it_did_not_converge():
    rng = np.random.default_rng(13)
    vectors, codes = draw(rng, rng.integers(1, 5, 30), np.zeros(3), np.eye(3), np.eye(3))
    seen = []
    fit = fit_plda(
        embeddings(vectors, codes), tol=0, max_iter=4, shrinkage=0, progress=lambda _, part: seen.append(part)
    )
    assert seen == [0.25, 0.5, 0.75, 1.0]
    assert not fit.converged
    assert repr(fit) == "PLDAFit(dimension 3, 4 iterations, not converged)"


def test_a_vector_at_the_centre_has_no_direction_but_a_score():
    rng = np.random.default_rng(14)
    vectors, codes = draw(rng, [4] * 20, np.zeros(3), np.eye(3), np.eye(3))
    plda = fit_plda(embeddings(vectors, codes)).model
    center = embeddings(vectors.mean(axis=0, keepdims=True))
    assert np.isfinite(plda.score(center, center).in_memory().scores).all()


def test_training_is_deterministic():
    rng = np.random.default_rng(10)
    vectors, codes = draw(rng, rng.integers(1, 5, 30), np.zeros(3), np.eye(3), np.eye(3))
    first, second = (fit_plda(embeddings(vectors, codes)).model for _ in range(2))
    for name in ("mean", "between", "within"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


@pytest.mark.parametrize("options", [{}, {"lda_dim": 2}, {"length_normalize": False}])
def test_a_model_survives_its_file(tmp_path, options):
    rng = np.random.default_rng(11)
    vectors, codes = draw(rng, [5] * 30, np.ones(3), np.eye(3), np.eye(3))
    plda = fit_plda(embeddings(vectors, codes), **options).model
    save_plda(plda, tmp_path / "plda.json")
    again = load_plda(tmp_path / "plda.json")
    some = embeddings(vectors[:5])
    np.testing.assert_array_equal(again.score(some, some).in_memory().scores, plda.score(some, some).in_memory().scores)


def test_training_data_that_make_no_sense_are_refused():
    rng = np.random.default_rng(12)
    vectors = rng.normal(size=(6, 2))
    with pytest.raises(InputError, match="have no speakers"):
        fit_plda(embeddings(vectors))
    with pytest.raises(InputError, match="embedding 'u1' has no speaker"):
        fit_plda(embeddings(vectors, ["a", None, "a", "b", "b", "b"]))
    with pytest.raises(InputError, match="at least 2 speakers, but there are 1"):
        fit_plda(embeddings(vectors, ["a"] * 6))
    with pytest.raises(InputError, match="one embedding only"):
        fit_plda(embeddings(vectors, list("abcdef")))
    with pytest.raises(InputError, match="is singular: 6 embeddings of 4 speakers"):
        fit_plda(embeddings(rng.normal(size=(6, 4)), list("aabbcd")), shrinkage=0)
    with pytest.raises(InputError, match="lda_dim is 3, but 2 speakers"):
        fit_plda(embeddings(vectors, list("aaabbb")), lda_dim=3)
    with pytest.raises(InputError, match="all embeddings are equal"):
        fit_plda(embeddings(np.ones((6, 2)), list("aaabbb")))
    with pytest.raises(InputError, match="method is 'mle'"):
        fit_plda(embeddings(vectors, list("aaabbb")), method="mle")
    with pytest.raises(InputError, match="tol is -1"):
        fit_plda(embeddings(vectors, list("aaabbb")), tol=-1)
    plda = fit_plda(embeddings(vectors, list("aaabbb")), length_normalize=False).model
    with pytest.raises(InputError, match="trained on 2 dimensions, but the embeddings have 3"):
        plda.score(embeddings(np.ones((1, 3))), embeddings(np.ones((1, 3))))
