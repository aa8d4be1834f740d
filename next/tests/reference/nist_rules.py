"""NIST's rules for the primary cost, in loops: as the evaluation plans and the scorer's documentation state them."""

import math
from itertools import product


def nist_figures(scores, labels, columns, partitions, priors):
    """Return EER, minimum and actual C_primary over equalized partitions."""
    trials = [
        (score, label, {name: values[n] for name, values in columns.items()})
        for n, (score, label) in enumerate(zip(scores, labels, strict=True))
    ]
    trials = [t for t in trials if not (t[1] == 0 and t[2].get("phone_num_match") == "Y")]
    cells = []
    for wanted in product(*partitions.values()):
        cell = [t for t in trials if all(t[2][name] == value for name, value in zip(partitions, wanted, strict=True))]
        if cell:
            cells.append(([t[0] for t in cell if t[1] == 1], [t[0] for t in cell if t[1] == 0]))

    def rates(threshold):
        miss = [sum(s < threshold for s in targets) / len(targets) for targets, _ in cells if targets]
        alarm = [sum(s >= threshold for s in others) / len(others) for _, others in cells if others]
        return sum(miss) / len(miss), sum(alarm) / len(alarm)

    thresholds = [*sorted({score for targets, others in cells for score in (*targets, *others)}), math.inf]
    curve = [rates(threshold) for threshold in thresholds]
    actual = minimum = 0.0
    for prior in priors:
        beta = (1 - prior) / prior
        miss, alarm = rates(math.log(beta))
        actual += (miss + beta * alarm) / len(priors)
        minimum += min(miss + beta * alarm for miss, alarm in curve) / len(priors)
    after = next(n for n, (miss, alarm) in enumerate(curve) if miss >= alarm)
    (m0, a0), (m1, a1) = curve[after - 1], curve[after]
    step = (a0 - m0) / ((a0 - m0) + (m1 - a1))  # where the straight line between the two points has miss = alarm
    return m0 + step * (m1 - m0), minimum, actual
