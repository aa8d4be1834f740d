"""Features of the cohort-evidence model straight from their definitions, one trial at a time."""

import numpy as np
from scipy.stats import multivariate_normal


def cohort_scores(blocks, i, j, side):
    """Return the cohort scores of one side of the trial (i, j), without its own speakers and without missing ones."""
    own = set()
    for names, at in ((blocks.enroll_speakers, i), (blocks.test_speakers, j)):
        if names is not None and names[at] is not None:
            own.add(names[at])
    scores = blocks.enroll.scores[i] if side == "enroll" else blocks.test.scores[:, j]
    speakers = blocks.cohort_test_speakers if side == "enroll" else blocks.cohort_enroll_speakers
    return [
        float(score)
        for at, score in enumerate(scores)
        if not np.isnan(score) and (speakers is None or speakers[at] not in own)
    ]


def moments(values, top=None, size=None):
    """Return count, mean and standard deviation (n - 1) of all values, or of the highest part of a cohort of a size."""
    values = sorted(values, reverse=True)
    if top is not None:
        values = values[: max(1, round(top * size))]
    mean = sum(values) / len(values)
    deviation = sum((value - mean) ** 2 for value in values)
    return len(values), mean, (deviation / (len(values) - 1)) ** 0.5 if len(values) > 1 else 0.0


def shrunk(count, std, prior):
    """Return the shrunk log-scale."""
    if count < 2:
        return 0.0
    logs = max(np.log(std) if std > 0 else -np.inf, prior.center - 5.0) - prior.center
    return prior.variance / (prior.variance + 1 / (2 * (count - 1))) * logs if prior.variance > 0 else 0.0


def normalized(score, sides):
    """Return the mean of (score - mean) / scale over the sides; each side is (mean, log-scale, usual log-scale)."""
    return float(np.mean([(score - mean) / np.exp(log + center) for mean, log, center in sides]))


def pair_values(cohort, speakers, a, c, ridge, within_ridge):
    """Return b, w and plda of one trial, with the full singular value decomposition of the centred cohort scores."""
    a, c, U, g, V = _factors(cohort, a, c)
    b = float((a @ V) @ np.diag(g / (g**2 + ridge**2 * g[0] ** 2)) @ (U.T @ c))
    W, B = _covariances(V * np.sqrt(g), speakers)
    x, y = (a @ V) / np.sqrt(g), (U.T @ c) / np.sqrt(g)
    w = float(x @ _kept_within(W, within_ridge) @ y)
    return b, w, _two_covariance_llr(x, y, W, B)


def remaining(blocks, i, j, within_ridge):
    """Return the cohort scores of both sides of a trial, without their part within speakers."""
    a, c, U, g, V = _factors(blocks.cohort.scores, blocks.enroll.scores[i], blocks.test.scores[:, j])
    X, Y = U * np.sqrt(g), V * np.sqrt(g)
    C = _kept_within(_covariances(Y, blocks.cohort_test_speakers.astype(str))[0], within_ridge)
    x, y = (a @ V) / np.sqrt(g), (U.T @ c) / np.sqrt(g)
    return blocks.enroll.scores[i] - x @ C @ Y.T, blocks.test.scores[:, j] - X @ C @ y


def _factors(cohort, a, c):
    row, column, mean = cohort.mean(axis=1), cohort.mean(axis=0), cohort.mean()
    U, g, Vt = np.linalg.svd(cohort - row[:, None] - column[None] + mean, full_matrices=False)
    kept = g > 1e-7 * g[0]
    return a - a.mean() - column + mean, c - c.mean() - row + mean, U[:, kept], g[kept], Vt[kept].T


def _covariances(Y, speakers):
    groups = [Y[speakers == name] for name in sorted(set(speakers))]
    deviations = np.concatenate([group - group.mean(axis=0) for group in groups])
    W = deviations.T @ deviations / max(len(Y) - len(groups), 1)
    return W, np.cov(np.array([group.mean(axis=0) for group in groups]).T, bias=True)


def _kept_within(W, ridge):
    return W @ np.linalg.inv(W + ridge * np.linalg.eigvalsh(W)[-1] * np.eye(len(W)))


def _two_covariance_llr(x, y, W, B):
    """Return log N([x y]; one speaker) - log N([x y]; two speakers), with both covariances half shrunk."""
    size = len(W)
    W = W + 0.5 * np.linalg.eigvalsh(W)[-1] * np.eye(size)
    B = 0.5 * B + 0.5 * np.trace(B) / size * np.eye(size)
    both, nothing = np.concatenate([x, y]), np.zeros((size, size))
    one, two = np.block([[B + W, B], [B, B + W]]), np.block([[B + W, nothing], [nothing, B + W]])
    return float(
        multivariate_normal(cov=one, allow_singular=True).logpdf(both)
        - multivariate_normal(cov=two, allow_singular=True).logpdf(both)
    )
