"""evaluate, conditions, operating points, validation and the edge cases that must have documented answers."""

import json
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from numpy.testing import assert_allclose

from evenscore import InputError, Labels, ScoreMatrix, TrialList
from evenscore.metrics import (
    OperatingPoint,
    act_dcf,
    auc,
    bayes_error_curve,
    calibration_loss,
    cllr,
    detection_costs,
    eer,
    equal_error_rate,
    evaluate,
    evaluate_by,
    min_cllr,
    min_dcf,
    p_miss_at,
    roc,
    rocch,
    sort_scores,
    validate,
)
from evenscore.metrics.operating_points import as_points
from tilings import cut_tilings, over_tilings, tiled

STAY = ["eer", "eer_threshold", "min_dcf", "act_dcf", "cllr", "min_cllr", "n_target", "n_nontarget"]


def simulated(size=2000, seed=0, share=0.1, shift=3.0):
    rng = np.random.default_rng(seed)
    labels = (rng.random(size) < share).astype(np.int8)
    return rng.normal(shift * labels, 1.0), labels


def test_evaluate_has_the_promised_names_as_plain_numbers():
    result = evaluate(*simulated(), points=[0.01, (0.05, 10, 1)])
    assert [name for name in STAY if not isinstance(result[name], float | int)] == []
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False)) == result
    assert result["min_dcf"] == result["dcf"][0]["min_dcf"]
    assert result["act_dcf"] == result["dcf"][0]["act_dcf"]
    assert (result["dcf"][1]["p_target"], result["dcf"][1]["c_miss"], result["dcf"][1]["c_fa"]) == (0.05, 10, 1)


def test_an_evaluation_is_read_by_name_or_by_key():
    result = evaluate(*simulated(), points=[0.01, (0.05, 10, 1)])
    assert [getattr(result, name) for name in STAY] == [result[name] for name in STAY]
    assert result.min_c_primary == np.mean([cost.min_dcf for cost in result.costs])
    assert result.act_c_primary == np.mean([cost.act_dcf for cost in result.costs])
    assert result.bounds == {}
    assert "bounds" not in result
    assert f"actDCF at 0.05,10,1 {result.costs[1].act_dcf:.3f}" in repr(result)
    with pytest.raises(FrozenInstanceError):
        result.eer = 0.0


def test_notebooks_show_conditions_as_text_and_not_as_markup():
    name = "<script>alert('&')</script>"
    result = evaluate_by([1.0, 0.0, 2.0, -1.0, 3.0], [1, 0, 1, 0, 1], conditions=[name, name, "b", "b", "only targets"])
    shown = result._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt;" in shown
    assert "<th>only targets</th><td>-</td>" in shown
    assert "<td>0.00 %</td>" in result.pooled._repr_html_()
    assert repr(result).startswith("EvaluationBy(Evaluation(EER 0.00 %")


def test_evaluate_agrees_with_the_single_metrics():
    scores, labels = simulated()
    result = evaluate(scores, labels)
    assert result["eer"] == eer(scores, labels)
    assert result["eer_threshold"] == equal_error_rate(scores, labels).threshold
    assert result["min_dcf"] == min_dcf(scores, labels)
    assert result["act_dcf"] == act_dcf(scores, labels)
    assert result["cllr"] == cllr(scores, labels)
    assert result["min_cllr"] == min_cllr(scores, labels)
    assert result["calibration_loss"] == calibration_loss(scores, labels)
    assert result["auc"] == auc(scores, labels)
    assert (result["n_target"], result["n_nontarget"]) == (labels.sum(), (1 - labels).sum())


@pytest.mark.parametrize("convert", [list, np.float32, np.float64, np.int64, lambda s: s[::-1][::-1]])
@pytest.mark.parametrize("key", [list, bool, np.int64, np.uint8])
def test_any_kind_of_numbers_and_labels_is_taken(convert, key):
    scores, labels = simulated(200)
    scores = np.round(scores * 2)
    as_given = convert(scores) if not isinstance(convert, type) or convert is list else scores.astype(convert)
    as_key = labels.tolist() if key is list else labels.astype(key)
    assert evaluate(as_given, as_key) == evaluate(scores, labels)


