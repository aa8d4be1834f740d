"""Whether two sides are alike, from single scores: every figure is computed anew without each speaker.

A score is ``(row, speaker of the row, speaker of the cohort member, score, whether it is high)``.
"""

import math

import numpy as np


def figures(scores, without=None):
    """Return mean, level, spread and share of high scores; the mean score of a row is that of the whole row."""
    rows = {}
    for row, speaker, _, score, _ in scores:
        if speaker != without:
            rows.setdefault(row, []).append(score)
    means = [np.mean(row) for row in rows.values()]
    left = [(score, high) for _, one, other, score, high in scores if without not in (one, other)]
    values = [score for score, _ in left]
    spread = np.var(values) - np.var(means)
    return np.mean(values), np.std(means, ddof=1), math.sqrt(spread), np.mean([high for _, high in left])


def differences(training, evaluation, without=None):
    scales = (float, math.log, math.log, math.sqrt)
    both = zip(scales, figures(training, without), figures(evaluation, without), strict=True)
    return np.array([scale(b) - scale(a) for scale, a, b in both])


def z_values(training, evaluation):
    """Return how many standard errors apart the figures are, by training speakers, evaluation speakers and others."""
    own, new = ({speaker for _, speaker, *_ in side} for side in (training, evaluation))
    cohort = {member for side in (training, evaluation) for _, _, member, *_ in side}
    variance = np.zeros(4)
    for speakers in (own, new - own, cohort - own - new):
        if speakers:
            found = np.array([differences(training, evaluation, gone) for gone in speakers])
            variance += (len(found) - 1) * found.var(axis=0)
    return differences(training, evaluation) / np.sqrt(variance)
