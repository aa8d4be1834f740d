"""Conditional mutual information from its definition, with dictionaries."""

import math
from collections import defaultdict


def conditional_information(outcomes):
    """Return I(a; b | c) of outcomes (probability, a, b, c)."""
    abc, ac, bc, c = (defaultdict(float) for _ in range(4))
    for p, in_a, in_b, in_c in outcomes:
        abc[in_a, in_b, in_c] += p
        ac[in_a, in_c] += p
        bc[in_b, in_c] += p
        c[in_c] += p
    return sum(
        p * math.log(p * c[in_c] / (ac[in_a, in_c] * bc[in_b, in_c])) for (in_a, in_b, in_c), p in abc.items() if p > 0
    )