def test_trial_lists_are_taken_and_unknown_labels_are_left_out():
    trials = TrialList.from_pairs(list("abcd"), list("tttt"), scores=[2.0, -1.0, 9.0, 0.5], labels=[1, 0, -1, 0])
    assert evaluate(trials) == evaluate([2.0, -1.0, 0.5], [1, 0, 0])
    assert evaluate([2.0, -1.0, np.nan, 0.5], [1, 0, -1, 0]) == evaluate(trials)
    assert evaluate(sort_scores(trials)) == evaluate(trials)
    assert eer(trials, [0, 1, -1, 1]) == 0.5


@over_tilings
def test_tables_take_labels_of_every_kind(tiling):
    scores = simulated(60)[0].reshape(6, 10)
    enroll, test = [f"s{n % 4}" for n in range(6)], [f"s{n % 3}" for n in range(10)]
    labels = Labels.from_speakers(enroll, test)
    whole = ScoreMatrix(scores, [f"e{n}" for n in range(6)], [f"t{n}" for n in range(10)])
    key = whole.to_trials(labels)
    table, listed = tiled(whole, tiling), tiled(key.with_labels(None), tiling)
    by_id = Labels.from_speakers(enroll, test, enroll_ids=whole.enroll_ids, test_ids=whole.test_ids)
    wanted = evaluate(table, labels)
    assert wanted["n_target"] == labels.n_target
    assert wanted["cllr"] == pytest.approx(cllr(scores.ravel(), labels.matrix.ravel()), rel=1e-12)
    found = [
        evaluate(table, key.select(np.random.default_rng(0).permutation(60))),
        evaluate(table.with_speakers(enroll, test)),
        evaluate(tiled(key, tiling)),
        evaluate(listed, by_id),
        evaluate(listed, key),
    ]
    for result in found:
        assert result.keys() == wanted.keys()
        assert [result[name] for name in STAY] == pytest.approx([wanted[name] for name in STAY], rel=1e-12)


@cut_tilings
def test_what_needs_single_trials_is_refused_where_they_are_not_in_memory(tiling):
    scores, labels = simulated(60)
    table = tiled(ScoreMatrix(scores.reshape(6, 10), range(6), range(10)), tiling)
    key = Labels.from_key(labels.reshape(6, 10))
    with pytest.raises(InputError, match="looks at single trials and knows no weights and no bins; use 'rocch'"):
        evaluate(table, key, eer_method="kaldi")
    with pytest.raises(InputError, match="not in memory are counted, each once; leave out the weights"):
        evaluate(table, key, weights=np.ones(60))
    with pytest.raises(InputError, match="not in memory, but each trial is needed here"):
        evaluate_by(table, key, conditions=["f"] * 60)


def test_the_callers_scores_are_not_changed_and_results_are_read_only():
    scores, labels = simulated(50)
    before = scores.copy()
    hull = rocch(scores, labels)
    assert np.array_equal(scores, before)
    with pytest.raises(ValueError, match="read-only"):
        hull.p_miss[0] = 1


def test_separated_classes_have_finite_answers():
    result = evaluate([-1e4, -50.0, 30.0, 1e4], [0, 0, 1, 1])
    assert (result["eer"], result["min_dcf"], result["act_dcf"], result["min_cllr"], result["auc"]) == (0, 0, 0, 0, 1)
    assert result["eer_threshold"] == result["dcf"][0]["min_threshold"] == 30.0
    assert result["cllr"] == pytest.approx(np.exp(-30) / (4 * np.log(2)), rel=1e-9)
    assert np.isfinite(list(result["dcf"][0].values())).all()


