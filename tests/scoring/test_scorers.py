"""Cosine, dot product and projections, from their definitions; bilinear scores as arrays."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import Embeddings, InputError, Labels, fit_score_model
from evenscore.scoring import BilinearScores, fit_center, fit_lda, fit_wccn, make_scorer


def takes(n_speakers=30, size=5, dim=6, seed=0):
    rng = np.random.default_rng(seed)
    speakers = np.repeat(np.arange(n_speakers), size)
    mixing = rng.normal(size=(dim, dim))
    vectors = rng.normal(size=(n_speakers, dim))[speakers] + rng.normal(size=(len(speakers), dim)) @ mixing + 1
    return Embeddings([f"u{n}" for n in range(len(speakers))], vectors, speakers)


def within(vectors, speakers):
    inner = vectors.copy()
    for name in set(speakers):
        inner[speakers == name] -= inner[speakers == name].mean(axis=0)
    return inner.T @ inner / (len(inner) - len(set(speakers)))


def test_cosine_and_dot_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    a, b, center = rng.normal(size=(3, 5)), rng.normal(size=(4, 5)), rng.normal(size=5)
    for middle in (None, center):
        x, y = (a, b) if middle is None else (a - middle, b - middle)
        np.testing.assert_allclose(make_scorer("dot", center=middle)(a, b), x @ y.T)
        lengths = np.linalg.norm(x, axis=1)[:, None] * np.linalg.norm(y, axis=1)
        np.testing.assert_allclose(make_scorer(center=middle)(a, b), x @ y.T / lengths)
    assert make_scorer()(a.astype(np.float32), b.astype(np.float32)).dtype == np.float32


def test_projections_do_what_they_are_named_after():
    data = takes()
    np.testing.assert_allclose(fit_center(data)(data).mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(within(fit_wccn(data)(data), data.speakers), np.eye(6), atol=1e-9)
    np.testing.assert_allclose(within(fit_lda(data, dim=4)(data), data.speakers), np.eye(4), atol=1e-9)
    assert fit_lda(data.vectors, data.speakers)(data).shape[1] == 6
    np.testing.assert_array_equal(make_scorer("dot", data, wccn=True).projection(data), fit_wccn(data)(data))
    lda = make_scorer("cosine", data, lda=3, shrinkage=0.2, center=np.ones(6)).projection
    np.testing.assert_array_equal(lda.matrix, fit_lda(data, dim=3, shrinkage=0.2).matrix)
    np.testing.assert_array_equal(lda.center, np.ones(6))


def test_lda_maximizes_the_ratio_of_variances():
    data = takes()
    x, best = data.vectors, fit_lda(data, dim=1).matrix[:, 0]
    means = np.stack([x[data.speakers == name].mean(axis=0) for name in np.unique(data.speakers)])
    between, inner = np.cov(means.T), within(x, data.speakers)

    def ratio(direction):
        return (direction @ between @ direction) / (direction @ inner @ direction)

    for step in np.random.default_rng(1).normal(size=(50, 6)):
        assert ratio(best + 0.05 * step) <= ratio(best) + 1e-12


def test_a_model_is_trained_on_scores_that_are_never_formed():
    rng = np.random.default_rng(0)
    sides = []
    for prefix, sizes in (("e", (1, 2, 200, 30, 0, 5)), ("t", (3, 0, 150, 2, 4, 40))):  # of each speaker
        names = [f"s{speaker}" for speaker, size in enumerate(sizes) for _ in range(size)]
        vectors = rng.normal(size=(len(names), 6)) + np.eye(6)[[int(name[1:]) for name in names]]
        sides.append(Embeddings([f"{prefix}{n}" for n in range(len(names))], vectors, names))
    virtual = make_scorer().bilinear(*sides)
    how = {"labels": Labels.from_speakers(*sides), "dim": 1, "residuals": "gaussian", "max_iter": 20}
    found, expected = (fit_score_model(scores, **how) for scores in (virtual, np.asarray(virtual)))
    np.testing.assert_allclose(found.log_likelihood[:20], expected.log_likelihood[:20], rtol=1e-9)


@given(st.integers(0, 1000), st.booleans(), st.booleans())
def test_bilinear_scores_are_selected_like_an_array(seed, missing, offsets):
    rng = np.random.default_rng(seed)
    left, right = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    own = (np.array([0, 2, 6]), np.array([4, 1, 0])) if missing else None
    more = (rng.normal(size=7), rng.normal(size=5)) if offsets else (None, None)
    scores = BilinearScores(left, right, *more, own)
    whole = np.asarray(scores)
    expected = left @ right.T + (more[0][:, None] + more[1] if offsets else 0)
    if missing:
        expected[own] = np.nan
    np.testing.assert_allclose(whole, expected)
    rows, cols = rng.permutation(7)[:4], rng.permutation(5)[:3]
    np.testing.assert_array_equal(np.asarray(scores[rows]), whole[rows])
    np.testing.assert_array_equal(np.asarray(scores[2:5][:, cols]), whole[2:5][:, cols])
    np.testing.assert_allclose(np.asarray(scores[:, cols].T), whole[:, cols].T, rtol=1e-12)
    assert scores.T.T is scores
    i, j = np.array([0, 1, 6, 6]), np.array([4, 1, 0, 2])
    there = ~np.isnan(whole[i, j])
    np.testing.assert_allclose(scores.pairs(i, j)[there], whole[i, j][there])
    np.testing.assert_allclose(scores.to_dask().rechunk((3, 2)).compute(), whole, rtol=1e-12)


@pytest.mark.parametrize(
    ("scorer", "options", "culprit"),
    [
        ("euclid", {}, "euclid"),
        ("cosine", {"dim": 3}, "dim"),
        ("cosine", {"lda": 3}, "lda"),
        ("dot", {"center": "median"}, "median"),
        ("plda", {}, "training"),
    ],
)
def test_what_cannot_be_meant_is_refused(scorer, options, culprit):
    with pytest.raises(InputError, match=culprit):
        make_scorer(scorer, **options)


def test_vectors_that_cannot_be_scored_are_refused():
    with pytest.raises(InputError, match="'u2' has length 0"):
        make_scorer()(Embeddings(["u1", "u2"], [[1.0], [0.0]]), [[1.0]])
    with pytest.raises(InputError, match="2 dimensions"):
        make_scorer(center=[1.0, 2.0])([[1.0]], [[1.0]])
    with pytest.raises(InputError, match="full rank"):
        fit_wccn(takes(n_speakers=4, size=2, dim=10))
    with pytest.raises(InputError, match="LDA dimension is 40"):
        fit_lda(takes(), dim=40)
    with pytest.raises(InputError, match="shrinkage"):
        fit_wccn(takes(), shrinkage=2)
