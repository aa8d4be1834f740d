"""Each calibration against its definition, outside programs and the laws it must obey."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.stats import norm, t

from evenscore import InputError
from evenscore.calibrate import (
    BayesianCalibration,
    GaussianCalibration,
    LogisticCalibration,
    PavCalibration,
    SaturatingCalibration,
    UnsupervisedCalibration,
)
from evenscore.metrics import Points, cllr, evaluate, min_cllr
from reference import naive_calibration as naive

GOLDEN = json.loads((Path(__file__).parent / "golden" / "scikit-learn.json").read_text(encoding="utf-8"))
SUPERVISED = GaussianCalibration, LogisticCalibration, PavCalibration, BayesianCalibration, SaturatingCalibration
ALL = [*SUPERVISED, UnsupervisedCalibration]


def simulated(size=400, seed=0, share=0.3, shift=2.0):
    rng = np.random.default_rng(seed)
    labels = (rng.random(size) < share).astype(int)
    return rng.normal(shift * labels, 1.0), labels


def with_outliers(n_target=300, n_nontarget=3000, odd=6, seed=0):
    rng = np.random.default_rng(seed)
    scores = np.concatenate([rng.normal(0, 1, n_nontarget), rng.normal(5, 1, n_target - odd), rng.normal(0, 1, odd)])
    return scores, np.repeat([0, 1], [n_nontarget, n_target])


# Gaussian and Bayesian


def test_gaussian_is_the_ratio_of_two_densities():
    scores, labels = simulated()
    x, (non, tar) = np.linspace(-4, 6, 11), (scores[labels == k] for k in (0, 1))
    expected = norm.logpdf(x, tar.mean(), tar.std()) - norm.logpdf(x, non.mean(), non.std())
    assert_allclose(GaussianCalibration.fit(scores, labels)(x), expected, atol=1e-12)


def test_shared_variance_is_the_limit_of_equal_variances_and_linear():
    scores, labels = simulated()
    fit = GaussianCalibration.fit(scores, labels, shared_variance=True)
    assert_allclose(np.diff(fit(np.linspace(-1e4, 1e4, 9)), 2), 0.0, atol=1e-9)
    near = GaussianCalibration(mean=fit.mean, variance=fit.variance * [1, 1 + 1e-9])
    assert_allclose(near([-3.0, 0.0, 3.0]), fit([-3.0, 0.0, 3.0]), atol=1e-6)
    within = np.concatenate([scores[labels == k] - scores[labels == k].mean() for k in (0, 1)])
    assert fit.variance[0] == pytest.approx(np.mean(within**2))


def test_bayesian_llr_is_a_ratio_of_student_densities():
    scores, labels = simulated(12)
    x, expected = np.linspace(-50, 50, 11), 0.0
    for k, sign in ((1, 1), (0, -1)):
        side = scores[labels == k]
        scale = side.std(ddof=1) * np.sqrt(1 + 1 / side.size)
        expected = expected + sign * t.logpdf(x, side.size - 1, side.mean(), scale)
    assert_allclose(BayesianCalibration.fit(scores, labels)(x), expected, atol=1e-10)


@pytest.mark.parametrize("shared", [True, False])
def test_bayesian_becomes_gaussian_with_much_data_and_stays_modest_with_little(shared):
    kinds = BayesianCalibration, GaussianCalibration
    scores, labels = simulated(100_000)
    x, far = np.linspace(-3, 5, 9), np.array([-8.0, 9.0])
    many, gaussian = (kind.fit(scores, labels, shared_variance=shared) for kind in kinds)
    assert_allclose(many(x), gaussian(x), atol=1e-2)
    few, gaussian = (kind.fit(scores[:12], labels[:12], shared_variance=shared) for kind in kinds)
    assert (np.abs(few(far)) < np.abs(gaussian(far))).all()
    sharp = BayesianCalibration(mean=[0.0, 3.0], scale2=[1.0, 2.0], df=[1e9, 1e9])
    assert_allclose(sharp(x), GaussianCalibration(mean=[0.0, 3.0], variance=[1.0, 2.0])(x), atol=1e-6)


def test_scores_that_do_not_determine_a_variance_are_refused():
    for kind in (GaussianCalibration, BayesianCalibration):
        with pytest.raises(InputError):
            kind.fit([1.0, 2.0, 5.0, 5.0], [0, 0, 1, 1])
        assert kind.fit([1.0, 2.0, 5.0, 5.0], [0, 0, 1, 1], shared_variance=True)(4.0) > 0
        with pytest.raises(InputError):
            kind.fit([1.0, 5.0], [0, 1], shared_variance=True)


# Logistic


@pytest.mark.parametrize(("systems", "name"), [(1, "one_system"), (2, "two_systems")])
def test_logistic_agrees_with_scikit_learn(systems, name):
    columns = np.array(GOLDEN["systems"])[:, :systems]
    for golden in GOLDEN[name]:
        fit = LogisticCalibration.fit(columns, GOLDEN["labels"], p_target=golden["p_target"], l2=golden["l2"])
        assert_allclose(fit.weights, golden["weights"], rtol=1e-9)
        assert_allclose(fit.offset, golden["offset"], rtol=1e-9)


@pytest.mark.parametrize("p_target", [0.5, 0.01])
@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_logistic_agrees_with_a_general_minimizer(p_target, l2):
    scores, labels = simulated(60, shift=1.0)
    weights, offset = naive.logistic(scores, labels, p_target, l2)
    fit = LogisticCalibration.fit(scores, labels, p_target=p_target, l2=l2)
    assert_allclose([*fit.weights, fit.offset], [*weights, offset], rtol=1e-4, atol=1e-5)


def test_many_trials_start_from_some_and_end_at_the_same_optimum():
    scores, labels = simulated(200_000, share=0.05)
    fit, llr = LogisticCalibration.fit(scores, labels), LogisticCalibration.fit(scores, labels)(scores)
    pull = labels / labels.sum() * (1 / (1 + np.exp(llr))) - (1 - labels) / (1 - labels).sum() / (1 + np.exp(-llr))
    assert abs(pull.sum()) < 1e-11
    assert abs(pull @ scores) < 1e-11
    assert fit.weights[0] == pytest.approx(2.0, abs=0.05)


def test_fusion_is_better_than_each_system_and_quality_helps_where_it_matters():
    rng = np.random.default_rng(0)
    labels = np.tile([0, 1], 2000)
    duration = rng.exponential(size=labels.size)
    both = rng.normal(1.5 * labels[:, None], 1.0, (4000, 2)) + np.outer(duration, [2.0, 0.0])
    fusion = LogisticCalibration.fit(both, labels)
    assert cllr(fusion(both), labels) < min(cllr(LogisticCalibration.fit(s, labels)(s), labels) for s in both.T)
    informed = LogisticCalibration.fit(both, labels, quality=duration)
    assert cllr(informed(both, duration), labels) < cllr(fusion(both), labels) - 0.02
    wide = np.column_stack((both, duration))
    assert_allclose(LogisticCalibration.fit(wide, labels)(wide), informed(both, duration[:, None]), atol=1e-9)
    assert informed(both.reshape(40, 100, 2), duration.reshape(40, 100)).shape == (40, 100)
    for arguments in ((both[:, 0], duration), (both,), (both, wide), (both, duration[:5])):
        with pytest.raises(InputError):
            informed(*arguments)


def test_inputs_that_tell_nothing_new_change_nothing():
    rng = np.random.default_rng(3)
    labels = rng.random(400) < 0.3
    scores, low, high = rng.normal(2.0 * labels, 1.0), *np.sort(rng.normal(3.0, 1.0, (2, 400)), axis=0)
    known = np.column_stack((low, high))
    plain = LogisticCalibration.fit(scores, labels, quality=known)(scores, known)
    for extra in (high - low, np.full(400, 7.0), 2 * scores + 1, (high - low).round(5)):
        more = np.column_stack((known, extra))
        assert_allclose(LogisticCalibration.fit(scores, labels, quality=more)(scores, more), plain, atol=1e-4)


@pytest.mark.parametrize(
    ("scores", "labels", "options"),
    [
        ([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1], {}),
        ([4.0, 3.0, 2.0, 1.0], [0, 0, 1, 1], {}),
        ([1.0, 2.0, 2.0, 4.0], [0, 0, 1, 1], {}),
        ([1.0, 1.0, 1.0], [0, 0, 1], {}),
        ([1.0, 0.0], [0, 1], {"p_target": 1.0}),
        ([1.0, 0.0], [0, 1], {"l2": -1.0}),
        ([1.0, 0.0], [0, 1], {"penalty": 1.0}),
        ([1.0, 0.0], [0, 1], {"quality": [np.inf, 0]}),
        ([1.0, 0.0], [0, 1], {"quality": [1.0]}),
        ([1.0, 0.0], [0, 1], {"weights": [1.0, -1.0]}),
        ([1.0, 0.0], [0, 1], {"weights": [0.0, 1.0]}),
    ],
)
def test_logistic_refuses_what_it_cannot_fit(scores, labels, options):
    with pytest.raises(InputError):
        LogisticCalibration.fit(scores, labels, **options)


def test_a_penalty_makes_separated_classes_possible():
    fit = LogisticCalibration.fit([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1], l2=0.01)
    assert (fit([1.0, 4.0]) * [-1, 1] > 0).all()


def test_parameters_have_defaults_and_limits():
    assert LogisticCalibration(weights=[2.0], offset=-5.0)(3.0) == 1.0
    assert SaturatingCalibration(weight=2.0)(3.0) == 6.0
    for wrong in ({"weights": [math.nan]}, {"weights": 2.0}, {"offset": math.inf}, {"p_target": 0.0}):
        with pytest.raises(InputError):
            LogisticCalibration(**wrong)
    for wrong in ({"mean": [0.0], "variance": [1.0, 1.0]}, {"mean": [0.0, 1.0], "variance": [0.0, 1.0]}):
        with pytest.raises(InputError):
            GaussianCalibration(**wrong)
    for wrong in ({"llr": [0.0, 1.0], "edges": []}, {"llr": [1.0, 0.0], "edges": [0.0]}):
        with pytest.raises(InputError):
            PavCalibration(**wrong)


# PAV

ties = st.lists(st.tuples(st.integers(-4, 4).map(float), st.sampled_from([0, 1])), min_size=2, max_size=14).filter(
    lambda trials: {k for _, k in trials} == {0, 1}
)


@given(ties, st.sampled_from([0.0, 0.5, 1.0, 3.0]))
def test_pav_equals_the_max_min_formula(trials, smoothing):
    scores, labels = [s for s, _ in trials], [k for _, k in trials]
    fit, grid = PavCalibration.fit(scores, labels, smoothing=smoothing), np.linspace(-9, 9, 73)
    assert_allclose(fit(scores), naive.pav_llr(scores, labels, smoothing), atol=1e-9)
    assert np.array_equal(fit(grid), np.sort(fit(grid)))
    assert np.isfinite(fit.llr).all() or smoothing == 0


@given(ties)
def test_pav_without_smoothing_reaches_the_minimum_cllr(trials):
    scores, labels = [s for s, _ in trials], [k for _, k in trials]
    llr = PavCalibration.fit(scores, labels, smoothing=0)(scores)
    assert cllr(llr, labels) == pytest.approx(min_cllr(scores, labels), abs=1e-12)


def test_pav_agrees_with_scikit_learn():
    scores, labels = np.round(np.array(GOLDEN["systems"])[:, 0], 1), np.array(GOLDEN["labels"])
    posterior = np.array(GOLDEN["isotonic_posterior"])
    with np.errstate(divide="ignore"):
        expected = np.log(posterior / (1 - posterior)) - np.log(labels.mean() / (1 - labels.mean()))
    assert_allclose(PavCalibration.fit(scores, labels, smoothing=0)(scores), expected, atol=1e-9)


def test_smoothing_bounds_the_llr_by_the_number_of_trials():
    fit = PavCalibration.fit([0.0] * 100 + [1.0] * 50, [0] * 100 + [1] * 50)
    expected = [np.log((1 / 50) / (100 / 100 + 1 / 50)), np.log((50 / 50 + 1 / 100) / (1 / 100))]
    assert_allclose(fit([0.49, 0.51]), expected, rtol=1e-12)
    assert_allclose(PavCalibration.fit([3.0, 2.0, 1.0, 0.0], [0, 0, 0, 1])([-9.0, 1.5, 9.0]), 0.0, atol=1e-12)


def test_pav_handles_infinite_and_neighbouring_scores():
    scores, labels = [-np.inf, -np.inf, 0.0, 1.0, np.inf], [0, 0, 1, 0, 1]
    fit = PavCalibration.fit(scores, labels, smoothing=0)
    assert fit([-np.inf, 0.0, np.inf]).tolist() == [-np.inf, fit(0.5), np.inf]
    assert np.isfinite(PavCalibration.fit(scores, labels)(scores)).all()
    pair = [1.0, np.nextafter(1.0, 2.0)]
    assert PavCalibration.fit(pair, [0, 1], smoothing=0)(pair).tolist() == [-np.inf, np.inf]


# Unsupervised


def test_mixture_agrees_with_scikit_learn():
    fit, golden = UnsupervisedCalibration.fit(GOLDEN["unlabelled"]), GOLDEN["mixture"]
    assert_allclose(fit.mean, golden["mean"], atol=2e-3)
    assert_allclose(fit.variance, golden["variance"], atol=5e-3)
    assert fit.p_target == pytest.approx(golden["p_target"], abs=1e-3)


@pytest.mark.parametrize("share", [0.5, 0.1, 0.02])
def test_unlabelled_scores_are_calibrated_nearly_as_well_as_labelled_ones(share):
    scores, labels = simulated(20_000, share=share, shift=5.0)
    best = cllr(GaussianCalibration.fit(scores, labels)(scores), labels)
    for options in ({}, {"p_target": share}, {"shared_variance": True}):
        fit = UnsupervisedCalibration.fit(scores, **options)
        assert cllr(fit(scores), labels) < best + 0.01
        assert fit.p_target == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize(
    "scores",
    [
        np.random.default_rng(0).normal(size=2000),
        np.random.default_rng(0).standard_t(3, size=2000),
        np.arange(10.0),
        np.full(50, 2.0),
        np.append(np.random.default_rng(0).normal(size=500), [60.0, 61.0]),
        np.repeat([0.0, 1.0], 50),
        np.append(np.zeros(100_000), 1.0),
        np.random.default_rng(0).normal(size=50) * 1e-300,
    ],
)
def test_scores_that_do_not_show_two_groups_are_refused(scores):
    with pytest.raises(InputError):
        UnsupervisedCalibration.fit(scores)


# Saturating


@given(st.lists(st.floats(-60, 60), min_size=1, max_size=20), st.floats(0, 0.4), st.floats(0, 0.4))
def test_saturating_formula_and_bounds(scores, e, d):
    found = SaturatingCalibration(target_outliers=e, nontarget_outliers=d)(scores)
    assert found == pytest.approx([naive.naive_saturated(z, e, d) for z in scores], rel=1e-9, abs=1e-9)


def test_the_affine_map_minimizes_the_loss():
    scores, labels = with_outliers()
    fit = SaturatingCalibration.fit(scores, labels, target_outliers=0.02, nontarget_outliers=0.001, p_target=0.2)

    def loss(theta):
        one = SaturatingCalibration(weight=theta[0], offset=theta[1], target_outliers=0.02, nontarget_outliers=0.001)
        odds = one(scores) + np.log(0.25)
        miss, alarm = np.logaddexp(0, -odds[labels == 1]).mean(), np.logaddexp(0, odds[labels == 0]).mean()
        return 0.2 * miss + 0.8 * alarm

    best = minimize(loss, [fit.weight, fit.offset], method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-12})
    assert loss([fit.weight, fit.offset]) == pytest.approx(best.fun, rel=1e-3)


def test_outliers_are_found_and_saturation_helps_on_new_trials():
    fit = SaturatingCalibration.fit(*with_outliers())
    assert 0.003 <= fit.target_outliers <= 0.03
    assert fit.nontarget_outliers == 0.0
    new, key = with_outliers(seed=1)
    assert cllr(fit(new), key) < 0.85 * cllr(LogisticCalibration.fit(*with_outliers())(new), key)
    clean, labels = with_outliers(odd=0)
    plain, fit = LogisticCalibration.fit(clean, labels), SaturatingCalibration.fit(clean, labels)
    assert (fit.weight, fit.offset) == (plain.weights[0], plain.offset)


@pytest.mark.parametrize("far", [-1e3, -1e9])
def test_a_single_score_that_is_far_away_does_not_flatten_the_rest(far):
    scores, labels = with_outliers(odd=0)
    scores[labels == 1] = np.append(scores[labels == 1][1:], far)
    fit = SaturatingCalibration.fit(scores, labels)
    assert fit.target_outliers > 0
    assert fit.weight > 2


def test_classes_that_are_free_of_errors_without_their_outliers_keep_finite_weights():
    scores = np.concatenate((np.linspace(-1, 1, 200), np.linspace(9, 11, 50), [0.0, 0.5]))
    labels = np.repeat([0, 1], [200, 52])
    assert SaturatingCalibration.fit(scores, labels, target_outliers=0.03, nontarget_outliers=0.0)(9.0) < 30


# Laws of all


@pytest.mark.parametrize("kind", ALL)
@given(scale=st.floats(0.05, 50), shift=st.floats(-100, 100))
def test_llrs_do_not_depend_on_the_unit_of_the_scores(kind, scale, shift):
    scores, labels = simulated(120, shift=4.0)
    options = {"l2": 0.01} if "l2" in kind.option_names() else {}
    fit, moved = (kind.fit(x, labels, **options)(x) for x in (scores, scores * scale + shift))
    assert_allclose(moved, fit, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ALL)
def test_weights_are_repetitions_and_points_are_trials(kind):
    scores, labels = simulated(200, shift=2.0 if kind in SUPERVISED else 6.0)
    times = np.random.default_rng(1).integers(0, 4, 200)
    weighted = kind.fit(scores, labels, weights=times)(scores)
    assert_allclose(
        kind.fit(np.repeat(scores, times), np.repeat(labels, times))(scores), weighted, rtol=1e-6, atol=1e-6
    )
    points = Points.from_scores(scores, labels, times.astype(float))
    assert_allclose(kind.fit(points)(scores), weighted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", SUPERVISED)
def test_calibration_lowers_the_loss_and_keeps_or_pools_the_order(kind):
    scores, labels = simulated(3000, shift=3.0)
    before, after = (evaluate(x, labels) for x in (scores, kind.fit(scores, labels)(scores)))
    assert after.cllr < before.cllr
    assert after.calibration_loss < 0.03
    assert after.min_cllr == pytest.approx(before.min_cllr, abs=0.01)


@pytest.mark.parametrize("kind", SUPERVISED)
def test_calibrated_scores_are_left_nearly_alone(kind):
    labels = np.tile([0, 1], 50_000)
    scores, x = np.random.default_rng(0).normal((labels - 0.5) * 4, 2.0), np.linspace(-3, 3, 13)
    assert_allclose(kind.fit(scores, labels)(x), x, atol=0.3 if kind is PavCalibration else 0.06)


@pytest.mark.parametrize("kind", ALL)
def test_missing_scores_stay_missing_and_infinite_ones_are_refused(kind):
    scores, labels = simulated(300, shift=5.0)
    options = {"l2": 1e-3} if "l2" in kind.option_names() else {}
    fit = kind.fit(np.append(scores, np.nan), np.append(labels, -1), **options)
    assert np.isnan(fit([np.nan, 1.0])).tolist() == [True, False]
    assert fit(np.float32(2.0)).shape == ()
    if kind is not PavCalibration:
        with pytest.raises(InputError):
            fit([np.inf])
        with pytest.raises(InputError):
            kind.fit(np.append(scores, np.inf), np.append(labels, 1), **options)
    if kind is not UnsupervisedCalibration:
        for wrong in ((scores, None), (scores, np.zeros(300, int)), (scores, labels[:-1]), (scores, labels * 2)):
            with pytest.raises(InputError):
                kind.fit(*wrong, **options)
