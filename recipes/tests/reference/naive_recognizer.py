"""The recognizer by loops over frames and Gaussians, straight from its equations."""

import numpy as np
from scipy.stats import norm


def gaussian_log_densities(mixture, frame):
    """log w_c N(frame; m_c, v_c) for each Gaussian c."""
    return np.array(
        [
            np.log(mixture.weights[c]) + norm.logpdf(frame, mixture.means[c], np.sqrt(mixture.variances[c])).sum()
            for c in range(len(mixture.weights))
        ]
    )


def shares(mixture, frame):
    density = np.exp(gaussian_log_densities(mixture, frame))
    return density / density.sum()


def log_likelihood(mixture, frame):
    return np.log(np.exp(gaussian_log_densities(mixture, frame)).sum())


def statistics(mixture, recordings):
    """n_rc and f_rc, frame by frame."""
    size, dim = mixture.means.shape
    n, f = np.zeros((len(recordings), size)), np.zeros((len(recordings), size, dim))
    for r, frames in enumerate(recordings):
        for frame in frames:
            gamma = shares(mixture, frame)
            for c in range(size):
                n[r, c] += gamma[c]
                f[r, c] += gamma[c] * (frame - mixture.means[c]) / np.sqrt(mixture.variances[c])
    return n, f


def map_offsets(n, f, classes, count, relevance):
    """Relevance MAP of each class: its mean of frames, shrunk towards the background by `relevance` frames."""
    offsets = np.zeros((count, *f.shape[1:]))
    for s in range(count):
        for c in range(n.shape[1]):
            frames = sum(n[r, c] for r in range(len(n)) if classes[r] == s)
            total = sum(f[r, c] for r in range(len(n)) if classes[r] == s)
            offsets[s, c] = total / (frames + relevance)
    return offsets


def channel_factors(n, f, loadings, offsets):
    """Posterior mean of each recording's x, with all Gaussians in one long vector and matrices written out."""
    size, dim, rank = loadings.shape
    stacked = loadings.reshape(size * dim, rank)
    found = []
    for r in range(len(n)):
        counts = np.diag(np.repeat(n[r], dim))
        precision = np.eye(rank) + stacked.T @ counts @ stacked
        residual = f[r].reshape(-1) - counts @ offsets[r].reshape(-1)
        found.append(np.linalg.solve(precision, stacked.T @ residual))
    return np.array(found)


def linear_score(offset, n, f, loadings, x):
    """sum_c z_c' (f_c - n_c U_c x) / sum_c n_c."""
    return sum(offset[c] @ (f[c] - n[c] * loadings[c] @ x) for c in range(len(n))) / n.sum()


def deltas(values, half_window=2):
    """The slope of a straight line through each value and its neighbours, of which those past an end repeat it."""
    slopes = np.zeros_like(values)
    last = len(values) - 1
    for t in range(len(values)):
        for column in range(values.shape[1]):
            steps = range(-half_window, half_window + 1)
            window = [values[min(max(t + step, 0), last), column] for step in steps]
            slopes[t, column] = np.polyfit(list(steps), window, 1)[0]
    return slopes
