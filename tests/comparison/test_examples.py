"""Example trials whose LLR is taken apart."""

import numpy as np

from evenscore import LabelledBlocks, ScoreModel, compare, contributions, simulate_blocks

MODEL = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])


def sides():
    new, known = ([f"{group}{n // 3}" for n in range(36)] for group in ("new", "known"))
    blocks, labels = simulate_blocks(MODEL, new[::3], new, known[::3], known, seed=3)
    training = LabelledBlocks.own_cohort(blocks.cohort, blocks.cohort_labels)
    return [training], [LabelledBlocks(blocks, labels)]


def test_the_terms_of_the_examples_add_up_to_their_llrs():
    training, evaluation = sides()
    found = compare(training, evaluation, ["evidence"], bootstrap=10)
    evidence = found["evidence"]
    examples = evidence.contributions
    assert [text.partition(":")[0] for text in examples.trials] == [
        "worst target",
        "worst non-target",
        "typical target",
        "typical non-target",
    ]
    trials, labels = found.trials.lists[0], found.trials.labels
    llrs = examples.values.sum(axis=1)
    for text, llr in zip(examples.trials, llrs, strict=True):
        pair = tuple(text.partition(": ")[2].split(", "))
        assert np.isclose(llr, contributions(evidence.model, evaluation[0].blocks, pair).llr)
        place = [trials.pair(n) for n in range(len(trials))].index(pair)
        assert np.isclose(llr, evidence.scores[place], atol=1e-6)
    assert np.isclose(llrs[0], evidence.scores[labels == 1].min(), atol=1e-6)
    assert np.isclose(llrs[1], evidence.scores[labels == 0].max(), atol=1e-6)


def test_other_methods_have_none():
    assert compare(*sides(), ["s"], bootstrap=10)["s"].contributions is None
