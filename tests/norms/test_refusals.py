"""What the norms refuse: the culprit is named."""

import numpy as np
import pytest

from evenscore import InputError, NormOptions, ScoreBlocks, ScoreMatrix, Side, TrialList, normalize, register_norm
from evenscore.norms.registry import METHODS, Method
from norms.norm_blocks import make_blocks, ragged, replaced


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("top_k", value) for value in (0, 1.5, True, "300", float("nan"))),
        *(("select", "both"), ("statistic", "mode"), ("trim", 0.5), ("trim", "a"), ("ddof", 2)),
        *(("std_floor", -1.0), ("std_floor", float("nan")), ("std_floor", "x"), ("drop_top", -1), ("drop_top", 1.5)),
        *(("combine", "max"), ("empty", "ignore"), ("zero_std", "skip"), ("excess", "warn"), ("topk", 3)),
        *(("convention", "kaldi"), ("options", NormOptions())),
    ],
)
def test_options_are_named(option, value):
    more = {"ddof": 1} if option == "options" else {}
    with pytest.raises(InputError, match=option):
        normalize(make_blocks(), "as", **{option: value}, **more)


@pytest.mark.parametrize(("name", "hint"), [("AS-norm", "'as'"), ("snorm", "'s'"), ("zz", "z"), ("unheard-of", "zt")])
def test_unknown_norms_are_named_with_what_there_is(name, hint):
    with pytest.raises(InputError, match=name) as caught:
        normalize(make_blocks(), name)
    assert hint in str(caught.value)


def test_blocks_and_names_are_checked():
    with pytest.raises(InputError, match="ScoreMatrix"):
        normalize(make_blocks().trials, "s")
    with pytest.raises(InputError, match="'zt'"):
        register_norm("zt", normalize)
    with pytest.raises(InputError, match="dataclass"):
        register_norm("of-a-dictionary", normalize, model=dict)


def test_calls_that_a_norm_does_not_understand_are_refused(monkeypatch):
    monkeypatch.setitem(METHODS, "add", Method(lambda blocks, step=1.0: blocks.trials.map(lambda s: s + step)))
    assert normalize(make_blocks(), "add", step=2.0).shape == (4, 5)
    with pytest.raises(InputError, match="'stop'"):
        normalize(make_blocks(), "add", stop=2.0)
    with pytest.raises(InputError, match="'lgsm' needs a trained model"):
        normalize(make_blocks(), "lgsm")


@pytest.mark.parametrize("method", ["s", "z", "zt"])
def test_norms_of_the_whole_cohort_select_nothing(method):
    with pytest.raises(InputError, match="top_k"):
        normalize(make_blocks(), method, top_k=3)
    with pytest.raises(InputError, match="select"):
        normalize(make_blocks(), method, select="profile")


@pytest.mark.parametrize(
    ("method", "options", "block"),
    [
        *(("z", {}, "enroll"), ("t", {}, "test"), ("s", {}, "test"), ("as", {}, "enroll"), ("zt", {}, "cohort")),
        *(("az", {"select": "cross"}, "test"), ("at", {"select": "cross"}, "enroll")),
        *(("at", {"select": "profile"}, "enroll"), ("as", {"select": "profile"}, "cohort")),
    ],
)
def test_scores_that_a_norm_needs_are_named(method, options, block):
    with pytest.raises(InputError, match=f"`{block}`"):
        normalize(replaced(make_blocks(same_cohort=True), **{block: None, "cohort_labels": None}), method, **options)


def test_cohorts_that_are_too_small():
    blocks = make_blocks(speakers=0)
    for options in ({"top_k": 8}, {"top_k": 6, "drop_top": 2}, {"drop_top": 9}):
        with pytest.raises(InputError, match="members"):
            normalize(blocks, "as", **options)
    clipped = normalize(blocks, "as", top_k=80, excess="clip").scores
    np.testing.assert_allclose(clipped, normalize(blocks, "s").scores)


@pytest.mark.parametrize(("size", "taken"), [(1600, 300), (400, 80), (9, 2), (2, 2)])
def test_top_k_is_300_or_a_fifth_of_the_cohort_by_default(size, taken):
    blocks = make_blocks(cohort_enroll=size, cohort_test=size, speakers=0)
    expected = normalize(blocks, "as", top_k=taken).scores
    for options in ({}, {"options": NormOptions()}, {"convention": "wespeaker"}, {"top_k": taken / size}):
        np.testing.assert_array_equal(normalize(blocks, "as", **options).scores, expected)


