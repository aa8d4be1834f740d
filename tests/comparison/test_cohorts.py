"""What stands out in a cohort is found; what is usual is not."""

import numpy as np
import pytest
from compared_sides import MODEL, PLAIN, evaluation_side, speakers, training_side

from evenscore import LabelledBlocks, ScoreBlocks, ScoreMatrix, compare, simulate_blocks
from evenscore.comparison.cohorts import cohort_diagnostics, usual_target
from evenscore.comparison.judging import training_points


def diagnosed(part, training=None):
    training = training or training_side()
    known = [set(speakers("train", 14, 1)), set(part.blocks.enroll_speakers)]
    [found] = cohort_diagnostics([part], usual_target([training_points(training)]), known)
    return found


def changed(part, block, rows, columns, add):
    """Return the blocks with something added to some of the cohort scores."""
    blocks = part.blocks
    matrices = {name: getattr(blocks, name) for name in ("enroll", "test", "cohort")}
    scores = matrices[block].scores.copy()
    scores[rows, columns] += add
    matrices[block] = ScoreMatrix(scores, matrices[block].enroll_ids, matrices[block].test_ids)
    sides = ("enroll_speakers", "test_speakers", "cohort_enroll_speakers", "cohort_test_speakers")
    made = ScoreBlocks(blocks.trials, **matrices, **{side: getattr(blocks, side) for side in sides})
    return LabelledBlocks(made, part.labels, part.name)


def test_sizes_and_speakers():
    found = diagnosed(evaluation_side(cohort="train", members=14)[0])
    assert (found.enrolments, found.tests, found.speakers, found.smallest) == (14, 28, 14, 14)
    assert found.shared_with_training == tuple(sorted(set(speakers("train", 14, 1))))
    assert found.shared_with_evaluation == ()
    assert found.own_speakers_left_out


@pytest.mark.parametrize("seed", range(5))
def test_an_ordinary_cohort_has_nothing_odd(seed):
    found = diagnosed(evaluation_side(count=15, members=40, seed=200 + seed)[0])
    assert found.n_outliers == found.n_hidden_targets == 0


def test_a_member_that_scores_high_with_everybody_is_found():
    [part] = evaluation_side(model=PLAIN, members=30)
    found = diagnosed(changed(part, "enroll", slice(None), 7, 20.0))
    [member] = found.outliers
    assert (member.side, member.id, member.speaker) == ("test", "ct7", "cohort3")
    assert member.mean == pytest.approx(18, abs=1)
    assert member.mean_z > 20
    found = diagnosed(changed(part, "test", 4, slice(None), -20.0))
    [member] = found.outliers
    assert (member.side, member.id) == ("enroll", "ce4")
    assert member.mean_z < -20
    assert found.n_hidden_targets == 0


def test_a_hidden_target_is_found_and_warned_of():
    [part] = evaluation_side(model=PLAIN, members=30)
    odd = changed(part, "enroll", 3, 7, 12.0)
    found = diagnosed(odd)
    [hidden] = found.hidden_targets
    assert (hidden.side, hidden.trial_id, hidden.cohort_id) == ("enroll", "e3", "ct7")
    assert hidden.score == odd.blocks.enroll.scores[3, 7]
    comparison = compare(training_side(), [odd], ["z"], bootstrap=5)
    assert any("1 cohort score looks like that of one speaker on both sides" in line for line in comparison.warnings)
    assert any("'e3' and 'ct7'" in line for line in comparison.warnings)


def test_known_speakers_are_no_hidden_targets():
    trials, others = speakers("new", 15, 1), speakers("new", 30, 1)
    part = LabelledBlocks(*simulate_blocks(MODEL, trials, trials, others, others, seed=4))
    found = diagnosed(part)
    assert found.shared_with_evaluation == tuple(sorted(trials))
    assert found.n_hidden_targets == 0
    assert found.smallest == 29


def test_speakers_that_are_not_known_and_missing_scores():
    [part] = evaluation_side()
    scores = part.blocks.enroll.scores.copy()
    scores[:, 2] = np.nan
    scores[0, 3:8] = np.nan
    enroll = ScoreMatrix(scores, part.blocks.enroll.enroll_ids, part.blocks.enroll.test_ids, missing="nan")
    blocks = ScoreBlocks(part.blocks.trials, enroll=enroll)
    [found] = cohort_diagnostics(
        [LabelledBlocks(blocks, part.labels)], usual_target([training_points(training_side())]), [set(), set()]
    )
    assert found.speakers is None
    assert not found.own_speakers_left_out
    assert (found.enrolments, found.tests, found.smallest) == (0, 30, 24)


def test_no_cohort_no_diagnostics():
    [part] = evaluation_side()
    bare = LabelledBlocks(ScoreBlocks(part.blocks.trials), part.labels)
    assert cohort_diagnostics([bare], usual_target([training_points(training_side())]), [set(), set()]) == ()
    comparison = compare(training_side(), [bare], ["z", "lgsm"], bootstrap=5)
    assert comparison.cohorts == ()
    assert set(comparison.not_run) == {"z"}
