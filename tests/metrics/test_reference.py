"""Metrics against their definitions: every threshold tried, one after the other; memory, merged and dask alike."""

import math

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from evenscore import InputError, Labels, ScoreMatrix, TrialList
from evenscore.metrics import (
    NIST_PRESETS,
    Points,
    act_dcf,
    auc,
    cllr,
    eer,
    evaluate,
    evaluate_by,
    evaluate_nist,
    evaluate_spoofing,
    min_cllr,
    min_dcf,
    miss_rate_at,
    posterior_probability,
)
from reference import naive_metrics as naive
from reference.nist_rules import nist_figures

POINTS = [(0.01, 1.0, 1.0), (0.3, 2.0, 1.0), (0.5, 1.0, 10.0)]
NUMBERS = ("eer", "min_dcf", "act_dcf", "cllr", "min_cllr", "auc", "n_target", "n_nontarget")


@st.composite
def trials(draw):
    """Scores with many ties, labels with both classes and some that are unknown."""
    size = draw(st.integers(2, 40))
    values = st.sampled_from([-np.inf, -3.5, -1.0, -0.0, 0.0, 0.25, 1.0, 2.0, 30.0]) | st.floats(-8, 8).map(
        lambda x: round(x, 1)
    )
    scores = draw(st.lists(values, min_size=size, max_size=size))
    labels = draw(st.lists(st.sampled_from([0, 0, 1, -1]), min_size=size, max_size=size))
    labels[:2] = [1, 0]
    return np.array(scores), np.array(labels)


def known(scores, labels):
    return scores[labels >= 0].tolist(), labels[labels >= 0].tolist()


@settings(max_examples=60)
@given(trials(), st.booleans())
def test_metrics_are_their_definitions(data, merge):
    scores, labels = data
    given = known(scores, labels)
    thresholds = [math.log((1 - p) * f) - math.log(p * m) for p, m, f in POINTS]
    points = Points.from_scores(scores, labels, merge=merge, thresholds=thresholds)
    assert eer(points) == pytest.approx(naive.rocch_eer(*given), abs=1e-12)
    assert eer(points, method="interpolated") == pytest.approx(naive.interpolated_eer(*given), abs=1e-12)
    assert auc(points) == pytest.approx(naive.auc(*given), abs=1e-12)
    assert min_cllr(points) == pytest.approx(naive.min_cllr(*given), abs=1e-12)
    assert cllr(points) == pytest.approx(naive.cllr(*given), rel=1e-12)
    for p, m, f in POINTS:
        how = {"p_target": p, "c_miss": m, "c_fa": f}
        assert min_dcf(points, **how) == pytest.approx(naive.min_dcf(*given, p, m, f), abs=1e-12)
        assert act_dcf(points, **how) == pytest.approx(naive.act_dcf(*given, p, m, f), abs=1e-12)
    for rate in (0.0, 0.1, 0.29, 0.5, 1.0):
        found = miss_rate_at(points, p_fa=rate)
        assert found.p_miss == pytest.approx(naive.p_miss_at(rate, *given))
        values, key = np.array(given[0]), np.array(given[1])
        assert np.mean(values[key == 0] >= found.threshold) <= rate + 1e-12
        assert np.mean(values[key == 1] < found.threshold) == pytest.approx(found.p_miss)


def test_thresholds_that_are_scores_count_their_trials_once():
    scores, labels, thresholds = np.array([0.0, 0.0, 0.0, -1.0, 2.0]), np.array([1, 1, 0, 0, 0]), [0.0, 0.0, 2.0, 5.0]
    points = Points.from_scores(scores, labels, merge=True, thresholds=thresholds)
    assert (points.target.sum(), points.nontarget.sum()) == (2, 3)
    assert [points.p_miss[points.rejected(t)] for t in thresholds] == [0.0, 0.0, 1.0, 1.0]
    assert [points.p_fa[points.rejected(t)] for t in thresholds] == [2 / 3, 2 / 3, 1 / 3, 0.0]


@settings(max_examples=40)
@given(trials())
def test_conventions_of_single_trials(data):
    given = known(*data)
    assert eer(*data, method="nearest-mean") == pytest.approx(naive.nearest_mean_eer(*given), abs=1e-12)
    assert eer(*data, method="kaldi") == pytest.approx(naive.kaldi_eer(*given), abs=1e-12)


