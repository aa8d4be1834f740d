"""Each calibration against its definition, outside programs and the laws it must obey."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose
from scipy.stats import norm, t

from evenscore import InputError, TrialList
from evenscore.calibrate import (
    BayesianCalibration,
    GaussianCalibration,
    LogisticCalibration,
    NormalGammaPrior,
    PavCalibration,
    UnsupervisedCalibration,
)
from evenscore.calibrate.logistic_regression import Design, objective
from evenscore.calibrate.unsupervised import Mixture, em_step, fit_mixture
from evenscore.metrics import cllr, evaluate, min_cllr
from reference import naive_calibration as naive

GOLDEN = json.loads((Path(__file__).parent / "golden" / "scikit-learn.json").read_text(encoding="utf-8"))
SUPERVISED = [GaussianCalibration, LogisticCalibration, PavCalibration, BayesianCalibration]


def simulated(size=400, seed=0, share=0.3, shift=2.0, scale=1.0):
    rng = np.random.default_rng(seed)
    labels = (rng.random(size) < share).astype(int)
    return rng.normal(shift * labels, scale), labels


def calibrated(size=200_000, seed=0, d=2.0):
    """Simulate scores that are their own LLRs: N(d²/2, d²) for targets, N(-d²/2, d²) for non-targets."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(size) < 0.5).astype(int)
    return rng.normal((labels - 0.5) * d**2, d), labels


# ---------------------------------------------------------------------------------------------------- Gaussian


def test_gaussian_is_the_ratio_of_two_densities():
    scores, labels = simulated()
    fit = GaussianCalibration.fit(scores, labels)
    x = np.linspace(-4, 6, 11)
    tar, non = scores[labels == 1], scores[labels == 0]
    expected = norm.logpdf(x, tar.mean(), tar.std()) - norm.logpdf(x, non.mean(), non.std())
    assert_allclose(fit(x), expected, atol=1e-12)


def test_shared_variance_is_the_limit_of_equal_variances_and_linear():
    scores, labels = simulated()
    fit = GaussianCalibration.fit(scores, labels, shared_variance=True)
    x = np.linspace(-1e4, 1e4, 9)
    assert_allclose(np.diff(fit(x), 2), 0.0, atol=1e-9)
    near = GaussianCalibration(mean=fit.mean, variance=fit.variance * [1, 1 + 1e-9])
    assert_allclose(near([-3.0, 0.0, 3.0]), fit([-3.0, 0.0, 3.0]), atol=1e-6)
    within = np.concatenate([scores[labels == k] - scores[labels == k].mean() for k in (0, 1)])
    assert fit.variance[0] == pytest.approx(np.mean(within**2))


@pytest.mark.parametrize("shared", [True, False])
@given(scale=st.floats(0.1, 50), shift=st.floats(-100, 100))
def test_gaussian_llrs_do_not_depend_on_the_unit_of_the_scores(shared, scale, shift):
    scores, labels = simulated(100)
    fit = GaussianCalibration.fit(scores, labels, shared_variance=shared)
    moved = GaussianCalibration.fit(scores * scale + shift, labels, shared_variance=shared)
    assert_allclose(moved(scores * scale + shift), fit(scores), rtol=1e-6, atol=1e-6)


def test_gaussian_refuses_scores_that_do_not_vary():
    with pytest.raises(InputError, match="the 2 target scores do not vary"):
        GaussianCalibration.fit([1.0, 2.0, 5.0, 5.0], [0, 0, 1, 1])
    assert GaussianCalibration.fit([1.0, 2.0, 5.0, 5.0], [0, 0, 1, 1], shared_variance=True).variance[0] == 0.125
    with pytest.raises(InputError, match="do not vary"):
        GaussianCalibration.fit([1.0, 5.0], [0, 1], shared_variance=True)


# ---------------------------------------------------------------------------------------------------- logistic


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


