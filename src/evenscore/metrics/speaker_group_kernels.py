"""Compiled loops of the bootstrap over groups of speakers: counting LLRs into cells, and measuring weighted bins."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
from __future__ import annotations

import numpy as np

from evenscore.compiled import inner, loop
from evenscore.metrics.resampling_kernels import eer_and_min_cllr, least_cost, push

__all__ = ["HALF", "NEAR", "count_trials", "replicate_bins"]

NEAR = 4.0  #: LLRs nearer to 0 than this have bins of one width, 1/16
_SHIFT = np.uint32(17)  # leaves 6 bits of the fraction: 64 bins for each power of two
_FIRST = np.int64(0x40800000 >> 17)  # the bin of 4 + 0
HALF = 641  #: bins of each sign: ten powers of two, and one for infinite LLRs


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
