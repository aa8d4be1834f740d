"""Logistic regression of many trials begins at the optimum of some of them, and ends where it always did."""

import numpy as np
import pytest

from evenscore import InputError, LogisticCalibration
from evenscore.calibrate import logistic_regression

RNG = np.random.default_rng(0)
LABELS = np.arange(900) % 3 == 0
SCORES = RNG.normal(size=(900, 3)) + LABELS[:, None] * [1.0, 0.5, 0.0]


@pytest.mark.parametrize("l2", [0.0, 0.1])
@pytest.mark.parametrize("some", [3, 20, 150])
def test_the_optimum_is_the_same_wherever_it_begins(monkeypatch, some, l2):
    expected = LogisticCalibration.fit(SCORES, LABELS, p_target=0.2, l2=l2)
    monkeypatch.setattr(logistic_regression, "_SOME", some)
    found = LogisticCalibration.fit(SCORES, LABELS, p_target=0.2, l2=l2)
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-9, atol=1e-12)
    assert found.offset == pytest.approx(expected.offset, rel=1e-9)


def test_some_trials_may_be_separated_where_all_are_not(monkeypatch):
    scores = np.where(LABELS, 2.0, -2.0) + 0.1 * RNG.normal(size=900)
    scores[[1, 3]] = 2.0, -2.0  # which are not among the some
    expected = LogisticCalibration.fit(scores, LABELS)
    monkeypatch.setattr(logistic_regression, "_SOME", 10)
    assert LogisticCalibration.fit(scores, LABELS).weights == pytest.approx(expected.weights, rel=1e-9)


def test_a_curvature_of_nothing_but_rounding_is_no_convergence():
    """Found by the campaign: two systems of which one is lost in the other's rounding."""
    flat = logistic_regression.Objective(
        value=1.0, gradient=np.ones(2), hessian=np.zeros((2, 2)), lowest=np.full(2, -1.0)
    )
    with pytest.raises(InputError, match="does not converge"):
        logistic_regression.newton(lambda _: flat, flat, np.zeros(1), np.ones(1), 0.0)
