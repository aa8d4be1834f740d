"""Fast metrics against their slow twins, on few trials with many ties, infinities and uneven classes."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose

from evenscore import Labels, ScoreMatrix, TrialList
from evenscore.metrics import (
    act_dcf,
    auc,
    cllr,
    detection_costs,
    eer,
    equal_error_rate,
    evaluate,
    min_cllr,
    min_dcf,
    p_fa_at,
    p_miss_at,
    roc,
    rocch,
    sort_scores,
)
from reference import naive_metrics as naive
from tilings import over_tilings, tiled

POINTS = [(0.01, 1.0, 1.0), (0.5, 1.0, 1.0), (0.05, 10.0, 2.0), (0.9, 1.0, 1.0)]


@st.composite
def labelled_scores(draw, values=None, most=14):
    """Few scores of both classes, with ties; some trials have an unknown label."""
    values = values if values is not None else st.integers(-4, 4).map(float) | st.floats(-20, 20, width=32)
    labels = [*draw(st.lists(st.sampled_from([0, 1, 1, 0, -1]), max_size=most)), 0, 1]
    labels = draw(st.permutations(labels))
    scores = draw(st.lists(values, min_size=len(labels), max_size=len(labels)))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    return np.array(scores, dtype=dtype), np.array(labels)


def known(scores, labels):
    return scores[labels >= 0].astype(float).tolist(), labels[labels >= 0].tolist()


@given(labelled_scores())
def test_every_metric_equals_its_definition(trials):
    scores, labels = trials
    plain = known(scores, labels)
    assert eer(scores, labels) == pytest.approx(naive.rocch_eer(*plain), abs=1e-12)
    assert eer(scores, labels, method="interpolated") == pytest.approx(naive.interpolated_eer(*plain), abs=1e-12)
    assert eer(scores, labels, method="nearest-mean") == pytest.approx(naive.nearest_mean_eer(*plain), abs=1e-12)
    assert eer(scores, labels, method="kaldi") == naive.kaldi_eer(*plain)
    assert cllr(scores, labels) == pytest.approx(naive.cllr(*plain), rel=1e-12)
    assert min_cllr(scores, labels) == pytest.approx(naive.min_cllr(*plain), abs=1e-12)
    assert auc(scores, labels) == pytest.approx(naive.auc(*plain), abs=1e-12)
    for point in POINTS:
        options = dict(zip(("p_target", "c_miss", "c_fa"), point, strict=True))
        assert min_dcf(scores, labels, **options) == pytest.approx(naive.min_dcf(*plain, *point), abs=1e-12)
        assert act_dcf(scores, labels, **options) == pytest.approx(naive.act_dcf(*plain, *point), abs=1e-12)


def tables(scores, labels, width=3):
    """Give labelled scores as a list of trials, and as a matrix some of whose pairs are missing."""
    size = len(scores)
    yield TrialList(range(size), ["t"], range(size), np.zeros(size, int), scores=scores, labels=labels), None
    whole = np.full((-(-size // width), width), np.nan, scores.dtype)
    key = np.full(whole.shape, -1, np.int8)
    whole.flat[:size], key.flat[:size] = scores, labels
    yield ScoreMatrix(whole, range(len(whole)), range(width), missing="nan"), Labels.from_key(key)


@over_tilings
@pytest.mark.parametrize("listed", [True, False])
@given(labelled_scores())
def test_tables_are_counted_exactly_and_the_rest_has_certain_bounds(listed, tiling, trials):
    plain = known(*trials)
    table, key = list(tables(*trials))[0 if listed else 1]
    result = evaluate(tiled(table, tiling), key, points=POINTS)
    assert (result["n_target"], result["n_nontarget"]) == (sum(plain[1]), len(plain[1]) - sum(plain[1]))
    assert result["cllr"] == pytest.approx(naive.cllr(*plain), rel=1e-12)
    assert cllr(tiled(table, tiling), key) == result["cllr"]
    for name, metric in (("eer", naive.rocch_eer), ("min_cllr", naive.min_cllr), ("auc", naive.auc)):
        low, high = result["bounds"][name] if "bounds" in result else (result[name], result[name])
        assert low - 1e-12 <= metric(*plain) <= high + 1e-12
    for point, cost in zip(POINTS, result["dcf"], strict=True):
        assert cost["act_dcf"] == pytest.approx(naive.act_dcf(*plain, *point), abs=1e-12)
        low, high = cost.get("min_dcf_bounds") or (cost["min_dcf"], cost["min_dcf"])
        assert low - 1e-12 <= naive.min_dcf(*plain, *point) <= high + 1e-12


@given(labelled_scores(), st.sampled_from([0.0, 0.1, 0.25, 0.29, 1 / 3, 0.5, 0.58, 1.0]))
def test_fixed_rates_equal_their_definition(trials, rate):
    scores, labels = trials
    assert p_miss_at(rate, scores, labels) == pytest.approx(naive.p_miss_at(rate, *known(scores, labels)), abs=1e-12)
    assert p_fa_at(rate, scores, labels) == pytest.approx(naive.p_fa_at(rate, *known(scores, labels)), abs=1e-12)


@given(labelled_scores(), st.sampled_from([0.0, 0.2, 0.5, 1.0]))
def test_fixed_rates_of_weighted_trials_are_those_of_repeated_ones(trials, rate):
    scores, labels = trials
    repeats = 1 + np.arange(len(labels)) % 3
    weighted = sort_scores(scores, labels, weights=repeats)
    repeated = np.repeat(scores, repeats), np.repeat(labels, repeats)
    assert p_miss_at(rate, weighted) == pytest.approx(p_miss_at(rate, *repeated), abs=1e-9)
    assert p_fa_at(rate, weighted) == pytest.approx(p_fa_at(rate, *repeated), abs=1e-9)


@given(labelled_scores())
def test_hull_and_roc_have_the_points_of_the_definition(trials):
    scores, labels = trials
    plain = known(scores, labels)
    hull, curve = rocch(scores, labels), roc(scores, labels)
    vertices = np.array(naive.lower_hull(*plain), dtype=float)
    assert_allclose(np.stack((hull.p_miss, hull.p_fa), axis=1), vertices, atol=1e-12)
    every = {(round(float(m), 9), round(float(f), 9)) for _, m, f in naive.points(*plain)}
    corners = set(zip(curve.p_miss.round(9).tolist(), curve.p_fa.round(9).tolist(), strict=True))
    assert corners <= every
    assert {tuple(vertex) for vertex in vertices.round(9).tolist()} <= corners


@given(labelled_scores())
def test_thresholds_give_the_rates_they_stand_for(trials):
    scores, labels = trials
    tar, non = scores[labels == 1], scores[labels == 0]
    for curve in (rocch(scores, labels), roc(scores, labels)):
        for threshold, p_miss, p_fa in zip(curve.threshold, curve.p_miss, curve.p_fa, strict=True):
            assert np.mean(tar < threshold) == pytest.approx(p_miss)
            assert np.mean(non >= threshold) == pytest.approx(p_fa)
    for cost in detection_costs(scores, labels, points=POINTS):
        assert np.mean(tar < cost.min_threshold) == pytest.approx(cost.min_p_miss)
        assert np.mean(non >= cost.min_threshold) == pytest.approx(cost.min_p_fa)
    best = equal_error_rate(scores, labels).threshold
    gaps = [abs(m - f) for _, m, f in naive.points(*known(scores, labels))]
    assert abs(np.mean(tar < best) - np.mean(non >= best)) == pytest.approx(float(min(gaps)))


@given(labelled_scores(), st.data())
def test_weighted_metrics_equal_their_definition(trials, data):
    scores, labels = trials
    weights = data.draw(st.lists(st.integers(0, 5), min_size=len(labels), max_size=len(labels)))
    weights = np.where((labels == 1) & ~np.any(np.array(weights)[labels == 1] > 0), 1, weights)
    weights = np.where((labels == 0) & ~np.any(weights[labels == 0] > 0), 1, weights).astype(float)
    keep = labels >= 0
    plain = (*known(scores, labels), weights[keep].tolist())
    result = evaluate(scores, labels, points=POINTS, weights=weights * 0.3)
    assert result["eer"] == pytest.approx(naive.rocch_eer(*plain), abs=1e-12)
    assert result["cllr"] == pytest.approx(naive.cllr(*plain), rel=1e-12)
    assert result["min_cllr"] == pytest.approx(naive.min_cllr(*plain), abs=1e-9)
    for point, found in zip(POINTS, result["dcf"], strict=True):
        scores_key = plain[:2]
        assert found["min_dcf"] == pytest.approx(naive.min_dcf(*scores_key, *point, plain[2]), abs=1e-9)
        assert found["act_dcf"] == pytest.approx(naive.act_dcf(*scores_key, *point, plain[2]), abs=1e-9)


@given(labelled_scores(), st.integers(2, 4))
def test_repeating_trials_is_the_same_as_weighing_them(trials, times):
    scores, labels = trials
    repeats = np.where(np.arange(len(labels)) % 2, times, 1)
    counted = evaluate(np.repeat(scores, repeats), np.repeat(labels, repeats))
    weighted = evaluate(scores, labels, weights=repeats)
    for name in ("eer", "min_dcf", "act_dcf", "cllr", "min_cllr", "auc"):
        assert weighted[name] == pytest.approx(counted[name], abs=1e-9), name


@given(labelled_scores(values=st.integers(-3, 3).map(float) | st.sampled_from([np.inf, -np.inf])))
def test_infinite_scores_are_ranked_like_any_other(trials):
    scores, labels = trials
    finite = np.clip(scores, -50, 50)
    for name in ("eer", "min_dcf", "act_dcf", "min_cllr", "auc"):
        assert evaluate(scores, labels)[name] == evaluate(finite, labels)[name], name


@given(labelled_scores())
def test_increasing_transforms_change_nothing_but_calibration(trials):
    scores, labels = trials
    scores = scores.astype(np.float64)
    stretched = np.arcsinh(scores) * 3 - 7
    if np.unique(stretched).size < np.unique(scores).size:
        return
    before, after = evaluate(scores, labels), evaluate(stretched, labels)
    for name in ("eer", "min_dcf", "min_cllr", "auc"):
        assert before[name] == after[name]


@given(labelled_scores())
def test_swapping_the_classes_mirrors_the_errors(trials):
    scores, labels = trials
    mirrored = np.where(labels >= 0, 1 - labels, -1)
    assert eer(-scores, mirrored) == pytest.approx(eer(scores, labels), abs=1e-12)
    assert cllr(-scores, mirrored) == pytest.approx(cllr(scores, labels))
    assert min_cllr(-scores, mirrored) == pytest.approx(min_cllr(scores, labels), abs=1e-12)
    assert auc(-scores, mirrored) == pytest.approx(auc(scores, labels))


def test_thousands_of_scores_with_ties_agree_with_the_definition():
    rng = np.random.default_rng(3)
    labels = (rng.random(900) < 0.2).astype(int)
    scores = np.round(rng.normal(2.0 * labels, 1.0), 2)
    trials = sort_scores(scores, labels)
    assert min_cllr(trials) == pytest.approx(naive.min_cllr(scores, labels), abs=1e-12)
    assert cllr(trials) == pytest.approx(naive.cllr(scores, labels), rel=1e-13)
    assert eer(trials, method="interpolated") == pytest.approx(naive.interpolated_eer(scores, labels), abs=1e-12)
    assert eer(trials, method="kaldi") == naive.kaldi_eer(scores, labels)