@given(st.integers(0, 1000), st.sampled_from([0.5, 0.05, 0.9]), st.sampled_from([0.0, 0.01]))
def test_logistic_gradient_is_zero_and_right(seed, p_target, l2):
    rng = np.random.default_rng(seed)
    labels = np.array([0, 1] * 20)
    columns = rng.normal(labels[:, None], 2.0, size=(40, 2))
    design = Design.of(columns[labels == 0], columns[labels == 1], 2)
    fit = LogisticCalibration.fit(columns, labels, p_target=p_target, l2=l2)
    theta = np.append(fit.weights * design.std, fit.offset + fit.weights @ design.mean)
    assert np.abs(objective(theta, design, p_target, l2).gradient).max() < 1e-12
    at = rng.normal(size=3)
    here = objective(at, design, p_target, l2)
    for k, step in enumerate(np.eye(3) * 1e-5):
        up, down = (objective(at + sign * step, design, p_target, l2) for sign in (1, -1))
        assert here.gradient[k] == pytest.approx((up.value - down.value) / 2e-5, abs=1e-8)
        assert_allclose(here.hessian[k], (up.gradient - down.gradient) / 2e-5, atol=1e-8)


@given(scale=st.floats(0.01, 100), shift=st.floats(-100, 100), l2=st.sampled_from([0.0, 0.01]))
def test_logistic_llrs_do_not_depend_on_the_unit_of_the_scores(scale, shift, l2):
    scores, labels = simulated(100)
    fit = LogisticCalibration.fit(scores, labels, l2=l2)
    moved = LogisticCalibration.fit(scores * scale + shift, labels, l2=l2)
    assert_allclose(moved(scores * scale + shift), fit(scores), rtol=1e-6, atol=1e-6)


def test_logistic_with_prior_one_half_minimizes_cllr():
    scores, labels = simulated()
    fit = LogisticCalibration.fit(scores, labels)
    best = cllr(fit(scores), labels)
    for change in ([0.01, 0.0], [-0.01, 0.0], [0.0, 0.01], [0.0, -0.01]):
        other = (fit.weights[0] + change[0]) * scores + fit.offset + change[1]
        assert cllr(other, labels) > best


def test_fusion_is_better_than_each_system_and_quality_helps_where_it_matters():
    rng = np.random.default_rng(0)
    labels = np.tile([0, 1], 2000)
    first, second = (rng.normal(1.5 * labels, 1.0) for _ in range(2))
    duration = rng.exponential(size=labels.size)
    first = first + 2.0 * duration
    both = np.stack((first, second), axis=1)
    single = [cllr(LogisticCalibration.fit(s, labels)(s), labels) for s in (first, second)]
    fusion = LogisticCalibration.fit(both, labels)
    assert cllr(fusion(both), labels) < min(single)
    informed = LogisticCalibration.fit(both, labels, quality=duration)
    assert cllr(informed(both, duration), labels) < cllr(fusion(both), labels) - 0.02
    assert informed.quality_weights[0] < 0
    same = LogisticCalibration.fit(np.column_stack((both, duration)), labels)
    assert_allclose(same(np.column_stack((both, duration))), informed(both, duration[:, None]), atol=1e-9)


def test_logistic_shapes():
    scores, labels = simulated(50)
    fit = LogisticCalibration.fit(scores, labels)
    assert fit(scores.reshape(5, 10)).shape == (5, 10)
    assert fit(1.0).shape == ()
    assert LogisticCalibration.fit(scores[:, None], labels) == fit
    pair = LogisticCalibration.fit(np.stack((scores, scores**2), axis=1), labels, quality=np.cos(scores))
    assert pair(np.ones((3, 4, 2)), np.ones((3, 4))).shape == (3, 4)
    for values, quality, message in [
        (np.ones(3), np.ones(3), "last axis must hold 2 systems"),
        (np.ones((3, 2)), None, "uses 1 quality measures"),
        (np.ones((3, 2)), np.ones((3, 2)), "quality has shape"),
    ]:
        with pytest.raises(InputError, match=message):
            pair(values, quality)
    with pytest.raises(InputError, match="uses 0 quality measures"):
        fit(scores, scores)


def test_measures_that_tell_nothing_new_get_no_weight_and_change_nothing():
    rng = np.random.default_rng(3)
    labels = rng.random(400) < 0.3
    scores, sides = rng.normal(2.0 * labels, 1.0), rng.normal(3.0, 1.0, (2, 400))
    low, high = sides.min(axis=0), sides.max(axis=0)
    told = np.column_stack((low, high, high - low, np.full(400, 7.0), 2 * scores + 1))
    plain = LogisticCalibration.fit(scores, labels, quality=told[:, :2])
    fitted = LogisticCalibration.fit(scores, labels, quality=told)
    assert fitted.unused_measures == [2, 3, 4]
    np.testing.assert_allclose(fitted.quality_weights[:2], plain.quality_weights)
    np.testing.assert_allclose(fitted(scores, told), plain(scores, told[:, :2]))
    rounded = LogisticCalibration.fit(scores, labels, quality=told[:, :3].round(4))
    assert rounded.unused_measures == [2]
    penalized = LogisticCalibration.fit(scores, labels, quality=told, l2=0.1)
    assert penalized.unused_measures == [3]


