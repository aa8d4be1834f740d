"""Compiled loops: counting scores into bins and groups, and the speaker bootstrap on scores that were sorted once."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
from __future__ import annotations

import numpy as np

from evenscore.compiled import inner, loop

__all__ = [
    "HALF",
    "NEAR",
    "count_scores",
    "count_trials",
    "eer_and_min_cllr",
    "least_cost",
    "push",
    "replicate_bins",
    "replicate_hulls",
    "replicate_metrics",
    "sort_by_group",
]

NEAR = 4.0  #: LLRs nearer to 0 than this have bins of one width, 1/16
_SHIFT = np.uint32(17)  # leaves 6 bits of the fraction: 64 bins for each power of two
_FIRST = np.int64(0x40800000 >> 17)  # the bin of 4 + 0
HALF = 641  #: bins of each sign: ten powers of two, and one for infinite LLRs
_PRODUCT = 256  # one logarithm per so many scores, see `cross_entropy`
_SIGN = np.uint32(0x80000000)


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


@inner
def _bin(llr, bits):
    """Return the bin of an LLR; ``bits`` is 4 + |llr| as float32, read as an unsigned integer."""
    place = np.int64(bits >> _SHIFT) - _FIRST
    if place > HALF - 2:
        place = np.int64(HALF - 1 if np.isinf(llr) else HALF - 2)
    return HALF + place if llr >= 0 else HALF - 1 - place


@inner
def _cell(enroll, test, group, groups):
    """Return the row of the counts of non-targets that belongs to two speakers."""
    one, other = group[enroll], group[test]
    if enroll == test:
        return one
    high, low = max(one, other), min(one, other)
    return groups + high * (high + 1) // 2 + low


@loop("D1 U1 K1 J1 J1 J1 D1 -> I2 I2 I2 I2")
def count_trials(llrs, bits, labels, enroll, test, group, thresholds, tar, tar_below, non, non_below):
    """Count trials with these speakers; return which target has two speakers, or -1.

    ``bits`` is 4 + |llr| as float32, read as unsigned integers. NaN and unknown labels are skipped.
    """
    groups = tar.shape[0]
    for i in range(llrs.size):
        llr = llrs[i]
        if labels[i] < 0 or np.isnan(llr):
            continue
        if labels[i] == 1:
            if enroll[i] != test[i]:
                return i
            cell = group[enroll[i]]
            tar[cell, _bin(llr, bits[i])] += 1
            for k in range(thresholds.size):
                tar_below[cell, k] += llr < thresholds[k]
        else:
            cell = _cell(enroll[i], test[i], group, groups)
            non[cell, _bin(llr, bits[i])] += 1
            for k in range(thresholds.size):
                non_below[cell, k] += llr < thresholds[k]
    return -1


@loop("D2 D2 D1 D1 -> D2")
def replicate_bins(tar, non, miss_weight, fa_weight, out):
    """Fill row b of ``out`` with EER, minCllr and then minDCF per point of the weighted bins of replicate b."""
    bins = tar.shape[1]
    block_t, block_n = np.empty(bins), np.empty(bins)  # products of two counts are beyond whole numbers
    for b in range(tar.shape[0]):
        size, T, N = 0, 0.0, 0.0
        for k in range(bins):
            if tar[b, k] > 0 or non[b, k] > 0:
                size = push(block_t, block_n, size, tar[b, k], non[b, k])
                T += tar[b, k]
                N += non[b, k]
        out[b, 0], out[b, 1] = eer_and_min_cllr(block_t, block_n, size, T, N)
        for p in range(miss_weight.size):
            out[b, 2 + p] = least_cost(block_t, block_n, size, T, N, miss_weight[p], fa_weight[p])


@loop("F1 U1 S1 K1 int D1 -> I2 D2 D1 D1 I2")
def count_scores(scores, bits, edges, labels, shift, thresholds, counts, sums, squares, costs, below):
    """Add scores to all sums; return the bins that were empty before.

    ``bits`` are the scores as float32, read as unsigned integers, ``edges`` the same without their last bits. The bin
    of a score is the top of its bits, turned so that their order is the order of the scores. NaN (a missing score) and
    unknown labels are skipped.
    """
    fresh = np.empty(min(scores.size, counts.shape[1]), np.int64)
    n_fresh = 0
    q = np.zeros(2)  # prod(1 + exp(-|x|)) - 1 of up to 256 scores of each class
    held = np.zeros(2, np.int64)
    for i in range(scores.size):
        label, score = labels[i], np.float64(scores[i])
        if label < 0 or np.isnan(score):
            continue
        pattern = bits[i]
        if pattern == _SIGN:  # -0.0 equals 0.0
            pattern = np.uint32(0)
        key = ~pattern if pattern & _SIGN else pattern | _SIGN
        place = np.int64(key >> shift)
        if counts[0, place] == 0 and counts[1, place] == 0:
            fresh[n_fresh] = place
            n_fresh += 1
        counts[label, place] += 1
        sums[label, place] += score
        if np.isfinite(edges[i]):
            squares[label] += (score - np.float64(edges[i])) ** 2
        x = -score if label == 1 else score
        u = np.exp(-abs(x))
        q[label] += u + q[label] * u
        costs[label] += max(x, 0.0)
        held[label] += 1
        if held[label] == _PRODUCT:
            costs[label] += np.log1p(q[label])
            q[label], held[label] = 0.0, 0
        for k in range(thresholds.size):
            if score < thresholds[k]:
                below[label, k] += 1
    for label in range(2):
        costs[label] += np.log1p(q[label])
    return fresh[:n_fresh].copy()


@loop("F1 K1 I1 I1 -> F1 K1")
def sort_by_group(scores, labels, groups, starts, sorted_scores, sorted_labels):
    """Put the scores of each group together; ``starts`` says where those of each group begin."""
    place = starts.copy()
    for i in range(scores.size):
        group = groups[i]
        if group >= 0:
            sorted_scores[place[group]] = scores[i]
            sorted_labels[place[group]] = labels[i]
            place[group] += 1
