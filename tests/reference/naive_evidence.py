"""Features of the cohort-evidence model straight from their definitions, one trial at a time."""

import numpy as np


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


def takes(blocks, i, j, side):
    """Return the mean number of takes of a member's speaker in one side's cohort, without the trial's own speakers."""
    speakers = blocks.cohort_test_speakers if side == "enroll" else blocks.cohort_enroll_speakers
    if speakers is None:
        return 1.0
    own = {names[at] for names, at in ((blocks.enroll_speakers, i), (blocks.test_speakers, j)) if names is not None}
    members = [name if name is not None else f"member {at}" for at, name in enumerate(speakers)]
    members = [name for name in members if name not in own]
    return float(np.mean([members.count(name) for name in members])) if members else 1.0


def likeness(rows, speakers):
    """Return the correlation of the squared deviations of all pairs of scores of one speaker, pooled over rows."""
    same = other = 0.0
    for row in rows:
        there = [at for at in range(len(row)) if not np.isnan(row[at])]
        values, names = np.array([row[at] for at in there]), [speakers[at] for at in there]
        if len(set(names)) < 2:
            continue
        square = (values - values.mean()) ** 2 / values.var()
        square -= square.mean()
        n, takes = len(names), np.mean([names.count(name) for name in names])
        sums = sum(sum(square[k] for k in range(n) if names[k] == name) ** 2 for name in set(names))
        same += sums / (1 - takes / n) - (square**2).sum()
        other += (square**2).sum() * (takes - 1)
    return min(max(same / other, 0.0), 1.0)


def shrunk(count, std, prior, takes=1.0):
    """Return the shrunk log-scale."""
    count = count / (1 + prior.alike * (takes - 1)) if count >= 2 else count
    if count <= 1:
        return 0.0
    logs = max(np.log(std) if std > 0 else -np.inf, prior.center - 5.0) - prior.center
    return prior.variance / (prior.variance + 1 / (2 * (count - 1))) * logs if prior.variance > 0 else 0.0


def normalized(score, sides):
    """Return the mean of (score - mean) / scale over the sides; each side is (mean, log-scale, usual log-scale)."""
    return float(np.mean([(score - mean) / np.exp(log + center) for mean, log, center in sides]))


def pair_values(cohort, speakers, a, c, ridge, within_ridge):
    """Return b and w of one trial, with the full singular value decomposition of the centred cohort scores."""
    row, column, mean = cohort.mean(axis=1), cohort.mean(axis=0), cohort.mean()
    R = cohort - row[:, None] - column[None] + mean
    a = a - a.mean() - column + mean
    c = c - c.mean() - row + mean
    U, g, Vt = np.linalg.svd(R, full_matrices=False)
    kept = g > 1e-7 * g[0]
    U, g, V = U[:, kept], g[kept], Vt[kept].T
    b = float((a @ V) @ np.diag(g / (g**2 + ridge**2 * g[0] ** 2)) @ (U.T @ c))
    Y = V * np.sqrt(g)
    deviations = np.concatenate([Y[speakers == name] - Y[speakers == name].mean(axis=0) for name in set(speakers)])
    W = deviations.T @ deviations / max(len(Y) - len(set(speakers)), 1)
    largest = np.linalg.eigvalsh(W)[-1]
    x, y = (a @ V) / np.sqrt(g), (U.T @ c) / np.sqrt(g)
    w = float(x @ W @ np.linalg.inv(W + within_ridge * largest * np.eye(len(W))) @ y)
    return b, w