@pytest.mark.parametrize("change", [lambda blocks: blocks, ragged])
@pytest.mark.parametrize("value", [1.0, 0.1, 1e-3, 1e4 + 0.1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cohort_scores_that_are_all_equal(change, value, dtype):
    flat = np.full((2, 30), value, dtype)
    flat[1] = np.arange(30)
    trials = ScoreMatrix(np.array([[3.0], [4.0]], dtype), ["e1", "e2"], ["t"])
    enroll = ScoreMatrix(flat, ["e1", "e2"], [f"c{i}" for i in range(30)])
    for given in (trials, trials.to_trials()):
        blocks = change(ScoreBlocks(given, enroll))
        with pytest.raises(InputError, match="'e1'"):
            normalize(blocks, "z")
        for options, expected in (({"zero_std": "one"}, 3.0 - value), ({"std_floor": 0.5}, 2 * (3.0 - value))):
            found = np.ravel(normalize(blocks, "z", **options).scores)[0]
            np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("select", ["own", "cross"])
@pytest.mark.parametrize("listed", [False, True])
def test_equal_cohort_scores_of_a_test_or_a_member(select, listed):
    blocks = make_blocks(1, 3, 4, 6, 6, speakers=0, same_cohort=True)
    test = blocks.test.scores.copy()
    test[:, 2] = 0.5
    trials = blocks.trials.to_trials().select([11, 6, 1]) if listed else blocks.trials
    with pytest.raises(InputError, match="'t2'"):
        normalize(replaced(blocks, trials=trials, test=blocks.test.with_scores(test)), "as", top_k=4, select=select)
    cohort = blocks.cohort.scores.copy()
    cohort[3] = 0.5
    with pytest.raises(InputError, match="'c3'"):
        normalize(replaced(blocks, trials=trials, cohort=blocks.cohort.with_scores(cohort)), "zt")


@pytest.mark.parametrize("change", [lambda blocks: blocks, ragged])
@pytest.mark.parametrize("listed", [False, True])
def test_trials_without_cohort_scores_are_named_or_left(change, listed):
    trials = ScoreMatrix(
        [[5.0, 6.0], [7.0, 8.0]], Side(["e1", "e2"], ["ann", "bob"]), Side(["t1", "t2"], ["cas", None])
    )
    cohort = Side(["c", "d", "f"], ["ann", "cas", "ann"])
    enroll = ScoreMatrix([[1.0, 2.0, 4.0], [0.0, 3.0, 1.0]], ["e1", "e2"], cohort)
    blocks = change(ScoreBlocks(trials.to_trials() if listed else trials, enroll))
    with pytest.raises(InputError, match="'e1'"):
        normalize(blocks, "z", zero_std="one")
    raw = normalize(blocks, "z", zero_std="one", empty="raw")
    missing = normalize(blocks, "z", zero_std="one", empty="missing")
    # e1 without ann has d alone; e2 against t1 has c and f without cas, against t2 all
    expected = [5.0, 4.0, 13.0, (8 - 4 / 3) / np.std([0, 3, 1])]
    np.testing.assert_allclose(np.ravel(raw.scores), expected)
    if listed:
        assert [missing.pair(k) for k in range(3)] == [("e1", "t2"), ("e2", "t1"), ("e2", "t2")]
        np.testing.assert_allclose(missing.scores, expected[1:])
    else:
        np.testing.assert_allclose(np.ravel(missing.scores), [np.nan, *expected[1:]])


def test_cross_selection_needs_the_same_members_or_speakers():
    for speakers in ([None, None], [["a"] * 7, ["b"] * 9], [["a"] * 7, None], [[None] * 7, [None] * 9]):
        blocks = make_blocks(speakers=0)
        cohort = blocks.cohort.with_speakers(*speakers)
        with pytest.raises(InputError, match="cross"):
            normalize(replaced(blocks, cohort=cohort, cohort_labels=None), "as", select="cross", top_k=2)


def test_conditions_need_their_column_on_every_side():
    blocks = make_blocks()
    with pytest.raises(InputError, match="phrase"):
        normalize(blocks, "s", condition="phrase")
    bare = TrialList(["e0"], ["t0"], scores=[1.0])
    with pytest.raises(InputError, match="gender"):
        normalize(replaced(blocks, trials=bare), "s", condition="gender")
