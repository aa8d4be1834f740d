"""On ideal scores no norm gains; where an assumption is broken, norms do what the documentation says."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from evenscore import PLDA, InputError, LogisticCalibration, evaluate, fit_norm, paired_test
from recipes.theory.breaks import BREAKS, break_named
from recipes.theory.ideal import (
    GAUSSIAN,
    METHODS,
    METRICS,
    NORMS,
    ORACLE,
    REFERENCE,
    SCORE_MODEL,
    SYSTEMS,
    Estimate,
    break_assumption,
    ideal_scores,
    normalized,
    run_ideal,
)
from recipes.theory.world import Sizes, draw_embeddings, draw_recordings, draw_truth, labelled_scores

SMALL = Sizes(development=40, evaluation=60)
TINY = Sizes(development=12, evaluation=9)
SEEDS = (1, 2, 3)


@pytest.fixture(scope="module")
def killer():
    return ideal_scores(SMALL, SEEDS, replicates=200)


@pytest.fixture(scope="module")
def shifted():
    return break_assumption(BREAKS["session-shift"], SMALL, [1, 2, 3, 4], [0, 2, 4])


@pytest.mark.slow
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("norm", NORMS)
def test_no_norm_gains_on_ideal_scores(killer, norm, metric):
    difference = killer.differences[norm][metric]
    assert difference.high >= 0
    assert difference.value > 0  # all of them lose something, and the intervals show most of it


@pytest.mark.slow
def test_most_norms_lose_for_sure_on_ideal_scores(killer):
    losing = [norm for norm in NORMS if killer.differences[norm]["cllr"].low > 0]
    assert len(losing) >= 5


@pytest.mark.slow
def test_the_gaussians_cost_cllr_and_the_norm_costs_the_order(killer):
    gaussian = killer.differences[GAUSSIAN]
    assert gaussian["cllr"].value > 0
    assert abs(gaussian["eer"].value) < 0.002
    for metric in METRICS:
        whole, alone = (killer.differences[name][metric].value for name in (SCORE_MODEL, GAUSSIAN))
        assert_allclose(killer.norm_effect[metric].value, whole - alone, atol=1e-12)
    assert killer.norm_effect["min_dcf"].value > 2 * gaussian["min_dcf"].value


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_turning_the_order_back_does_not_give_the_high_scores_back(seed):
    """Beyond its vertex an LLR falls with the score; mirrored at the vertex it rises, and min DCF is hardly better."""
    world = BREAKS["approximation"].make(0, SMALL, seed)
    (part,), method = world.evaluation, METHODS[SCORE_MODEL]
    normalizer = fit_norm(method.norm, world.training, **method.options).normalizer
    trials = part.blocks.trials

    def llrs(step):
        moved = part.blocks.replace(trials=trials.with_scores(trials.scores.astype(float) + step))
        return part.labelled(normalizer.normalize(moved))

    here, above, below = llrs(0.0), llrs(1.0).scores, llrs(-1.0).scores
    slope, curvature = (above - below) / 2, above + below - 2 * here.scores
    ceiling = here.scores - slope**2 / (2 * curvature)
    assert ceiling.std() > 1  # each trial has one of its own
    mirrored = np.where(slope < 0, 2 * ceiling - here.scores, here.scores)
    found = [evaluate(scores, here.labels)["min_dcf"] for scores in (trials.scores.ravel(), here.scores, mirrored)]
    assert found[1] - found[0] > 0.1
    assert found[1] - found[2] < 0.3 * (found[1] - found[0])


@pytest.mark.slow
def test_raw_ideal_scores_are_calibrated(killer):
    plain = killer.values["raw, uncalibrated"]
    assert plain["cllr"].value - plain["min_cllr"].value < 0.03
    assert killer.differences["raw, uncalibrated"]["cllr"].covers_zero  # calibration changes nothing


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_is_left_to_calibrate_on_ideal_scores(seed):
    """Logistic regression on the trials themselves finds nothing to scale and nothing to shift."""
    truth = draw_truth(seed)
    many = draw_recordings(truth, truth, Sizes(development=2, evaluation=600), seed)
    trials = labelled_scores(truth, many)[1].trials
    refit = LogisticCalibration.fit(trials.scores, trials.labels)
    assert_allclose([*refit.weights, refit.offset], [1, 0], atol=0.12)
    found = evaluate(trials)
    assert found["calibration_loss"] < 0.01


@pytest.mark.slow
def test_the_reference_does_not_differ_from_itself(killer):
    assert all(found == Estimate(0.0, 0.0, 0.0) for found in killer.differences[REFERENCE].values())
    assert_allclose(killer.values[ORACLE]["eer"].value, killer.values[REFERENCE]["eer"].value)


def test_differences_are_those_of_the_paired_test():
    found = ideal_scores(TINY, [4], replicates=50).differences["s"]["eer"]
    systems = normalized(BREAKS["approximation"].make(0, TINY, 4))
    speakers = {"enroll_speakers": systems["s"].enroll_speakers, "test_speakers": systems["s"].test_speakers}
    scores = systems["s"].scores, systems[REFERENCE].scores, systems["s"].labels
    expected = paired_test(*scores, **speakers, replicates=50, seed=4)
    assert_allclose(found.value, expected.difference)
    low, high = expected.interval.low, expected.interval.high
    assert_allclose([found.low, found.high], [low, high], atol=0.01)  # quantiles between replicates


@pytest.mark.slow
def test_norms_win_back_much_of_a_shift_that_the_cohort_shares(shifted):
    strongest = shifted[-1]
    for norm in NORMS:
        assert strongest.differences[norm]["cllr"].value < -0.1
    assert strongest.differences["s"]["cllr"].high < 0
    assert strongest.recovered("s") > 0.7
    assert strongest.recovered("lgsm") > 0.4
    assert shifted[0].recovered("s") is None  # nothing was lost


@pytest.mark.slow
def test_the_score_models_gain_grows_with_the_shift(shifted):
    gains = [-level.differences["lgsm"]["cllr"].value for level in shifted]
    assert gains == sorted(gains)
    assert gains[0] < 0 < gains[-1]


@pytest.mark.slow
def test_a_cohort_of_other_sessions_does_harm():
    (level,) = break_assumption(BREAKS["other-session"], SMALL, SEEDS, [4])
    assert all(level.differences[norm]["cllr"].low > 0 for norm in ("z", "t", "zt", "s", "lgsm"))


@pytest.mark.slow
def test_calibration_mends_noise_of_another_size():
    (level,) = break_assumption(BREAKS["scaled-noise"], SMALL, SEEDS, [4])
    assert level.values["raw, uncalibrated"]["cllr"].value > 2
    assert level.values[REFERENCE]["cllr"].value < 0.85
    assert level.differences["s"]["cllr"].value < 0


@pytest.mark.slow
@pytest.mark.parametrize("name", BREAKS)
def test_every_break_begins_at_ideal_scores_and_costs_more_and_more(name):
    found = BREAKS[name]
    assert len(found.levels) == 5
    first = found.make(0, TINY, 3)
    shared = BREAKS[found.ideal].make(0, TINY, 3)
    for part, ideal, other in zip(first.evaluation, first.oracle, shared.evaluation, strict=True):
        assert_allclose(part.blocks.trials.scores, ideal.blocks.trials.scores, rtol=1e-9)
        assert_allclose(part.blocks.trials.scores, other.blocks.trials.scores, rtol=1e-9)
    levels = [normalized(found.make(level, SMALL, 1)) for level in (0, 4)]
    cost = [
        evaluate(system[REFERENCE].scores, system[REFERENCE].labels)["min_cllr"]
        - evaluate(system[ORACLE].scores, system[ORACLE].labels)["min_cllr"]
        for system in levels
    ]
    assert_allclose(cost[0], 0, atol=1e-12)
    assert cost[1] > 0.01


@pytest.mark.slow
def test_the_same_seeds_give_the_same_results():
    first, again, other = (run_ideal(sizes=TINY, breaks=[], seeds=s, replicates=20) for s in ([1, 2], [1, 2], [1, 3]))
    assert first.killer.values == again.killer.values
    assert first.killer.values != other.killer.values


@pytest.mark.parametrize(("seeds", "breaks"), [([], []), ([1, 1], []), ([1], ["cosines"])])
def test_wrong_requests_are_refused(seeds, breaks):
    with pytest.raises(InputError, match=r"at least one seed|there is no break 'cosines'; there are approximation"):
        run_ideal(sizes=TINY, seeds=seeds, breaks=breaks)
    assert break_named("little-data").scale.startswith("speakers")


def test_an_estimate_over_seeds_has_students_interval():
    found = Estimate.over_seeds([1.0, 2.0, 3.0])
    assert_allclose([found.value, found.high - found.value], [2, 4.302652729911275 / np.sqrt(3)])
    assert not found.covers_zero or found.low < 0
    assert Estimate.over_seeds([1.0]).low == -np.inf


def test_draws_have_the_covariances_of_the_truth():
    truth = draw_truth(5)
    drawn = draw_embeddings(truth, [str(n) for n in range(4000)], 2, [1])
    pairs = drawn.vectors.reshape(4000, 2, -1)
    within = np.cov((pairs[:, 0] - pairs[:, 1]).T) / 2
    assert_allclose(within, truth.within, atol=0.25)
    assert_allclose(np.cov(pairs.mean(axis=1).T), truth.between + truth.within / 2, atol=0.4)
    assert_allclose(pairs.mean(axis=(0, 1)), truth.mean, atol=0.15)


def test_sets_and_sessions_share_no_speaker():
    truth = draw_truth(0)
    sets = [
        set(side.speakers)
        for session in (0, 1)
        for recordings in [draw_recordings(truth, truth, TINY, 1, session)]
        for side in (recordings.dev_enroll, recordings.eval_enroll)
    ]
    assert len(set.union(*sets)) == sum(map(len, sets))
    recordings = draw_recordings(truth, truth, TINY, 1)
    assert set(recordings.eval_enroll.speakers) == set(recordings.eval_test.speakers)


def test_other_parameters_stretch_the_same_random_numbers():
    truth = draw_truth(0)
    moved = PLDA(mean=truth.mean + 1, between=truth.between, within=truth.within)
    here, there = (draw_recordings(world, world, TINY, seed=1).eval_test.vectors for world in (truth, moved))
    assert_allclose(there, here + 1)


def test_the_trials_cohort_is_the_development_set():
    truth = draw_truth(0)
    training, evaluation = labelled_scores(truth, draw_recordings(truth, truth, TINY, seed=1))
    assert_array_equal(evaluation.blocks.cohort.scores, training.blocks.trials.scores)
    systems = normalized(BREAKS["approximation"].make(0, TINY, 1))
    assert list(systems) == [*SYSTEMS, ORACLE]
    assert all(len(trials.scores) == 9 * 27 for trials in systems.values())
