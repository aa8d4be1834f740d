"""Logistic regression of many trials begins at the optimum of some of them, and ends where it always did."""

import numpy as np
import pytest

from evenscore import LogisticCalibration
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
