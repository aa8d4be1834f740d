"""The score model straight from the paper: dense precision matrices, no structure used."""

import numpy as np

from evenscore.model.posterior import Moments


def dense_posterior(model, scores, key):
    """Return precision, gamma and posterior mean of z = (x_1..x_K, y_1..y_L); key -1 is missing."""
    K, L = key.shape
    D = model.dim
    Lam = np.eye((K + L) * D)
    gamma = np.zeros((K + L) * D)
    for i in range(K):
        for j in range(L):
            h = key[i, j]
            if h < 0:
                continue
            a, b, v = model.alpha[h], model.beta[h], model.sigma2[h]
            xi, yj = slice(i * D, (i + 1) * D), slice((K + j) * D, (K + j + 1) * D)
            Lam[xi, xi] += np.outer(a, a) / v
            Lam[yj, yj] += np.outer(b, b) / v
            Lam[xi, yj] += np.outer(a, b) / v
            Lam[yj, xi] += np.outer(b, a) / v
            gamma[xi] += (scores[i, j] - model.mu[h]) / v * a
            gamma[yj] += (scores[i, j] - model.mu[h]) / v * b
    return Lam, gamma, np.linalg.solve(Lam, gamma)


def dense_log_likelihood(model, scores, key):
    Lam, _, mean = dense_posterior(model, scores, key)
    total = 0.0
    for i, j in np.argwhere(key >= 0):
        h = key[i, j]
        total -= 0.5 * ((scores[i, j] - model.mu[h]) ** 2 / model.sigma2[h] + np.log(2 * np.pi * model.sigma2[h]))
    return total + 0.5 * mean @ Lam @ mean - 0.5 * np.linalg.slogdet(Lam)[1]


def dense_moments(model, scores, key):
    """The E-step, pair by pair; rows and columns without any score are left out of the moments of the sides."""
    K, L = key.shape
    D = model.dim
    Lam, _, mean = dense_posterior(model, scores, key)
    second = np.linalg.inv(Lam) + np.outer(mean, mean)
    ww, sw, ss = np.zeros((2, 1 + 2 * D, 1 + 2 * D)), np.zeros((2, 1 + 2 * D)), np.zeros(2)
    for i, j in np.argwhere(key >= 0):
        h = key[i, j]
        at = np.r_[i * D : (i + 1) * D, (K + j) * D : (K + j + 1) * D]
        w = np.concatenate([[1.0], mean[at]])
        block = np.outer(w, w)
        block[1:, 1:] = second[np.ix_(at, at)]
        ww[h] += block
        sw[h] += scores[i, j] * w
        ss[h] += scores[i, j] ** 2

    def side(start, number, seen):
        blocks = [slice((start + n) * D, (start + n + 1) * D) for n in range(number) if seen[n]]
        first = sum((mean[b] for b in blocks), np.zeros(D))
        return len(blocks), first, sum((second[b, b] for b in blocks), np.zeros((D, D)))

    sides = side(0, K, (key >= 0).any(axis=1)), side(K, L, (key >= 0).any(axis=0))
    numbers, first, second = (np.array(part, float) for part in zip(*sides, strict=True))
    return Moments(ww, sw, ss, first, second, numbers, dense_log_likelihood(model, scores, key))


def dense_llr(model, score, enroll, test, cohort, key, enroll_key=0, test_key=0):
    """The paper's normalized score: two marginals over the (N+1) x (M+1) matrix; NaN are missing scores."""
    N, M = cohort.shape
    scores = np.full((N + 1, M + 1), np.nan)
    scores[:N, :M], scores[N, :M], scores[:N, M], scores[N, M] = cohort, enroll, test, score
    labels = np.zeros((N + 1, M + 1), dtype=int)
    labels[:N, :M], labels[N, :M], labels[:N, M] = key, enroll_key, test_key
    labels[np.isnan(scores)] = -1
    result = 0.0
    for hypothesis, sign in ((1, 1.0), (0, -1.0)):
        labels[N, M] = hypothesis
        result += sign * dense_log_likelihood(model, scores, labels)
    return result
