"""Comparing norms: the figures are those of plain calls, the order of methods does not matter, bad input is refused."""

import re

import numpy as np
import pytest
from compared_sides import MODEL, PLAIN, evaluation_side, nameless, speakers, training_side
from hypothesis import given, settings, strategies as st

from evenscore import InputError, LabelledBlocks, Labels, ScoreBlocks, ScoreMatrix, TrialList, compare, simulate_blocks
from evenscore.comparison import Method, choose_cohort
from evenscore.comparison.methods import as_methods
from evenscore.norms import normalize, register_norm
from evenscore.norms.registry import METHODS as METHODS_KNOWN
from reference.plain_comparison import compare_plainly

METHODS = ("raw", "z", "t", "zt", "tz", "s", "lgsm", "lgsm:dim=0")


@pytest.fixture(scope="module")
def sides():
    return training_side(("one", "two")), evaluation_side(("one", "two"))


@pytest.fixture(scope="module")
def comparison(sides):
    return compare(*sides, METHODS, bootstrap=50)


def close(found, expected):
    if isinstance(expected, dict):
        for name, value in expected.items():
            close(found[name], value)
    elif isinstance(expected, list):
        for one, other in zip(found, expected, strict=True):
            close(one, other)
    else:
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_figures_are_those_of_plain_calls(sides, comparison):
    expected, best = compare_plainly(*sides, METHODS)
    assert comparison.best.name == best
    assert {method.name for method in comparison.methods} == set(METHODS)
    for method in comparison.methods:
        plain = expected[method.name]
        np.testing.assert_allclose(method.scores, plain["scores"], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(method.llrs, plain["llrs"], rtol=1e-12, atol=1e-12)
        close(method.figures.values, plain["figures"])
        close(method.figures.intervals, plain["intervals"])
        close(method.training.values, plain["training"])
        for name in ("to_raw", "to_best"):
            found = getattr(method, name)["cllr"]
            close(found.difference, plain[name].difference)
            assert found.interval.low <= plain[name].interval.low + 1e-12  # of one method, not of all at once
            assert found.interval.high >= plain[name].interval.high - 1e-12
            assert found.p_value >= plain[name].p_value


def test_one_norm_alone_has_the_interval_of_a_paired_test(sides):
    found = compare(*sides, ["s"], bootstrap=50)["s"].to_raw["cllr"]
    plain = compare_plainly(*sides, ["raw", "s"])[0]["s"]["to_raw"]
    close(
        [found.difference, found.interval.low, found.interval.high, found.p_value],
        [plain.difference, plain.interval.low, plain.interval.high, plain.p_value],
    )


def test_methods_are_ranked_and_a_model_that_is_right_wins(comparison):
    cllr = [method.figures.values["cllr"] for method in comparison.methods]
    assert cllr == sorted(cllr)
    assert comparison.raw.figures.values["cllr"] == cllr[-1]
    assert comparison.best.to_best["cllr"].difference == 0
    assert comparison.best.to_raw["cllr"].interval.high < 0
    assert sum(method.best_share for method in comparison.methods) == pytest.approx(1)
    assert comparison.best.name == "lgsm"
    assert comparison.too_few == {"lgsm": "14 training speakers, 16 needed"}
    assert comparison.verdict.sure
    assert comparison.verdict.text.startswith(f"Use {comparison.verdict.use}: Cllr ")
    assert "the training side is too small to trust it" in comparison.verdict.text


def test_the_score_model_is_measured_calibrated_and_not(comparison):
    lgsm = comparison["lgsm"]
    assert lgsm.is_llr
    assert lgsm.model.dim == 2
    assert lgsm.uncalibrated.values["min_cllr"] == pytest.approx(lgsm.figures.values["min_cllr"])
    assert lgsm.uncalibrated.values["cllr"] != lgsm.figures.values["cllr"]
    assert lgsm.uncalibrated.intervals is not None
    assert comparison["s"].uncalibrated is None


def test_conditions_have_figures_of_their_own(sides, comparison):
    table = comparison.condition_table()
    assert table.height == 2 * len(METHODS)
    method = comparison["s"]
    assert list(method.conditions) == ["one", "two"]
    counts = [figures.values["n_target"] for figures in method.conditions.values()]
    assert counts == [part.labels.n_target for part in sides[1]]
    assert sum(counts) == method.figures.values["n_target"]
    parts = comparison.trials.split(method.llrs)
    assert [len(part) for part in parts] == [12 * 36, 12 * 48]
    assert np.array_equal(np.concatenate([part.scores for part in parts]), method.llrs)


def test_the_table_has_a_row_for_each_method(comparison):
    table = comparison.table()
    assert table["method"].to_list() == [method.name for method in comparison.methods]
    assert (table["eer_low"] <= table["eer_high"]).all()
    assert table["rank"].to_list() == list(range(1, len(METHODS) + 1))


@pytest.mark.slow
@settings(max_examples=5)
@given(order=st.permutations(["raw", "z", "t", "s", "as:top_k=3"]))
def test_the_order_of_methods_does_not_matter(order):
    found = [
        compare(training_side(), evaluation_side(), names, bootstrap=10).results() for names in (order, order[::-1])
    ]
    for results in found:
        results.pop("run")
    assert found[0] == found[1]
    assert list(found[0]["methods"]) == list(found[1]["methods"])


def test_equal_methods_stay_in_the_usual_order():
    comparison = compare(training_side(), evaluation_side(), ["as:top_k=1.0", "s"], bootstrap=10)
    assert [method.name for method in comparison.methods if method.name != "raw"] == ["s", "as:top_k=1.0"]
    assert comparison["as"].to_best["cllr"].p_value == 1
    assert comparison["as"].best_share == comparison["s"].best_share > 0.5


def test_a_trial_list_is_compared_like_its_matrix():
    training, evaluation = training_side(), evaluation_side()
    [part] = evaluation
    blocks = part.blocks
    listed = ScoreBlocks(
        part.trials,
        enroll=blocks.enroll,
        test=blocks.test,
        cohort=blocks.cohort,
        enroll_speakers=blocks.enroll_speakers,
        test_speakers=blocks.test_speakers,
        cohort_enroll_speakers=blocks.cohort_enroll_speakers,
        cohort_test_speakers=blocks.cohort_test_speakers,
    )
    first, second = (
        compare(training, side, ["s", "zt", "lgsm"], bootstrap=10) for side in (evaluation, [LabelledBlocks(listed)])
    )
    for method in first.methods:
        np.testing.assert_allclose(second[method.name].llrs, method.llrs, rtol=1e-12)


def test_missing_and_unknown_trials_are_not_measured():
    training, [part] = training_side(), evaluation_side()
    scores = part.blocks.trials.scores.copy()
    scores[0, 0] = np.nan
    key = part.labels.matrix.copy()
    key[1, :2] = -1
    ids = {"enroll_ids": part.blocks.trials.enroll_ids, "test_ids": part.blocks.trials.test_ids}
    blocks = ScoreBlocks(ScoreMatrix(scores, *ids.values(), missing="nan"), enroll=part.blocks.enroll)
    evaluation = [LabelledBlocks(blocks, Labels.from_key(key, **ids))]
    comparison = compare(training, evaluation, ["z"], bootstrap=10)
    assert len(comparison.trials) == scores.size - 1
    assert comparison.data.evaluation.unknown == 2
    values = comparison.best.figures.values
    assert values["n_target"] + values["n_nontarget"] == scores.size - 3


def test_speakers_follow_from_target_trials_where_blocks_have_none():
    training, [part] = training_side(), evaluation_side()
    trials, enroll = nameless(part.blocks.trials), nameless(part.blocks.enroll)
    bare = LabelledBlocks(ScoreBlocks(trials, enroll=enroll), part.labels)
    known, derived = (compare(training, [side], ["z"], bootstrap=10) for side in (part, bare))
    assert derived.trials.speakers_from == "the target trials"
    assert len(derived.trials.speakers) == len(known.trials.speakers) == 12
    assert derived.best.figures.values == known.best.figures.values
    assert any("only as far as target trials connect ids" in line for line in derived.warnings)


def test_nothing_helps_where_scores_have_no_hidden_variables():
    training, evaluation = training_side(model=PLAIN, count=20), evaluation_side(model=PLAIN, count=20)
    comparison = compare(training, evaluation, ["z", "s", "at:top_k=3"], bootstrap=200)
    assert comparison.verdict.use == "raw"
    assert not comparison.verdict.sure
    assert comparison.verdict.text.startswith(("No norm helps here", "No norm is clearly better"))


def test_methods_that_cannot_run_are_listed_and_the_rest_goes_on():
    training, [part] = training_side(), evaluation_side()
    blocks = part.blocks
    only_enroll = ScoreBlocks(
        blocks.trials,
        enroll=blocks.enroll,
        enroll_speakers=blocks.enroll_speakers,
        test_speakers=blocks.test_speakers,
        cohort_test_speakers=blocks.cohort_test_speakers,
    )
    comparison = compare(training, [LabelledBlocks(only_enroll, part.labels)], METHODS, bootstrap=10)
    assert set(comparison.not_run) == {"t", "zt", "tz", "s"}
    assert comparison.not_run["t"].startswith("the norm 't' needs the block `test`")
    assert {method.name for method in comparison.methods} == {"raw", "z", "lgsm", "lgsm:dim=0"}
    assert [line for line in comparison.warnings if "(test) are not on the evaluation side" in line]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("s:top_k=3", "so top_k has no meaning"),
        ("raw:nonsense=1", "the method 'raw' has no option 'nonsense'; it has none"),
        ("lgsm:nonsense=1", "it has dim, min_divergence, tol, max_iter, starts"),
        ("lgsm:tol=low", "tol is 'low', but must be a number"),
        ("as:colour=red", "there is no norm option 'colour'"),
        ("z:cohort=3", "there is no norm option 'cohort'; there are combine, ddof, drop_top"),
        ("z:options=few", "there is no norm option 'options'"),
        ("evidence:score_model=3", "the method 'evidence' has no option 'score_model'; it has dim"),
    ],
)
def test_wrong_options_are_refused_before_the_work(name, reason):
    training = training_side()
    with pytest.raises(InputError, match=re.escape(reason)):
        compare(training, evaluation_side(), ["lgsm", name], bootstrap=5)
    with pytest.raises(InputError, match=re.escape(reason)):
        choose_cohort(training, name, sizes=[3])


