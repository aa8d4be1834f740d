"""The score model with hidden labels straight from its definition: all labellings summed up."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.stats import norm

from reference.dense_score_model import dense_log_likelihood


def enumerated_log_likelihood(model, scores, key, hidden, prior):
    """Return log p(scores) where the labels of `hidden` pairs are summed out; key is -1 where a score is missing."""
    places = np.argwhere(hidden)
    values = []
    for labels in product((0, 1), repeat=len(places)):
        full = key.copy()
        full[tuple(places.T)] = labels
        weight = sum(np.log(prior) if label else np.log1p(-prior) for label in labels)
        values.append(weight + dense_log_likelihood(model, scores, full))
    return np.logaddexp.reduce(values)


def loop_bound(model, scores, key, p_target, hidden, mean, covariance, prior):
    """The bound for q(z) = N(mean, covariance) and q(h_ij) = p_target, pair by pair."""
    K, L = key.shape
    D = model.dim
    total = 0.5 * np.linalg.slogdet(covariance)[1] + 0.5 * len(mean)
    total -= 0.5 * (mean @ mean + np.trace(covariance))
    for i in range(K):
        for j in range(L):
            if key[i, j] < 0 and not hidden[i, j]:
                continue
            at = np.r_[i * D : (i + 1) * D, (K + j) * D : (K + j + 1) * D]
            for h, p in ((0, 1 - p_target[i, j]), (1, p_target[i, j])):
                if p == 0:
                    continue
                loading = np.concatenate([model.alpha[h], model.beta[h]])
                residual = scores[i, j] - model.mu[h] - loading @ mean[at]
                square = residual**2 + loading @ covariance[np.ix_(at, at)] @ loading
                total -= 0.5 * p * (np.log(2 * np.pi * model.sigma2[h]) + square / model.sigma2[h])
                if hidden[i, j]:
                    total += p * (np.log(prior if h else 1 - prior) - np.log(p))
    return total


def loop_score_gain(trained, adapted, scores, keys, groups, prior):
    """Gain of one model over another on single scores and its standard error; key -1 is hidden, -2 missing."""
    total, rows, columns = 0.0, {}, {}
    for part, (S, key, group) in enumerate(zip(scores, keys, groups, strict=True)):
        for i, j in np.ndindex(S.shape):
            gain = 0.0
            if key[i, j] > -2:
                for sign, model in ((1, adapted), (-1, trained)):
                    spread = np.sqrt(model.sigma2 + (model.alpha**2).sum(axis=1) + (model.beta**2).sum(axis=1))
                    density = norm.pdf(S[i, j], model.mu, spread)
                    mixed = (1 - prior) * density[0] + prior * density[1]
                    gain += sign * np.log(mixed if key[i, j] < 0 else density[key[i, j]])
            total += gain
            rows[group[i]] = rows.get(group[i], 0.0) + gain
            columns[part, j] = columns.get((part, j), 0.0) + gain
    variance = 0.0
    for side in (rows, columns):
        if len(side) > 1:
            variance += len(side) * np.var(list(side.values()), ddof=1)
    return total, np.sqrt(variance)


def loop_expected_cllr(model, adapted, scores, hidden, prior):
    """Cllr of a model's single scores where each hidden trial is a target with the adapted model's probability."""
    sums, weights = np.zeros(2), np.zeros(2)
    for i, j in np.argwhere(hidden):
        llr, belief = (
            np.subtract(*norm.logpdf(scores[i, j], one.mu[::-1], np.sqrt(one.sigma2 + one.variances.nu)[::-1]))
            for one in (model, adapted)
        )
        target = 1 / (1 + (1 - prior) / prior * np.exp(-belief))
        weights += [target, 1 - target]
        sums += [target * np.log2(1 + np.exp(-llr)), (1 - target) * np.log2(1 + np.exp(llr))]
    return (sums / weights).mean()
