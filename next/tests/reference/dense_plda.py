"""Two-covariance PLDA straight from its definition: Gaussians of stacked vectors."""

import numpy as np
from scipy.stats import multivariate_normal


def stacked(mean, between, within, n):
    """Mean and covariance of n utterances of one speaker, put under each other."""
    return np.tile(mean, n), np.kron(np.ones((n, n)), between) + np.kron(np.eye(n), within)


def dense_llr(mean, between, within, u, v):
    """log p(u, v | one speaker) - log p(u) - log p(v); u may be several utterances of one speaker."""
    u, v = np.atleast_2d(u), np.atleast_2d(v)
    sets = [np.concatenate([u, v]), u, v]
    together, *alone = (multivariate_normal(*stacked(mean, between, within, len(x))).logpdf(x.ravel()) for x in sets)
    return together - sum(alone)


def kaldi_llr(mean, transform, psi, enroll, n, test, *, normalize=True):
    """Kaldi's ivector-plda-scoring, as its plda.cc tells: the mean of n enrolment vectors against one test."""

    def transformed(vector, count):
        u = transform @ (vector - mean)
        return u * np.sqrt(len(u) / np.sum(u**2 / (psi + 1 / count))) if normalize else u

    u, p = transformed(enroll, n), transformed(test, 1)
    center, variance = n * psi / (n * psi + 1) * u, 1 + psi / (n * psi + 1)
    given = multivariate_normal(center, np.diag(variance)).logpdf(p)
    return given - multivariate_normal(np.zeros(len(p)), np.diag(1 + psi)).logpdf(p)


def dense_log_likelihood(mean, between, within, vectors, codes):
    """Log-likelihood of the vectors of all speakers."""
    total = 0.0
    for code in np.unique(codes):
        own = vectors[codes == code]
        total += multivariate_normal(*stacked(mean, between, within, len(own))).logpdf(own.reshape(-1))
    return total
