"""How many scores of a cohort count, where the truth is known: scores of speakers with several takes each."""

import numpy as np
import pytest
from tests.evidence.material import evaluation, training
from tests.reference import naive_evidence as naive

from evenscore import ScoreBlocks, ScoreMatrix
from evenscore.evidence import ScalePrior, shrunk_log_scale, trial_moments
from evenscore.evidence.features import TOP, Scales
from evenscore.evidence.takes import cohort_takes, likeness, trial_takes

ROWS = 1500


def scores_of(sizes, correlation, log_scales=0.0, seed=0):
    """Return cohort scores of many enrolments: normal ones, with a correlation within each speaker."""
    rng = np.random.default_rng(seed)
    code = np.repeat(np.arange(len(sizes)), sizes)
    speaker, take = rng.normal(size=(ROWS, len(sizes))), rng.normal(size=(ROWS, len(code)))
    scores = np.sqrt(correlation) * speaker[:, code] + np.sqrt(1 - correlation) * take
    return scores * np.exp(np.broadcast_to(log_scales, ROWS))[:, None], [f"s{at}" for at in code]


def blocks_of(scores, speakers=None):
    enroll, cohort = [f"e{n}" for n in range(len(scores))], [f"c{n}" for n in range(scores.shape[1])]
    trials = ScoreMatrix(np.zeros((len(scores), 1)), enroll, ["t"])
    return ScoreBlocks(trials, enroll=ScoreMatrix(scores, enroll, cohort, missing="nan"), cohort_test_speakers=speakers)


def predicted(count, prior, takes):
    """Return the sampling variance that a log standard deviation is said to have."""
    return 0.5 / (count / (1 + prior.alike * (takes - 1)) - 1)


UNEVEN = [1, 2, 3, 5, 8, 13, 21] * 4


@pytest.mark.parametrize(
    ("sizes", "correlation"),
    [
        ([9] * 40, 0.0),
        ([9] * 40, 0.5),
        ([9] * 40, 0.7),
        ([9] * 40, 0.9),
        ([3] * 20, 0.7),
        (UNEVEN, 0.7),
        ([1] * 99, 0.0),
    ],
)
def test_log_scales_vary_as_much_as_is_said(sizes, correlation):
    blocks = blocks_of(*scores_of(sizes, correlation))
    prior, takes = Scales.estimated([blocks]).enroll, cohort_takes(blocks, "enroll")
    truth = np.log(trial_moments(blocks, "enroll").std[:, 0]).var()
    assert predicted(sum(sizes), prior, takes) == pytest.approx(truth, rel=0.15)
    assert prior.variance < 0.15 * truth  # all scales are the same
    if correlation >= 0.7:  # neither the scores nor the speakers are what counts
        assert 0.5 / (sum(sizes) - 1) < 0.6 * truth
        assert 0.5 / (len(sizes) - 1) > 1.1 * truth


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.7, 0.9])
def test_of_the_highest_scores_less_is_known(correlation):
    """The formula is for all of a normal sample, not for its tail: up to twice too low, but less so than without r."""
    blocks = blocks_of(*scores_of([9] * 40, correlation))
    prior, takes = Scales.estimated([blocks]).enroll_top, cohort_takes(blocks, "enroll")
    moments = trial_moments(blocks, "enroll", TOP)
    truth = np.log(moments.std[:, 0]).var()
    assert 0.45 * truth < predicted(moments.count[0, 0], prior, takes) < 1.1 * truth
    assert 0.5 / (moments.count[0, 0] - 1) < 0.55 * truth


@pytest.mark.parametrize("correlation", [0.3, 0.7])
def test_scales_are_nearer_to_the_truth_than_by_counting_scores_or_speakers(correlation):
    truth = np.random.default_rng(5).normal(scale=0.1, size=ROWS)
    blocks = blocks_of(*scores_of([9] * 16, correlation, truth))
    moments, takes = trial_moments(blocks, "enroll"), trial_takes(blocks, "enroll")

    def error(prior):
        guess = shrunk_log_scale(moments, prior, takes)[:, 0] + prior.center
        return np.mean((guess - truth) ** 2)

    found = error(Scales.estimated([blocks]).enroll)
    by_scores, by_speakers = (error(ScalePrior.of([moments], [takes], alike)) for alike in (0.0, 1.0))
    assert found < by_scores
    assert found < by_speakers


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_likeness_is_that_of_the_definition(missing):
    scores, speakers = scores_of(UNEVEN[:9], 0.6)
    scores = np.where(np.random.default_rng(1).random(scores.shape) < missing, np.nan, scores)[:40]
    expected = naive.likeness(scores, speakers)
    assert 0.1 < expected < 0.9
    assert likeness([blocks_of(scores, speakers)], "enroll") == pytest.approx(expected)
    halves = [blocks_of(scores[:11], speakers), blocks_of(scores[11:], speakers)]
    assert likeness(halves, "enroll") == pytest.approx(expected)
    shuffled = np.random.default_rng(2).permutation(scores.shape[1])
    moved = blocks_of(scores[:, shuffled], [speakers[at] for at in shuffled])
    assert likeness([moved], "enroll") == pytest.approx(expected)


def test_nothing_is_known_of_unknown_speakers_and_of_single_takes():
    scores, speakers = scores_of([4] * 9, 0.6)
    unknown, single = blocks_of(scores), blocks_of(scores, [f"s{n}" for n in range(36)])
    assert likeness([unknown], "enroll") == 0.0
    assert likeness([single], "enroll") == 1.0
    assert (cohort_takes(unknown, "enroll"), cohort_takes(single, "enroll")) == (1.0, 1.0)
    half = blocks_of(scores, [None if n % 4 else speakers[n] for n in range(36)])
    assert cohort_takes(half, "enroll") == 1.0
    assert likeness([blocks_of(scores[:, :0], [])], "enroll") == 1.0
    assert likeness([], "test") == 0.0
    assert trial_takes(unknown, "test") == 1.0  # there is no such cohort


@pytest.mark.parametrize("kind", [{}, {"own": True}, {"own": True, "tests": 1, "n_cohort": 2}])
@pytest.mark.parametrize("side", ["enroll", "test"])
def test_takes_of_a_trial_leave_its_own_speakers_out(kind, side):
    blocks = evaluation(**kind)
    found = np.broadcast_to(trial_takes(blocks, side), blocks.trials.shape)
    for i, j in np.ndindex(blocks.trials.shape):
        assert found[i, j] == pytest.approx(naive.takes(blocks, i, j, side))


def test_training_scales_know_how_alike_takes_are():
    scales = Scales.estimated([training().blocks])
    assert 0 < scales.enroll.alike == scales.enroll_top.alike < 1
    assert scales.test.alike == 1.0  # one enrolment of each speaker: nothing tells
