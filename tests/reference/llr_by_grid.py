"""The LLR of two Gaussians as a function of the score, looked at on a fine grid and by drawing scores."""

import numpy as np
from scipy.stats import norm


def llr(scores, mean, variance):
    """Log-density of targets less that of non-targets."""
    non, tar = (norm.logpdf(scores, m, np.sqrt(v)) for m, v in zip(mean, variance, strict=True))
    return tar - non


def turn(mean, variance, low, high, number=2_000_001):
    """Return the score between two others at which the LLR is lowest or highest, and the LLR there."""
    grid = np.linspace(low, high, number)
    values = llr(grid, mean, variance)
    at = np.argmin(values) if variance[1] > variance[0] else np.argmax(values)
    return grid[at], values[at]


def drawn_share_beyond(model, known, number=400_000, seed=0):
    """Draw trials from a score model and return the share of each class whose LLR falls with a better score.

    ``known`` tells whether the effects on non-targets are known, as a large cohort tells them, or nothing is.
    """
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, number, model.dim))
    covariance = [loading @ loading.T for loading in (model.alpha, model.beta)]
    effects = [hidden @ loading.T for hidden, loading in ((x, model.alpha), (y, model.beta))]
    mean, variance = np.tile(model.mu, (number, 1)), model.sigma2.copy()
    for effect, c in zip(effects, covariance, strict=True):
        if known and c[0, 0] > 0:
            mean[:, 0] += effect[:, 0]
            mean[:, 1] += effect[:, 0] * c[0, 1] / c[0, 0]
            variance[1] += c[1, 1] - c[0, 1] ** 2 / c[0, 0]
        else:
            variance += np.diag(c)
    step = 1e-3 * np.sign(model.mu[1] - model.mu[0])
    shares = []
    for h in (0, 1):
        scores = model.mu[h] + sum(e[:, h] for e in effects) + np.sqrt(model.sigma2[h]) * rng.normal(size=number)
        better, worse = (llr(scores + way, mean.T, variance) for way in (step, -step))
        shares.append(np.mean(better < worse))
    return np.array(shares)
