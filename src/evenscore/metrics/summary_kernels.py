"""The compiled loops that put scores into the bins of a summary, and into groups."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
from __future__ import annotations

import numpy as np

from evenscore.compiled import loop

__all__ = ["count_scores", "sort_by_group"]

_PRODUCT = 256  # one logarithm per so many scores, see `cross_entropy`
_SIGN = np.uint32(0x80000000)


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
