"""The norms of other tools, each written naively from the formula that the tool publishes, with plain numpy loops.

Each function takes the trial scores S (m x n), the enrolments against the cohort E (m x N) and the cohort against the
tests T (N x n), and where needed the cohort against itself K (N x M), and returns an m x n matrix.
"""

from __future__ import annotations

import numpy as np


def wespeaker(S, E, T, top_n):
    """Each side's own top n after a full descending sort, std over n, half the sum (score_norm.py)."""
    out = np.empty(S.shape)
    for i in range(S.shape[0]):
        e = np.sort(E[i])[::-1][:top_n]
        for j in range(S.shape[1]):
            t = np.sort(T[:, j])[::-1][:top_n]
            out[i, j] = 0.5 * ((S[i, j] - np.mean(e)) / np.std(e) + (S[i, j] - np.mean(t)) / np.std(t))
    return out


def speechbrain(S, E, T, kind, cohort_size=None):
    """``torch.topk`` and ``torch.std`` (over n - 1) for z-, t- and s-norm (speaker_verification_cosine.py)."""
    out = np.empty(S.shape)
    for i in range(S.shape[0]):
        for j in range(S.shape[1]):
            e, t = sorted(E[i], reverse=True)[:cohort_size], sorted(T[:, j], reverse=True)[:cohort_size]
            z = (S[i, j] - np.mean(e)) / np.std(e, ddof=1)
            w = (S[i, j] - np.mean(t)) / np.std(t, ddof=1)
            out[i, j] = {"z-norm": z, "t-norm": w, "s-norm": 0.5 * (z + w)}[kind]
    return out


def espnet(S, E, T, adaptive_cohort_size):
    """Own-side top k, clipped to the cohort, std over n - 1, half the sum (spk_apply_score_norm.py)."""
    k = min(adaptive_cohort_size, E.shape[1])
    out = np.empty(S.shape)
    for i in range(S.shape[0]):
        for j in range(S.shape[1]):
            e, t = np.sort(E[i])[-k:], np.sort(T[:, j])[-k:]
            z = (S[i, j] - e.mean()) / e.std(ddof=1)
            out[i, j] = (z + (S[i, j] - t.mean()) / t.std(ddof=1)) / 2
    return out


def asv_subtools(S, E, T, top_n, cross_select):
    """``groupby.head(top_n)`` after sorting, pandas' std (over n - 1), ``cross_select`` (ScoreNormalization.py)."""
    out = np.empty(S.shape)
    for i in range(S.shape[0]):
        e_top = np.argsort(-E[i], kind="stable")[:top_n]
        for j in range(S.shape[1]):
            t_top = np.argsort(-T[:, j], kind="stable")[:top_n]
            e = E[i, t_top if cross_select else e_top]
            t = T[e_top if cross_select else t_top, j]
            z = (S[i, j] - e.mean()) / e.std(ddof=1)
            out[i, j] = 0.5 * (z + (S[i, j] - t.mean()) / t.std(ddof=1))
    return out


def hyperion_as(S, E, T, nbest, nbest_discard, other_side=True):
    """Ranked by the other side after discarding the very best, std over n with a floor, sum over root 2."""
    nbest = min(nbest, E.shape[1] - nbest_discard)
    out = np.empty(S.shape)
    for i in range(S.shape[0]):
        by_enroll = np.argsort(-E[i], kind="stable")[nbest_discard : nbest_discard + nbest]
        for j in range(S.shape[1]):
            by_test = np.argsort(-T[:, j], kind="stable")[nbest_discard : nbest_discard + nbest]
            e = E[i, by_test if other_side else by_enroll]
            t = T[by_enroll if other_side else by_test, j]
            z = (S[i, j] - e.mean()) / max(e.std(), 1e-5)
            w = (S[i, j] - t.mean()) / max(t.std(), 1e-5)
            out[i, j] = (z + w) / np.sqrt(2)
    return out


def hyperion_z(S, E):
    return np.array([(row - e.mean()) / max(e.std(), 1e-5) for row, e in zip(S, E, strict=True)])


def hyperion_t(S, T):
    return hyperion_z(S.T, T.T).T


def hyperion_s(S, E, T):
    return (hyperion_z(S, E) + hyperion_t(S, T)) / np.sqrt(2)


def hyperion_zt(S, E, T, K):
    return hyperion_t(hyperion_z(S, E), hyperion_z(T, K))


def hyperion_tz(S, E, T, K):
    return hyperion_z(hyperion_t(S, T), hyperion_t(E, K))


def bob_zt(A, B, C, D, same):
    """ZTNorm.cpp: zA = Z(A|B), zC = Z(C|D without true trials), T(zA|zC); std over n - 1, a std of 0 becomes 1."""

    def std(values):
        spread = np.sqrt(((values - values.mean()) ** 2).sum() / (len(values) - 1)) if len(values) > 1 else 0.0
        return 1.0 if spread <= np.finfo(float).tiny else spread

    zA = np.array([(a - b.mean()) / std(b) for a, b in zip(A, B, strict=True)])
    zC = np.array([(c - d[~s].mean()) / std(d[~s]) for c, d, s in zip(C, D, same, strict=True)])
    return np.array([(a - c.mean()) / std(c) for a, c in zip(zA.T, zC.T, strict=True)]).T
