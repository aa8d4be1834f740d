"""Small simulated sides of a comparison, on which norms help."""

from evenscore import LabelledBlocks, ScoreModel, simulate, simulate_blocks
from evenscore.tables import Axis

MODEL = ScoreModel(mu=[-2.0, 2.0], alpha=[[0.9, 0.0], [0.7, 0.5]], beta=[[0.8, 0.0], [0.6, -0.5]], sigma2=[1.0, 1.5])
PLAIN = ScoreModel(
    mu=[-2.0, 2.0], alpha=[[], []], beta=[[], []], sigma2=[1.0, 1.0]
)  # no hidden variables: no norm helps


def speakers(group, count, each):
    return [f"{group}{number}" for number in range(count) for _ in range(each)]


def nameless(table):
    """Return scores that do not know who speaks."""
    return table.with_axes(Axis(table.enroll_ids), Axis(table.test_ids))


def training_side(names=("",), *, model=MODEL, count=14, group="train", seed=1):
    return [
        LabelledBlocks.own_cohort(
            *simulate(model, speakers(group, count, 1), speakers(group, count, 2), seed=seed + place), name=name
        )
        for place, name in enumerate(names)
    ]


def evaluation_side(names=("",), *, model=MODEL, count=12, group="new", cohort="cohort", members=15, seed=100):
    """Return trials of `count` speakers with a cohort of others; more tests in each further condition."""
    sides = []
    for place, name in enumerate(names):
        trials = speakers(group, count, 1), speakers(group, count, 3 + place)
        others = speakers(cohort, members, 1), speakers(cohort, members, 2)
        sides.append(LabelledBlocks(*simulate_blocks(model, *trials, *others, seed=seed + place), name))
    return sides
