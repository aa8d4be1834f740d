"""The paper in one page: the score model of Swart and Brümmer (2017), densely, with the paper's letters.

Numbers in parentheses are the paper's. Enrolment i of K has the hidden variable x_i, test j of L has y_j, all standard
Gaussian, of dimension D. Given its label h_ij, the score s_ij is N(mu_h + alpha_h' x_i + beta_h' y_j, sigma_h^2): the
joint distribution is (8), with each prior once; the likelihood opens the section "Linear-Gaussian normalization model".
A model is anything with ``mu, alpha, beta, sigma2``, whose first axis is the class h: 0 non-target, 1 target. H has the
labels h of a matrix, and -1 where there is no score.
"""

from types import SimpleNamespace

import numpy as np


def posterior(model, S, H):
    """Return Lambda_z and mu_z of the posterior (11) of z = (x_1..x_K, y_1..y_L)."""
    (K, L), D = H.shape, model.alpha.shape[1]
    Lambda, gamma = np.eye((K + L) * D), np.zeros((K + L) * D)
    for i, j in np.argwhere(H >= 0):
        h = H[i, j]
        alpha, beta, sigma2 = model.alpha[h], model.beta[h], model.sigma2[h]
        x, y = slice(i * D, (i + 1) * D), slice((K + j) * D, (K + j + 1) * D)
        Lambda[x, x] += np.outer(alpha, alpha) / sigma2  # A_ii, in the lines below (11)
        Lambda[y, y] += np.outer(beta, beta) / sigma2  # B_jj
        Lambda[x, y] += np.outer(alpha, beta) / sigma2  # C_ij
        Lambda[y, x] += np.outer(beta, alpha) / sigma2
        gamma[x] += (S[i, j] - model.mu[h]) / sigma2 * alpha  # gamma_x,i
        gamma[y] += (S[i, j] - model.mu[h]) / sigma2 * beta  # gamma_y,j
    return Lambda, np.linalg.solve(Lambda, gamma)


def log_marginal(model, S, H):
    """Return log P(S | H), by the candidate's formula: the last display before the experiments."""
    Lambda, mu_z = posterior(model, S, H)
    s, h = S[H >= 0], H[H >= 0]
    fit = ((s - model.mu[h]) ** 2 / model.sigma2[h] + np.log(2 * np.pi * model.sigma2[h])).sum()
    return -0.5 * fit + 0.5 * mu_z @ Lambda @ mu_z - 0.5 * np.linalg.slogdet(Lambda)[1]


def em_step(model, matrices):
    """Return the model after one iteration of EM with minimum divergence on several (S, H), which share it.

    The paper refers to Brümmer's notes for this. E-step: expectations under (11). M-step: a regression of the scores of
    each class on w = (1, x_i, y_j). Minimum divergence: all posteriors of x (of y), pooled, have some mean m and
    covariance R R'; x = m + R x' with standard Gaussian x' is the same model with alpha_h' m in mu_h and R' alpha_h.
    """
    D = model.alpha.shape[1]
    ww, sw, ss, n = np.zeros((2, 1 + 2 * D, 1 + 2 * D)), np.zeros((2, 1 + 2 * D)), np.zeros(2), np.zeros(2)
    pooled = [], []  # <x> and <x x'> of each enrolment that has scores, <y> and <y y'> of each test
    for S, H in matrices:
        K = len(H)
        Lambda, mu_z = posterior(model, S, H)
        zz = np.linalg.inv(Lambda) + np.outer(mu_z, mu_z)  # <z z'>
        for i, j in np.argwhere(H >= 0):
            at, h = np.r_[i * D : (i + 1) * D, (K + j) * D : (K + j + 1) * D], H[i, j]  # x_i and y_j in z
            w = np.concatenate([[1.0], mu_z[at]])  # <w>
            ww[h] += np.block([[np.ones((1, 1)), mu_z[None, at]], [mu_z[at, None], zz[np.ix_(at, at)]]])  # <w w'>
            sw[h] += S[i, j] * w
            ss[h] += S[i, j] ** 2
            n[h] += 1
        for side, first, seen in ((0, 0, (H >= 0).any(axis=1)), (1, K, (H >= 0).any(axis=0))):
            for element in first + np.flatnonzero(seen):
                at = slice(element * D, (element + 1) * D)
                pooled[side].append((mu_z[at], zz[at, at]))
    weights = np.stack([np.linalg.solve(ww[h], sw[h]) for h in (0, 1)])  # (mu_h, alpha_h, beta_h)
    sigma2 = np.array([ss[h] - weights[h] @ sw[h] for h in (0, 1)]) / n  # as ww @ weights = sw
    mu, alpha, beta = weights[:, 0], weights[:, 1 : 1 + D], weights[:, 1 + D :]
    (m_x, R_x), (m_y, R_y) = (_fitted_prior(side) for side in pooled)
    return SimpleNamespace(mu=mu + alpha @ m_x + beta @ m_y, alpha=alpha @ R_x, beta=beta @ R_y, sigma2=sigma2)


def _fitted_prior(expectations):
    """Return the mean, and a root of the covariance, of the pooled posteriors of one side."""
    mean = np.mean([first for first, _ in expectations], axis=0)
    second = np.mean([second for _, second in expectations], axis=0)
    return mean, np.linalg.cholesky(second - np.outer(mean, mean))


def normalized_score(model, score, S_e, S_t, S_I, H_I, H_e=0, H_t=0):
    """Return s* of (10): two marginals of all scores, one for each hypothesis about the trial; NaN is missing.

    The trial's enrolment is one more row of the cohort's scores S_I, of N enrolments and M tests, its test one more
    column. (The paper has the two sizes of S_I the other way round in one place.)
    """
    N, M = S_I.shape
    S, H = np.full((N + 1, M + 1), np.nan), np.zeros((N + 1, M + 1), int)
    S[:N, :M], S[N, :M], S[:N, M], S[N, M] = S_I, S_e, S_t, score
    H[:N, :M], H[N, :M], H[:N, M] = H_I, H_e, H_t
    H[np.isnan(S)] = -1
    H[N, M] = 1
    target = log_marginal(model, S, H)
    H[N, M] = 0
    return target - log_marginal(model, S, H)


def probability_of_target(s_star, pi):
    """Return P(h = target | all scores, pi) of (9): the logistic function of s* + logit pi.

    >>> round(probability_of_target(np.log(99), pi=0.01), 3)
    0.5
    """
    return float(1 / (1 + np.exp(-(s_star + np.log(pi / (1 - pi))))))
