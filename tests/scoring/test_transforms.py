"""Transforms before the cosine: each step does what it says, and steps follow each other."""

import numpy as np
import pytest

from evenscore import Cosine, Embeddings, InputError
from evenscore.scoring import Transform, Transformed, fit_transform


def takes(n_speakers=30, size=5, dim=6, seed=0):
    rng = np.random.default_rng(seed)
    speakers = np.repeat(np.arange(n_speakers), size)
    mixing = rng.normal(size=(dim, dim))
    vectors = rng.normal(size=(n_speakers, dim))[speakers] + rng.normal(size=(len(speakers), dim)) @ mixing + 1
    return Embeddings([f"u{n}" for n in range(len(speakers))], vectors, speakers)


def within(data):
    inner = data.vectors.copy()
    for name in set(data.speakers):
        inner[data.speakers == name] -= inner[data.speakers == name].mean(axis=0)
    return inner.T @ inner / (len(data) - len(set(data.speakers)))


def made(data, *steps, share=0.0):
    return fit_transform(data, steps, shrinkage=share).transform.apply(data)


def test_each_step_does_what_it_says():
    data = takes()
    np.testing.assert_allclose(made(data, "center").vectors.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.cov(made(data, "whiten").vectors.T), np.eye(6), atol=1e-9)
    np.testing.assert_allclose(within(made(data, "wccn")), np.eye(6), atol=1e-9)
    np.testing.assert_allclose(within(made(data, "center", "lda:4")), np.eye(4), atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(made(data, "center", "length").vectors, axis=1), 1)
    assert made(data, "lda").dim == 6
    assert made(takes(n_speakers=4), "lda", share=0.5).dim == 3


def test_lda_finds_the_direction_that_tells_speakers():
    rng = np.random.default_rng(1)
    speakers = np.repeat(np.arange(40), 5)
    vectors = rng.normal(size=(200, 3))
    vectors[:, 1] += 5 * rng.normal(size=40)[speakers]
    matrix = fit_transform(Embeddings(range(200), vectors, speakers), ["lda:1"], shrinkage=0).transform.steps[0].matrix
    assert np.argmax(np.abs(matrix[:, 0])) == 1


def test_steps_are_learned_on_what_those_before_leave():
    data = takes()
    both = fit_transform(data, ["center", "length", "wccn"], shrinkage=0.1).transform
    first = fit_transform(data, ["center", "length"], shrinkage=0.1).transform
    second = fit_transform(first.apply(data), ["wccn"], shrinkage=0.1).transform
    np.testing.assert_allclose(both.apply(data).vectors, second.apply(first.apply(data)).vectors)


def test_scores_are_cosines_of_transformed_vectors():
    data = takes()
    transform = fit_transform(data, ["center", "lda:3"], shrinkage=0.2).transform
    enroll, test = data.take(np.arange(5)), data.take(np.arange(5, 20))
    scores = Transformed(transform).score(enroll, test).block()
    np.testing.assert_allclose(scores, Cosine().score(transform.apply(enroll), transform.apply(test)).block())
    single = Embeddings(data.ids, data.vectors.astype(np.float32), data.speakers)
    assert transform.apply(single).vectors.dtype == np.float32
    moved = transform.recentered(transform.steps[0].center + 1.0)
    shifted = Embeddings(data.ids, data.vectors + 1.0, data.speakers)
    np.testing.assert_allclose(moved.apply(shifted).vectors, transform.apply(data).vectors)


def test_shrinkage_is_chosen_by_left_out_speakers():
    few = takes(n_speakers=15, size=3, dim=40)
    fit = fit_transform(few, ["center", "wccn"])
    assert 0 < fit.shrinkage < 1
    assert isinstance(fit.transform, Transform)
    assert "40 -> 40 -> 40 dimensions" in repr(fit)


def test_what_cannot_be_meant_is_refused():
    data = takes()
    for step in ("pca", "wccn:3", "lda:x", "lda:0"):
        with pytest.raises(InputError, match="there is no step"):
            fit_transform(data, [step])
    with pytest.raises(InputError, match="there are no steps"):
        fit_transform(data, [])
    with pytest.raises(InputError, match="lda_dim is 40"):
        fit_transform(data, ["lda:40"], shrinkage=0.5)
    with pytest.raises(InputError, match="shrinkage is 2"):
        fit_transform(data, ["wccn"], shrinkage=2)
    with pytest.raises(InputError, match="singular"):
        fit_transform(takes(n_speakers=4, size=2, dim=10), ["wccn"], shrinkage=0)
    with pytest.raises(InputError, match="have no speakers"):
        fit_transform(Embeddings(data.ids, data.vectors), ["center"])
    with pytest.raises(InputError, match="trained on 6 dimensions, but the embeddings have 2"):
        fit_transform(data, ["center"], shrinkage=0).transform.apply(Embeddings(["u"], [[1.0, 2.0]]))