@pytest.mark.parametrize("value", [0.0, 7.0, -1e300])
def test_equal_scores_tell_nothing(value):
    result = evaluate([value] * 6, [1, 0, 0, 1, 0, 0])
    assert (result["eer"], result["min_dcf"], result["min_cllr"], result["auc"]) == (0.5, 1.0, 1.0, 0.5)
    assert result["eer_threshold"] == value
    assert eer([value] * 6, [1, 0, 0, 1, 0, 0], method="nearest-mean") == 0.5
    assert eer([value] * 6, [1, 0, 0, 1, 0, 0], method="interpolated") == 0.5


def test_inverted_scores_have_the_eer_of_a_coin():
    result = evaluate([1.0, 2.0, -1.0, -2.0], [0, 0, 1, 1])
    assert (result["eer"], result["min_cllr"], result["min_dcf"], result["auc"]) == (0.5, 1.0, 1.0, 0.0)
    assert eer([1.0, 2.0, -1.0, -2.0], [0, 0, 1, 1], method="interpolated") == 1.0


def test_huge_llrs_do_not_overflow():
    scores = np.array([1e4, -1e4, 1e4, -1e4, 1e308, -1e308])
    result = evaluate(scores, [1, 0, 0, 1, 1, 0])
    assert result["cllr"] == pytest.approx(2e4 / 3 / 2 / np.log(2))
    assert cllr(scores[[0, 1, 4, 5]], [1, 0, 1, 0]) == 0.0


def test_infinite_llrs_count_where_they_are_right_and_cost_everything_where_they_are_wrong():
    assert cllr([np.inf, -np.inf], [1, 0]) == 0.0
    assert cllr([np.inf, np.inf], [1, 0]) == np.inf
    result = evaluate([np.inf, 1.0, -np.inf, np.inf], [1, 1, 0, 0])
    assert result["cllr"] == np.inf
    assert result["min_cllr"] < 1


def test_tiny_cross_entropy_keeps_its_digits():
    scores = np.array([60.0, 61.0, -60.0, -63.0])
    expected = (np.exp(-60.0) + np.exp(-61.0) + np.exp(-60.0) + np.exp(-63.0)) / 4 / np.log(2)
    assert cllr(scores, [1, 1, 0, 0]) == pytest.approx(expected, rel=1e-14)


def test_decisions_at_the_bayes_threshold_accept_equality():
    assert act_dcf([0.0, 0.0], [1, 0], p_target=0.5) == 1.0  # the target is not missed, the non-target is accepted
    cost = detection_costs([0.0, -1.0], [1, 0], points=0.5)[0]
    assert (cost.act_threshold, cost.act_p_miss, cost.act_p_fa) == (0.0, 0.0, 0.0)


def test_float32_scores_are_compared_with_thresholds_exactly():
    threshold = OperatingPoint(0.01).threshold
    near = np.float32(threshold)
    around = np.array([np.nextafter(near, np.float32(-9), dtype=np.float32), near, np.nextafter(near, np.float32(9))])
    trials = sort_scores(np.concatenate((around, around)).astype(np.float32), [1, 1, 1, 0, 0, 0])
    assert trials.below(threshold)[0] == np.count_nonzero(around.astype(float) < threshold)


def test_costs_without_normalization_are_costs():
    scores, labels = simulated()
    for p_target, c_miss, c_fa in [(0.01, 1, 1), (0.9, 2, 3)]:
        options = {"p_target": p_target, "c_miss": c_miss, "c_fa": c_fa}
        unit = min(p_target * c_miss, (1 - p_target) * c_fa)
        for metric in (min_dcf, act_dcf):
            plain = metric(scores, labels, normalize=False, **options)
            assert plain == pytest.approx(metric(scores, labels, **options) * unit)