@pytest.mark.parametrize(
    ("scores", "labels", "options", "message"),
    [
        ([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1], {}, "separate targets from non-targets"),
        ([4.0, 3.0, 2.0, 1.0], [0, 0, 1, 1], {}, "separate targets from non-targets"),
        ([1.0, 2.0, 2.0, 4.0], [0, 0, 1, 1], {}, "separate targets from non-targets"),
        ([1.0, 1.0, 1.0], [0, 0, 1], {}, "system 0's scores are the same"),
        ([1.0, 0.0], [0, 1], {"p_target": 1.0}, "p_target is 1.0"),
        ([1.0, 0.0], [0, 1], {"l2": -1.0}, "l2 is -1.0"),
        ([1.0, np.nan], [0, 1], {}, r"scores\[1\] is not finite"),
        ([1.0, 0.0], [0, 1], {"quality": [np.inf, 0]}, r"quality\[0\] is not finite"),
        ([1.0, 0.0], [0, 1], {"quality": [1.0]}, "quality has 1 rows"),
        ([1.0, 0.0], [0, 0], {}, "0 target and 2 non-target"),
        (["a", "b"], [0, 1], {}, "n numbers or n x k"),
        ([1.0, 0.0], None, {}, "labels are missing"),
    ],
)
def test_logistic_refuses_what_it_cannot_fit(scores, labels, options, message):
    with pytest.raises(InputError, match=message):
        LogisticCalibration.fit(scores, labels, **options)


def test_a_penalty_makes_separated_classes_possible():
    fit = LogisticCalibration.fit([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1], l2=0.01)
    assert np.isfinite(fit.weights).all()
    assert (fit([1.0, 4.0]) * [-1, 1] > 0).all()


def test_logistic_is_stable_for_huge_scores():
    scores, labels = simulated(200, shift=1.0)
    fit = LogisticCalibration.fit(scores * 1e4 + 1e6, labels)
    assert_allclose(fit(scores * 1e4 + 1e6), LogisticCalibration.fit(scores, labels)(scores), atol=1e-6)


# ---------------------------------------------------------------------------------------------------- PAV

ties = st.lists(st.tuples(st.integers(-4, 4).map(float), st.sampled_from([0, 1])), min_size=2, max_size=14).filter(
    lambda trials: {k for _, k in trials} == {0, 1}
)


@given(ties, st.sampled_from([0.0, 0.5, 1.0, 3.0]))
def test_pav_equals_the_max_min_formula(trials, smoothing):
    scores, labels = [s for s, _ in trials], [k for _, k in trials]
    llr = PavCalibration.fit(scores, labels, smoothing=smoothing)(scores)
    assert_allclose(llr, naive.pav_llr(scores, labels, smoothing), atol=1e-9)


@given(ties)
def test_pav_without_smoothing_reaches_the_minimum_cllr(trials):
    scores, labels = [s for s, _ in trials], [k for _, k in trials]
    llr = PavCalibration.fit(scores, labels, smoothing=0)(scores)
    assert cllr(llr, labels) == pytest.approx(min_cllr(scores, labels), abs=1e-12)
    assert min_cllr(llr, labels) == pytest.approx(min_cllr(scores, labels), abs=1e-12)


@given(ties, st.sampled_from([0.0, 1.0]))
def test_pav_rises_and_does_not_depend_on_the_unit(trials, smoothing):
    scores, labels = np.array([s for s, _ in trials]), [k for _, k in trials]
    fit = PavCalibration.fit(scores, labels, smoothing=smoothing)
    grid = np.linspace(-9, 9, 73)
    assert (np.diff(fit.llr) >= 0).all()
    assert np.array_equal(fit(grid), np.sort(fit(grid)))
    assert np.array_equal(PavCalibration.fit(scores * 4 - 2, labels, smoothing=smoothing)(grid * 4 - 2), fit(grid))
    if smoothing:
        assert np.isfinite(fit.llr).all()


