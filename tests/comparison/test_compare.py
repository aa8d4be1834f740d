"""`compare` does what one would do by hand with the other parts of the library, and nothing else."""

import json

import numpy as np
import pytest

from comparison.conftest import make_sides, with_blocks
from evenscore import (
    InputError,
    LabelledBlocks,
    Labels,
    ScoreBlocks,
    bootstrap,
    evaluate,
    fit_norm,
    normalize,
    paired_test,
)
from evenscore.calibrate import calibration_class
from evenscore.comparison import METRICS, compare
from reference.naive_norms import naive_normalize

POINTS = [0.05, (0.01, 10, 1)]


def by_hand(training, evaluation, method, calibration="logistic", **options):
    """Return labels and LLRs of the evaluation trials of one norm, step by step."""
    known = training.labelled(normalize(training.blocks, method, **options))
    new = evaluation.labelled(normalize(evaluation.blocks, method, **options))
    penalty = {"l2": 1e-5} if calibration == "logistic" else {}
    fitted = calibration_class(calibration).fit(known.scores, known.labels, **penalty)
    return new, np.asarray(fitted(new.scores))


def figures(found):
    """Return the numbers of a method or of an evaluation, one after the other."""
    evaluation = getattr(found, "figures", found)
    evaluation = getattr(evaluation, "evaluation", evaluation)
    costs = [value for cost in evaluation.costs for value in (cost.min_dcf, cost.act_dcf)]
    return [evaluation.eer, evaluation.cllr, evaluation.min_cllr, evaluation.auc, *costs]


@pytest.mark.parametrize("calibration", ["logistic", "gaussian", "pav"])
@pytest.mark.parametrize(("name", "options"), [("s", {}), ("as:top_k=5:ddof=1", {"top_k": 5, "ddof": 1}), ("raw", {})])
def test_figures_are_those_of_the_single_steps(sides, name, options, calibration):
    found = compare(*sides, [name], bootstrap=5, points=POINTS, calibration=calibration)[name]
    trials, llrs = by_hand(*sides, name.partition(":")[0], calibration, **options)
    np.testing.assert_allclose(found.llrs, llrs, rtol=1e-9)
    assert figures(found) == pytest.approx(figures(evaluate(llrs, trials.labels, points=POINTS)), rel=1e-9)


def test_training_trials_have_no_own_speakers_in_their_cohort(sides):
    training, _ = sides
    found = compare(*sides, ["s"], bootstrap=5)["s"]
    slow = naive_normalize(training.blocks, "s")
    labels = training.labels.matrix
    pairs = [(i, j) for i in range(labels.shape[0]) for j in range(labels.shape[1])]
    ids = training.blocks.trials
    scores = np.array([slow[ids.enroll_ids[i], ids.test_ids[j]] for i, j in pairs])
    expected = calibration_class("logistic").fit(scores, labels.ravel(), l2=1e-5)
    assert found.calibration.offset == pytest.approx(expected.offset, rel=1e-6)
    assert found.calibration.weights == pytest.approx(expected.weights, rel=1e-6)


def test_intervals_and_differences_are_those_of_the_paired_bootstrap(comparison, sides):
    trials = sides[1].trials
    enroll, test = trials.enroll.speakers[trials.rows], trials.test.speakers[trials.cols]
    order = np.argsort(enroll.astype(str), kind="stable")  # speakers are numbered as they come, here by their names
    labels, raw = comparison.labels[order], comparison["raw"].llrs[order]
    how = {"replicates": 60, "points": POINTS, "seed": 5}
    speakers = {"enroll_speakers": enroll[order], "test_speakers": test[order]}
    for method in comparison.methods:
        llrs = method.llrs[order]
        drawn = bootstrap(llrs, labels, **speakers, **how)
        for metric in METRICS:
            assert method.figures.interval(metric) == drawn.interval(metric)
            level = 1 - 0.05 / (len(comparison.methods) - 1)
            test = paired_test(llrs, raw, labels, metric=metric, level=level, **speakers, **how)
            assert method.to_raw[metric].difference == pytest.approx(test.difference)
            assert method.to_raw[metric].interval == test.interval
            assert method.to_raw[metric].p_value == pytest.approx(min(1, 3 * test.p_value))


def test_methods_come_in_the_order_of_their_cllr(comparison):
    values = [method.figures.evaluation.cllr for method in comparison.methods]
    assert values == sorted(values)
    assert comparison.best is comparison.methods[0]
    assert all(test.difference == 0 for test in comparison.best.to_best.values())
    assert {method.name for method in comparison.methods} == {"raw", "z", "s", "lgsm"}


