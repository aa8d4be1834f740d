"""Drawing groups of speakers from counts: the same replicates as from all trials, and intervals of the same width."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import InputError, OperatingPoint, bootstrap, evaluate
from evenscore.metrics import Bootstrap
from evenscore.metrics.kernels import HALF
from evenscore.metrics.speaker_groups import MOST_GROUPS, GroupCounter, speaker_groups
from reference.speaker_group_counts import bin_of, evaluate_draw

POINTS = (OperatingPoint(0.05), OperatingPoint(0.5))
METRICS = ("eer", "cllr", "min_cllr", "min_dcf", "act_dcf")


def simulated(n_speakers, seed, each=(2, 3)):
    """Return a matrix of LLRs whose rows and columns shift all their scores, its labels, and the speakers."""
    rng = np.random.default_rng(seed)
    rows, columns = (np.repeat(np.arange(n_speakers), number) for number in each)
    labels = (rows[:, None] == columns).astype(np.int8)
    shift = rng.normal(size=(len(rows), 1)) + 0.7 * rng.normal(size=n_speakers)[columns]
    return 4.0 * labels - 2.0 + shift + rng.normal(size=labels.shape), labels, rows, columns


def count_groups(llrs, labels, enroll, test, group):
    counter = GroupCounter(group, POINTS)
    counter.add(llrs, labels, enroll, test)
    return counter.counts()


def listed(llrs, labels, rows, columns):
    enroll, test = np.broadcast_arrays(rows[:, None], columns)
    return llrs.ravel(), labels.ravel(), enroll.ravel(), test.ravel()


@given(llr=st.floats(-5000, 5000), divisor=st.sampled_from([1, 1000]))
def test_bins_are_those_of_the_definition(llr, divisor):
    llr /= divisor
    target = np.array([1], dtype=np.int8)
    here = np.zeros(1, dtype=np.intp)
    counts = count_groups(np.array([llr]), target, here, here, here)
    place = int(np.flatnonzero(counts.target[0])[0])
    expected = min(bin_of(float(np.float32(4 + abs(llr)))), HALF - 2)
    assert place == (HALF + expected if llr >= 0 else HALF - 1 - expected)


def test_infinite_llrs_have_bins_of_their_own_and_nan_has_none():
    llrs = np.array([np.inf, -np.inf, 1e9, -1e9, np.nan])
    here = np.zeros(5, dtype=np.intp)
    counts = count_groups(llrs, np.ones(5, dtype=np.int8), here, here, here[:1])
    assert np.flatnonzero(counts.target[0]).tolist() == [0, 1, 2 * HALF - 2, 2 * HALF - 1]


@pytest.mark.parametrize("n_speakers", [7, 60])
def test_a_draw_is_that_of_all_its_trials(n_speakers):
    llrs, labels, rows, columns = simulated(n_speakers, 1, (1, 2))
    labels[0, 3] = -1  # unknown
    labels[2, 4] = labels[2, 5] = 0  # a key may call trials of one speaker non-targets
    group = speaker_groups(n_speakers, 0)
    counts = count_groups(llrs, labels, rows, columns, group)
    rng = np.random.default_rng(2)
    number = min(n_speakers, MOST_GROUPS)
    for draw in rng.multinomial(number, np.full(number, 1 / number), size=3):
        [found] = counts.measured(draw[None], normalize=True)
        flat = listed(llrs, labels, rows, columns)
        known = flat[1] >= 0
        expected = evaluate_draw(*(side[known] for side in flat), group, draw, POINTS)
        assert found[0] == pytest.approx(expected["eer"], abs=0.01)
        assert found[1] == pytest.approx(expected["cllr"], abs=0.005)
        assert found[2] == pytest.approx(expected["min_cllr"], abs=0.02)
        for place, cost in enumerate(expected["dcf"]):
            assert found[3 + 2 * place] == pytest.approx(cost["min_dcf"], abs=0.05)
            assert found[4 + 2 * place] == pytest.approx(cost["act_dcf"], rel=1e-12)


def test_counts_add_up_over_tiles_and_lists():
    llrs, labels, rows, columns = simulated(50, 3)
    group = speaker_groups(50, 0)
    whole = count_groups(llrs, labels, rows, columns, group)
    upper = count_groups(llrs[:33], labels[:33], rows[:33], columns, group)
    lower = count_groups(*listed(llrs[33:], labels[33:], rows[33:], columns), group)
    for name in ("target", "nontarget", "target_below", "nontarget_below"):
        assert np.array_equal(getattr(upper + lower, name), getattr(whole, name))
    assert whole.nontarget.sum() + whole.target.sum() == llrs.size


def intervals(n_speakers, seed):
    """Return for each metric the interval from draws of speakers, and that from draws of groups."""
    llrs, labels, rows, columns = simulated(n_speakers, seed)
    flat = listed(llrs, labels, rows, columns)
    names = {"enroll_speakers": 1000 + flat[2], "test_speakers": 1000 + flat[3]}
    one = bootstrap(*flat[:2], **names, replicates=300, points=POINTS)
    group = speaker_groups(n_speakers, seed)
    figures = evaluate(*flat[:2], points=POINTS)
    counts = count_groups(llrs, labels, rows, columns, group)
    other = Bootstrap.drawn(counts, figures=figures, replicates=300, seed=0)
    return {metric: (one.interval(metric), other.interval(metric)) for metric in METRICS}


def test_with_few_speakers_the_draws_are_those_of_the_bootstrap():
    for metric, (one, other) in intervals(30, 5).items():
        tolerance = 1e-12 if metric == "act_dcf" else 1e-3 if metric == "cllr" else 0.1 * (one.high - one.low)
        assert other.low == pytest.approx(one.low, abs=tolerance)
        assert other.high == pytest.approx(one.high, abs=tolerance)


def test_intervals_of_groups_are_as_wide_as_those_of_speakers():
    ratios = {metric: [] for metric in METRICS}
    for seed in range(4):
        for metric, (one, other) in intervals(160, seed).items():
            ratios[metric].append((other.high - other.low) / (one.high - one.low))
            assert max(one.low, other.low) < min(one.high, other.high)
    for metric, found in ratios.items():
        assert all(0.6 < ratio < 1.4 for ratio in found), (metric, found)
        assert 0.8 < np.mean(found) < 1.2, (metric, found)


def test_an_infinitely_wrong_llr_makes_cllr_infinite_where_it_is_drawn():
    llrs, labels, rows, columns = simulated(10, 1)
    llrs[0, 0] = -np.inf  # a target
    figures = evaluate(llrs.ravel(), labels.ravel(), points=POINTS)
    counts = count_groups(llrs, labels, rows, columns, speaker_groups(10, 0))
    cllr = Bootstrap.drawn(counts, figures=figures, replicates=100, seed=0).cllr
    assert 0 < np.isinf(cllr).mean() < 1


def test_a_target_of_two_speakers_is_refused():
    llrs, labels, rows, columns = simulated(5, 1)
    labels[0, -1] = 1
    with pytest.raises(InputError, match="two different speakers; check the key"):
        count_groups(llrs, labels, rows, columns, speaker_groups(5, 0))
