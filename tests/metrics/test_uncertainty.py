"""The speaker bootstrap against trial lists that are really copied, and what it must refuse."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from evenscore import InputError, TrialList
from evenscore.metrics import bootstrap, bootstrap_det, evaluate, paired_test, rocch
from reference import naive_metrics as naive

POINTS = [(0.01, 1.0, 1.0), (0.3, 2.0, 1.0)]


def crossed(speakers=7, sessions=2, seed=0, shift=2.0, decimals=1):
    """Every session against every session, scores rounded so that there are ties."""
    rng = np.random.default_rng(seed)
    side = np.repeat([f"spk{s}" for s in range(speakers)], sessions)
    enroll, test = np.repeat(side, side.size), np.tile(side, side.size)
    labels = (enroll == test).astype(int)
    ease = rng.normal(size=speakers)[np.repeat(np.arange(speakers), sessions)]
    scores = rng.normal(shift * labels + np.repeat(ease, side.size), 1.0).round(decimals)
    return scores, labels, {"enroll_speakers": enroll, "test_speakers": test}


def copied(scores, labels, speakers, draw):
    """Write out one replicate: every speaker as often as drawn, copies of a speaker being different people."""
    times = dict(zip(dict.fromkeys(speakers["enroll_speakers"]), draw, strict=True))
    rows = []
    for s, k, a, b in zip(scores, labels, speakers["enroll_speakers"], speakers["test_speakers"], strict=True):
        rows += [(s, k)] * int(times[a] if a == b else times[a] * times[b])
    return [s for s, _ in rows], [k for _, k in rows]


def test_replicates_equal_written_out_copies():
    scores, labels, speakers = crossed()
    result = bootstrap(scores, labels, **speakers, replicates=12, points=POINTS, seed=5)
    draws = np.random.default_rng(5).multinomial(7, np.full(7, 1 / 7), size=12)
    for b, draw in enumerate(draws):
        trials = copied(scores, labels, speakers, draw)
        assert result.eer[b] == pytest.approx(naive.rocch_eer(*trials), abs=1e-12)
        assert result.cllr[b] == pytest.approx(naive.cllr(*trials), rel=1e-12)
        assert result.min_cllr[b] == pytest.approx(naive.min_cllr(*trials), abs=1e-12)
        for p, point in enumerate(POINTS):
            assert result.min_dcf[b, p] == pytest.approx(naive.min_dcf(*trials, *point), abs=1e-12)
            assert result.act_dcf[b, p] == pytest.approx(naive.act_dcf(*trials, *point), abs=1e-12)


def test_band_equals_the_hulls_of_written_out_copies():
    scores, labels, speakers = crossed()
    rates = np.array([0.0, 0.01, 0.2, 0.5, 1.0])
    band = bootstrap_det(scores, labels, **speakers, p_fa=rates, replicates=3, level=0.5, seed=5)
    rows = []
    for draw in np.random.default_rng(5).multinomial(7, np.full(7, 1 / 7), size=3):
        hull = rocch(*copied(scores, labels, speakers, draw))
        at = np.interp(rates, hull.p_fa[::-1], hull.p_miss[::-1])
        at[0] = hull.p_miss[hull.p_fa == 0].min()
        rows.append(at)
    low, high = np.quantile(rows, [0.25, 0.75], axis=0, method="inverted_cdf")
    assert_allclose(band.low, low, atol=1e-12)
    assert_allclose(band.high, high, atol=1e-12)


def test_the_same_seed_gives_the_same_replicates_and_another_seed_others():
    scores, labels, speakers = crossed()
    first, again, other = (bootstrap(scores, labels, **speakers, replicates=50, seed=seed).eer for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_interval_covers_the_value_and_narrows_with_more_speakers():
    widths = []
    for speakers in (10, 40):
        scores, labels, names = crossed(speakers=speakers, seed=2, decimals=6)
        result = bootstrap(scores, labels, **names, replicates=300)
        value = evaluate(scores, labels)["eer"]
        interval = result.interval("eer")
        assert interval.low <= value <= interval.high
        widths.append(interval.high - interval.low)
        assert result.n_speakers == speakers
    assert widths[1] < widths[0]


def test_interval_of_the_mean_agrees_with_theory():
    # One target per speaker, with score -inf or +inf: Pmiss at p_target 0.5 is a mean of independent draws.
    rng = np.random.default_rng(0)
    size, p = 400, 0.3
    names = np.arange(size)
    targets = np.where(rng.random(size) < p, -np.inf, np.inf)
    scores = np.concatenate((targets, np.full(size, -np.inf)))
    labels = np.repeat([1, 0], size)
    result = bootstrap(
        scores, labels, enroll_speakers=np.tile(names, 2), test_speakers=np.append(names, np.roll(names, 1)), points=0.5
    )
    share = np.mean(targets < 0)
    assert np.std(result.act_dcf[:, 0]) == pytest.approx(np.sqrt(share * (1 - share) / size), rel=0.1)


def test_trial_lists_take_mappings_and_one_speaker_per_id():
    scores, labels, _ = crossed(speakers=4)
    sides = [f"s{s}-{i}" for s in range(4) for i in range(2)]
    trials = TrialList.from_pairs(np.repeat(sides, 8), np.tile(sides, 8), scores=scores, labels=labels)
    speaker_of = {name: name.split("-")[0] for name in sides}
    by_map = bootstrap(trials, enroll_speakers=speaker_of, test_speakers=speaker_of, replicates=20)
    by_id = bootstrap(
        trials,
        enroll_speakers=[speaker_of[name] for name in trials.enroll_ids],
        test_speakers=[speaker_of[name] for name in trials.test_ids],
        replicates=20,
    )
    assert np.array_equal(by_map.eer, by_id.eer)
    again = paired_test(trials, trials, enroll_speakers=speaker_of, test_speakers=speaker_of, replicates=20)
    assert (again.difference, again.p_value) == (0.0, 1.0)


def test_draws_without_targets_or_nontargets_are_drawn_again():
    scores, labels, speakers = crossed(speakers=2)
    result = bootstrap(scores, labels, **speakers, replicates=200)
    assert result.eer.shape == (200,)
    assert np.isfinite(result.eer).all()


def test_to_dict_has_the_shape_of_evaluate():
    scores, labels, speakers = crossed()
    ends = bootstrap(scores, labels, **speakers, replicates=30, points=POINTS).to_dict(level=0.9)
    value = evaluate(scores, labels, points=POINTS)
    assert ends["dcf"][0]["min_dcf"] == ends["min_dcf"]
    assert len(ends["dcf"]) == len(value["dcf"]) == 2
    assert (ends["level"], ends["replicates"], ends["n_speakers"]) == (0.9, 30, 7)
    assert all(len(ends[name]) == 2 for name in ("eer", "cllr", "min_cllr", "act_dcf", "calibration_loss"))


@pytest.mark.parametrize("metric", ["eer", "min_dcf", "act_dcf", "cllr", "min_cllr", "calibration_loss"])
def test_a_clearly_better_system_is_found(metric):
    scores, labels, speakers = crossed(speakers=25, decimals=6, shift=4.0)
    llr = scores * 4.0 - 8.0
    noise = np.random.default_rng(1).normal(0.0, 3.0, scores.size)
    worse = (scores + noise) * 4.0 if metric in ("act_dcf", "cllr", "calibration_loss") else scores + noise
    result = paired_test(llr, worse, labels, **speakers, metric=metric, point=0.3, replicates=200)
    assert result.difference < 0
    assert result.interval.high < 0
    assert result.p_value == pytest.approx(2 / 201)
    mirrored = paired_test(worse, llr, labels, **speakers, metric=metric, point=0.3, replicates=200)
    assert mirrored.interval.low == pytest.approx(-result.interval.high, abs=0.05)
    assert mirrored.difference == -result.difference


def test_comparing_matches_trials_by_id():
    scores, labels, _ = crossed(speakers=4)
    sides = [f"s{s}-{i}" for s in range(4) for i in range(2)]
    trials = TrialList.from_pairs(np.repeat(sides, 8), np.tile(sides, 8), scores=scores, labels=labels)
    names = {"enroll_speakers": {name: name[:2] for name in sides}, "test_speakers": {name: name[:2] for name in sides}}
    order = np.random.default_rng(0).permutation(len(trials))
    assert paired_test(trials, trials.select(order), **names, replicates=10).difference == 0
    with pytest.raises(InputError, match="of system A only"):
        paired_test(trials, trials.select(order[1:]), **names)
    with pytest.raises(InputError, match="two trial lists"):
        paired_test(scores, trials, labels, enroll_speakers=scores, test_speakers=scores)


def test_one_speaker_is_refused_with_the_reason():
    with pytest.raises(InputError, match="one speaker, 'ann'; a bootstrap over speakers needs at least two"):
        bootstrap([1.0, 2.0], [1, 0], enroll_speakers=["ann"] * 2, test_speakers=["ann"] * 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test_speakers": ["a", "a", "b"]}, "target trial, but its speakers are 'b' and 'a'"),
        ({"test_speakers": ["a", None, "b"]}, r"test_speakers\[1\] has no speaker"),
        ({"test_speakers": ["a", "b"]}, "has 2 speakers, but 3 are needed"),
        ({"test_speakers": {"a": "a"}}, "only a TrialList has ids"),
        ({"replicates": 0}, "at least 1"),
    ],
)
def test_bad_input_is_refused(options, message):
    good = {"enroll_speakers": ["a", "b", "a"], "test_speakers": ["a", "b", "b"]}
    with pytest.raises(InputError, match=message):
        bootstrap([1.0, 2.0, 0.0], [1, 1, 0], **(good | options))


def test_missing_scores_and_unknown_speakers_are_refused():
    good = {"enroll_speakers": ["a", "b", "a"], "test_speakers": ["a", "b", "b"]}
    with pytest.raises(InputError, match="a score is nan"):
        bootstrap([1.0, 2.0, np.nan], [1, 1, 0], **good)
    trials = TrialList.from_pairs(["e", "f"], ["t", "t"], scores=[1.0, 0.0], labels=[1, 0])
    with pytest.raises(InputError, match="has no speaker for 'f'"):
        bootstrap(trials, enroll_speakers={"e": "a"}, test_speakers={"t": "a"})
    with pytest.raises(InputError, match="the enroll id 'f' has no speaker"):
        bootstrap(trials, enroll_speakers={"e": "a", "f": None}, test_speakers={"t": "a"})


def test_bad_metric_and_level_are_refused():
    scores, labels, speakers = crossed()
    result = bootstrap(scores, labels, **speakers, replicates=3)
    with pytest.raises(InputError, match="there is no metric 'der'"):
        result.interval("der")
    with pytest.raises(InputError, match="level is 95"):
        result.interval("eer", level=95)
    with pytest.raises(InputError, match="rising order"):
        bootstrap_det(scores, labels, **speakers, p_fa=[0.2, 0.1])


@pytest.mark.parametrize("level", [0.0, 1.0, 2.0, float("nan")])
def test_a_band_of_an_impossible_level(level):
    with pytest.raises(InputError, match="level"):
        bootstrap_det([1.0, 0.0], [1, 0], enroll_speakers=["a", "b"], test_speakers=["a", "c"], level=level)
