"""Compiled loops of the speaker bootstrap: weighted counting on scores that were sorted once."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
from __future__ import annotations

import numpy as np

from evenscore.compiled import inner, loop

__all__ = ["eer_and_min_cllr", "least_cost", "push", "replicate_hulls", "replicate_metrics"]


@inner
def push(block_t, block_n, size, t, n):
    """Add a group of mass (t, n) above ``size`` blocks; pool until the share of targets rises; return the new size."""
    while size > 0 and block_t[size - 1] * n >= t * block_n[size - 1]:
        size -= 1
        t += block_t[size]
        n += block_n[size]
    block_t[size] = t
    block_n[size] = n
    return size + 1


@inner
def _pool(times, enroll, test, target, starts, loss, block_t, block_n, below_t, below_n, losses):
    """Weigh each trial by how often its speakers were drawn, and pool adjacent violators; return the block count.

    A trial of two speakers counts once for every pair of their copies, a trial of one speaker once for every copy:
    copies of one speaker are different people, so a pair of two copies is not a target trial.
    """
    size = 0
    losses[0] = losses[1] = 0.0
    for run in range(starts.size - 1):
        t = n = 0
        for k in range(starts[run], starts[run + 1]):
            weight = times[enroll[k]]
            if enroll[k] != test[k]:
                weight *= times[test[k]]
            if weight == 0:
                continue
            if target[k]:
                t += weight
                losses[1] += weight * loss[k]
            else:
                n += weight
                losses[0] += weight * loss[k]
        below_t[run + 1] = below_t[run] + t
        below_n[run + 1] = below_n[run] + n
        size = push(block_t, block_n, size, t, n)
    return size


@inner
def eer_and_min_cllr(block_t, block_n, size, T, N):
    """Return the equal error rate and minCllr of pooled blocks of T targets and N non-targets."""
    miss, alarm, equal, nats = 0.0, 1.0, -1.0, 0.0
    i = j = 0
    for b in range(size):
        i += block_t[b]
        j += block_n[b]
        miss_next, alarm_next = i / T, (N - j) / N
        if equal < 0 and miss_next >= alarm_next:
            gap, gap_next = alarm - miss, miss_next - alarm_next
            equal = miss + gap / (gap + gap_next) * (miss_next - miss)
        if block_t[b] > 0 and block_n[b] > 0:
            x, y = block_t[b] / T, block_n[b] / N
            nats += x * np.log1p(y / x) + y * np.log1p(x / y)
        miss, alarm = miss_next, alarm_next
    return equal, nats / (2 * np.log(2.0))


@inner
def least_cost(block_t, block_n, size, T, N, miss_weight, fa_weight):
    """Return the least detection cost of pooled blocks of T targets and N non-targets."""
    i = j = 0
    best = fa_weight
    for b in range(size):
        i += block_t[b]
        j += block_n[b]
        best = min(best, miss_weight * i / T + fa_weight * (N - j) / N)
    return best


@loop("I2 J1 J1 B1 I1 D1 I1 D1 D1 -> D2")
def replicate_metrics(draws, enroll, test, target, starts, loss, cuts, miss_weight, fa_weight, out):
    """Fill row b of ``out`` with EER, Cllr, minCllr, then minDCF and actDCF per point, of replicate b.

    ``draws[b, s]`` says how often speaker s was drawn. Trials stand in order of score; ``starts`` are the ends of
    the runs; ``cuts`` is the first accepted run of each operating point. A replicate without targets or without
    non-targets is NaN.
    """
    runs = starts.size - 1
    block_t, block_n = np.empty(runs, np.int64), np.empty(runs, np.int64)
    below_t, below_n = np.zeros(runs + 1, np.int64), np.zeros(runs + 1, np.int64)
    losses = np.zeros(2)
    for b in range(draws.shape[0]):
        size = _pool(draws[b], enroll, test, target, starts, loss, block_t, block_n, below_t, below_n, losses)
        T, N = below_t[runs], below_n[runs]
        if T == 0 or N == 0:
            out[b, :] = np.nan
            continue
        out[b, 0], out[b, 2] = eer_and_min_cllr(block_t, block_n, size, T, N)
        out[b, 1] = (losses[1] / T + losses[0] / N) / (2 * np.log(2.0))
        for p in range(cuts.size):
            out[b, 3 + 2 * p] = least_cost(block_t, block_n, size, T, N, miss_weight[p], fa_weight[p])
            i, j = below_t[cuts[p]], below_n[cuts[p]]
            out[b, 4 + 2 * p] = miss_weight[p] * i / T + fa_weight[p] * (N - j) / N


@loop("I2 J1 J1 B1 I1 D1 D1 -> D2")
def replicate_hulls(draws, enroll, test, target, starts, loss, p_fa, out):
    """Fill row b of ``out`` with the miss rates of replicate b's hull at the false-alarm rates ``p_fa``, rising."""
    runs = starts.size - 1
    block_t, block_n = np.empty(runs, np.int64), np.empty(runs, np.int64)
    below_t, below_n = np.zeros(runs + 1, np.int64), np.zeros(runs + 1, np.int64)
    losses = np.zeros(2)
    for b in range(draws.shape[0]):
        size = _pool(draws[b], enroll, test, target, starts, loss, block_t, block_n, below_t, below_n, losses)
        T, N = below_t[runs], below_n[runs]
        if T == 0 or N == 0:
            out[b, :] = np.nan
            continue
        k, i, j = size - 1, T, 0  # from "reject everything" downwards: misses fall, false alarms rise
        for p in range(p_fa.size):
            while k >= 0 and (j + block_n[k]) / N <= p_fa[p]:
                i -= block_t[k]
                j += block_n[k]
                k -= 1
            out[b, p] = i / T
            if k >= 0 and block_n[k] > 0:
                out[b, p] -= (p_fa[p] - j / N) / (block_n[k] / N) * block_t[k] / T