def test_a_trained_norm_is_judged_by_the_better_of_its_llrs_on_the_training_side(comparison, sides):
    found = comparison["lgsm"]
    fitted = fit_norm("lgsm", sides[0])
    new = sides[1].labelled(fitted.normalize(sides[1].blocks))
    np.testing.assert_allclose(found.scores, new.scores, rtol=1e-6)
    assert found.own.evaluation == evaluate(found.scores, comparison.labels, points=POINTS)
    better = found.training_own.cllr < found.training.cllr
    assert found.judged_by == ("own" if better else "calibrated")
    assert found.figures is (found.own if better else found.calibrated)
    np.testing.assert_array_equal(found.llrs, found.scores if better else found.calibration(found.scores))
    assert comparison["s"].own is None
    assert comparison["s"].training_own is None


def test_own_llrs_are_used_where_calibration_cannot_learn_them(sides, own_norm):
    """A norm that gives true LLRs of another scale than a line can make of its training scores, and one that lies."""

    def exact(blocks, model):
        return blocks.trials.map(lambda s: model * (4.0 * s - 8.0) / 3.0)

    honest = own_norm("honest", exact, fit=lambda training: 1.0)
    boastful = own_norm("boastful", exact, fit=lambda training: 40.0)
    found = compare(*sides, [honest, boastful], bootstrap=5)
    assert found["boastful"].judged_by == "calibrated"
    assert found["boastful"].own.evaluation.cllr > 1.5 * found["boastful"].calibrated.evaluation.cllr
    assert found["honest"].training_own.cllr < 2 * found["honest"].training.cllr


def test_trained_norms_are_cross_validated_without_the_speakers_of_a_trial(sides, own_norm):
    seen = []

    def fit(training):
        return {name for part in training for name in part.blocks.trials.enroll.speakers}

    def norm(blocks, model):
        trials, members = blocks.trials, {*blocks.cohort_enroll.speakers, *blocks.cohort_test.speakers}
        seen.append((model, {*trials.enroll.speakers, *trials.test.speakers}, members))
        return trials

    compare(*sides, [own_norm("spy", norm, fit=fit)], bootstrap=5)
    everybody = {f"known{n}" for n in range(24)}
    validated = [(model, speakers, members) for model, speakers, members in seen if model != everybody]
    assert len(validated) == 3
    assert set.union(*(speakers for _, speakers, _ in validated)) == everybody
    for model, speakers, members in validated:
        assert not speakers & model
        assert not speakers & members
    whole = [(speakers, members) for model, speakers, members in seen if model == everybody]
    assert all(not speakers & members for speakers, members in whole)


def test_conditions_are_pooled_and_measured_apart():
    pairs = [make_sides(seed, n_evaluation=12, name=name) for seed, name in ((1, "yes"), (2, "no"))]
    training, evaluation = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    found = compare(training, evaluation, ["s"], bootstrap=5)
    method = found["s"]
    scores = [by_hand(*pair, "s")[0] for pair in pairs]
    np.testing.assert_allclose(method.scores, np.concatenate([part.scores for part in scores]))
    assert method.figures.evaluation == evaluate(method.llrs, found.labels)
    assert list(method.conditions) == ["no", "yes"]
    size = len(scores[0])
    assert method.conditions["yes"] == evaluate(method.llrs[:size], found.labels[:size])
    assert [side.name for side in found.data.evaluation_conditions] == ["yes", "no"]
    assert found.data.evaluation.speakers == 12
    assert found.data.evaluation.trials == sum(side.trials for side in found.data.evaluation_conditions)


def test_what_fails_is_a_line_with_its_reason(sides, own_norm):
    def stop(blocks):
        raise InputError("this norm never works")

    def lose(blocks):
        return blocks.trials.with_scores(
            np.where(blocks.trials.enroll.ids[:, None] == first, np.nan, blocks.trials.scores)
        )

    first = sides[1].blocks.trials.enroll_ids[0]
    names = [own_norm("stop", stop), own_norm("lose", lose), own_norm("break", lambda blocks: 1 / 0), "as:top_k=100000"]
    found = compare(*sides, [*names, "s"], bootstrap=5)
    assert [method.name for method in found.methods] == ["s", "raw"]
    assert "never works" in found.failed["stop"]
    assert found.failed["break"] == "ZeroDivisionError: division by zero"
    assert f"{sides[1].blocks.trials.shape[1]} of the" in found.failed["lose"]
    assert "top_k" in found.failed["as:top_k=100000"]


def test_blocks_that_one_side_lacks_are_not_used(sides):
    training, evaluation = sides
    found = compare(training, with_blocks(evaluation, test=None), ["z", "t"], bootstrap=5)
    assert {method.name for method in found.methods} == {"raw", "z"}
    assert "test" in found.failed["t"]
    assert any(one.kind == "data" and "test" in one.message for one in found.diagnostics)


