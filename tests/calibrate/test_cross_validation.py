"""Cross-validation by speaker: no trial is calibrated by a fit that has seen one of its speakers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from evenscore import InputError, TrialList
from evenscore.calibrate import CALIBRATIONS, GaussianCalibration, LogisticCalibration, cross_calibrate
from evenscore.metrics import cllr
from reference import naive_calibration as naive


def crossed(speakers=9, sessions=3, seed=0):
    rng = np.random.default_rng(seed)
    side = np.repeat([f"spk{s}" for s in range(speakers)], sessions)
    enroll, test = np.repeat(side, side.size), np.tile(side, side.size)
    labels = (enroll == test).astype(int)
    labels[rng.random(labels.size) < 0.05] = -1
    return rng.normal(2.0 * (enroll == test), 1.0), labels, {"enroll_speakers": enroll, "test_speakers": test}


def test_llrs_equal_those_of_fits_trial_by_trial():
    scores, labels, speakers = crossed(speakers=6, sessions=2)
    result = cross_calibrate(scores, labels, **speakers, folds=4, calibration=GaussianCalibration)
    sides = speakers["enroll_speakers"].tolist(), speakers["test_speakers"].tolist()
    expected = naive.cross_llr(scores.tolist(), labels.tolist(), *sides, result.speaker_folds, GaussianCalibration.fit)
    assert_allclose(result.llr, expected, rtol=1e-9)


def test_changing_a_speakers_scores_never_changes_the_fits_of_its_own_trials():
    scores, labels, speakers = crossed()
    result = cross_calibrate(scores, labels, **speakers)
    mine = (speakers["enroll_speakers"] == "spk4") | (speakers["test_speakers"] == "spk4")
    changed = cross_calibrate(np.where(mine, scores - 50.0, scores), labels, **speakers)
    for group in np.unique(result.group[mine]):
        assert changed.calibrations[group] == result.calibrations[group]
    assert any(a != b for a, b in zip(changed.calibrations, result.calibrations, strict=True))


def test_folds_are_balanced_deterministic_and_independent_of_the_order():
    scores, labels, speakers = crossed(speakers=13)
    result = cross_calibrate(scores, labels, **speakers, folds=5)
    sizes = np.bincount(list(result.speaker_folds.values()))
    assert sizes.tolist() == [3, 3, 3, 2, 2] or sorted(sizes) == [2, 2, 3, 3, 3]
    order = np.random.default_rng(1).permutation(labels.size)
    shuffled = cross_calibrate(
        scores[order], labels[order], folds=5, **{side: names[order] for side, names in speakers.items()}
    )
    assert shuffled.speaker_folds == result.speaker_folds
    assert_allclose(shuffled.llr, result.llr[order], rtol=1e-9)


def test_cross_validated_llrs_are_honest():
    scores, labels, speakers = crossed(speakers=25)
    result = cross_calibrate(scores, labels, **speakers)
    known = labels >= 0
    cheating = LogisticCalibration.fit(scores, labels)(scores)
    assert cllr(cheating[known], labels[known]) < cllr(result.llr[known], labels[known])
    assert cllr(result.llr[known], labels[known]) < cllr(cheating[known], labels[known]) + 0.02
    assert np.isfinite(result.llr).all()


@pytest.mark.parametrize("name", [name for name in CALIBRATIONS if name != "unsupervised"])
def test_every_supervised_calibration_can_be_cross_validated(name, monkeypatch):
    monkeypatch.setattr("evenscore.calibrate.saturating.SHARES", (0.0, 1e-2))  # each is a fit in each of 15 x 5 folds
    scores, labels, speakers = crossed()
    result = cross_calibrate(scores, labels, **speakers, calibration=name)
    assert {fit.kind for fit in result.calibrations} == {name}
    assert len(result.calibrations) == 15


def test_unsupervised_calibration_can_be_cross_validated():
    scores, labels, speakers = crossed()
    apart = scores + 8.0 * (speakers["enroll_speakers"] == speakers["test_speakers"])
    result = cross_calibrate(apart, labels, **speakers, calibration="unsupervised")
    assert cllr(result.llr[labels >= 0], labels[labels >= 0]) < 0.05


def test_systems_quality_and_options_reach_the_fit():
    scores, labels, speakers = crossed()
    both = np.stack((scores, np.sin(scores * 9)), axis=1)
    quality = np.cos(scores * 5)
    result = cross_calibrate(both, labels, **speakers, quality=quality, options={"l2": 0.1, "p_target": 0.2})
    first = result.calibrations[0]
    assert (first.weights.size, first.quality_weights.size, first.l2, first.p_target) == (2, 1, 0.1, 0.2)


def test_trial_lists_take_mappings():
    scores, labels, _ = crossed(speakers=6, sessions=2)
    sides = [f"spk{s}-{i}" for s in range(6) for i in range(2)]
    trials = TrialList.from_pairs(np.repeat(sides, 12), np.tile(sides, 12), scores=scores, labels=labels)
    speaker_of = {name: name.split("-")[0] for name in sides}
    result = cross_calibrate(trials, enroll_speakers=speaker_of, test_speakers=speaker_of, folds=3)
    plain = crossed(speakers=6, sessions=2)[2]
    assert_allclose(result.llr, cross_calibrate(scores, labels, **plain, folds=3).llr)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folds": 2}, "a third must be left"),
        ({"folds": 10}, "there are 9 speakers, fewer than 10 folds"),
        ({"calibration": "plda"}, "no calibration 'plda'"),
        ({"quality": [1.0]}, "quality has 1 rows"),
        ({"labels": None}, "labels are missing"),
    ],
)
def test_bad_input_is_refused(options, message):
    scores, labels, speakers = crossed()
    arguments = {"labels": labels} | speakers | options
    with pytest.raises(InputError, match=message):
        cross_calibrate(scores, **arguments)


def test_a_fold_that_cannot_be_fitted_is_named():
    names = ["a", "b", "c", "a", "b", "c"]
    speakers = {"enroll_speakers": names, "test_speakers": ["a", "b", "c", "b", "c", "a"]}
    given = {"calibration": "gaussian", "options": {"shared_variance": True}, "folds": 3}
    with pytest.raises(InputError, match="folds 0 and 1 there are 1 target and 0 non-target trials left to fit to"):
        cross_calibrate([3.0, 2.0, 4.0, 0.0, 1.0, 0.5], [1, 1, 1, 0, 0, 0], **speakers, **given)
    scores, labels, speakers = crossed()
    with pytest.raises(InputError, match="without the speakers of folds 0 and 0: the scores separate"):
        cross_calibrate(scores + 50.0 * labels, labels, **speakers)
