"""The four diagnostics find what they are for, and are silent otherwise."""

import numpy as np
import pytest

from comparison.conftest import make_sides, with_blocks
from evenscore import InputError, LabelledBlocks, Labels, ScoreBlocks, ScoreMatrix, Side
from evenscore.comparison import compare


def kinds(comparison):
    return [one.kind for one in comparison.diagnostics]


def test_sides_in_order_have_no_diagnostics(comparison):
    assert comparison.diagnostics == ()


def test_few_speakers_and_few_targets_are_named():
    training, evaluation = make_sides(n_training=12, n_evaluation=5)
    found = compare(training, evaluation, ["s"], bootstrap=5)
    messages = [one.message for one in found.diagnostics if one.kind == "size"]
    assert any("12 speakers" in message and "training" in message for message in messages)
    assert any("5 speakers" in message and "evaluation" in message for message in messages)
    assert any("20 target" in message and "evaluation" in message for message in messages)
    assert "12 speakers" in found.verdict.text
    assert "20 target" in found.verdict.text


def test_one_speaker_is_not_enough(sides):
    enroll, test = Side(["a1"], ["ann"]), Side(["a2", "a3"], ["ann", "ann"])
    trials = ScoreMatrix([[1.0, 0.0]], enroll, test)
    with pytest.raises(InputError, match="one speaker"):
        compare(sides[0], LabelledBlocks(ScoreBlocks(trials), Labels.from_key([[1, 0]])), ["raw"], bootstrap=5)


def test_speakers_on_both_sides_are_refused_unless_allowed(sides):
    training, _ = sides
    with pytest.raises(InputError, match="'known0'"):
        compare(training, training, ["s"], bootstrap=5)
    found = compare(training, training, ["s"], bootstrap=5, allow_overlap=True)
    assert "overlap" in kinds(found)
    assert "24 of the speakers" in next(one.message for one in found.diagnostics if one.kind == "overlap")


def test_evaluation_speakers_in_the_cohort_are_named(sides):
    training, evaluation = sides
    blocks = evaluation.blocks
    speakers = blocks.cohort_test.speakers.copy()
    speakers[:2] = "new3"
    enroll = blocks.enroll.with_speakers(None, speakers)
    cohort = blocks.cohort.with_speakers(None, speakers)
    changed = with_blocks(evaluation, enroll=enroll, cohort=cohort, cohort_labels=None)
    found = compare(training, changed, ["s"], bootstrap=5)
    assert any(one.kind == "overlap" and "'new3'" in one.message for one in found.diagnostics)


@pytest.mark.parametrize("side", ["enroll", "test"])
def test_hidden_targets_are_found_with_their_ids(sides, side):
    training, evaluation = sides
    block = getattr(evaluation.blocks, side)
    scores = block.scores.copy()
    scores[7, 3] = 25.0
    found = compare(training, with_blocks(evaluation, **{side: block.with_scores(scores)}), ["raw"], bootstrap=5)
    hidden = [one for one in found.diagnostics if one.kind == "hidden_targets"]
    pair = block.enroll_ids[7], block.test_ids[3]
    trial, member = pair if side == "enroll" else pair[::-1]
    assert [dict(one) for one in hidden[0].examples] == [{"trial": trial, "cohort": member, "score": 25.0}]


def test_a_target_whose_speaker_is_known_is_not_hidden(sides):
    training, evaluation = sides
    blocks = evaluation.blocks
    scores, speakers = blocks.enroll.scores.copy(), blocks.cohort_test.speakers.copy()
    scores[7, 3], speakers[3] = 25.0, blocks.trials.enroll.speakers[7]
    changed = with_blocks(
        evaluation,
        enroll=blocks.enroll.with_scores(scores).with_speakers(None, speakers),
        cohort=blocks.cohort.with_speakers(None, speakers),
        cohort_labels=None,
    )
    assert "hidden_targets" not in kinds(compare(training, changed, ["raw"], bootstrap=5))


def test_a_recording_that_scores_high_with_everybody_is_no_hidden_target(sides):
    training, evaluation = sides
    block = evaluation.blocks.enroll
    scores = block.scores + 20.0 * (np.arange(len(block.scores)) == 4)[:, None]
    found = compare(training, with_blocks(evaluation, enroll=block.with_scores(scores)), ["raw"], bootstrap=5)
    assert "hidden_targets" not in kinds(found)


def test_inverted_scores_are_named_by_side(sides):
    training, evaluation = sides
    blocks = evaluation.blocks
    turned = with_blocks(evaluation, trials=blocks.trials.map(lambda s: -s))
    messages = [one.message for one in compare(training, turned, ["raw"], bootstrap=5).diagnostics]
    assert any("evaluation" in message and "sign" in message for message in messages)
    assert not any("training" in message and "sign" in message for message in messages)