def test_lists_with_unknown_labels_give_the_figures_of_the_known_ones(sides):
    training, evaluation = sides
    trials = evaluation.trials
    labels = trials.labels.copy()
    labels[::7] = -1
    part = LabelledBlocks(with_blocks(evaluation, trials=trials.with_labels(labels)).blocks)
    found, whole = compare(training, part, ["s"], bootstrap=5)["s"], compare(*sides, ["s"], bootstrap=5)["s"]
    np.testing.assert_allclose(found.llrs, whole.llrs[labels >= 0])
    assert found.figures.evaluation.n_target == np.count_nonzero(labels == 1)


def test_speakers_follow_from_target_trials(sides):
    training, evaluation = sides
    matrix = evaluation.blocks.trials
    trials = type(matrix)(matrix.scores, matrix.enroll_ids, matrix.test_ids)
    labels = Labels.from_key(evaluation.labels.matrix, enroll_ids=matrix.enroll_ids, test_ids=matrix.test_ids)
    blocks = evaluation.blocks
    bare = LabelledBlocks(ScoreBlocks(trials, blocks.enroll, blocks.test, blocks.cohort), labels)
    found, known = compare(training, bare, ["s"], bootstrap=30), compare(*sides, ["s"], bootstrap=30)
    assert found.data.speakers_from == "target trials"
    assert found.data.evaluation.speakers == known.data.evaluation.speakers == 22
    assert found["s"].figures.evaluation == known["s"].figures.evaluation
    assert any(one.kind == "overlap" for one in found.diagnostics)


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_trials_and_cohort_does_not_matter(sides, seed):
    training, evaluation = sides
    rng, blocks = np.random.default_rng(seed), evaluation.blocks
    rows, cols = rng.permutation(blocks.trials.shape[0]), rng.permutation(blocks.trials.shape[1])
    members = rng.permutation(blocks.cohort.shape[0]), rng.permutation(blocks.cohort.shape[1])
    mixed = LabelledBlocks(blocks.take_trials(rows, cols).take_cohort(*members), evaluation.labels)
    found, whole = (compare(training, part, ["zt"], bootstrap=20) for part in (mixed, evaluation))
    assert figures(found["zt"]) == pytest.approx(figures(whole["zt"]))
    assert found["zt"].figures.interval("cllr").low == pytest.approx(whole["zt"].figures.interval("cllr").low)
    assert found.verdict.use == whole.verdict.use


def test_results_are_json_even_with_infinite_llrs(sides):
    found = compare(*sides, ["s"], bootstrap=5, calibration="pav:smoothing=0")
    tree = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert np.isinf(found["s"].llrs).any()
    assert tree["methods"]["s"]["figures"]["eer"] == found["s"].figures.evaluation.eer
    assert tree["methods"]["s"]["recommended"] == (found.verdict.use == "s")
    assert tree["verdict"]["text"] == found.verdict.text
    assert tree["settings"]["points"][0]["p_target"] == 0.01


def test_the_table_has_every_method_and_the_verdict(comparison, sides):
    text = str(comparison)
    lines = text.splitlines()
    for method in comparison.methods:
        line = next(line for line in lines if line[2:].split(" ")[0] == method.name)
        assert line.startswith("*") == (method.name == comparison.verdict.use)
        assert f"{100 * method.figures.evaluation.eer:.2f}" in line
        assert f"{method.figures.evaluation.cllr:.3f}" in line
    assert comparison.verdict.text in text


def test_progress_counts_methods(sides):
    steps = []
    compare(*sides, ["z", "s"], bootstrap=5, progress=lambda done, total: steps.append((done, total)))
    assert steps == [(0, 3), (1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    ("changed", "culprit"),
    [
        ({"methods": "s"}, "methods"),
        ({"methods": ["asnorm"]}, "'as'"),
        ({"methods": ["s:top_k"]}, "top_k"),
        ({"calibration": "platt"}, "platt"),
        ({"bootstrap": 0}, "bootstrap"),
        ({"level": 1.0}, "level"),
        ({"folds": 2}, "folds"),
        ({"points": [2.0]}, "p_target"),
    ],
)
def test_what_cannot_be_meant_is_refused_first(sides, changed, culprit):
    with pytest.raises(InputError, match=culprit):
        compare(*sides, **{"methods": ["s"], "bootstrap": 5, **changed})


def test_sides_must_have_both_classes_and_agree_with_their_speakers(sides):
    training, evaluation = sides
    with pytest.raises(InputError, match="training"):
        compare([], evaluation)
    shape = evaluation.blocks.trials.shape
    with pytest.raises(InputError, match="evaluation"):
        compare(training, LabelledBlocks(evaluation.blocks, Labels.from_key(np.zeros(shape))), bootstrap=5)
    wrong = evaluation.labels.matrix.copy()
    wrong[0, -1] = 1
    with pytest.raises(InputError, match="new0"):
        compare(training, LabelledBlocks(evaluation.blocks, Labels.from_key(wrong)), bootstrap=5)
