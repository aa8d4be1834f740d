"""The speaker bootstrap against trial lists that are really copied, and what it must refuse."""

import importlib
import sys
from typing import get_args

import numpy as np
import pytest
from numpy.testing import assert_allclose

from evenscore import InputError, ScoreMatrix, TrialList
from evenscore.metrics import bootstrap, bootstrap_det, evaluate, paired_test
from evenscore.metrics.resampling import Metric
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


def test_replicates_equal_copied_trials():
    scores, labels, speakers = crossed()
    result = bootstrap(scores, labels, **speakers, replicates=12, points=POINTS, seed=5)
    draws = np.random.default_rng(5).multinomial(7, np.full(7, 1 / 7), size=12)
    for at, draw in enumerate(draws):
        trials = copied(scores, labels, speakers, draw)
        assert result.replicates("eer")[at] == pytest.approx(naive.rocch_eer(*trials), abs=1e-12)
        assert result.replicates("cllr")[at] == pytest.approx(naive.cllr(*trials), rel=1e-12)
        assert result.replicates("min_cllr")[at] == pytest.approx(naive.min_cllr(*trials), abs=1e-12)
        for place, point in enumerate(POINTS):
            assert result.replicates("min_dcf", place)[at] == pytest.approx(naive.min_dcf(*trials, *point), abs=1e-12)
            assert result.replicates("act_dcf", place)[at] == pytest.approx(naive.act_dcf(*trials, *point), abs=1e-12)
        whole = evaluate(*trials, points=POINTS)
        for metric in get_args(Metric):
            assert result.replicates(metric)[at] == pytest.approx(getattr(whole, metric), rel=1e-12, abs=1e-15)


def test_infinite_llrs_that_are_not_drawn_cost_nothing():
    scores, labels, speakers = crossed(decimals=6)
    scores[np.flatnonzero((labels == 0) & (speakers["enroll_speakers"] == "spk3"))[0]] = np.inf
    found = bootstrap(scores, labels, **speakers, replicates=50).replicates("cllr")
    assert np.isinf(found).any()
    assert np.isfinite(found).any()


def test_compiled_sums_are_those_of_numpy(monkeypatch):
    scores, labels, speakers = crossed(decimals=1)
    scores[np.flatnonzero((labels == 0) & (speakers["enroll_speakers"] == "spk3"))[0]] = np.inf
    how = {**speakers, "replicates": 40, "points": POINTS}
    monkeypatch.delitem(sys.modules, "evenscore.kernels", raising=False)
    plain = bootstrap(scores, labels, **how)
    monkeypatch.setitem(sys.modules, "evenscore.kernels", importlib.import_module("evenscore.kernels"))
    compiled = bootstrap(scores, labels, **how)
    for metric in ("eer", "cllr", "min_cllr", "min_dcf", "act_dcf"):
        assert_allclose(compiled.replicates(metric), plain.replicates(metric), rtol=1e-12)


def test_band_is_the_miss_rate_of_copied_trials():
    scores, labels, speakers = crossed()
    rates = np.array([0.0, 0.01, 0.2, 0.5, 1.0])
    band = bootstrap_det(scores, labels, **speakers, p_fa=rates, replicates=3, level=0.5, seed=5)
    draws = np.random.default_rng(5).multinomial(7, np.full(7, 1 / 7), size=3)
    rows = [[naive.p_miss_at(r, *copied(scores, labels, speakers, draw)) for r in rates] for draw in draws]
    low, high = np.quantile(rows, [0.25, 0.75], axis=0, method="inverted_cdf")
    assert_allclose([band.low, band.high], [low, high], atol=1e-12)


