"""The saturating calibration: its formula, its bounds, and the shares that cross-validation chooses."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import minimize
from tests.reference.naive_calibration import naive_saturated

from evenscore import InputError, LogisticCalibration, SaturatingCalibration, cllr
from evenscore.calibrate import saturating
from evenscore.calibrate.saturating import SHARES, _loss, _Weighted, saturated
from examples import examples


def scores_with_outliers(n_target=300, n_nontarget=3000, odd=6, seed=0):
    rng = np.random.default_rng(seed)
    scores = np.concatenate([rng.normal(0, 1, n_nontarget), rng.normal(5, 1, n_target - odd), rng.normal(0, 1, odd)])
    return scores, np.repeat([0, 1], [n_nontarget, n_target])


@given(
    st.lists(st.floats(-60, 60), min_size=1, max_size=20),
    st.floats(0, 0.4),
    st.floats(0, 0.4),
)
@examples(60)
def test_formula_and_bounds(llrs, e, d):
    found = saturated(np.array(llrs), e, d)
    assert found == pytest.approx([naive_saturated(z, e, d) for z in llrs], rel=1e-9, abs=1e-9)
    if e > 0:
        assert found.min() >= np.log(e) - 1e-9
    if d > 0:
        assert found.max() <= -np.log(d) + 1e-9
    order = np.argsort(llrs)
    assert (np.diff(found[order]) >= -1e-9).all()


def test_the_gradient_is_that_of_the_loss():
    scores, labels = scores_with_outliers(60, 100)
    data = [_Weighted.of(scores[labels == label]) for label in (0, 1)]
    theta, step = np.array([0.7, -2.0]), 1e-6
    value, gradient = _loss(theta, data, (0.02, 0.01), 0.3)
    for at in range(2):
        moved = theta + step * np.eye(2)[at]
        assert (_loss(moved, data, (0.02, 0.01), 0.3)[0] - value) / step == pytest.approx(gradient[at], abs=1e-5)


def test_without_outliers_it_is_the_logistic_calibration():
    scores, labels = scores_with_outliers(odd=0)
    plain = LogisticCalibration.fit(scores, labels)
    fit = SaturatingCalibration.fit(scores, labels, target_outliers=0.0, nontarget_outliers=0.0)
    assert (fit.weight, fit.offset) == (plain.weights[0], plain.offset)
    assert fit.bounds == (-np.inf, np.inf)
    assert fit([1.0, 2.0]) == pytest.approx(plain([1.0, 2.0]))


def test_the_affine_map_minimizes_the_loss():
    scores, labels = scores_with_outliers()
    fit = SaturatingCalibration.fit(scores, labels, target_outliers=0.02, nontarget_outliers=0.001, p_target=0.2)

    def loss(theta):
        odds = np.exp(theta[0] * scores + theta[1])
        llr = np.log((0.98 * odds + 0.02) / (0.999 + 0.001 * odds))
        odds = llr + np.log(0.2 / 0.8)
        return 0.2 * np.logaddexp(0, -odds[labels == 1]).mean() + 0.8 * np.logaddexp(0, odds[labels == 0]).mean()

    found = minimize(loss, [1.0, -2.0], method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-12}).x
    assert loss([fit.weight, fit.offset]) == pytest.approx(loss(found), rel=1e-3)  # it is held by a tiny penalty
    assert [fit.weight, fit.offset] == pytest.approx(found, rel=0.05)


def test_outliers_are_found_and_the_loss_falls_on_new_trials():
    fit = SaturatingCalibration.fit(*scores_with_outliers())
    assert 0.01 <= fit.target_outliers <= 0.03
    new, key = scores_with_outliers(seed=1)
    assert cllr(fit(new), key) < 0.85 * cllr(LogisticCalibration.fit(*scores_with_outliers())(new), key)


def test_folds_of_speakers_and_of_trials():
    scores, labels = scores_with_outliers()
    speakers = np.arange(len(scores)) % 20
    test = np.where(labels == 1, speakers, (speakers + 1 + np.arange(len(scores)) % 7) % 20)
    fit = SaturatingCalibration.fit(scores, labels, enroll_speakers=speakers, test_speakers=test)
    assert fit.target_outliers in SHARES
    with pytest.raises(InputError, match="give both"):
        SaturatingCalibration.fit(scores, labels, enroll_speakers=speakers)
    with pytest.raises(InputError, match="folds is 1"):
        SaturatingCalibration.fit(scores, labels, folds=1)


def test_single_target_needs_no_folds():
    scores = np.append(np.linspace(-2, 2, 30), 1.0)
    labels = np.append(np.zeros(30, dtype=int), 1)
    fit = SaturatingCalibration.fit(scores, labels)
    assert (fit.target_outliers, fit.nontarget_outliers) == (0.0, 0.0)


def test_missing_scores_stay_missing_and_odd_values_are_refused():
    fit = SaturatingCalibration(weight=1.0, offset=0.0, target_outliers=0.1, nontarget_outliers=0.2)
    assert np.isnan(fit([np.nan, 0.0])).tolist() == [True, False]
    for wrong in ({"target_outliers": -0.1}, {"nontarget_outliers": 0.5}, {"weight": np.nan}, {"p_target": 1.0}):
        values = {"weight": 1.0, "offset": 0.0, "target_outliers": 0.1, "nontarget_outliers": 0.2} | wrong
        with pytest.raises(InputError, match=next(iter(wrong))):
            SaturatingCalibration(**values)
    with pytest.raises(InputError, match="p_target"):
        SaturatingCalibration.fit([0.0, 1.0, 0.5], [0, 1, 0], p_target=0)
    with pytest.raises(InputError, match="target_outliers"):
        SaturatingCalibration.fit([0.0, 1.0, 0.5], [0, 1, 0], target_outliers=0.7)


@pytest.mark.parametrize("far", [-1e3, -1e9])
def test_a_single_score_that_is_far_away_does_not_flatten_the_rest(far):
    scores, labels = scores_with_outliers(odd=0)
    scores[labels == 1] = np.append(scores[labels == 1][1:], far)
    fit = SaturatingCalibration.fit(scores, labels)
    assert fit.target_outliers > 0
    assert fit.weight > 2


def test_classes_that_are_free_of_errors_without_their_outliers_keep_finite_weights():
    scores, labels = np.append(np.linspace(-1, 1, 200), np.linspace(9, 11, 50)), np.repeat([0, 1], [200, 50])
    odd = np.append(scores, [0.0, 0.5]), np.append(labels, [1, 1])
    fit = SaturatingCalibration.fit(*odd, target_outliers=0.03, nontarget_outliers=0.0)
    assert fit(9.0) < 30


def test_scores_that_separate_the_classes_need_a_penalty():
    scores, labels = np.append(np.linspace(-1, 1, 50), np.linspace(4, 6, 20)), np.repeat([0, 1], [50, 20])
    with pytest.raises(InputError, match="give a penalty such as l2"):
        SaturatingCalibration.fit(scores, labels)
    fit, plain = (kind.fit(scores, labels, l2=0.001) for kind in (SaturatingCalibration, LogisticCalibration))
    assert (fit.weight, fit.offset) == (plain.weights[0], plain.offset)
    given = SaturatingCalibration.fit(scores, labels, l2=0.001, target_outliers=1e-9, nontarget_outliers=0.0)
    assert [given.weight, given.offset] == pytest.approx([fit.weight, fit.offset], rel=1e-4)


def test_the_logistic_candidate_is_judged_on_trials_that_it_was_not_fitted_to():
    parts, hows = [], []
    original = saturating._chosen_shares

    def spy(folds, grids, how):
        parts.extend(folds)
        hows.append(how)
        return original(folds, grids, how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saturating, "_chosen_shares", spy)
        SaturatingCalibration.fit(*scores_with_outliers())
    fits = [saturating._fit_affine(use, (0.0, 0.0), hows[0]) for use, _ in parts]
    assert len(set(fits)) == len(parts) == 5
