"""The demonstration of adaptation: what it compares, and that it tells the cohort's targets from its non-targets."""

import pytest

from evenscore import LabelledBlocks, ScoreBlocks, ScoreModel, simulate, simulate_blocks
from recipes.adaptation import show_adaptation

pytestmark = pytest.mark.usefixtures("brief_training")

MODEL = ScoreModel(mu=[0.0, 5.0], alpha=[[0.5], [0.4]], beta=[[0.4], [0.5]], sigma2=[1.0, 1.0])
SPEAKERS, COHORT = [f"s{n % 10}" for n in range(30)], [f"c{n % 5}" for n in range(15)]
DEV = LabelledBlocks.own_cohort(*simulate(MODEL, SPEAKERS, SPEAKERS, seed=1))


def evaluation(shift):
    blocks, labels = simulate_blocks(MODEL.rescaled(1.0, shift), SPEAKERS, SPEAKERS, COHORT, COHORT, seed=2)
    return [LabelledBlocks(blocks, labels)]


@pytest.mark.parametrize("cohort", [(), ("test",), ("enroll", "test", "cohort")])
def test_adaptation_comes_near_the_oracle(cohort):
    shown = show_adaptation([DEV], evaluation(3.0), dim=1, cohort=cohort)
    trained, adapted, oracle = shown.outcomes
    assert [outcome.name for outcome in shown.outcomes] == ["trained", "adapted", "oracle"]
    assert shown.prior == pytest.approx(0.1)
    assert trained.cllr > 2 * adapted.cllr
    assert adapted.cllr < 1.3 * oracle.cllr
    assert shown.recovered > 0.8
    if "cohort" in cohort:  # 45 of its pairs are targets; taken for non-targets they would have spoilt the model
        assert shown.result.model.sigma2[0] < 1.3


def test_a_refusal_keeps_the_trained_model():
    shown = show_adaptation([DEV], evaluation(0.0), dim=1)
    assert shown.result is None
    assert "keep it" in shown.refusal
    assert shown.outcomes[0].cllr == shown.outcomes[1].cllr


def test_lists_of_trials_serve_as_well():
    [part] = evaluation(3.0)
    listed = LabelledBlocks(ScoreBlocks(part.blocks.trials.to_trials(part.labels)))
    one = show_adaptation([DEV], [listed], dim=1, cohort=())
    other = show_adaptation([DEV], [part], dim=1, cohort=())
    assert one.outcomes[1].cllr == pytest.approx(other.outcomes[1].cllr, rel=1e-6)