def test_pav_agrees_with_scikit_learn():
    scores, labels = np.round(np.array(GOLDEN["systems"])[:, 0], 1), np.array(GOLDEN["labels"])
    posterior = np.array(GOLDEN["isotonic_posterior"])
    with np.errstate(divide="ignore"):
        expected = np.log(posterior / (1 - posterior)) - np.log(labels.mean() / (1 - labels.mean()))
    assert_allclose(PavCalibration.fit(scores, labels, smoothing=0)(scores), expected, atol=1e-9)


def test_smoothing_bounds_the_llr_by_the_number_of_trials():
    fit = PavCalibration.fit([0.0] * 100 + [1.0] * 50, [0] * 100 + [1] * 50)
    assert fit.edges.tolist() == [0.5]
    low = np.log((1 / 50) / (100 / 100 + 1 / 50))
    high = np.log((50 / 50 + 1 / 100) / (1 / 100))
    assert_allclose(fit.llr, [low, high], rtol=1e-12)


def test_pav_of_useless_scores_says_nothing():
    assert PavCalibration.fit([1.0] * 9, [1, 0, 0] * 3)([-5.0, 1.0, 5.0]).tolist() == [0.0, 0.0, 0.0]
    inverted = PavCalibration.fit([3.0, 2.0, 1.0, 0.0], [0, 0, 0, 1])
    assert_allclose(inverted([-9.0, 1.5, 9.0]), 0.0, atol=1e-12)


def test_pav_takes_infinite_scores_and_keeps_missing_ones():
    scores, labels = [-np.inf, -np.inf, 0.0, 1.0, np.inf], [0, 0, 1, 0, 1]
    fit = PavCalibration.fit(scores, labels, smoothing=0)
    assert fit([-np.inf, 0.0, np.inf]).tolist() == [-np.inf, fit(0.5), np.inf]
    assert np.isnan(fit([np.nan, 0.0])).tolist() == [True, False]
    assert np.isfinite(PavCalibration.fit(scores, labels)(scores)).all()


def test_neighbouring_floats_are_told_apart():
    low = 1.0
    high = np.nextafter(low, 2.0)
    fit = PavCalibration.fit([low, high], [0, 1], smoothing=0)
    assert fit([low, high]).tolist() == [-np.inf, np.inf]
    single = PavCalibration.fit(np.array([1, np.nextafter(np.float32(1), np.float32(2))], np.float32), [0, 1])
    assert np.diff(single(np.array([1, np.nextafter(np.float32(1), np.float32(2))], np.float32)))[0] > 0


def test_pav_refuses_bad_options():
    with pytest.raises(InputError, match="smoothing is -1"):
        PavCalibration.fit([0.0, 1.0], [0, 1], smoothing=-1)
    with pytest.raises(InputError, match=r"scores\[0\] is nan"):
        PavCalibration.fit([np.nan, 1.0], [0, 1])


# ---------------------------------------------------------------------------------------------------- Bayesian


@pytest.mark.parametrize(
    "prior",
    [
        NormalGammaPrior(),
        NormalGammaPrior(mean=1.0, mean_count=2.0, shape=1.5, rate=2.0),
        NormalGammaPrior(shape=1.0, rate=1.0),
    ],
)
def test_bayesian_llr_is_the_ratio_of_integrals_over_the_parameters(prior):
    non, tar = [0.0, 0.7, -0.4, 0.3], [2.0, 3.5, 1.2]
    fit = BayesianCalibration.fit(non + tar, [0] * 4 + [1] * 3, nontarget_prior=prior, target_prior=prior)
    options = vars(prior)
    for score in (-3.0, 0.5, 2.0, 8.0):
        expected = math.log(naive.predictive(score, tar, **options) / naive.predictive(score, non, **options))
        assert fit(score) == pytest.approx(expected, rel=1e-6)


def test_bayesian_llr_is_a_ratio_of_student_densities():
    scores, labels = simulated(12)
    fit = BayesianCalibration.fit(scores, labels)
    x = np.linspace(-50, 50, 11)
    expected = 0.0
    for k, sign in ((1, 1), (0, -1)):
        side = scores[labels == k]
        scale = side.std(ddof=1) * np.sqrt(1 + 1 / side.size)
        expected = expected + sign * t.logpdf(x, side.size - 1, side.mean(), scale)
    assert_allclose(fit(x), expected, atol=1e-10)


