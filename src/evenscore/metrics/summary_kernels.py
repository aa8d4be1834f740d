"""The compiled loop that counts scores into the bins of a summary."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["count_scores"]

_PRODUCT = 256  # one logarithm per so many scores, see `kernels.softplus_sum`
_SIGN = np.uint32(0x80000000)


@njit(cache=True, nogil=True)
def count_scores(scores, bits, labels, shift, thresholds, counts, sums, costs, below):
    """Add scores to all sums; ``bits`` are the scores as float32, read as unsigned integers.

    The bin of a score is the top of its bits, turned so that their order is the order of the scores. NaN (a missing
    score) and unknown labels are skipped.
    """
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
        counts[label, place] += 1
        sums[label, place] += score
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
