"""The location-scale model straight from its definition: loops, dense matrices, Monte Carlo."""

from __future__ import annotations

import numpy as np


def dense_weighted_posterior(model, scores, precision, prior=None):
    """Return precision and mean of z = (x_1..x_K, y_1..y_L) when score ij has precision[h, i, j] in class h."""
    K, L = scores.shape
    D = model.dim
    Lam = np.eye((K + L) * D)
    gamma = np.zeros((K + L) * D) if prior is None else prior.copy()
    for h in range(2):
        a, b = model.alpha[h], model.beta[h]
        for i in range(K):
            for j in range(L):
                w = precision[h, i, j]
                xi, yj = slice(i * D, (i + 1) * D), slice((K + j) * D, (K + j + 1) * D)
                Lam[xi, xi] += w * np.outer(a, a)
                Lam[yj, yj] += w * np.outer(b, b)
                Lam[xi, yj] += w * np.outer(a, b)
                Lam[yj, xi] += w * np.outer(b, a)
                gamma[xi] += w * (scores[i, j] - model.mu[h]) * a
                gamma[yj] += w * (scores[i, j] - model.mu[h]) * b
    return Lam, np.linalg.solve(Lam, gamma)


def loop_bound(model, scores, key, mean, covariance, u, v):
    """The bound for q(z) = N(mean, covariance), q(u_i) = N(*u[i]), q(v_j) = N(*v[j]); key -1 is missing."""
    K, L = key.shape
    D, location = model.dim, model.location
    total = 0.0
    for i in range(K):
        for j in range(L):
            h = key[i, j]
            if h < 0:
                continue
            at = np.r_[i * D : (i + 1) * D, (K + j) * D : (K + j + 1) * D]
            loading = np.concatenate([location.alpha[h], location.beta[h]])
            residual = scores[i, j] - location.mu[h] - loading @ mean[at]
            square = residual**2 + loading @ covariance[np.ix_(at, at)] @ loading
            c, d = model.c[h], model.d[h]
            log_variance = np.log(location.sigma2[h]) + c * u[i][0] + d * v[j][0]
            precision = np.exp(-log_variance + 0.5 * c**2 * u[i][1] + 0.5 * d**2 * v[j][1])
            total -= 0.5 * (np.log(2 * np.pi) + log_variance + precision * square)
    total += 0.5 * np.linalg.slogdet(covariance)[1] + 0.5 * len(mean)
    for n, (m, s) in enumerate([*u, *v]):
        f = model.f if n < K else model.g
        at = slice(n * D, (n + 1) * D)
        total -= 0.5 * (np.sum((mean[at] - f * m) ** 2) + f @ f * s + np.trace(covariance[at, at]))
        total -= 0.5 * (m**2 + s - 1 - np.log(s))
    return total


def given_scales(model, scores, key, u, v):
    """Return log p(scores | u, v) for many draws of the log-scales: u is n x K, v is n x L."""
    location = model.location
    i, j = np.nonzero(key >= 0)
    h = key[i, j]
    alpha, beta = location.alpha[h], location.beta[h]
    mean = location.mu[h] + (alpha @ model.f) * u[:, i] + (beta @ model.g) * v[:, j]
    shared = (alpha @ alpha.T) * (i[:, None] == i) + (beta @ beta.T) * (j[:, None] == j)
    noise = location.sigma2[h] * np.exp(model.c[h] * u[:, i] + model.d[h] * v[:, j])
    covariance = shared + noise[:, :, None] * np.eye(len(i))
    root = np.linalg.cholesky(covariance)
    white = np.linalg.solve(root, (scores[i, j] - mean)[:, :, None])[:, :, 0]
    log_det = 2 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    return -0.5 * ((white**2).sum(axis=1) + log_det + len(i) * np.log(2 * np.pi))


def monte_carlo_log_likelihood(model, scores, key, n, seed=0):
    """Return log p(scores): the log-scales are drawn from their priors."""
    rng = np.random.default_rng(seed)
    parts = given_scales(model, scores, key, rng.normal(size=(n, key.shape[0])), rng.normal(size=(n, key.shape[1])))
    return np.log(np.mean(np.exp(parts - parts.max()))) + parts.max()


def monte_carlo_llr(model, score, enroll, test, cohort, key, n, seed=0):
    """The log-ratio of two marginals over the (N+1) x (M+1) matrix, with the same draws for both; NaN are missing."""
    N, M = cohort.shape
    scores = np.full((N + 1, M + 1), np.nan)
    scores[:N, :M], scores[N, :M], scores[:N, M], scores[N, M] = cohort, enroll, test, score
    labels = np.zeros((N + 1, M + 1), dtype=int)
    labels[:N, :M] = key
    labels[np.isnan(scores)] = -1
    values = []
    for hypothesis in (0, 1):
        labels[N, M] = hypothesis
        values.append(monte_carlo_log_likelihood(model, np.nan_to_num(scores), labels, n, seed))
    return values[1] - values[0]
