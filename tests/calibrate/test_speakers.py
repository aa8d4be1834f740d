"""Cross-validation and intervals: no trial is calibrated by a fit to its speakers, and speakers are what is drawn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from evenscore import InputError, ScoreMatrix, TrialList, cllr
from evenscore.calibrate import CALIBRATIONS, GaussianCalibration, LogisticCalibration, cross_validate
from reference import naive_calibration as naive


def crossed(speakers=9, sessions=3, seed=0, shift=2.0):
    rng = np.random.default_rng(seed)
    side = np.repeat([f"spk{s}" for s in range(speakers)], sessions)
    enroll, test = np.repeat(side, side.size), np.tile(side, side.size)
    labels = (enroll == test).astype(int)
    labels[rng.random(labels.size) < 0.05] = -1
    return rng.normal(shift * (enroll == test), 1.0), labels, {"enroll_speakers": enroll, "test_speakers": test}


def test_llrs_equal_those_of_fits_trial_by_trial():
    scores, labels, speakers = crossed(speakers=6, sessions=2)
    result = cross_validate(scores, labels, **speakers, folds=4, calibration=GaussianCalibration)
    sides = [side.tolist() for side in speakers.values()]
    expected = naive.cross_llr(scores.tolist(), labels.tolist(), *sides, result.speaker_folds, GaussianCalibration.fit)
    assert_allclose(result.llr, expected, rtol=1e-9)


def test_changing_a_speakers_scores_never_changes_the_fits_of_its_own_trials():
    scores, labels, speakers = crossed()
    result = cross_validate(scores, labels, **speakers)
    mine = (speakers["enroll_speakers"] == "spk4") | (speakers["test_speakers"] == "spk4")
    changed = cross_validate(np.where(mine, scores - 5.0, scores), labels, **speakers)
    own = result.speaker_folds["spk4"]
    for folds, fit in result.calibrations.items():
        assert (changed.calibrations[folds].to_dict() == fit.to_dict()) == (own in folds)


def test_folds_are_balanced_and_independent_of_the_order():
    scores, labels, speakers = crossed(speakers=13)
    result = cross_validate(scores, labels, **speakers)
    assert sorted(np.bincount(list(result.speaker_folds.values()))) == [2, 2, 3, 3, 3]
    order = np.random.default_rng(1).permutation(labels.size)
    turned = {side: names[order] for side, names in speakers.items()}
    shuffled = cross_validate(scores[order], labels[order], **turned)
    assert shuffled.speaker_folds == result.speaker_folds
    assert_allclose(shuffled.llr, result.llr[order], rtol=1e-9)
    cheating, known = LogisticCalibration.fit(scores, labels)(scores), labels >= 0
    assert 0 < cllr(result.llr[known], labels[known]) - cllr(cheating[known], labels[known]) < 0.02


@pytest.mark.parametrize("kind", CALIBRATIONS)
def test_every_calibration_can_be_cross_validated(kind):
    scores, labels, speakers = crossed(shift=4.0)
    options = {"l2": 1e-3} if kind in ("logistic", "saturating") else {}
    if kind == "saturating":
        options |= {"target_outliers": 0.01, "nontarget_outliers": 0.0}
    result = cross_validate(scores, labels, **speakers, calibration=kind, **options)
    assert {fit.kind for fit in result.calibrations.values()} == {kind}
    assert len(result.calibrations) == 15
    assert cllr(result.llr[labels >= 0], labels[labels >= 0]) < 0.25


def test_systems_quality_weights_and_options_reach_the_fit():
    scores, labels, speakers = crossed()
    both, quality = np.stack((scores, np.sin(scores * 9)), axis=1), np.cos(scores * 5)
    given = {"quality": quality, "l2": 0.1, "p_target": 0.2, "weights": np.where(scores > 0, 2.0, 1.0)}
    result = cross_validate(both, labels, **speakers, **given)
    fit = result.calibrations[0, 1]
    assert (fit.weights.size, fit.quality_weights.size, fit.l2, fit.p_target) == (2, 1, 0.1, 0.2)
    fold = np.array([[result.speaker_folds[name] for name in side] for side in speakers.values()])
    rest, mine = (fold > 1).all(axis=0), (np.sort(fold, axis=0) == [[0], [1]]).all(axis=0)
    given |= {"quality": quality[rest], "weights": given["weights"][rest]}
    assert_allclose(LogisticCalibration.fit(both[rest], labels[rest], **given)(both, quality)[mine], result.llr[mine])


def test_tables_keep_their_form():
    scores, labels, speakers = crossed(speakers=6, sessions=2)
    names = [f"spk{s}-{i}" for s in range(6) for i in range(2)]
    known = {name: name.split("-")[0] for name in names}
    plain = cross_validate(scores, labels, **speakers, folds=3).llr
    trials = TrialList(np.repeat(names, 12), np.tile(names, 12), scores=scores, labels=labels)
    result = cross_validate(trials, enroll_speakers=known, test_speakers=known, folds=3)
    assert_allclose(result.llr.scores, plain)
    matrix = ScoreMatrix(scores.reshape(12, 12), names, names).with_speakers(known, known)
    assert_allclose(cross_validate(matrix, labels.reshape(12, 12), folds=3).llr.scores.ravel(), plain)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"folds": 2}, {"folds": 10}, {"calibration": "plda"}, {"quality": [1.0, 2.0]}, {"labels": None}),
        *({"test_speakers": None}, {"test_speakers": ["a"]}, {"calibration": "pav", "l2": 1.0}),
    ],
)
def test_bad_input_is_refused(wrong):
    scores, labels, speakers = crossed()
    with pytest.raises(InputError):
        cross_validate(scores, **{"labels": labels} | speakers | wrong)


def test_a_fold_that_cannot_be_fitted_is_named():
    scores, labels, speakers = crossed()
    with pytest.raises(InputError, match="folds 0 and 0"):
        cross_validate(scores + 50.0 * labels, labels, **speakers)


@pytest.mark.parametrize("kind", [GaussianCalibration, LogisticCalibration])
def test_intervals_become_narrow_with_many_speakers(kind):
    widths = []
    for speakers in (8, 40):
        scores, labels, sides = crossed(speakers, 2)
        low, high = kind.fit(scores, labels).interval([-1.0, 1.0, 4.0], tuple(sides.values()), replicates=60)
        assert (low < kind.fit(scores, labels)([-1.0, 1.0, 4.0])).all()
        assert (low < high).all()
        widths.append(high - low)
    assert (widths[1] < 0.7 * widths[0]).all()


def test_intervals_cover_the_truth_and_depend_on_level_and_speakers():
    rng, hits, speakers = np.random.default_rng(0), 0, 12
    names = np.arange(speakers)
    enroll, test = np.repeat(names, speakers), np.tile(names, speakers)
    for _ in range(20):  # speakers whose targets and non-targets are shifted; the LLR at the middle is 0 on average
        scores = rng.normal(3.0 * (enroll == test), 1.0) + 0.7 * rng.normal(size=speakers)[enroll]
        low, high = LogisticCalibration.fit(scores, enroll == test, l2=0.01).interval(
            1.5, (enroll, test), level=0.9, replicates=60
        )
        hits += low < 0 < high
    assert hits >= 15
    fit = LogisticCalibration.fit(scores, enroll == test, l2=0.01)
    narrow, wide = (np.diff(fit.interval(1.5, (enroll, test), level, replicates=60), axis=0) for level in (0.5, 0.95))
    assert narrow < wide
    with pytest.raises(InputError):
        fit.interval(1.5)
