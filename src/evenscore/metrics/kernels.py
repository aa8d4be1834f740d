"""Compiled loops over sorted scores.

They trust their inputs: target scores ``tar`` and non-target scores ``non`` are sorted upwards, of one type, without
NaN. Scores are walked upwards in *groups*: all scores up to the next score of the other class form one group (they
lie on one straight line of the ROC), and so do all scores that are equal across the classes.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["nearest_corner", "pool_counts", "pool_masses", "push", "roc_corners", "softplus_sum", "split"]

_PRODUCT = 256  # 1 + exp(-|x|) is at most 2, so a product of 256 of them stays far below overflow


@njit(cache=True, nogil=True)
def split(scores, labels, tar, non):
    """Copy the scores of each class into its array; return where the first NaN stands, or -1."""
    t = n = 0
    for i in range(scores.size):
        label = labels[i]
        if label < 0:
            continue
        score = scores[i]
        if np.isnan(score):
            return i
        if label > 0:
            tar[t] = score
            t += 1
        else:
            non[n] = score
            n += 1
    return -1


@njit(cache=True, nogil=True)
def softplus_sum(scores, sign):
    """Return the sum of log(1 + exp(sign * score)), with one logarithm per 256 scores.

    softplus(x) = max(x, 0) + log(1 + u) with u = exp(-|x|), and q = prod(1 + u) - 1 is built up without ever
    adding a small u to 1, so that tiny terms keep all their digits.
    """
    total = 0.0
    for start in range(0, scores.size, _PRODUCT):
        q = linear = 0.0
        for i in range(start, min(start + _PRODUCT, scores.size)):
            x = sign * np.float64(scores[i])
            u = np.exp(-abs(x))
            q += u + q * u
            linear += max(x, 0.0)
        total += linear + np.log1p(q)
    return total


@njit(cache=True, nogil=True)
def _group_end(tar, non, i, j):
    """Return where the group that starts at target ``i`` and non-target ``j`` ends in each class."""
    if j == non.size:
        return tar.size, j
    if i == tar.size:
        return i, non.size
    low, other = tar[i], non[j]
    if low < other:
        while i < tar.size and tar[i] < other:
            i += 1
    elif other < low:
        while j < non.size and non[j] < low:
            j += 1
    else:
        while i < tar.size and tar[i] == low:
            i += 1
        while j < non.size and non[j] == low:
            j += 1
    return i, j


@njit(cache=True, nogil=True)
def push(block_t, block_n, size, t, n):
    """Add a group of mass (t, n) above ``size`` blocks; pool until the share of targets rises; return the new size."""
    while size > 0 and block_t[size - 1] * n >= t * block_n[size - 1]:
        size -= 1
        t += block_t[size]
        n += block_n[size]
    block_t[size] = t
    block_n[size] = n
    return size + 1


@njit(cache=True, nogil=True)
def pool_counts(tar, non):
    """Pool adjacent violators, where each score counts once.

    Returns the end of each block in the targets and in the non-targets, and the number of (target, non-target) pairs
    in the right order times two, plus that of ties.
    """
    most = 2 * min(tar.size, non.size) + 3  # groups; the blocks are far fewer, and untouched memory costs nothing
    block_t, block_n = np.empty(most, np.int64), np.empty(most, np.int64)
    i = j = size = pairs = 0
    while i < tar.size or j < non.size:
        i_end, j_end = _group_end(tar, non, i, j)
        pairs += (i_end - i) * (j + j_end)
        size = push(block_t, block_n, size, i_end - i, j_end - j)
        i, j = i_end, j_end
    return np.cumsum(block_t[:size]), np.cumsum(block_n[:size]), pairs


@njit(cache=True, nogil=True)
def pool_masses(tar, non, tar_mass, non_mass):
    """Do the same where the first k scores have mass ``tar_mass[k]`` and ``non_mass[k]``."""
    most = 2 * min(tar.size, non.size) + 3
    block_t, block_n = np.empty(most, np.float64), np.empty(most, np.float64)
    i_ends, j_ends = np.empty(most, np.int64), np.empty(most, np.int64)
    i = j = size = 0
    pairs = 0.0
    while i < tar.size or j < non.size:
        i_end, j_end = _group_end(tar, non, i, j)
        t, n = tar_mass[i_end] - tar_mass[i], non_mass[j_end] - non_mass[j]
        pairs += t * (non_mass[j] + non_mass[j_end])
        size = push(block_t, block_n, size, t, n)
        i, j = i_end, j_end
        i_ends[size - 1], j_ends[size - 1] = i, j
    return i_ends[:size].copy(), j_ends[:size].copy(), pairs


@njit(cache=True, nogil=True)
def roc_corners(tar, non):
    """Return the corners of the steppy ROC: how many targets and non-targets lie below each."""
    size, i, j = 1, 0, 0
    while i < tar.size or j < non.size:
        i, j = _group_end(tar, non, i, j)
        size += 1
    below_t, below_n = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for k in range(1, size):
        below_t[k], below_n[k] = _group_end(tar, non, below_t[k - 1], below_n[k - 1])
    return below_t, below_n


@njit(cache=True, nogil=True)
def nearest_corner(tar, non):
    """Return (targets below, non-targets below) where the two error rates are nearest among the corners of the ROC.

    A corner is what scikit-learn's `roc_curve` keeps: a threshold where the step to the next lower score differs from
    the one before, or one of the ends. Of equally near corners the one with the highest threshold is taken.
    """
    T, N = tar.size, non.size
    best, best_i, best_j = np.inf, 0, 0
    i = j = 0
    step_t = step_n = -1
    while True:
        i_end, j_end = i, j
        if i < T or j < N:
            value = tar[i] if j == N or (i < T and tar[i] < non[j]) else non[j]
            while i_end < T and tar[i_end] == value:
                i_end += 1
            while j_end < N and non[j_end] == value:
                j_end += 1
        top = i_end == T and j_end == N  # only the highest score, or none, is accepted at this threshold
        if top or i_end - i != step_t or j_end - j != step_n:
            distance = abs((1.0 - (T - i) / T) - (N - j) / N)  # rounded as scikit-learn's users round it
            if distance <= best:
                best, best_i, best_j = distance, i, j
        if i == T and j == N:
            return best_i, best_j
        step_t, step_n = i_end - i, j_end - j
        i, j = i_end, j_end
