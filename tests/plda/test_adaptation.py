"""Adapted PLDA: Kaldi's way step by step, CORAL+ by its definition, and what both leave alone."""

import numpy as np
import pytest
from scipy.linalg import fractional_matrix_power, sqrtm

from evenscore import PLDA, Embeddings, InputError
from evenscore.plda import adapt_plda
from evenscore.plda.projection import Projection


def covariance(rng, dim):
    factor = rng.normal(size=(dim, dim))
    return factor @ factor.T + 0.2 * np.eye(dim)


def model(seed=0, dim=3, **options):
    rng = np.random.default_rng(seed)
    return PLDA(mean=rng.normal(size=dim), between=covariance(rng, dim), within=covariance(rng, dim), **options)


def new_domain(seed=1, dim=3, count=200, scale=2.0):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(count, dim)) @ covariance(rng, dim) * scale + rng.normal(size=dim)
    return Embeddings(range(count), vectors)


def kaldis_way(plda, vectors, within_scale, between_scale, mean_diff_scale):
    """The steps of Kaldi's PldaUnsupervisedAdaptor, in its own coordinates."""
    lower = np.linalg.cholesky(plda.within)
    inverse = np.linalg.inv(lower)
    psi, U = np.linalg.eigh(inverse @ plda.between @ inverse.T)
    transform = U.T @ inverse
    mean = vectors.mean(axis=0)
    variance = vectors.T @ vectors / len(vectors) - np.outer(mean, mean)
    diff = mean - plda.mean
    variance += mean_diff_scale * np.outer(diff, diff)
    modified = transform / np.sqrt(1 + psi)[:, None]
    s, P = np.linalg.eigh(modified @ variance @ modified.T)
    W, B = P.T @ np.diag(1 / (1 + psi)) @ P, P.T @ np.diag(psi / (1 + psi)) @ P
    for i in range(len(s)):
        if s[i] > 1:
            W[i, i] += within_scale * (s[i] - 1)
            B[i, i] += between_scale * (s[i] - 1)
    back = np.linalg.inv(P.T @ modified)
    return mean, back @ B @ back.T, back @ W @ back.T


@pytest.mark.parametrize("scale", [2.0, 0.5, 0.05])
def test_kaldis_adaptation(scale):
    plda, new = model(), new_domain(scale=scale)
    adapted = adapt_plda(plda, new, within=0.4, between=0.5, mean_shift=0.7)
    mean, between, within = kaldis_way(plda, new.vectors, 0.4, 0.5, 0.7)
    np.testing.assert_allclose(adapted.mean, mean, atol=1e-12)
    np.testing.assert_allclose(adapted.between, between, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(adapted.within, within, rtol=1e-6, atol=1e-6)


def test_coral_plus():
    plda, new = model(), new_domain()
    adapted = adapt_plda(plda, new, method="coral+", within=0.6, between=0.9)
    old = plda.between + plda.within
    A = fractional_matrix_power(old, -0.5) @ sqrtm(np.cov(new.vectors.T, bias=True))
    for name, share in (("within", 0.6), ("between", 0.9)):
        before = getattr(plda, name)
        after = A.T @ before @ A
        e, Q = np.linalg.eigh(fractional_matrix_power(before, -0.5) @ after @ fractional_matrix_power(before, -0.5))
        root = sqrtm(before)
        expected = before + share * root @ Q @ np.diag(np.maximum(e - 1, 0)) @ Q.T @ root
        np.testing.assert_allclose(getattr(adapted, name), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("method", ["kaldi", "coral+"])
def test_a_domain_that_varies_less_changes_the_mean_only(method):
    plda, new = model(), new_domain(scale=1e-3)
    adapted = adapt_plda(plda, new, method=method, mean_shift=0.0)
    np.testing.assert_allclose(adapted.between, plda.between)
    np.testing.assert_allclose(adapted.within, plda.within)
    np.testing.assert_allclose(adapted.mean, new.vectors.mean(axis=0))


def test_the_centre_moves_with_the_domain_and_inflation_is_no_variance():
    projection = Projection(center=np.ones(3), matrix=np.eye(3)[:, :2], length_normalize=True)
    plda, new = model(dim=2, projection=projection), new_domain()
    adapted = adapt_plda(plda, new)
    np.testing.assert_allclose(adapted.projection.center, new.vectors.mean(axis=0))
    wide = adapt_plda(plda.inflated(4.0), new, inflation=4.0)
    np.testing.assert_allclose(wide.within, 4 * adapted.within)
    np.testing.assert_allclose(adapt_plda(plda, new.take(np.arange(2))).mean.shape, (2,))


def test_what_cannot_be_meant_is_refused():
    plda, new = model(), new_domain()
    with pytest.raises(InputError, match="method is 'some'"):
        adapt_plda(plda, new, method="some")
    with pytest.raises(InputError, match="must be 0 or more"):
        adapt_plda(plda, new, within=-1.0)
    with pytest.raises(InputError, match="1 embeddings of the new domain"):
        adapt_plda(plda, new.take([0]))