def test_minimum_cost_is_never_above_actual_cost_or_one():
    scores, labels = simulated(300)
    curve = bayes_error_curve(scores, labels)
    assert (curve.minimum <= curve.actual + 1e-12).all()
    assert (curve.minimum <= 1 + 1e-12).all()
    assert_allclose(curve.default, 1.0)
    raw = bayes_error_curve(scores, labels, normalize=False)
    assert_allclose(raw.minimum, curve.minimum * raw.default)
    assert raw.minimum.max() <= eer(scores, labels) + 1e-12


def test_thinned_roc_keeps_its_ends_and_is_a_part_of_the_whole():
    scores, labels = simulated(5000, shift=1.0)
    whole, thin = roc(scores, labels), roc(scores, labels, most=60)
    assert whole.p_miss.size > 500 >= 60 >= thin.p_miss.size > 30
    assert (thin.p_miss[0], thin.p_fa[0], thin.p_miss[-1], thin.p_fa[-1]) == (0, 1, 1, 0)
    assert set(thin.threshold) <= set(whole.threshold)


def test_the_llrs_of_the_hull_are_those_of_its_blocks():
    scores, labels = simulated(400, shift=1.0)
    hull = rocch(scores, labels)
    for low, high, llr in zip(hull.low, hull.high, hull.llr, strict=True):
        inside = (scores >= low) & (scores <= high)
        shares = [np.count_nonzero(inside & (labels == k)) / np.count_nonzero(labels == k) for k in (0, 1)]
        with np.errstate(divide="ignore"):
            assert llr == pytest.approx(np.log(shares[1]) - np.log(shares[0]), abs=1e-9)
    assert (np.diff(hull.llr[1:-1]) > 0).all()


def test_a_condition_of_one_class_does_not_stop_the_others():
    result = evaluate_by([1.0, 0.0, 2.0], [1, 0, 0], conditions=["f", "f", "m"])
    assert result["conditions"]["m"] == {
        "n_target": 0,
        "n_nontarget": 1,
        "problem": "there are no target trials",
    }
    assert result["conditions"]["f"]["eer"] == 0


def test_conditions_are_evaluated_apart_and_together():
    scores, labels = simulated(600)
    conditions = np.where(np.arange(600) % 3 == 0, "f", "m")
    result = evaluate_by(scores, labels, conditions=conditions)
    assert list(result["conditions"]) == ["f", "m"]
    for name in "fm":
        assert result["conditions"][name] == evaluate(scores[conditions == name], labels[conditions == name])
    assert result["pooled"] == evaluate(scores, labels).to_dict() | {"equalized": False}
    assert result.pooled == evaluate(scores, labels)


def test_equalized_rates_are_means_over_conditions():
    scores, labels = simulated(900, shift=1.5)
    conditions = np.array(["a", "a", "a", "a", "b", "c"])[np.arange(900) % 6]
    scores = scores + 0.7 * (conditions == "b")
    pooled = evaluate_by(scores, labels, conditions=conditions, equalize=True, points=[0.5, 0.1])["pooled"]
    for cost in pooled["dcf"]:
        for kind in ("act", "min"):
            threshold = cost[f"{kind}_threshold"]
            miss = [np.mean(scores[(conditions == c) & (labels == 1)] < threshold) for c in "abc"]
            alarm = [np.mean(scores[(conditions == c) & (labels == 0)] >= threshold) for c in "abc"]
            assert cost[f"{kind}_p_miss"] == pytest.approx(np.mean(miss))
            assert cost[f"{kind}_p_fa"] == pytest.approx(np.mean(alarm))
    each = [cllr(scores[conditions == c], labels[conditions == c]) for c in "abc"]
    assert pooled["cllr"] == pytest.approx(np.mean(each))
    assert pooled["equalized"] is True


def test_numbers_and_missing_values_can_be_conditions():
    scores, labels = [1.0, 0.0, 2.0, -1.0], [1, 0, 1, 0]
    assert list(evaluate_by(scores, labels, conditions=[10, 10, 9, 9])["conditions"]) == ["9", "10"]
    mixed = np.array(["x", "x", None, None], dtype=object)
    assert list(evaluate_by(scores, labels, conditions=mixed)["conditions"]) == ["None", "x"]