def test_options_that_do_not_fit_the_scores_are_a_reason_not_to_run():
    comparison = compare(training_side(), evaluation_side(), ["as:top_k=1000"], bootstrap=5)
    assert "only 28 members" in comparison.not_run["as:top_k=1000"]
    assert "only raw scores were judged" in comparison.verdict.text


def test_a_bug_in_a_method_is_a_bug():
    def broken(method, training, *, progress):
        raise TypeError("a bug")

    register_norm("broken", train=broken)
    try:
        with pytest.raises(TypeError, match="a bug"):
            compare(training_side(), evaluation_side(), ["broken"], bootstrap=5)
    finally:
        del METHODS_KNOWN["broken"]


def test_methods_that_lose_trials_are_not_compared():
    training, evaluation = training_side(), evaluation_side(cohort="new", members=12)
    alone = [part.blocks.enroll.select(test_ids=part.blocks.enroll.test_ids[:1]) for part in evaluation]
    blocks = ScoreBlocks(
        evaluation[0].blocks.trials,
        enroll=alone[0],
        enroll_speakers=evaluation[0].blocks.enroll_speakers,
        test_speakers=evaluation[0].blocks.test_speakers,
        cohort_test_speakers=evaluation[0].blocks.cohort_test_speakers[:1],
    )
    side = [LabelledBlocks(blocks, evaluation[0].labels)]
    comparison = compare(training, side, ["z:vanished=missing:zero_std=one"], bootstrap=5)
    assert "but methods are compared on the same trials" in comparison.not_run["z:vanished=missing:zero_std=one"]


