"""Metrics straight from their definitions: every threshold is tried, one after the other."""

import itertools
import math
from fractions import Fraction

import numpy as np


def points(scores, labels, weights=None):
    """Return (threshold, Pmiss, Pfa) for every distinct decision rule "accept when score >= threshold"."""
    weights = [Fraction(1)] * len(scores) if weights is None else [Fraction(float(w)) for w in weights]
    trials = [(float(s), int(k), w) for s, k, w in zip(scores, labels, weights, strict=True) if k >= 0]
    total = [sum(w for _, k, w in trials if k == label) for label in (0, 1)]
    found = []
    for threshold in [*sorted({s for s, _, _ in trials}), math.nan]:  # nan: nothing is accepted
        miss = sum(w for s, k, w in trials if k == 1 and not s >= threshold)
        alarm = sum(w for s, k, w in trials if k == 0 and s >= threshold)
        found.append((threshold, miss / total[1], alarm / total[0]))
    return found


def lower_hull(scores, labels, weights=None):
    """Return the vertices (Pmiss, Pfa) of the convex hull: the points that no mixture of two others reaches."""
    vertices = []
    for _, *point in points(scores, labels, weights):
        while len(vertices) >= 2 and not _turns(vertices[-2], vertices[-1], point):
            vertices.pop()
        if not vertices or point != vertices[-1]:
            vertices.append(point)
    return vertices


def _turns(a, b, c):
    return (b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0]) > 0


def rocch_eer(scores, labels, weights=None):
    """Maximize the minimum Bayes error rate over the prior: the EER of the hull, by its other definition."""
    vertices = lower_hull(scores, labels, weights)
    if len(vertices) == 1:
        return 0.0
    best = Fraction(0)
    priors = [Fraction(0), Fraction(1)]
    for i, (m1, f1) in enumerate(vertices):
        for m2, f2 in vertices[i + 1 :]:
            slope = (m1 - f1) - (m2 - f2)
            if slope:
                priors.append((f2 - f1) / slope)  # where the two points cost the same
    for prior in priors:
        if 0 <= prior <= 1:
            best = max(best, min(prior * m + (1 - prior) * f for m, f in vertices))
    return float(best)


def interpolated_eer(scores, labels):
    curve = [(m, f) for _, m, f in points(scores, labels)]
    for (m0, f0), (m1, f1) in itertools.pairwise(curve):
        if m1 >= f1:
            step = (f0 - m0) / ((f0 - m0) + (m1 - f1))
            return float(m0 + step * (m1 - m0))
    raise AssertionError


def nearest_mean_eer(scores, labels):
    """As SpeechBrain: reject scores <= threshold, so that the lowest score is always rejected."""
    curve = [(m, f) for _, m, f in points(scores, labels)][1:]
    m, f = min(curve, key=lambda rates: abs(rates[0] - rates[1]))
    return float((m + f) / 2)


def kaldi_eer(scores, labels):
    """As compute-eer: walk up the targets until one is above the non-target at the matching place from the top."""
    tar = sorted(s for s, k in zip(scores, labels, strict=True) if k == 1)
    non = sorted(s for s, k in zip(scores, labels, strict=True) if k == 0)
    place = 0
    while place + 1 < len(tar):
        matching = len(non) - 1 - int(len(non) * place * 1.0 / len(tar))
        if non[max(matching, 0)] < tar[place]:
            break
        place += 1
    return place / len(tar)


def min_dcf(scores, labels, p_target, c_miss, c_fa, weights=None):
    costs = [
        p_target * c_miss * float(m) + (1 - p_target) * c_fa * float(f) for _, m, f in points(scores, labels, weights)
    ]
    return min(costs) / min(p_target * c_miss, (1 - p_target) * c_fa)


def act_dcf(scores, labels, p_target, c_miss, c_fa, weights=None):
    threshold = -math.log(p_target * c_miss / ((1 - p_target) * c_fa))
    weights = np.ones(len(scores)) if weights is None else np.asarray(weights)
    scores, labels = np.asarray(scores, dtype=float), np.asarray(labels)
    tar, non = labels == 1, labels == 0
    p_miss = weights[tar & (scores < threshold)].sum() / weights[tar].sum()
    p_fa = weights[non & (scores >= threshold)].sum() / weights[non].sum()
    return (p_target * c_miss * p_miss + (1 - p_target) * c_fa * p_fa) / min(p_target * c_miss, (1 - p_target) * c_fa)


def cllr(scores, labels, weights=None):
    weights = [1.0] * len(scores) if weights is None else weights
    trials = list(zip(scores, labels, weights, strict=True))
    total = [sum(w for _, k, w in trials if k == label) for label in (0, 1)]
    bits = 0.0
    for s, k, w in trials:
        if k >= 0 and w > 0:
            wrong = -float(s) if k == 1 else float(s)
            bits += w / total[k] * (wrong + math.log1p(math.exp(-wrong)) if wrong > 0 else math.log1p(math.exp(wrong)))
    return bits / (2 * math.log(2))


def min_cllr(scores, labels, weights=None):
    """Sum over the hull's edges, each of which is one LLR."""
    vertices = lower_hull(scores, labels, weights)
    bits = 0.0
    for (m0, f0), (m1, f1) in itertools.pairwise(vertices):
        a, b = float(m1 - m0), float(f0 - f1)
        if a and b:
            bits += (a * math.log2((a + b) / a) + b * math.log2((a + b) / b)) / 2
    return bits


def auc(scores, labels):
    tar = [s for s, k in zip(scores, labels, strict=True) if k == 1]
    non = [s for s, k in zip(scores, labels, strict=True) if k == 0]
    return sum((t > n) + 0.5 * (t == n) for t in tar for n in non) / (len(tar) * len(non))


def p_miss_at(p_fa, scores, labels):
    return float(min(m for _, m, f in points(scores, labels) if f <= Fraction(p_fa).limit_denominator(10**6)))


def p_fa_at(p_miss, scores, labels):
    return float(min(f for _, m, f in points(scores, labels) if m <= Fraction(p_miss).limit_denominator(10**6)))