@settings(max_examples=30)
@given(trials(), st.integers(0, 1000))
def test_weighted_metrics_are_their_definitions(data, seed):
    scores, labels = data
    weights = np.random.default_rng(seed).integers(0, 4, labels.size).astype(float)
    weights[:2] = 1.0
    found = evaluate(scores, labels, weights=weights, points=POINTS)
    given = scores[labels >= 0].tolist(), labels[labels >= 0].tolist(), weights[labels >= 0].tolist()
    assert found.eer == pytest.approx(naive.rocch_eer(*given), abs=1e-12)
    assert found.cllr == pytest.approx(naive.cllr(*given), rel=1e-12)
    assert found.min_cllr == pytest.approx(naive.min_cllr(*given), abs=1e-12)
    for cost, point in zip(found.costs, POINTS, strict=True):
        assert cost.min_dcf == pytest.approx(naive.min_dcf(*given[:2], *point, given[2]), abs=1e-12)
        assert cost.act_dcf == pytest.approx(naive.act_dcf(*given[:2], *point, given[2]), abs=1e-12)


def crossed(seed=0, n=30, speakers=7, dtype=np.float64):
    """A matrix with speakers, ties, missing scores and an enrolment of unknown speaker."""
    rng = np.random.default_rng(seed)
    enroll, test = rng.integers(0, speakers, n), rng.integers(0, speakers, 2 * n)
    scores = rng.normal(3.0 * (enroll[:, None] == test), 1.5).round(1).astype(dtype)
    scores[rng.random(scores.shape) < 0.05] = np.nan
    names = [f"s{k}" for k in enroll]
    names[3] = None
    matrix = ScoreMatrix(scores, [f"e{i}" for i in range(n)], [f"t{j}" for j in range(2 * n)])
    return matrix.with_speakers(names, [f"s{k}" for k in test])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("by_key", [False, True])
def test_tables_in_memory_and_in_ragged_chunks_agree(dtype, by_key):
    matrix = crossed(dtype=dtype)
    labels = Labels.from_speakers(matrix.enroll, matrix.test)
    listed = matrix.to_trials(labels)
    expected = evaluate(listed.scores, listed.labels, points=POINTS)
    lazy = ScoreMatrix(da.from_array(matrix.scores, ((7, 1, 22), (33, 20, 7))), matrix.enroll, matrix.test)
    key = Labels.from_key(labels.matrix, enroll_ids=matrix.enroll, test_ids=matrix.test) if by_key else labels
    pairs = TrialList(listed.enroll_ids[listed.rows], listed.test_ids[listed.cols], labels=listed.labels)
    for scores, key_given in [
        (matrix, key),
        (matrix, None),
        (listed, None),
        (lazy, key),
        (lazy, None),
        (matrix, pairs),
        (lazy, pairs),
    ]:
        found = evaluate(scores, key_given, points=POINTS)
        for name in NUMBERS:
            assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-13, abs=1e-15), name
        assert found.eer_threshold == pytest.approx(expected.eer_threshold, abs=0.2)


