"""The curves of the plots: few points, no visible change."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import ndtri

from evenscore.metrics import equal_error_rate, roc, sort_scores
from evenscore.report.curves import SMALLEST_RATE, det_curve, det_range, histogram, probit


def distances_to_line(points, line):
    """Return how far each point lies from a line of straight pieces, by trying every piece."""
    start, end = line[:-1], line[1:]
    step = end - start
    length2 = np.maximum((step**2).sum(axis=1), 1e-300)
    nearest = np.full(len(points), np.inf)
    for a, d, l2 in zip(start, step, length2, strict=True):
        t = np.clip((points - a) @ d / l2, 0, 1)
        nearest = np.minimum(nearest, np.linalg.norm(points - (a + t[:, None] * d), axis=1))
    return nearest


def on_probit_axes(curve):
    return np.column_stack([probit(curve.p_fa), probit(curve.p_miss)])


@pytest.mark.parametrize(("targets", "nontargets", "gap"), [(3000, 60000, 2.5), (60000, 3000, 1.0), (50, 99950, 3.0)])
def test_a_thinned_det_curve_has_few_points_and_moves_less_than_half_a_pixel(targets, nontargets, gap):
    rng = np.random.default_rng(targets)
    scores = np.concatenate([rng.normal(gap, 1.2, targets), rng.standard_t(4, nontargets)])
    trials = sort_scores(scores, np.arange(targets + nontargets) < targets)
    whole, thin = roc(trials), det_curve(trials)
    assert thin.p_fa.size <= 500
    shown = on_probit_axes(whole)
    some = shown[:: max(len(shown) // 4000, 1)]
    pixel = 1 / 90  # of a plot that is 700 pixels wide and shows rates from 0.001 % to 90 %
    assert distances_to_line(some, on_probit_axes(thin)).max() < pixel / 2


@given(st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=2, max_size=60), st.integers(2, 20))
def test_thinning_keeps_the_order_and_the_ends_of_any_curve(trials, most):
    scores, labels = zip(*trials, strict=True)
    if len(set(labels)) < 2:
        return
    sorted_trials = sort_scores(np.array(scores, dtype=float), np.array(labels))
    whole, thin = roc(sorted_trials), det_curve(sorted_trials, most)
    assert thin.p_fa.size <= max(most, 2)
    assert (thin.p_fa[0], thin.p_miss[0]) == (1, 0)
    assert np.diff(thin.p_fa).max(initial=0) <= 0
    assert np.diff(thin.p_miss).min(initial=0) >= 0
    corners = set(zip(whole.p_fa.tolist(), whole.p_miss.tolist(), strict=True))
    assert set(zip(thin.p_fa.tolist(), thin.p_miss.tolist(), strict=True)) <= corners
    assert thin.eer == equal_error_rate(sorted_trials).eer


def test_probits_of_impossible_rates_are_finite_and_beyond_what_is_shown():
    assert probit([0.0, 1.0]) == pytest.approx([ndtri(SMALLEST_RATE / 10), -ndtri(SMALLEST_RATE / 10)])
    assert probit(0.2) == pytest.approx(ndtri(0.2))


@pytest.mark.parametrize(
    ("eer", "trials", "expected"),
    [(0.05, 1000, [0.0005, 0.7]), (0.0, 10, [0.05, 0.4]), (0.5, 10**9, [1e-6, 0.99]), (0.02, 10, [0.005, 0.4])],
)
def test_the_axes_show_the_equal_error_rate_and_the_last_trial(eer, trials, expected):
    assert det_range(eer, trials) == pytest.approx(expected)


def test_the_densities_of_a_histogram_are_those_of_numpy():
    rng = np.random.default_rng(1)
    target, nontarget = rng.normal(3, 1, 400), rng.normal(0, 1, 900)
    shown = histogram(sort_scores(np.concatenate([target, nontarget]), np.arange(1300) < 400))
    np.testing.assert_allclose(shown.target, np.histogram(target, shown.edges, density=True)[0])
    np.testing.assert_allclose(shown.nontarget.sum() * np.diff(shown.edges)[0], 1)


def test_a_histogram_leaves_out_a_thousandth_of_far_scores():
    scores = np.concatenate([np.linspace(0, 1, 9998), [1e6, -1e6], np.linspace(2, 3, 100)])
    shown = histogram(sort_scores(scores, np.arange(10100) >= 10000))
    assert shown.edges[0] > -1
    assert shown.edges[-1] == 3


@pytest.mark.parametrize("scores", [[1.0, 1.0, 1.0], [np.inf, np.inf, -np.inf], [0.0, np.inf, 2.0]])
def test_a_histogram_of_odd_scores_is_finite(scores):
    shown = histogram(sort_scores(scores, [1, 1, 0]))
    assert np.isfinite(shown.edges).all()
    assert (np.diff(shown.edges) > 0).all()
    assert np.isfinite(shown.target).all()