@pytest.mark.parametrize("shared", [True, False])
def test_bayesian_becomes_gaussian_with_much_data_and_stays_modest_with_little(shared):
    kinds = BayesianCalibration, GaussianCalibration
    scores, labels = simulated(100_000)
    x = np.linspace(-3, 5, 9)
    many, gaussian = (kind.fit(scores, labels, shared_variance=shared) for kind in kinds)
    assert_allclose(many(x), gaussian(x), atol=1e-2)
    few, gaussian = (kind.fit(scores[:12], labels[:12], shared_variance=shared) for kind in kinds)
    far = np.array([-8.0, 9.0])
    assert (np.abs(few(far)) < np.abs(gaussian(far))).all()


def test_strong_priors_outweigh_scores():
    belief = NormalGammaPrior(mean=0.0, mean_count=1e9, shape=1e9, rate=1e9)
    other = NormalGammaPrior(mean=4.0, mean_count=1e9, shape=1e9, rate=1e9)
    fit = BayesianCalibration.fit([3.0, 3.0], [0, 1], nontarget_prior=belief, target_prior=other)
    assert_allclose(fit([0.0, 2.0, 4.0]), [-8.0, 0.0, 8.0], atol=1e-4)


def test_millions_of_degrees_of_freedom_keep_their_digits():
    mean, spread = np.array([0.0, 3.0]), np.array([1.0, 2.0])
    fit = BayesianCalibration(mean=mean, scale2=spread, df=[1e9, 1e9])
    assert_allclose(fit([-1.0, 1.0, 4.0]), GaussianCalibration(mean=mean, variance=spread)([-1.0, 1.0, 4.0]), atol=1e-7)


def test_bayesian_refuses_what_the_scores_do_not_determine():
    with pytest.raises(InputError, match="2 non-target and 1 target scores do not determine the variance"):
        BayesianCalibration.fit([1.0, 2.0, 5.0], [0, 0, 1])
    shared = BayesianCalibration.fit([1.0, 2.0, 5.0], [0, 0, 1], shared_variance=True)
    assert shared.df.tolist() == [1.0, 1.0]
    with pytest.raises(InputError, match="rate is -1"):
        NormalGammaPrior(rate=-1)
    with pytest.raises(InputError, match="mean is nan"):
        NormalGammaPrior(mean=math.nan)


# ---------------------------------------------------------------------------------------------------- unsupervised


def test_mixture_agrees_with_scikit_learn():
    fit = UnsupervisedCalibration.fit(GOLDEN["unlabelled"])
    golden = GOLDEN["mixture"]
    assert_allclose(fit.mean, golden["mean"], atol=2e-3)
    assert_allclose(fit.variance, golden["variance"], atol=5e-3)
    assert fit.p_target == pytest.approx(golden["p_target"], abs=1e-3)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("p_target", [None, 0.2])
def test_every_em_step_raises_the_likelihood(shared, p_target):
    scores = np.array(GOLDEN["unlabelled"])
    mixture = Mixture(mean=np.array([-1.0, 0.5]), variance=np.array([4.0, 4.0]), p_target=p_target or 0.5)
    values = []
    for _ in range(60):
        mixture, value = em_step(scores, np.ones(len(scores)), mixture, p_target, shared)
        values.append(value)
    assert min(np.diff(values)) > -1e-12
    assert values[-1] > values[0] + 0.1
    if p_target is not None:
        assert mixture.p_target == p_target


@pytest.mark.parametrize("share", [0.5, 0.1, 0.02])
def test_unlabelled_scores_are_calibrated_nearly_as_well_as_labelled_ones(share):
    scores, labels = simulated(20_000, share=share, shift=5.0)
    free, given_share = (UnsupervisedCalibration.fit(scores, p_target=p) for p in (None, share))
    best = cllr(GaussianCalibration.fit(scores, labels)(scores), labels)
    assert cllr(free(scores), labels) < best + 0.01
    assert cllr(given_share(scores), labels) < best + 0.01
    assert free.p_target == pytest.approx(share, abs=0.01)
    assert given_share.p_target == share
    linear = UnsupervisedCalibration.fit(scores, shared_variance=True)
    assert linear.variance[0] == linear.variance[1]


