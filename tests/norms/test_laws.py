"""Laws that norms obey, whatever the scores."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import ScoreBlocks, ScoreMatrix, Side, TrialList, normalize, register_norm
from evenscore.norms import CLASSICAL, registry
from norms.norm_blocks import as_dict, assert_same, block_cases, make_blocks, ragged, replaced

METHODS = pytest.mark.parametrize("method", CLASSICAL)
LOOSE = {"empty": "missing", "std_floor": 0.01}


def options_for(method, **options):
    return options | ({"top_k": 4, "excess": "clip"} if method.startswith("a") else {})


def changed(blocks, change, dtype=np.float64):
    """The same blocks with every score changed, in some type."""
    tables = {name: getattr(blocks, name) for name in ("trials", "enroll", "test", "cohort")}
    return replaced(blocks, **{name: t.with_scores(change(t.scores).astype(dtype)) for name, t in tables.items()})


@METHODS
@given(seed=st.integers(0, 10**6), shift=st.floats(-50, 50), scale=st.floats(0.01, 100))
def test_shifting_and_scaling_all_scores_changes_nothing(method, seed, shift, scale):
    blocks = make_blocks(seed, cohort_enroll=29, cohort_test=28, missing=0.1, speakers=2)
    before = normalize(blocks, method, **options_for(method))
    after = normalize(changed(blocks, lambda s: s * scale + shift), method, **options_for(method))
    np.testing.assert_allclose(after.scores, before.scores, rtol=1e-6, atol=1e-6)


@METHODS
@given(blocks=block_cases(max_cohort=9, ties=False), seed=st.integers(0, 99))
def test_the_order_of_trials_and_cohort_changes_nothing(method, blocks, seed):
    rng = np.random.default_rng(seed)

    def shuffled(table):
        if isinstance(table, TrialList):
            return table.select(rng.permutation(len(table)))
        return table.take(rng.permutation(table.shape[0]), rng.permutation(table.shape[1]))

    options = options_for(method, **LOOSE)
    other = ScoreBlocks(*(shuffled(getattr(blocks, name)) for name in ("trials", "enroll", "test", "cohort")))
    expected = as_dict(normalize(blocks, method, **options))
    assert_same(normalize(other, method, **options), expected, blocks.enroll.scores.dtype)


@METHODS
@given(blocks=block_cases(max_cohort=9, listed=None))
def test_a_list_of_all_trials_equals_the_matrix(method, blocks):
    listed = replaced(blocks, trials=blocks.trials.to_trials())
    options = options_for(method, **LOOSE)
    expected = as_dict(normalize(blocks, method, **options))
    assert_same(normalize(listed, method, **options), expected, blocks.enroll.scores.dtype)


@METHODS
@given(seed=st.integers(0, 99))
def test_each_trial_alone_equals_the_whole(method, seed):
    blocks = make_blocks(seed, 3, 3, 8, 9, speakers=2)
    options = options_for(method, std_floor=0.01, empty="raw")
    whole = normalize(blocks, method, **options).scores
    for i in range(3):
        for j in range(3):
            one = normalize(blocks.take_trials([i], [j]), method, **options).scores
            np.testing.assert_allclose(one[0, 0], whole[i, j])


@pytest.mark.parametrize(("plain", "adaptive"), [("z", "az"), ("t", "at"), ("s", "as")])
@given(blocks=block_cases())
def test_top_k_of_the_whole_cohort_is_the_plain_norm(plain, adaptive, blocks):
    found = normalize(blocks, adaptive, top_k=1.0, **LOOSE)
    assert_same(found, as_dict(normalize(blocks, plain, **LOOSE)), np.float32)


@given(blocks=block_cases(listed=None), adaptive=st.booleans())
def test_s_norm_is_the_mean_of_z_and_t(blocks, adaptive):
    names = ("as", "az", "at") if adaptive else ("s", "z", "t")
    s, z, t = (normalize(blocks, name, **options_for(name, **LOOSE)).scores for name in names)
    np.testing.assert_allclose(s, (z.astype(float) + t) / 2, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("method", "mirrored"), [("z", "t"), ("s", "s"), ("as", "as"), ("zt", "tz"), ("az", "at")])
@given(blocks=block_cases(listed=None))
def test_swapped_sides_give_the_transpose(method, mirrored, blocks):
    turned = ScoreBlocks(blocks.trials.T, blocks.test.T, blocks.enroll.T, blocks.cohort.T)
    found = normalize(turned, mirrored, **options_for(mirrored, **LOOSE)).scores.T
    expected = normalize(blocks, method, **options_for(method, **LOOSE)).scores
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


@METHODS
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("speakers", [0, 2])
def test_an_empty_cohort_leaves_the_scores_as_they_are(method, lazy, speakers):
    blocks = make_blocks(7, 4, 5, 0, 0, speakers=speakers)
    found = normalize(ragged(blocks) if lazy else blocks, method, empty="raw").compute()
    np.testing.assert_array_equal(found.scores, blocks.trials.scores)


def test_no_trials_give_no_results():
    empty = ScoreBlocks(TrialList([], [], scores=[]), enroll=ScoreMatrix(np.zeros((0, 2)), [], ["c", "d"]))
    assert len(normalize(empty, "z")) == 0
    cohort = Side(["c", "d"], ["ann", "bob"], {"gender": ["f", "m"]})
    nobody = Side([], [], {"gender": []})
    none = ScoreBlocks(
        ScoreMatrix(np.zeros((0, 0)), nobody, nobody), test=ScoreMatrix(np.zeros((2, 0)), cohort, nobody)
    )
    for blocks in (none, ragged(none)):
        assert normalize(blocks, "t").compute().shape == (0, 0)
        assert normalize(blocks, "t", condition="gender").compute().shape == (0, 0)


def test_labels_and_columns_of_a_list_are_kept():
    trials = TrialList(["e"], ["t"], scores=[3.0], labels=[1], columns={"snr": [20.0]})
    found = normalize(ScoreBlocks(trials, enroll=ScoreMatrix([[0.0, 2.0]], ["e"], ["c", "d"])), "z")
    assert (found.scores.tolist(), found.labels.tolist(), found.columns["snr"].tolist()) == ([2.0], [1], [20.0])
    assert trials.scores.tolist() == [3.0]


@METHODS
@pytest.mark.parametrize("offset", [-1e4, 1e6])
def test_float32_scores_far_from_zero_lose_no_digit_that_they_hold(method, offset):
    single = changed(make_blocks(3, 8, 9, 70, 60, speakers=2, missing=0.02), lambda s: s + offset, np.float32)
    expected = normalize(changed(single, np.copy, np.float64), method).scores
    np.testing.assert_allclose(normalize(single, method).scores, expected, rtol=3e-6, atol=1e-5)


@pytest.mark.parametrize("size", [1e-25, 1e25])
def test_float32_scores_whose_squares_float32_cannot_hold(size):
    blocks = make_blocks(3, 4, 4, 20, 20, speakers=0)
    found = normalize(changed(blocks, lambda s: s * size, np.float32), "s").scores
    np.testing.assert_allclose(found, normalize(blocks, "s").scores, rtol=1e-5)


def test_an_own_norm_knows_of_no_speakers(monkeypatch):
    monkeypatch.setattr(registry, "METHODS", dict(registry.METHODS))

    def best(blocks, power=1):
        scores = blocks.enroll.compute().scores
        return blocks.trials.map(lambda s, top: s - top**power, enroll=[np.nanmax(scores, axis=1, initial=-9.0)])

    register_norm("best", best)
    for blocks in (make_blocks(2, speakers=3), ragged(make_blocks(2, speakers=3)), make_blocks(2, listed=0.5)):
        expected = {}
        trials = blocks.trials if isinstance(blocks.trials, TrialList) else blocks.trials.to_trials()
        speakers = blocks.cohort_test.speakers
        scores = blocks.enroll.compute()
        for at in range(len(trials)):
            e, t = trials.pair(at)
            own = {trials.enroll.speakers[trials.rows[at]], trials.test.speakers[trials.cols[at]]} - {None}
            row = scores.select([e]).scores[0][[name not in own for name in speakers]]
            expected[e, t] = trials.scores[at] - np.max(row, initial=-9.0) ** 3
        assert_same(normalize(blocks, "best", power=3), expected)
