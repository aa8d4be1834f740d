"""Trials that come one by one: the same numbers as those of whole blocks, and the same refusals."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import InputError, ScoreBlocks, ScoreMatrix, normalize, prepare_norm
from evenscore.evidence.features import ScalePrior, shrunk_log_scale, shrunk_log_scale_of_one
from evenscore.norms.by_trial import one_trial
from evenscore.norms.few_scores import location_scale
from evenscore.norms.one_by_one import OneByOne
from evenscore.norms.statistics import Statistics, Summary, one_row_statistics
from examples import examples

NOBODY = {"enroll": None, "test": None}
SCORES = st.lists(st.sampled_from([-2.0, -0.5, 0.0, 0.25, 1.0, 3.5, np.nan]), min_size=1, max_size=12)


@examples(60)
@given(SCORES, st.integers(1, 12), st.integers(0, 3), st.integers(0, 2), st.integers(0, 1))
def test_the_statistics_of_one_row_are_those_of_many(row, k, drop, statistic, ddof):
    row = np.array(row)
    k, drop = min(k, len(row)), min(drop, len(row) - 1)
    summary = Summary(k=k, drop=drop, whole=False, statistic=statistic, trim=0.2, ddof=ddof)
    count, mean, std = one_row_statistics(row, summary)
    found = location_scale(row[None], *summary.how)
    assert count == found[0][0]
    if count:
        np.testing.assert_allclose([mean, std], [found[1][0], found[2][0]], atol=1e-12)


@pytest.mark.parametrize("statistic", [0, 2])
def test_a_large_row(statistic):
    row = np.random.default_rng(0).normal(size=3000)
    row[::7] = np.nan
    for k, drop in ((300, 0), (300, 5), (2500, 0), (3000, 0)):
        summary = Summary(k=k, drop=drop, whole=False, statistic=statistic, trim=0.0, ddof=1)
        found = [float(each[0]) for each in location_scale(row[None], *summary.how)]
        np.testing.assert_allclose(one_row_statistics(row, summary), found, rtol=1e-12)
    row[5] = -np.inf
    assert one_row_statistics(row, summary)[0] == -1


@pytest.mark.parametrize(("count", "std"), [(0, 0.0), (1, 0.0), (2, 1.5), (30, 1e-9), (3000, 2.0)])
def test_the_log_scale_of_one_row_is_that_of_many(count, std):
    prior = ScalePrior(center=0.2, variance=0.1, location=0.0, alike=0.3)
    many = shrunk_log_scale(Statistics(np.array([count]), np.zeros(1), np.array([std])), prior, 2.5)
    assert shrunk_log_scale_of_one(count, std, prior, 2.5) == pytest.approx(many[0], rel=1e-12)


@pytest.mark.parametrize("select", ["own", "cross"])
def test_an_infinite_cohort_score_is_refused_even_if_it_is_not_taken(select):
    norm = prepare_norm("as", top_k=2, select=select)
    with pytest.raises(InputError, match="must be finite"):
        norm.normalize_one(1.0, [3.0, 2.0, 1.0], [-np.inf, 4.0, 1.0])


@pytest.mark.parametrize("select", ["own", "cross"])
def test_no_spread_is_refused_floored_or_taken_for_one(select):
    rows = [2.0, 2.0, 1.0], [2.0, 2.0, 1.0]
    with pytest.raises(InputError, match="standard deviation of zero"):
        prepare_norm("as", top_k=2, select=select).normalize_one(3.0, *rows)
    assert prepare_norm("as", top_k=2, select=select, zero_std="one").normalize_one(3.0, *rows) == 1.0
    assert prepare_norm("as", top_k=2, select=select, std_floor=0.5).normalize_one(3.0, *rows) == 2.0


class Sum:
    """A norm that knows neither parts nor single trials."""

    def normalize(self, blocks):
        return blocks.trials.with_scores(blocks.trials.scores - blocks.enroll.scores.sum() - blocks.test.scores.sum())


def test_a_norm_that_cannot_be_taken_apart_keeps_all_cohort_scores():
    rows = {"enroll": [1.0, 2.0], "test": [4.0, 8.0]}
    singles = OneByOne.of(Sum(), one_trial(0.0, rows, NOBODY, NOBODY))
    assert singles.meet(20.0, singles.enroll(np.array([1.0, 2.0])), singles.test(np.array([4.0, 8.0]))) == 5.0


def test_members_in_another_order_rank_each_other_by_id():
    rng = np.random.default_rng(1)
    ids = [f"c{i}" for i in range(6)]
    cohort = ScoreMatrix(rng.normal(size=(6, 6)), ids, ids[::-1])
    enroll, test = rng.normal(size=(2, 6))
    blocks = ScoreBlocks(
        ScoreMatrix([[1.5]], ["e"], ["t"]),
        enroll=ScoreMatrix(enroll[None], ["e"], ids[::-1]),
        test=ScoreMatrix(test[:, None], ids, ["t"]),
    )
    norm = prepare_norm("as", top_k=2, select="cross", cohort=cohort)
    expected = normalize(blocks, "as", top_k=2, select="cross").scores[0, 0]
    assert norm.normalize_one(1.5, enroll, test) == pytest.approx(expected)
    assert prepare_norm("as", top_k=2, select="cross").normalize_one(1.5, enroll, test) != pytest.approx(expected)