def test_speakers_of_both_sides_are_refused_by_name():
    training, evaluation = training_side(group="all"), evaluation_side(group="all")
    with pytest.raises(
        InputError,
        match=r"12 speakers are on the training side and on the evaluation side: 'all0', .*allow_overlap=True",
    ):
        compare(training, evaluation, ["z"], bootstrap=5)
    comparison = compare(training, evaluation, ["z"], bootstrap=5, allow_overlap=True)
    assert comparison.data.shared_speakers == tuple(sorted(f"all{n}" for n in range(12)))
    assert any(line.startswith("12 speakers are on the training side") for line in comparison.warnings)


def test_cohort_speakers_of_the_evaluation_are_named_and_left_out():
    training, evaluation = training_side(), evaluation_side(cohort="new", members=13)
    comparison = compare(training, evaluation, ["z"], bootstrap=5)
    [warning] = [line for line in comparison.warnings if "in the cohort" in line]
    assert warning.startswith("12 evaluation speakers are in the cohort: 'new0', 'new1', 'new10'")
    assert "left out of their own trials' cohort" in warning
    [cohort] = comparison.cohorts
    assert cohort.shared_with_evaluation == comparison.trials.speakers
    assert cohort.smallest == 12


def one_speaker(scores):
    trials = TrialList.from_pairs(["e"] * len(scores), [f"t{n}" for n in range(len(scores))], scores=scores)
    return LabelledBlocks(ScoreBlocks(trials.with_labels([1] * len(scores))))