def test_mixture_does_not_depend_on_the_order_or_the_unit():
    scores = np.array(GOLDEN["unlabelled"])
    fit, shuffled = UnsupervisedCalibration.fit(scores), UnsupervisedCalibration.fit(scores[::-1])
    assert fit == shuffled
    moved = UnsupervisedCalibration.fit(scores * 10 + 3)
    assert_allclose(moved(scores * 10 + 3), fit(scores), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.random.default_rng(0).normal(size=2000), "one Gaussian explains the scores as well|overlap"),
        (np.random.default_rng(0).standard_t(3, size=2000), "overlap"),
        (np.arange(10.0), "there are 10 scores, too few"),
        (np.full(50, 2.0), "all scores are equal"),
        (np.append(np.random.default_rng(0).normal(size=500), [60.0, 61.0]), "only 2.0 trials"),
        (np.repeat([0.0, 1.0], 50), "shrinks to a point"),
        (np.append(np.arange(30.0), np.inf), r"scores\[30\] is not finite"),
    ],
)
def test_scores_that_do_not_show_two_groups_are_refused(scores, message):
    with pytest.raises(InputError, match=message):
        UnsupervisedCalibration.fit(scores)


def test_unsupervised_checks_its_options():
    with pytest.raises(InputError, match="p_target is 0"):
        UnsupervisedCalibration.fit(GOLDEN["unlabelled"], p_target=0)
    assert fit_mixture(np.repeat([0.0, 1.0], 50), np.ones(100), None, False) is None


# ---------------------------------------------------------------------------------------------------- all


@pytest.mark.parametrize("kind", SUPERVISED)
def test_calibrated_scores_are_left_nearly_alone(kind):
    scores, labels = calibrated()
    x = np.linspace(-3, 3, 13)
    assert_allclose(kind.fit(scores, labels)(x), x, atol=0.25 if kind is PavCalibration else 0.05)


@pytest.mark.parametrize("kind", SUPERVISED)
def test_calibration_lowers_the_loss_and_keeps_or_pools_the_order(kind):
    scores, labels = simulated(3000, shift=3.0)
    llr = kind.fit(scores, labels)(scores)
    before, after = evaluate(scores, labels), evaluate(llr, labels)
    assert after["cllr"] < before["cllr"]
    assert after["calibration_loss"] < 0.03
    assert after["min_cllr"] == pytest.approx(before["min_cllr"], abs=0.01)


@pytest.mark.parametrize("kind", [*SUPERVISED, UnsupervisedCalibration])
def test_inputs_may_be_lists_integers_single_precision_and_trial_lists(kind):
    scores, labels = simulated(300, shift=5.0)
    scores = np.round(scores * 4)
    fit = kind.fit(scores, labels, **({"l2": 1e-3} if kind is LogisticCalibration else {}))
    options = {"l2": 1e-3} if kind is LogisticCalibration else {}
    trials = TrialList.from_pairs(np.arange(300), np.arange(300), scores=scores, labels=labels)
    unknown = np.append(labels, -1)
    assert kind.fit(scores.tolist(), labels.tolist(), **options) == fit
    assert kind.fit(scores.astype(int), labels.astype(bool), **options) == fit
    assert kind.fit(scores.astype(np.float32), labels.astype(np.int8), **options) == fit
    assert kind.fit(trials, **options) == fit
    if kind is not UnsupervisedCalibration:
        assert kind.fit(np.append(scores, 99.0), unknown, **options) == fit
    assert np.array_equal(fit(scores.astype(np.float32).reshape(3, 100)), fit(scores).reshape(3, 100))
    assert fit(5).shape == ()


@pytest.mark.parametrize(
    "kind", [GaussianCalibration, BayesianCalibration, LogisticCalibration, UnsupervisedCalibration]
)
def test_missing_scores_stay_missing_and_infinite_ones_are_refused(kind):
    scores, labels = simulated(200, shift=5.0)
    fit = kind.fit(scores, labels, **({"l2": 1e-3} if kind is LogisticCalibration else {}))
    assert np.isnan(fit([np.nan, 1.0])).tolist() == [True, False]
    with pytest.raises(InputError, match="infinite"):
        fit([np.inf])
    with pytest.raises(InputError, match="finite"):
        kind.fit(np.append(scores, np.inf), np.append(labels, 1))
    assert np.isfinite(fit([-1e4, 1e4])).all()