@st.composite
def lazy_trials(draw):
    """A dask matrix in ragged chunks with ties, infinite LLRs and missing scores, and its labels."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    rows, cols = draw(st.integers(1, 9)), draw(st.integers(2, 9))
    scores = rng.normal(size=(rows, cols)).round(draw(st.integers(0, 1))).astype(draw(st.sampled_from(["f4", "f8"])))
    scores[rng.random(scores.shape) < 0.1] = draw(st.sampled_from([-np.inf, np.inf, np.nan]))
    labels = rng.choice([1, 0, 0, -1], scores.shape).astype(np.int8)
    scores[0, :2], labels[0, :2] = rng.normal(size=2), (1, 0)
    cuts = tuple(draw(st.integers(1, n)) for n in scores.shape)
    return (
        scores,
        labels,
        da.from_array(scores, tuple((c, n - c) if c < n else (n,) for c, n in zip(cuts, scores.shape, strict=True))),
    )


@settings(max_examples=60, deadline=None)
@given(lazy_trials(), st.booleans())
def test_dask_arrays_give_what_numpy_arrays_give(data, labels_are_lazy):
    scores, labels, lazy = data
    key = da.from_array(labels, lazy.chunks) if labels_are_lazy else labels
    known = ~np.isnan(scores)
    expected = evaluate(scores[known], labels[known], points=POINTS)
    found = evaluate(lazy, key, points=POINTS)
    for name in NUMBERS:
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-12, abs=1e-12), name
    for one, two in zip(found.costs, expected.costs, strict=True):
        assert (one.min_dcf, one.act_dcf) == pytest.approx((two.min_dcf, two.act_dcf), rel=1e-12)
    assert miss_rate_at(lazy, key, p_fa=0.2).p_miss == miss_rate_at(scores[known], labels[known], p_fa=0.2).p_miss
    with pytest.raises(InputError, match="in memory"):
        evaluate(lazy, key, eer_method="kaldi")
    with pytest.raises(InputError, match="in memory"):
        evaluate(lazy, key, weights=np.ones(scores.shape))


@pytest.mark.parametrize("equalize", [False, True])
def test_conditions_in_memory_and_in_chunks_agree(equalize):
    matrix = crossed(seed=3)
    gender = np.where(np.arange(30) % 3 == 0, "f", "m")[:, None]
    lazy = ScoreMatrix(da.from_array(matrix.scores, ((7, 1, 22), 60)), matrix.enroll, matrix.test)
    listed = matrix.to_trials(Labels.from_speakers(matrix.enroll, matrix.test))
    expected = evaluate_by(listed, conditions=gender[:, 0][listed.rows], equalize=equalize)
    for scores in (matrix,) if equalize else (matrix, lazy):
        found = evaluate_by(scores, conditions=gender, equalize=equalize)
        assert found.equalized is equalize
        for name in NUMBERS:
            assert getattr(found.pooled, name) == pytest.approx(getattr(expected.pooled, name), rel=1e-12, abs=1e-14)
            for condition in ("f", "m"):
                one, two = (getattr(result.conditions[condition], name) for result in (found, expected))
                assert one == pytest.approx(two, rel=1e-12, abs=1e-14)


def test_equalized_rates_are_means_over_conditions():
    scores, labels, conditions = [3.0, 1.0, 0.0, 2.0, 5.0], [1, 1, 0, 0, 0], list("ffffm")
    found = evaluate_by(scores, labels, conditions=conditions, equalize=True, points=0.5)
    assert found.pooled.costs[0].act_p_fa == pytest.approx((1 + 1) / 2)
    assert found.to_dict()["conditions"]["m"]["problem"] == "there are no target trials"
    assert evaluate(scores, labels, weights=[0.5, 0.5, 0.5, 0.5, 1.0], points=0.5).act_dcf == found.pooled.act_dcf


def test_many_trials_are_merged_without_change():
    rng = np.random.default_rng(5)
    labels = (rng.random(200_000) < 0.02).astype(np.int8)
    scores = rng.normal(6.0 * labels - 3.0, 2.0).astype(np.float32)
    full = Points.from_scores(scores, labels, merge=False)
    merged, single = evaluate(scores, labels, points=POINTS), evaluate(full, points=POINTS)
    assert Points.from_scores(scores, labels).score.size < 20_000
    for name in NUMBERS:
        assert getattr(merged, name) == pytest.approx(getattr(single, name), rel=1e-13)
    assert merged.eer_threshold == pytest.approx(single.eer_threshold, abs=0.01)
    for cost in merged.costs:  # the threshold may lie anywhere between two targets
        assert np.mean(scores[labels == 1] < cost.min_threshold) == pytest.approx(cost.min_p_miss, abs=1e-12)
        assert np.mean(scores[labels == 0] >= cost.min_threshold) == pytest.approx(cost.min_p_fa, abs=1e-12)
    with pytest.raises(InputError, match="not counted at the threshold"):
        act_dcf(Points.from_scores(scores, labels), p_target=0.123)
    with pytest.raises(InputError, match="needs every score"):
        eer(Points.from_scores(scores, labels), method="kaldi")


def test_separable_inverted_and_equal_scores():
    assert evaluate([1.0, 2.0, 3.0], [0, 1, 1]).min_cllr == eer([1.0, 2.0, 3.0], [0, 1, 1]) == 0.0
    assert eer([3.0, 2.0, 1.0], [0, 1, 1]) == 0.5
    assert [eer([1.0, 1.0], [0, 1], method=m) for m in ("rocch", "interpolated", "nearest-mean", "nearest-max")] == [
        0.5,
        0.5,
        0.5,
        1.0,
    ]
    assert math.isinf(cllr([math.inf, 1.0], [0, 1]))
    assert evaluate([1.0, 1.0], [0, 1]).costs[0].min_threshold == np.nextafter(1.0, 2.0)


def test_posterior_probability():
    llr = np.array([-800.0, -1.0, 0.0, 800.0])
    assert posterior_probability(llr).tolist() == pytest.approx([0.0, 1 / (1 + math.e), 0.5, 1.0])
    assert posterior_probability(0.0, prior=0.2) == pytest.approx(0.2)
    with pytest.raises(InputError, match="prior"):
        posterior_probability(0.0, prior=1.0)


@pytest.mark.parametrize(
    ("scores", "labels", "options", "culprit"),
    [
        ([1.0, 2.0], [1, 1], {}, "2 target and 0 non-target"),
        ([1.0, np.nan], [1, 0], {}, r"scores\[1\] is nan"),
        ([1.0, 2.0], [1, 0, 0], {}, "labels have shape"),
        ([1.0, 2.0], [1, 2], {}, "labels must be"),
        ([1.0, 2.0], None, {}, "labels are missing"),
        ([1.0, 2.0], [1, 0], {"points": 1.5}, "p_target=1.5"),
        ([1.0, 2.0], [1, 0], {"points": []}, "empty"),
        ([1.0, 2.0], [1, 0], {"points": "0.1"}, "0.1"),
        ([1.0, 2.0], [1, 0], {"eer_method": "best"}, "'best'"),
        ([1.0, 2.0], [1, 0], {"weights": [1.0, -1.0]}, "weights"),
        ([1.0, 2.0], [1, 0], {"weights": [1.0, 0.0]}, "0 non-target"),
        ([1.0, 2.0], [1, 0], {"weights": [1.0, 1.0], "eer_method": "kaldi"}, "kaldi"),
    ],
)
def test_bad_input_is_refused(scores, labels, options, culprit):
    with pytest.raises(InputError, match=culprit):
        evaluate(scores, labels, **options)


VALUES = {
    "num_enroll_segs": "13",
    "gender": ("male", "female"),
    "source_type": ("pstn", "voip"),
    "data_source": ("vast",),
}
VALUES |= {
    "language": ("tgl", "yue"),
    **dict.fromkeys(("phone_num_match", "source_type_match", "language_match"), "YN"),
}


@pytest.mark.parametrize("preset", NIST_PRESETS)
@settings(max_examples=4)
@given(seed=st.integers(0, 10**6))
def test_nist_presets_follow_the_rules(preset, seed):
    rng = np.random.default_rng(seed)
    labels = (rng.random(300) < 0.3).astype(int)
    columns = {name: rng.choice(list(VALUES[name]), 300) for name in NIST_PRESETS[preset].partitions}
    scores = rng.normal(8.0 * labels - 3, 3.0)
    for values in columns.values():
        scores += (values == values[0]) * rng.normal()
    partitions = {name: tuple(VALUES[name]) for name in columns}
    priors = list(NIST_PRESETS[preset].points)
    expected = nist_figures(scores, labels, columns, partitions, priors)
    found = evaluate_nist(scores, labels, preset=preset, columns=columns).pooled
    assert [found.eer, found.min_c_primary, found.act_c_primary] == pytest.approx(expected, rel=1e-9)


def test_nist_figures_computed_by_hand():
    # same phone: targets 5 and 1, and a non-target that does not count; other phone: target 6, non-targets 5 -1 -2 -9
    scores, labels = [5.0, 1.0, 10.0, 6.0, 5.0, -1.0, -2.0, -9.0, 99.0], [1, 1, 0, 1, 0, 0, 0, 0, 0]
    columns = {"num_enroll_segs": ["1"] * 9, "phone_num_match": ["Y"] * 3 + ["N"] * 6, "gender": ["female"] * 9}
    columns["source_type"] = ["pstn"] * 8 + ["afv"]  # not a value of the evaluation: left out
    result = evaluate_nist(scores, labels, preset="sre18", columns=columns)
    low, high = result.pooled.costs
    assert (low.act_p_miss, low.act_p_fa, high.act_p_miss, high.act_p_fa) == (0.25, 0.25, 0.5, 0.0)
    assert result.pooled.act_c_primary == pytest.approx((0.25 + 99 * 0.25 + 0.5) / 2)
    assert result.conditions["1 Y female pstn"].problem == "there are no non-target trials"
    with pytest.raises(InputError, match="'phone_num_match'"):
        evaluate_nist(scores, labels, preset="sre18", columns={"num_enroll_segs": ["1"] * 9})


def test_spoofing_costs_are_their_definition():
    rng = np.random.default_rng(2)
    kinds = rng.choice(["target", "nontarget", "spoof"], 200)
    scores = rng.normal(np.select([kinds == "target", kinds == "spoof"], [2.0, 0.5], -1.0), 1.0).round(1)
    found = evaluate_spoofing(scores, kinds)
    costs = []
    for t in [*np.unique(scores), np.inf]:
        miss, fa, spoof = (np.mean(scores[kinds == k] >= t) for k in ("target", "nontarget", "spoof"))
        costs.append((0.9405 * (1 - miss) + 0.095 * fa + 0.5 * spoof) / 0.595)
    assert found.min_a_dcf == pytest.approx(min(costs))
    assert found.sasv_eer == eer(scores, kinds == "target")
    assert found.spf_eer == eer(scores[kinds != "nontarget"], kinds[kinds != "nontarget"] == "target")
    with pytest.raises(InputError, match="0 spoof"):
        evaluate_spoofing([1.0, 2.0], ["target", "nontarget"])