@pytest.mark.parametrize("side", ["training", "evaluation"])
def test_only_one_speaker_is_refused(side):
    sides = {"training": training_side(), "evaluation": evaluation_side()} | {side: [one_speaker([1.0, 2.0])]}
    with pytest.raises(InputError, match=f"all {side} trials are of one speaker, 'e'; at least two"):
        compare(sides["training"], sides["evaluation"], ["z"])


def test_few_targets_are_said_to_be_unreliable():
    comparison = compare(training_side(count=10), evaluation_side(count=5), ["z"], bootstrap=10)
    assert [
        line
        for line in comparison.warnings
        if "only 15 target trials on the evaluation side: the figures are not reliable" in line
    ]
    assert [line for line in comparison.warnings if "only 5 speakers on the evaluation side" in line]
    assert comparison.verdict.text.endswith("There are only 15 target trials, so these figures are not reliable.")


def test_labels_that_contradict_speakers_are_refused():
    [part] = evaluation_side()
    key = part.labels.matrix.copy()
    key[0, 5] = 1
    labels = Labels.from_key(key, enroll_ids=part.blocks.trials.enroll_ids, test_ids=part.blocks.trials.test_ids)
    with pytest.raises(InputError, match=r"\('e0', 't5'\) is a target trial, but its speakers are 'new0' and 'new1'"):
        compare(training_side(), [LabelledBlocks(part.blocks, labels)], ["z"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ["q"]}, "there is no method 'q'; there are raw, "),
        ({"methods": "raw"}, "must be a list of names"),
        ({"methods": ["as:100"]}, "must be a norm and its options, such as as:top_k=100"),
        ({"methods": ["z:client=1"]}, "must be a norm and its options, such as as:top_k=100"),
        ({"methods": [Method("raw", "z")]}, "call yours something else"),
        ({"methods": [Method("x", "z"), Method("x", "t")]}, "two different methods are called 'x'"),
        ({"rank_by": "auc"}, "cannot be ranked by 'auc'"),
        ({"bootstrap": 0}, "bootstrap is 0"),
        ({"level": 1.0}, "level is 1.0"),
        ({"folds": 2}, "folds is 2"),
        ({"calibration": "magic"}, "there is no calibration 'magic'"),
        ({"training": []}, "there are no training scores"),
        ({"evaluation": []}, "there are no evaluation scores"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_once(options, message):
    given = {"training": training_side(), "evaluation": evaluation_side(), "methods": ["z"]} | options
    with pytest.raises(InputError, match=message):
        compare(given.pop("training"), given.pop("evaluation"), given.pop("methods"), **given)


def test_scores_without_errors_are_compared_all_the_same():
    far = MODEL.__class__(mu=[-50.0, 50.0], alpha=[[0.1], [0.1]], beta=[[0.1], [0.1]], sigma2=[1.0, 1.0])
    comparison = compare(training_side(model=far), evaluation_side(model=far), ["z"], bootstrap=5)
    assert comparison.best.figures.values["eer"] == 0
    assert comparison.raw.notes == (
        "its training scores separate the classes without error, so the scale of its LLRs is a guess",
    )
    with pytest.raises(InputError, match="even the raw scores cannot be judged: the scores separate"):
        compare(training_side(model=far), evaluation_side(), ["z"], calibration="logistic:l2=0.0")


def test_infinite_llrs_of_pav_are_compared():
    comparison = compare(training_side(), evaluation_side(), ["s"], calibration="pav:smoothing=0", bootstrap=10)
    assert np.isinf(comparison["s"].llrs).any()
    assert set(comparison.table()["method"]) == {"raw", "s"}


def test_ranking_by_another_metric():
    comparison = compare(training_side(), evaluation_side(), ["z", "s"], rank_by="eer", bootstrap=10)
    eer = [method.figures.values["eer"] for method in comparison.methods]
    assert eer == sorted(eer)
    assert "EER" in comparison.verdict.text


def test_adaptive_norms_say_what_they_take_of_the_cohort():
    small, trials = [*training_side(), *evaluation_side()], speakers("new", 2, 1)
    names = {method.name for method in as_methods(None, small)}
    assert {"raw", "z", "t", "zt", "tz", "s", "as:top_k=0.2", "at:top_k=0.2", "lgsm", "lgsm:dim=0"} <= names
    large = LabelledBlocks(*simulate_blocks(MODEL, trials, trials, *[speakers("c", 1600, 1)] * 2))
    assert {"as:top_k=300", "at:top_k=300"} <= {method.name for method in as_methods(None, [large])}
    assert [method.name for method in as_methods(["as"], [large, *small])] == ["raw", "as:top_k=usual"]
    assert [method.name for method in as_methods(["lgsm", "z", "lgsm"], [])] == ["raw", "z", "lgsm"]
    assert as_methods([Method("mine", "as")], small)[1] == Method("mine", "as", {"top_k": 0.2})


def test_an_adaptive_norm_without_top_k_is_no_plain_one():
    comparison = compare(training_side(), evaluation_side(), ["as", "s"], bootstrap=10)
    adaptive = comparison["as"]
    assert adaptive is comparison["as:top_k=0.2"]
    assert adaptive.options == {"top_k": 0.2}
    [part] = evaluation_side()
    np.testing.assert_array_equal(adaptive.scores, normalize(part.blocks, "as").scores.ravel())
    assert not np.allclose(adaptive.scores, comparison["s"].scores)
    assert comparison.results()["methods"]["as:top_k=0.2"]["options"] == {"top_k": 0.2}


def test_progress_names_every_method():
    stages = {}
    compare(
        training_side(),
        evaluation_side(),
        ["z", "lgsm"],
        bootstrap=5,
        progress=lambda name, part: stages.update({name: part}),
    )
    assert stages["raw"] == stages["z"] == stages["lgsm"] == stages["checking the data"] == 1