def test_operating_points_are_understood():
    assert as_points(0.2) == as_points([0.2]) == as_points([(0.2, 1, 1)]) == (OperatingPoint(0.2),)
    assert as_points(OperatingPoint(0.2, 3, 4)) == (OperatingPoint(0.2, 3, 4),)
    point = OperatingPoint(0.01, 10, 2)
    assert -point.threshold == pytest.approx(np.log(point.effective_prior / (1 - point.effective_prior)))


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (0.0, "p_target is 0.0"),
        (1, "p_target is 1"),
        ([(0.5, 0, 1)], "c_miss is 0"),
        ([(0.5, 1, np.inf)], "c_fa is inf"),
        ([], "empty"),
        ("0.01", "priors or"),
        (["0.01"], "must be a prior"),
        ([(0.1, 1)], "must be a prior"),
    ],
)
def test_bad_operating_points_are_refused(points, message):
    with pytest.raises(InputError, match=message):
        evaluate([1.0, 0.0], [1, 0], points=points)


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        ([1.0, 2.0], [1, 1], "2 target and 0 non-target trials, but both"),
        ([1.0, 2.0], [0, -1], "0 target and 1 non-target"),
        ([], [], "0 target and 0 non-target"),
        ([1.0, 2.0], [1], "labels have shape"),
        ([1.0, 2.0], None, "labels are missing"),
        ([1.0, 2.0], [1, 2], "labels must be 1"),
        ([1.0, 2.0], ["target", "nontarget"], "labels must be 1"),
        ([1.0, np.nan], [1, 0], r"scores\[1\] is nan"),
        ([[1.0, 2.0]], [1, 0], "1 dimension"),
        (["1.0", "2.0"], [1, 0], "real numbers"),
    ],
)
def test_bad_trials_are_refused_with_the_reason(scores, labels, message):
    with pytest.raises(InputError, match=message):
        evaluate(scores, labels)


def test_bad_weights_and_conditions_are_refused():
    scores, labels = [1.0, 0.0, 2.0], [1, 0, 1]
    for weights, message in [([1, 1], "shape"), ([1, -1, 1], "not negative"), ([1, 0, 1], "weigh nothing")]:
        with pytest.raises(InputError, match=message):
            evaluate(scores, labels, weights=weights)
    with pytest.raises(InputError, match=r"scores\[2\] is nan"):
        evaluate([1.0, 0.0, np.nan], labels, weights=[1, 1, 1])
    with pytest.raises(InputError, match="one per trial"):
        evaluate_by(scores, labels, conditions=["f"])
    with pytest.raises(InputError, match="must not be given again"):
        evaluate(sort_scores(scores, labels), labels)
    with pytest.raises(InputError, match="have lost their order"):
        evaluate_by(sort_scores(scores, labels), conditions=["f"] * 3)


def test_bad_options_are_refused():
    scores, labels = [1.0, 0.0], [1, 0]
    with pytest.raises(InputError, match="no EER method 'best'"):
        eer(scores, labels, method="best")
    with pytest.raises(InputError, match="knows no weights"):
        evaluate(scores, labels, weights=[1, 1], eer_method="kaldi")
    with pytest.raises(InputError, match="a rate lies between 0 and 1"):
        p_miss_at(1.5, scores, labels)
    with pytest.raises(InputError, match="at least 2 points"):
        roc(scores, labels, most=1)
    with pytest.raises(InputError, match="finite numbers"):
        bayes_error_curve(scores, labels, log_odds=[np.inf])
    with pytest.raises(InputError, match="no scores"):
        validate(TrialList.from_pairs(["a"], ["b"], labels=[1]))
    with pytest.raises(InputError, match="no labels"):
        validate(TrialList.from_pairs(["a"], ["b"], scores=[1.0]))
