"""NIST's primary metric: against the rules in loops, and against figures that were computed by hand."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from tests.reference.nist_rules import nist_figures

from evenscore.errors import InputError
from evenscore.metrics import NIST_PRESETS, eer, evaluate_by, evaluate_nist, sort_scores, summarize
from evenscore.metrics.counting import evaluate_groups

VALUES = {
    "num_enroll_segs": "13",
    "phone_num_match": "YN",
    "gender": ("male", "female"),
    "source_type": ("pstn", "voip"),
    "source_type_match": "YN",
    "language_match": "YN",
    "language": ("tgl", "yue"),
    "data_source": ("vast",),
}


def made(preset, seed, size=300):
    """Return made trials with every column of an evaluation; some partitions lack a class or all trials."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(size) < 0.3).astype(int)
    columns = {name: rng.choice(list(VALUES[name]), size) for name in NIST_PRESETS[preset].partitions}
    scores = rng.normal(8.0 * labels - 3, 3.0)
    for values in columns.values():
        scores += (values == values[0]) * rng.normal()
    return scores, labels, columns


@pytest.mark.parametrize("preset", NIST_PRESETS)
@settings(max_examples=5)
@given(seed=st.integers(0, 10**6))
def test_the_figures_follow_the_rules(preset, seed):
    scores, labels, columns = made(preset, seed)
    partitions = {name: tuple(VALUES[name]) for name in columns}
    priors = [point.p_target for point in NIST_PRESETS[preset].points]
    rate, minimum, actual = nist_figures(scores, labels, columns, partitions, priors)
    found = evaluate_nist(scores, labels, preset=preset, columns=columns).pooled
    assert [found.eer, found.min_c_primary, found.act_c_primary] == pytest.approx([rate, minimum, actual], rel=1e-9)


def test_figures_computed_by_hand():
    # same phone: targets 5 and 1, and a non-target that does not count; other phone: target 6, non-targets 5 -1 -2 -9
    scores, labels = [5.0, 1.0, 10.0, 6.0, 5.0, -1.0, -2.0, -9.0, 99.0], [1, 1, 0, 1, 0, 0, 0, 0, 0]
    size = len(scores)
    columns = {
        "num_enroll_segs": ["1"] * size,
        "phone_num_match": ["Y"] * 3 + ["N"] * 6,
        "gender": ["female"] * size,
        "source_type": ["pstn"] * 8 + ["afv"],  # not a value of the evaluation: left out
    }
    result = evaluate_nist(scores, labels, preset="sre18", columns=columns)
    low, high = result.pooled.costs
    assert (low.act_p_miss, low.act_p_fa) == (0.25, 0.25)  # threshold 4.595: misses 1 of 2 and 0 of 1; alarms 1 of 4
    assert (high.act_p_miss, high.act_p_fa) == (0.5, 0.0)  # threshold 5.293: misses 2 of 2 and 0 of 1
    assert result.pooled.act_c_primary == pytest.approx((0.25 + 99 * 0.25 + 0.5) / 2)
    assert result.pooled.min_c_primary == 0.5
    assert result.conditions["1 Y female pstn"].problem == "there are no non-target trials"
    assert len(result.conditions) == 2


def test_what_is_known_of_the_evaluations():
    priors = {name: [point.p_target for point in preset.points] for name, preset in NIST_PRESETS.items()}
    assert priors["sre16"] == priors["sre18"] == priors["sre19"] == priors["sre21"] == [0.01, 0.005]
    assert priors["sre18-vast"] == priors["sre19-av"] == [0.05]
    assert len(NIST_PRESETS["sre16"].partitions) == 4  # 16 partitions


def test_a_condition_without_a_class_has_no_part_in_its_errors():
    found = evaluate_by([3.0, 1.0, 0.0, 2.0, 5.0], [1, 1, 0, 0, 0], conditions=list("ffffm"), equalize=True, points=0.5)
    assert found.pooled.costs[0].act_p_fa == pytest.approx((1 + 1) / 2)
    assert found.pooled.costs[0].act_p_miss == 0.0
    with pytest.raises(InputError, match="0 non-target trials"):
        evaluate_by([3.0, 1.0], [1, 1], conditions=["f", "m"], equalize=True)


def test_bad_columns_are_refused():
    with pytest.raises(InputError, match="no evaluation 'sre08'; choose one of sre16"):
        evaluate_nist([1.0, 0.0], [1, 0], preset="sre08")
    with pytest.raises(InputError, match="the column 'data_source' is missing"):
        evaluate_nist([1.0, 0.0], [1, 0], preset="sre18-vast")
    with pytest.raises(InputError, match=r"has shape \(1,\), but there are 2 trials"):
        evaluate_nist([1.0, 0.0], [1, 0], preset="sre18-vast", columns={"data_source": ["vast"]})
    with pytest.raises(InputError, match="no trial is of a partition of sre18-vast: data_source vast"):
        evaluate_nist([1.0, 0.0], [1, 0], preset="sre18-vast", columns={"data_source": ["cmn2", "cmn2"]})


def test_weighted_and_repeated_trials_have_the_same_interpolated_eer():
    rng = np.random.default_rng(3)
    labels, repeats = np.arange(200) % 2, rng.integers(1, 5, 200)
    scores = rng.normal(labels, 1.0)
    weighted = eer(sort_scores(scores, labels, weights=repeats), method="interpolated")
    repeated = eer(np.repeat(scores, repeats), np.repeat(labels, repeats), method="interpolated")
    assert weighted == pytest.approx(repeated, rel=1e-12)


def test_counted_conditions_may_lack_a_class_too():
    rng = np.random.default_rng(4)
    labels, conditions = np.arange(300) % 2, np.arange(300) % 3
    labels[conditions == 2] = 1
    scores = rng.normal(2.0 * labels, 1.0)
    exact = evaluate_by(scores, labels, conditions=conditions, equalize=True).pooled
    groups = {str(name): summarize(scores[conditions == name], labels[conditions == name]) for name in range(3)}
    counted = evaluate_groups(groups, equalize=True).pooled
    assert counted.act_dcf == pytest.approx(exact.act_dcf)
    assert counted.cllr == pytest.approx(exact.cllr)
    low, high = counted.bounds["eer"]
    assert low - 1e-9 <= exact.eer <= high + 1e-9
