"""The posterior of all hidden variables where every score has a precision of its own, written with dense matrices."""

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
