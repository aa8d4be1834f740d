"""Spoofing-aware metrics: against the definition in loops, and against figures that were computed by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore.errors import InputError
from evenscore.metrics import SPOOF_COSTS, SpoofCosts, eer, evaluate_spoofing
from examples import examples

WORDS = ("target", "nontarget", "spoof")


def a_dcf(scores, classes, costs, threshold):
    """Return the normalized cost at a threshold, from the definition."""
    accepted = {word: [s >= threshold for s, c in zip(scores, classes, strict=True) if c == word] for word in WORDS}
    rate = {word: sum(found) / len(found) for word, found in accepted.items()}
    cost = costs.c_miss * costs.p_target * (1 - rate["target"])
    cost += costs.c_fa * costs.p_nontarget * rate["nontarget"] + costs.c_fa_spoof * costs.p_spoof * rate["spoof"]
    accept_all = costs.c_fa * costs.p_nontarget + costs.c_fa_spoof * costs.p_spoof
    return cost / min(accept_all, costs.c_miss * costs.p_target)


@pytest.mark.parametrize("name", SPOOF_COSTS)
@examples(20)
@given(seed=st.integers(0, 10**6), size=st.integers(3, 60))
def test_costs_follow_the_definition(name, seed, size):
    rng, costs = np.random.default_rng(seed), SPOOF_COSTS[name]
    classes = np.array([*WORDS, *rng.choice(WORDS, size - 3)])
    scores = np.round(rng.normal(2.0 * (classes == "target") + (classes == "spoof"), 1.5), 1)  # with ties
    found = evaluate_spoofing(scores, classes, costs=costs)
    thresholds = [*scores, math.inf]
    assert found.min_a_dcf == pytest.approx(min(a_dcf(scores, classes, costs, t) for t in thresholds))
    assert found.min_a_dcf == pytest.approx(a_dcf(scores, classes, costs, found.min_threshold))
    assert found.act_a_dcf == pytest.approx(a_dcf(scores, classes, costs, found.act_threshold))
    target = classes == "target"
    assert found.sasv_eer == eer(scores, target)
    assert found.spf_eer == eer(scores[classes != "nontarget"], target[classes != "nontarget"])


def test_figures_computed_by_hand():
    scores, classes = [4.0, 3.0, 2.0, 1.0, 0.0, 2.5], ["target", "target", "target", "spoof", "nontarget", "nontarget"]
    found = evaluate_spoofing(scores, classes, costs=SPOOF_COSTS["a-dcf"])
    # accepting from 2.0: no misses, one of two non-targets, no spoof: 10 * 0.05 / 2 over min(0.9, 0.5 + 1.0)
    assert found.min_a_dcf == pytest.approx(0.25 / 0.9)
    assert found.min_threshold == 2.0
    assert found.act_threshold == pytest.approx(math.log(1.5 / 0.9))  # accepts all from 0.51: 0.25 + 1.0
    assert found.act_a_dcf == pytest.approx(1.25 / 0.9)
    assert found.spf_eer == 0.0
    assert (found.n_target, found.n_nontarget, found.n_spoof) == (3, 2, 1)


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="there are no spoof trials, but all three classes are needed"):
        evaluate_spoofing([1.0, 0.0], ["target", "nontarget"])
    with pytest.raises(InputError, match="the class 'bonafide' is not known; use target, nontarget, spoof"):
        evaluate_spoofing([1.0], ["bonafide"])
    with pytest.raises(InputError, match="1 classes for 2 scores"):
        evaluate_spoofing([1.0, 2.0], ["target"])
    with pytest.raises(InputError, match="add up to 1"):
        SpoofCosts(0.5, 0.4, 0.2)
    with pytest.raises(InputError, match="costs of errors"):
        SpoofCosts(c_miss=0)
