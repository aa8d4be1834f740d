"""Calibrations straight from their definitions: numerical minimization, loops over trials."""

import math
from decimal import Decimal, localcontext

import numpy as np
from scipy.optimize import minimize


def logistic(columns, labels, p_target, l2=0.0):
    """Minimize the prior-weighted cross-entropy with a general-purpose minimizer; return weights and offset."""
    columns, labels = np.asarray(columns, dtype=float).reshape(len(labels), -1), np.asarray(labels)
    std, tau = columns.std(axis=0), math.log(p_target / (1 - p_target))

    def cost(theta):
        posterior_odds = columns @ theta[:-1] + theta[-1] + tau
        miss = np.logaddexp(0, -posterior_odds[labels == 1]).mean()
        alarm = np.logaddexp(0, posterior_odds[labels == 0]).mean()
        return p_target * miss + (1 - p_target) * alarm + l2 / 2 * np.sum((theta[:-1] * std) ** 2)

    found = minimize(cost, np.zeros(columns.shape[1] + 1), method="Nelder-Mead", options={"maxiter": 20000})
    found = minimize(cost, found.x, method="BFGS", options={"gtol": 1e-9})
    return found.x[:-1], found.x[-1]


def pav_llr(scores, labels, smoothing):
    """Return the LLR of each trial by the max-min formula of isotonic regression, over distinct scores.

    Made-up trials at both ends: ``smoothing`` non-targets at the top and targets at the bottom, and of the other class
    the same share of all.
    """
    T, N = labels.count(1), labels.count(0)
    groups = {-math.inf: [smoothing, smoothing * N / T], math.inf: [smoothing * T / N, smoothing]}
    for s, k in zip(scores, labels, strict=True):
        groups.setdefault(s, [0.0, 0.0])[0 if k == 1 else 1] += 1
    values = sorted(groups)
    counts = [groups[value] for value in values]
    total = [sum(c[side] for c in counts) for side in (0, 1)]

    def llr(a, b):
        tar, non = (sum(c[side] for c in counts[a : b + 1]) / total[side] for side in (0, 1))
        if tar == non == 0:
            return None
        return math.inf if non == 0 else -math.inf if tar == 0 else math.log(tar / non)

    found = {}
    for m, value in enumerate(values):
        lowest = [[x for b in range(m, len(values)) if (x := llr(a, b)) is not None] for a in range(m + 1)]
        found[value] = max(min(options) for options in lowest if options)
    return [found[s] for s in scores]


def cross_llr(scores, labels, enroll, test, folds, fit):
    """Calibrate trial by trial: fit to every trial that has no speaker in the folds of this trial's speakers."""
    llr = []
    for s, a, b in zip(scores, enroll, test, strict=True):
        closed = {folds[a], folds[b]}
        rows = [
            i
            for i, k in enumerate(labels)
            if k >= 0 and folds[enroll[i]] not in closed and folds[test[i]] not in closed
        ]
        assert not {enroll[i] for i in rows} & {a, b}
        assert not {test[i] for i in rows} & {a, b}
        llr.append(float(fit([scores[i] for i in rows], [labels[i] for i in rows])(s)))
    return llr


def naive_saturated(z, e, d):
    """The likelihood ratio of a trial if a share e of targets and a share d of non-targets behave like the others."""
    with localcontext() as context:
        context.prec = 60
        odds, e, d = Decimal(z).exp(), Decimal(e), Decimal(d)
        return float(((1 - e) * odds + e).ln() - ((1 - d) + d * odds).ln())
