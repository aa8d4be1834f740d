"""The bootstrap over groups of speakers, straight from its definition: every trial is looked at in every draw."""

import math

from evenscore import evaluate


def bin_of(size):
    """Return the place of the bin of an LLR with 4 + |llr| = size: 64 bins for each power of two."""
    power = math.floor(math.log2(size)) - 2
    return 64 * power + math.floor(64 * (size / 2 ** (power + 2) - 1))


def drawn_trials(llrs, labels, enroll, test, group, draw):
    """Return LLRs and labels of a draw of groups, each trial as often as it counts."""
    scores, key = [], []
    for llr, label, one, other in zip(llrs, labels, enroll, test, strict=True):
        times = draw[group[one]] if one == other else draw[group[one]] * draw[group[other]]
        scores += [llr] * int(times)
        key += [label] * int(times)
    return scores, key


def evaluate_draw(llrs, labels, enroll, test, group, draw, points):
    """Return the metrics of a draw, with the LLRs as they are: nothing is binned."""
    return evaluate(*drawn_trials(llrs, labels, enroll, test, group, draw), points=points)