def test_tables_bring_their_speakers():
    scores, labels, speakers = crossed(speakers=4)
    ids = [f"s{s}-{i}" for s in range(4) for i in range(2)]
    trials = TrialList(np.repeat(ids, 8), np.tile(ids, 8), scores=scores, labels=labels)
    speaker_of = {name: f"spk{name[1]}" for name in ids}
    known = trials.with_speakers(speaker_of, speaker_of)
    matrix = ScoreMatrix(scores.reshape(8, 8), ids, ids).with_speakers(speaker_of, speaker_of)
    expected = bootstrap(scores, labels, **speakers, replicates=20).to_dict()
    given = {"enroll_speakers": speaker_of, "test_speakers": speaker_of}
    for found in (
        bootstrap(known, replicates=20),
        bootstrap(matrix, replicates=20),
        bootstrap(trials, **given, replicates=20),
    ):
        assert found.to_dict() == expected
    order = np.random.default_rng(0).permutation(len(trials))
    assert paired_test(known, trials.select(order), replicates=20).p_value == 1.0
    with pytest.raises(InputError, match="of system A only"):
        paired_test(known, trials.select(order[1:]))
    with pytest.raises(InputError, match="the speakers of the enroll side are not known"):
        bootstrap(trials)


def test_intervals_cover_the_value_and_narrow_with_more_speakers():
    widths = []
    for n in (10, 40):
        scores, labels, names = crossed(speakers=n, seed=2, decimals=6)
        result = bootstrap(scores, labels, **names, replicates=300)
        interval = result.interval("eer")
        assert interval.low <= evaluate(scores, labels).eer <= interval.high
        widths.append(interval.high - interval.low)
    assert widths[1] < widths[0]
    assert result.to_dict() == bootstrap(scores, labels, **names, replicates=300).to_dict()
    assert result.to_dict() != bootstrap(scores, labels, **names, replicates=300, seed=1).to_dict()


def test_draws_without_a_class_are_drawn_again():
    scores, labels, speakers = crossed(speakers=2)
    assert np.isfinite(bootstrap(scores, labels, **speakers, replicates=200).replicates("eer")).sum() == 200


def test_to_dict_has_the_shape_of_evaluate():
    scores, labels, speakers = crossed()
    ends = bootstrap(scores, labels, **speakers, replicates=30, points=POINTS).to_dict(level=0.9)
    assert ends["dcf"][0]["min_dcf"] == ends["min_dcf"]
    assert len(ends["dcf"]) == 2
    assert (ends["level"], ends["replicates"], ends["n_speakers"]) == (0.9, 30, 7)
    assert ends.keys() - {"level", "replicates", "n_speakers"} < evaluate(scores, labels).to_dict().keys()


@pytest.mark.parametrize("metric", ["eer", "min_dcf", "act_dcf", "cllr", "min_cllr", "calibration_loss"])
def test_a_clearly_better_system_is_found(metric):
    scores, labels, speakers = crossed(speakers=25, decimals=6, shift=4.0)
    llr = scores * 4.0 - 8.0
    noise = np.random.default_rng(1).normal(0.0, 3.0, scores.size)
    worse = (scores + noise) * 4.0 if metric in ("act_dcf", "cllr", "calibration_loss") else scores + noise
    result = paired_test(llr, worse, labels, **speakers, metric=metric, points=0.3, replicates=200)
    assert result.difference < 0
    assert result.interval.high < 0
    assert result.p_value == pytest.approx(2 / 201)


@pytest.mark.parametrize(
    ("options", "culprit"),
    [
        ({"test_speakers": ["a", "a", "b"]}, "'b' and 'a'"),
        ({"test_speakers": ["a", None, "b"]}, r"test_speakers\[1\]"),
        ({"test_speakers": ["a", "b"]}, "3 and 2 speakers, but 3 trials"),
        ({"test_speakers": {"a": "a"}}, "3 and 1 speakers"),
        ({"enroll_speakers": ["a"] * 3, "test_speakers": ["a"] * 3}, "at least two speakers"),
        ({"replicates": 0}, "at least 1"),
    ],
)
def test_bad_input_is_refused(options, culprit):
    good = {"enroll_speakers": ["a", "b", "a"], "test_speakers": ["a", "b", "b"]}
    with pytest.raises(InputError, match=culprit):
        bootstrap([1.0, 2.0, 0.0], [1, 1, 0], **(good | options))
    result = bootstrap([1.0, 2.0, 0.0], [1, 1, 0], **good, replicates=3)
    with pytest.raises(InputError, match="'der'"):
        result.interval("der")
    with pytest.raises(InputError, match="level is 95"):
        result.interval("eer", level=95)
