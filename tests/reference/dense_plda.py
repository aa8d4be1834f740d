"""Two-covariance PLDA straight from its definition: Gaussians of stacked vectors."""

import numpy as np
from scipy.stats import multivariate_normal


def stacked(mean, between, within, n):
    """Mean and covariance of n utterances of one speaker, put under each other."""
    return np.tile(mean, n), np.kron(np.ones((n, n)), between) + np.kron(np.eye(n), within)


def dense_llr(mean, between, within, u, v):
    """log p(u, v | one speaker) - log p(u) - log p(v)."""
    together = multivariate_normal(*stacked(mean, between, within, 2)).logpdf(np.concatenate([u, v]))
    alone = multivariate_normal(*stacked(mean, between, within, 1))
    return together - alone.logpdf(u) - alone.logpdf(v)


def dense_log_likelihood(mean, between, within, vectors, codes):
    """Log-likelihood of the vectors of all speakers."""
    total = 0.0
    for code in np.unique(codes):
        own = vectors[codes == code]
        total += multivariate_normal(*stacked(mean, between, within, len(own))).logpdf(own.reshape(-1))
    return total
