"""Training trials without errors: logistic regression would have no end, so slopes are held to what is usual."""

import numpy as np
import pytest

from evenscore import LogisticCalibration
from evenscore.evidence import TrainingReport
from evenscore.evidence.head import _calibrated

REPORT = {"n_target": 60, "n_nontarget": 800, "n_speakers": 15, "folds": 5, "loss": 0.01}


def drawn(gap, n_target, seed=0):
    rng = np.random.default_rng(seed)
    labels = (np.arange(10 * n_target) % 10 == 0).astype(np.int8)
    return rng.normal(size=len(labels)) + gap * labels, labels


def objective(slope, offset, values, labels):
    """Return (H4), written out."""
    sides = [values[labels == label] for label in (0, 1)]
    usual = 0.4 * (sides[1].mean() - sides[0].mean()) / np.mean([side.var() for side in sides])
    non, tar = (slope * side + offset for side in sides)
    loss = 0.5 * np.logaddexp(0, non).mean() + 0.5 * np.logaddexp(0, -tar).mean()
    return loss + np.log(1 + (np.log(slope / usual) / 0.25) ** 2) / (2 * min(len(side) for side in sides))


@pytest.mark.parametrize(("gap", "n_target"), [(1.0, 20), (2.0, 300), (4.0, 20), (9.0, 12), (9.5, 5)])
def test_slopes_minimize_the_penalized_loss(gap, n_target):
    values, labels = drawn(gap, n_target)
    slope, offset = _calibrated(values, labels)
    best = objective(slope, offset, values, labels)
    around = [(slope * (1 + a), offset + b) for a in (-0.5, -0.01, 0, 0.01, 1) for b in (-0.3, -0.01, 0, 0.01, 0.3)]
    assert best <= min(objective(*point, values, labels) for point in around) + 1e-9


def test_separable_trials_have_the_usual_slope():
    values, labels = drawn(12.0, 12)
    assert values[labels == 1].min() > values[labels == 0].max() + 2
    slope, offset = _calibrated(values, labels)
    variance = np.mean([values[labels == label].var() for label in (0, 1)])
    gap = values[labels == 1].mean() - values[labels == 0].mean()
    assert slope == pytest.approx(0.4 * gap / variance, rel=0.05)
    assert 3 < -offset / slope < 9


def test_many_errors_decide_for_themselves():
    values, labels = drawn(2.0, 5000)
    fitted = LogisticCalibration.fit(values, labels)
    assert _calibrated(values, labels) == pytest.approx((fitted.weights[0], fitted.offset), rel=2e-3)


def test_scores_the_wrong_way_round_and_scores_that_say_nothing():
    values, labels = drawn(12.0, 12)
    slope, offset = _calibrated(values, labels)
    assert _calibrated(-values, labels) == pytest.approx((-slope, offset))
    assert _calibrated(np.ones(6), np.array([0, 1] * 3, np.int8)) == (0.0, 0.0)
    assert _calibrated(np.array([1.0, 1, 2, 2]), np.array([0, 1] * 2, np.int8)) == (0.0, 0.0)
    flat = _calibrated(np.array([0.0, 1, 0, 1]), np.array([0, 1] * 2, np.int8))  # no spread within a class
    assert np.isfinite(flat).all()


def test_the_report_tells_of_separable_trials():
    few = TrainingReport(**REPORT, errors={"target": 1, "nontarget": 12})
    assert few.separable
    assert few.lines()[2].startswith("only 1 target and 12 non-target trials are on the wrong side of 0")
    for errors in ({}, {"target": 5, "nontarget": 12}):
        report = TrainingReport(**REPORT, errors=errors)
        assert not report.separable
        assert not any("separable" in line for line in report.lines())
