"""Every calibration can be fitted to a summary of the scores, and gives what it gives for the scores themselves."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import (
    BayesianCalibration,
    GaussianCalibration,
    InputError,
    Labels,
    LogisticCalibration,
    PavCalibration,
    SaturatingCalibration,
    ScoreMatrix,
    UnsupervisedCalibration,
)
from evenscore.calibrate import CALIBRATIONS
from evenscore.calibrate.folds import assign_folds, pairs_of_folds
from evenscore.calibrate.tables import calibrated
from evenscore.metrics import summarize
from evenscore.metrics.speakers import trial_speakers
from evenscore.metrics.trials import Trials
from tilings import WHOLE, over_tilings, tiled


@pytest.fixture(scope="module")
def many():
    """Scores of 60 speakers, each against each, with some outliers."""
    rng = np.random.default_rng(5)
    enroll, test = (side.ravel() for side in np.divmod(np.arange(90_000) % 3600, 60))
    labels = (enroll == test).astype(np.int8)
    scores = rng.normal(np.where(labels, 3.0, -4.0), 2.0)
    scores[labels == 1] -= 8.0 * (rng.random(np.count_nonzero(labels)) < 0.02)
    return scores.astype(np.float32), labels, enroll, test


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40),
    st.lists(st.floats(-30, 30), min_size=2, max_size=40),
    st.integers(10, 20),
    st.integers(0, 40),
)
def test_moments_are_exact(nontargets, targets, bits, cut):
    scores = np.array([*nontargets, *targets])
    labels = np.repeat([0, 1], [len(nontargets), len(targets)])
    parts = (summarize(scores[at], labels[at], bits=bits) for at in (slice(cut), slice(cut, None)))
    summary = sum(parts, start=summarize([], np.empty(0, np.int8), bits=bits))
    number, mean, variance = summary.moments()
    for label, side in enumerate((nontargets, targets)):
        scale = max(np.abs(side).max(), 1e-300)
        assert number[label] == len(side)
        assert mean[label] == pytest.approx(np.mean(side), rel=1e-12, abs=1e-14 * scale)
        assert variance[label] == pytest.approx(np.var(side), rel=1e-12, abs=1e-14 * scale**2)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("kind", [GaussianCalibration, BayesianCalibration])
def test_gaussians_are_the_same(many, kind, shared):
    scores, labels = many[0].astype(np.float64), many[1]
    wanted = kind.fit(scores, labels, shared_variance=shared).to_dict()["parameters"]
    found = kind.fit(summarize(scores, labels), shared_variance=shared).to_dict()["parameters"]
    for name, values in wanted.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12)


def test_a_staircase_is_that_of_the_bins(many):
    scores, labels = many[:2]
    grid = np.linspace(-12, 10, 1000)
    wanted, found = PavCalibration.fit(scores, labels)(grid), PavCalibration.fit(summarize(scores, labels))(grid)
    assert np.median(np.abs(found - wanted)) < 1e-3
    assert np.mean(np.abs(found - wanted) < 0.05) > 0.98  # steps lie elsewhere within a bin
    coarse = np.round(scores * 4) / 4  # one value in each bin
    for smoothing in (0.0, 1.0):
        one = PavCalibration.fit(coarse, labels, smoothing=smoothing)
        other = PavCalibration.fit(summarize(coarse, labels), smoothing=smoothing)
        np.testing.assert_allclose(other.llr, one.llr, rtol=1e-12)
        np.testing.assert_allclose(other.edges, one.edges, rtol=1e-12)


def test_saturation_by_folds_of_speakers(many, monkeypatch):
    monkeypatch.setattr("evenscore.calibrate.saturating.SHARES", (0.0, 1e-3, 1e-2))
    scores, labels, enroll, test = many
    wanted = SaturatingCalibration.fit(scores, labels, enroll_speakers=enroll, test_speakers=test)
    speakers = trial_speakers(scores, len(labels), enroll, test)
    trials = Trials(values=scores, key=labels)
    parts, _ = pairs_of_folds(trials, speakers, assign_folds(speakers, labels, 5))
    pairs = {pair: summarize(scores, part.key) for pair, part in parts.items()}
    found = SaturatingCalibration.fit(summarize(scores, labels), fold_pairs=pairs)
    assert found.target_outliers == wanted.target_outliers > 0
    assert found.nontarget_outliers == wanted.nontarget_outliers
    assert (found.weight, found.offset) == pytest.approx((wanted.weight, wanted.offset), rel=1e-5)
    known = {"target_outliers": 0.01, "nontarget_outliers": 0.0}
    one, other = (
        SaturatingCalibration.fit(*data, **known) for data in ((scores, labels), (summarize(scores, labels),))
    )
    assert other.weight == pytest.approx(one.weight, rel=1e-5)


@pytest.mark.parametrize("options", [{}, {"shared_variance": True}, {"p_target": 0.02}])
def test_a_mixture_needs_no_labels(many, options):
    rng = np.random.default_rng(1)
    scores = np.concatenate([rng.normal(-4, 1, 20_000), rng.normal(3, 1.5, 500)])
    wanted = UnsupervisedCalibration.fit(scores, **options)
    found = UnsupervisedCalibration.fit(summarize(scores, np.zeros(len(scores), np.int8)), **options)
    np.testing.assert_allclose(found.mean, wanted.mean, rtol=1e-4)
    np.testing.assert_allclose(found.variance, wanted.variance, rtol=1e-3)
    assert found.p_target == pytest.approx(wanted.p_target, rel=1e-3)


@pytest.mark.parametrize("name", CALIBRATIONS)
@pytest.mark.parametrize("listed", [False, True])
@over_tilings
def test_tables_are_calibrated_like_their_scores(name, listed, tiling):
    rng = np.random.default_rng(2)
    labels = Labels.from_speakers(np.arange(11) % 4, np.arange(19) % 5)
    whole = ScoreMatrix(rng.normal(4.0 * labels.matrix, 1.0), range(11), range(19), missing=rng.random((11, 19)) < 0.1)
    trials = whole.to_trials(labels)
    table, key = (tiled(trials, tiling), None) if listed else (tiled(whole, tiling), labels)
    options = {"target_outliers": 0.01, "nontarget_outliers": 0.01} if name == "saturating" else {}
    wanted = CALIBRATIONS[name].fit(trials.scores, trials.labels, **options)
    found = CALIBRATIONS[name].fit(table, *([] if name == "unsupervised" else [key]), **options)
    exact = tiling == WHOLE or name in ("gaussian", "bayesian")
    np.testing.assert_allclose(found(trials.scores), wanted(trials.scores), atol=1e-9 if exact else 1e-3)
    llrs = calibrated(table, found).in_memory().scores
    np.testing.assert_array_equal(llrs, found(trials.scores if listed else whole.scores))


def test_what_a_summary_does_not_tell():
    summary = summarize([2.0, 1.0, 0.0, -1.0], [1, 0, 1, 0])
    with pytest.raises(InputError, match="give fold_pairs, or both shares"):
        SaturatingCalibration.fit(summary)
    for kind in (GaussianCalibration, BayesianCalibration, PavCalibration, LogisticCalibration):
        with pytest.raises(InputError, match="leave out labels"):
            kind.fit(summary, [1])
        with pytest.raises(InputError, match="0 target and 2 non-target"):
            kind.fit(summarize([2.0, 1.0], [0, 0]))
    for kind in (GaussianCalibration, BayesianCalibration, UnsupervisedCalibration):
        with pytest.raises(InputError, match="infinite"):
            kind.fit(summarize([np.inf, 1.0, 0.0], [1, 0, 1]))
    with pytest.raises(InputError, match="there are 4 scores, too few"):
        UnsupervisedCalibration.fit(summary)
