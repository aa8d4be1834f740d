"""Mending self-centred scores and recognizing them, trial by trial and straight from the definition."""

import numpy as np


def mean_score(scores, rows, columns):
    found = scores[np.ix_(rows, columns)]
    found = found[~np.isnan(found)]
    return found.mean() if found.size else np.nan


def naive_ratio(scores, enroll, test):
    """Sum of the mean scores between all speakers who have targets, over the sum of the mean target scores."""
    both = [a for a in sorted(set(enroll) - {None}) if np.isfinite(mean_score(scores, enroll == a, test == a))]
    between = [[mean_score(scores, enroll == a, test == b) for b in both] for a in both]
    return np.nansum(between) / np.trace(between)


def naive_correction(scores, enroll, test, *, cosine):
    """Add what the centre of each trial loses with its speakers, by means of scores."""
    out = np.full(scores.shape, np.nan)
    for i, j in np.ndindex(scores.shape):
        speakers = [a for a in dict.fromkeys((enroll[i], test[j])) if a is not None and (test == a).any()]
        counts = {a: (test == a).sum() for a in speakers}
        n = sum(name is not None for name in test)
        w = 1 / (n - sum(counts.values()))
        x = w * sum(counts[a] * np.nan_to_num(mean_score(scores, [i], test == a)) for a in speakers)
        y = w * sum(counts[a] * np.nan_to_num(mean_score(scores, enroll == a, [j])) for a in speakers)
        square = sum(
            counts[a] * counts[b] * np.nan_to_num(mean_score(scores, enroll == a, test == b))
            for a in speakers
            for b in speakers
        )
        square = w**2 * max(square, 0.0)
        out[i, j] = scores[i, j] + x + y + square
        if cosine:
            out[i, j] /= np.sqrt((1 + 2 * x + square) * (1 + 2 * y + square))
    return out
