"""Summaries that add up: exact where it is counting, certain bounds elsewhere."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import InputError, LogisticCalibration, TrialList, act_dcf, cllr, eer, evaluate, min_dcf
from evenscore.metrics import p_fa_at, p_miss_at, summarize

POINTS = [0.01, 0.5, (0.1, 10.0, 1.0)]
awkward = st.one_of(
    st.floats(-8, 8, width=32),
    st.floats(allow_nan=False),
    st.sampled_from([0.0, -0.0, 1e-45, -1e-45, 1e300, -1e300, float("inf"), float("-inf"), 1.0, 1.0 + 1e-9]),
)


@st.composite
def trials(draw, scores=awkward):
    size = draw(st.integers(2, 60))
    labels = [1, 0, *draw(st.lists(st.sampled_from([1, 0, -1]), min_size=size - 2, max_size=size - 2))]
    values = draw(st.lists(scores, min_size=size, max_size=size))
    with np.errstate(over="ignore"):
        return np.array(values).astype(draw(st.sampled_from([np.float32, np.float64]))), np.array(labels)


def assert_brackets(summary, scores, labels):
    truth, found = evaluate(scores, labels, points=POINTS), summary.evaluate()
    for name, (low, high) in found["bounds"].items():
        assert low - 1e-12 <= truth[name] <= high + 1e-12, name
        assert low <= found[name] <= high
    for true, point in zip(truth["dcf"], found["dcf"], strict=True):
        assert point["min_dcf_bounds"][0] - 1e-12 <= true["min_dcf"] <= point["min_dcf_bounds"][1] + 1e-12
        assert point["act_dcf"] == pytest.approx(true["act_dcf"], abs=1e-12)
        assert (point["act_p_miss"], point["act_p_fa"]) == pytest.approx((true["act_p_miss"], true["act_p_fa"]))
    assert (found["n_target"], found["n_nontarget"]) == (truth["n_target"], truth["n_nontarget"])
    assert found["cllr"] == pytest.approx(truth["cllr"], rel=1e-12)


@given(trials(), st.integers(10, 20))
def test_the_bounds_hold_the_truth_and_the_rest_is_exact(drawn, bits):
    scores, labels = drawn
    assert_brackets(summarize(scores, labels, points=POINTS, bits=bits), scores, labels)


@given(trials(), st.integers(10, 20), st.floats(0, 1))
def test_every_metric_that_takes_scores_takes_bins(drawn, bits, rate):
    scores, labels = drawn
    summary = summarize(scores, labels, points=POINTS, bits=bits)
    for metric in (
        lambda *data: eer(*data, method="interpolated"),
        lambda *data: p_miss_at(rate, *data),
        lambda *data: p_fa_at(rate, *data),
        lambda *data: min_dcf(*data, p_target=0.5),
    ):
        low, high = summary.bounds(metric)
        assert low - 1e-9 <= metric(scores, labels) <= high + 1e-9
        assert metric(summary) == (low + high) / 2
    assert act_dcf(summary, p_target=0.5) == pytest.approx(act_dcf(scores, labels, p_target=0.5), abs=1e-12)
    with pytest.raises(InputError, match="not counted at"):
        act_dcf(summary, p_target=0.3)


@given(trials(), st.integers(0, 60))
def test_parts_add_up_to_the_whole(drawn, cut):
    scores, labels = drawn
    whole = summarize(scores, labels, points=POINTS, bits=12)
    parts = summarize(scores[:cut], labels[:cut], points=POINTS, bits=12) + summarize(
        scores[cut:], labels[cut:], points=POINTS, bits=12
    )
    for name in ("counts", "below"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
    np.testing.assert_allclose(parts.sums, whole.sums, rtol=1e-12)
    np.testing.assert_allclose(parts.costs, whole.costs, rtol=1e-12)


@given(trials(), st.integers(10, 16))
def test_a_coarser_summary_is_that_of_fewer_bits(drawn, bits):
    scores, labels = drawn
    found = summarize(scores, labels, points=POINTS, bits=16).coarsened(bits)
    wanted = summarize(scores, labels, points=POINTS, bits=bits)
    for name in ("bins", "counts", "below"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
    np.testing.assert_allclose(found.sums, wanted.sums, rtol=1e-12)
    if np.abs(scores).max() < 1e30:
        scale = np.square(scores.astype(np.float64)).sum()
        np.testing.assert_allclose(found.squares, wanted.squares, rtol=1e-12, atol=1e-15 * scale)


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(5)
    labels = (np.arange(400_000) % 40 == 0).astype(np.int8)
    return rng.normal(np.where(labels, 3.0, -4.0), 2.0).astype(np.float32), labels


def test_bounds_are_narrow_and_halve_with_each_bit(many):
    widths = []
    for bits in (14, 16, 18, 20):
        summary = summarize(*many, points=POINTS, bits=bits)
        assert_brackets(summary, *many)
        low, high = summary.evaluate()["bounds"]["eer"]
        widths.append(high - low)
    assert widths[-1] < 1e-4 * evaluate(*many)["eer"] * 10
    assert all(after < 0.5 * before for before, after in pairwise(widths))


def test_scores_in_few_bits_are_exact():
    rng = np.random.default_rng(1)
    labels = rng.random(3000) < 0.3
    scores = np.round(rng.normal(2.0 * labels, 1.0) * 8) / 8  # each bin holds one value: ties, not guesses
    found, truth = summarize(scores, labels, bits=20).evaluate(), evaluate(scores, labels)
    assert found["bounds"]["eer"][0] <= truth["eer"] <= found["bounds"]["eer"][1]
    tied = evaluate(summarize(scores, labels, bits=20).sorted_scores("tied"))
    for name in ("eer", "min_dcf", "min_cllr", "auc", "act_dcf"):
        assert tied[name] == pytest.approx(truth[name], rel=1e-9)


def test_missing_and_unknown_are_skipped_in_tables_of_any_shape():
    summary = summarize([[2.0, np.nan, 1.0], [-1.0, 0.5, 3.0]], [[1, 1, 0], [0, -1, 1]])
    assert (summary.n_target, summary.n_nontarget) == (2, 2)
    assert summary.cllr() == pytest.approx(cllr([2.0, 1.0, -1.0, 3.0], [1, 0, 0, 1]))


def test_a_trial_list_brings_its_labels():
    listed = TrialList(["e"], ["t1", "t2"], [0, 0], [0, 1], scores=[3.0, -1.0], labels=[1, 0])
    assert summarize(listed).cllr() == pytest.approx(cllr(listed))


def test_logistic_calibration_fits_a_summary_as_it_fits_the_scores(many):
    scores, labels = many
    from_all, from_summary = LogisticCalibration.fit(scores, labels), LogisticCalibration.fit(summarize(scores, labels))
    assert from_summary.weights == pytest.approx(from_all.weights, rel=1e-6)
    assert from_summary.offset == pytest.approx(from_all.offset, rel=1e-6)


def test_bad_requests_are_refused():
    with pytest.raises(InputError, match="shape"):
        summarize([1.0, 2.0], [1])
    with pytest.raises(InputError, match="bits is 30"):
        summarize([1.0], [1], bits=30)
    with pytest.raises(InputError, match="labels are missing"):
        summarize([1.0])
    with pytest.raises(InputError, match="0 target and 1 non-target"):
        summarize([1.0], [0]).evaluate()
    with pytest.raises(InputError, match="different operating points"):
        summarize([1.0], [0]) + summarize([1.0], [0], bits=12)
    with pytest.raises(InputError, match="bits is 14, but must lie between 10 and 12"):
        summarize([1.0], [1], bits=12).coarsened(14)
    with pytest.raises(InputError, match="infinite"):
        LogisticCalibration.fit(summarize([np.inf, 1.0, 0.0], [1, 0, 1]))
    with pytest.raises(InputError, match="leave out labels"):
        LogisticCalibration.fit(summarize([2.0, 1.0, 0.0], [1, 0, 1]), [1])
