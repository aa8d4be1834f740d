"""What the norms refuse, and what they say."""

import numpy as np
import pytest
from norm_blocks import make_blocks

from evenscore import InputError, ScoreBlocks, ScoreMatrix, TrialList
from evenscore.norms import Conditions, NormOptions, norm_methods, normalize, prepare_norm, register_norm, registry
from tilings import over_tilings, tiled_blocks


def normalized(blocks, tiling, method, **options):
    """Normalize blocks cut so, and read all of the result."""
    return normalize(tiled_blocks(blocks, tiling), method, **options).in_memory()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top_k": 0}, "top_k is 0, but must be a count from 1"),
        ({"top_k": 1.5}, "top_k is 1.5"),
        ({"top_k": True}, "top_k is True"),
        ({"top_k": "300"}, "top_k is '300'"),
        ({"select": "both"}, "select is 'both', but must be 'own' or 'cross' or 'profile'"),
        ({"statistic": "mode"}, "statistic is 'mode', but must be 'mean' or 'trimmed' or 'median'"),
        ({"trim": 0.5}, "trim is 0.5, but must be from 0 to below 0.5"),
        ({"ddof": 2}, "ddof is 2, but must be 0 or 1"),
        ({"std_floor": -1.0}, "std_floor is -1.0"),
        ({"std_floor": float("nan")}, "std_floor is nan"),
        ({"drop_top": -1}, "drop_top is -1"),
        ({"combine": "max"}, "combine is 'max'"),
        ({"vanished": "ignore"}, "vanished is 'ignore'"),
        ({"zero_std": "skip"}, "zero_std is 'skip'"),
        ({"excess": "warn"}, "excess is 'warn'"),
        ({"topk": 3}, "there is no norm option 'topk'"),
        ({"convention": "kaldi"}, "there is no convention 'kaldi'; there are wespeaker"),
        ({"options": NormOptions(), "ddof": 1}, "either `options` or single options, but not both: 'ddof'"),
    ],
)
def test_options_are_checked_by_name(options, message):
    with pytest.raises(InputError, match=message):
        prepare_norm("as", **options)


def test_unknown_methods_are_named():
    with pytest.raises(InputError, match="there is no norm 'snorm'; there are z, t, zt, tz, s, as, at, az"):
        normalize(make_blocks(), "snorm")
    with pytest.raises(InputError, match="no classical norm 'q'"):
        NormOptions().checked_for("q")


@pytest.mark.parametrize(("method", "remedy"), [("s", "use 'as'"), ("z", "use 'az'"), ("zt", "leave out top_k")])
def test_top_k_has_no_meaning_for_the_whole_cohort(method, remedy):
    with pytest.raises(InputError, match=f"takes the whole cohort, so top_k has no meaning; {remedy}"):
        normalize(make_blocks(), method, top_k=3)


@pytest.mark.parametrize(
    ("method", "block"), [("z", "enroll"), ("t", "test"), ("s", "test"), ("as", "enroll"), ("zt", "cohort")]
)
@over_tilings
def test_a_block_that_is_not_there_is_named(method, block, tiling):
    whole = make_blocks(speakers=0)
    given = {name: getattr(whole, name) for name in ("enroll", "test", "cohort") if name != block}
    with pytest.raises(InputError, match=f"the norm '{method}' needs the block `{block}`"):
        normalized(ScoreBlocks(whole.trials, **given), tiling, method)


@over_tilings
def test_top_k_larger_than_the_cohort(tiling):
    blocks = make_blocks(speakers=0)
    with pytest.raises(InputError, match="top_k is 8, but the cohort has only 7 members; take fewer, or all"):
        normalized(blocks, tiling, "as", top_k=8)
    with pytest.raises(InputError, match="top_k is 6 and drop_top 2, but the cohort has only 7 members"):
        normalized(blocks, tiling, "as", top_k=6, drop_top=2)
    clipped = normalized(blocks, tiling, "as", top_k=80, excess="clip").scores
    np.testing.assert_allclose(clipped, normalize(blocks, "s").scores)
    with pytest.raises(InputError, match="drop_top is 9, but the cohort has only 9 members"):
        normalized(blocks, tiling, "z", drop_top=9)


@pytest.mark.parametrize(("size", "taken"), [(1600, 300), (400, 80), (9, 2), (2, 2)])
def test_top_k_is_300_or_a_fifth_of_the_cohort_if_it_is_not_given(size, taken):
    blocks = make_blocks(cohort_enroll=size, cohort_test=size, speakers=0)
    expected = normalize(blocks, "as", top_k=taken).scores
    np.testing.assert_array_equal(normalize(blocks, "as").scores, expected)
    np.testing.assert_array_equal(prepare_norm("as", options=NormOptions()).normalize(blocks).scores, expected)
    np.testing.assert_array_equal(prepare_norm("as", convention="wespeaker").normalize(blocks).scores, expected)


def test_a_fraction_is_of_the_cohort():
    blocks = make_blocks(cohort_enroll=20, cohort_test=40, speakers=0)
    np.testing.assert_allclose(normalize(blocks, "az", top_k=0.25).scores, normalize(blocks, "az", top_k=10).scores)
    np.testing.assert_allclose(normalize(blocks, "at", top_k=0.25).scores, normalize(blocks, "at", top_k=5).scores)


@over_tilings
def test_a_standard_deviation_of_zero_is_named_floored_or_one(tiling):
    trials = ScoreMatrix([[3.0], [4.0]], ["e1", "e2"], ["t"])
    blocks = ScoreBlocks(trials, enroll=ScoreMatrix([[1.0, 1.0], [0.0, 2.0]], ["e1", "e2"], ["c", "d"]))
    with pytest.raises(InputError, match="cohort scores of enrolment 'e1' have a standard deviation of zero"):
        normalized(blocks, tiling, "z")
    assert normalized(blocks, tiling, "z", zero_std="one").scores.tolist() == [[2.0], [3.0]]
    assert normalized(blocks, tiling, "z", std_floor=0.5).scores.tolist() == [[4.0], [3.0]]
    listed = ScoreBlocks(trials.to_trials(), enroll=blocks.enroll)
    with pytest.raises(InputError, match="enrolment 'e1'"):
        normalized(listed, tiling, "z")


def vanishing():
    return {
        "enroll": ScoreMatrix([[1.0, 2.0, 4.0], [0.0, 3.0, 1.0]], ["e1", "e2"], ["c", "d", "f"]),
        "enroll_speakers": ["ann", "bob"],
        "test_speakers": ["cas", None],
        "cohort_test_speakers": ["ann", "cas", "ann"],
    }


@pytest.mark.parametrize("listed", [False, True])
@over_tilings
def test_trials_whose_cohort_vanishes_are_named_or_left(listed, tiling):
    trials = ScoreMatrix([[5.0, 6.0], [7.0, 8.0]], ["e1", "e2"], ["t1", "t2"])
    blocks = ScoreBlocks(trials.to_trials() if listed else trials, **vanishing())
    with pytest.raises(InputError, match=r"1 trials have no cohort left, .*: 'e1 t1'; give a larger cohort"):
        normalized(blocks, tiling, "z", zero_std="one")
    raw = normalized(blocks, tiling, "z", zero_std="one", vanished="raw")
    missing = normalized(blocks, tiling, "z", zero_std="one", vanished="missing")
    # e1 without ann has d alone; e2 against t1 has c and f without cas
    expected = [[5.0, 4.0], [13.0, 8.0 - 4 / 3]]
    if listed:
        np.testing.assert_allclose(raw.scores[:3], [5.0, 4.0, 13.0])
        assert [missing.pair(k) for k in range(len(missing))] == [("e1", "t2"), ("e2", "t1"), ("e2", "t2")]
    else:
        np.testing.assert_allclose(raw.scores[0], expected[0])
        np.testing.assert_allclose(raw.scores[1, 0], expected[1][0])
        assert missing.missing.tolist() == [[True, False], [False, False]]
        assert missing.n_missing == 1


@over_tilings
def test_cross_selection_needs_the_same_members_or_speakers_in_both_cohorts(tiling):
    blocks = make_blocks(speakers=0)
    with pytest.raises(InputError, match=r"on both sides, or the speakers of .*, but 'c0', 'c1', 'c2' and 13 more are"):
        normalized(blocks, tiling, "as", select="cross", top_k=2)
    spoken = blocks.replace(
        cohort=blocks.cohort.with_speakers(*([f"s{n}" for n in range(size)] for size in blocks.cohort.shape)),
        cohort_labels=None,
    )
    with pytest.raises(InputError, match="but the speaker 's7', 's8' are only in one of them; use select='own', or"):
        normalized(spoken, tiling, "as", select="cross", top_k=2)
    half_known = spoken.replace(cohort=blocks.cohort.with_speakers(["a"] * 7, [None, *"a" * 8]), cohort_labels=None)
    with pytest.raises(InputError, match="give speakers, or use select='own'"):
        normalized(half_known, tiling, "as", select="cross", top_k=2)


@pytest.mark.parametrize(
    ("method", "select", "block"),
    [("az", "cross", "test"), ("at", "cross", "enroll"), ("at", "profile", "enroll"), ("as", "profile", "cohort")],
)
@over_tilings
def test_a_block_that_ranks_the_cohort_is_named(method, select, block, tiling):
    whole = make_blocks(speakers=0, same_cohort=True)
    given = {name: getattr(whole, name) for name in ("enroll", "test", "cohort") if name != block}
    with pytest.raises(InputError, match=f"the norm '{method}' with select='{select}' needs the block `{block}`"):
        normalized(ScoreBlocks(whole.trials, **given), tiling, method, select=select, top_k=2)


def test_norms_of_the_whole_cohort_select_nothing():
    with pytest.raises(InputError, match="the norm 't' takes the whole cohort, so select has no meaning"):
        prepare_norm("t", select="profile")


def test_single_trials_are_checked():
    norm = prepare_norm("s", cohort_enroll_speakers=["a", "b"], cohort_test_speakers=["a", "b", "c"])
    with pytest.raises(InputError, match="enroll_cohort_scores has 2 scores, but the cohort has 3 members"):
        norm.normalize_one(1.0, [1.0, 2.0], [1.0, 2.0])
    with pytest.raises(InputError, match="must be one row of scores"):
        norm.normalize_one(1.0, [[1.0, 2.0, 3.0]], [1.0, 2.0])
    with pytest.raises(InputError, match="needs the block `test`"):
        norm.normalize_one(1.0, [1.0, 2.0, 3.0])
    assert np.isnan(prepare_norm("z", vanished="missing").normalize_one(1.0, [np.nan, np.nan]))


@over_tilings
def test_conditions_are_checked(tiling):
    with pytest.raises(InputError, match="conditions of `enroll` need those of `cohort_test`"):
        Conditions(enroll={"e0": "f"})
    blocks = make_blocks()
    conditions = Conditions(enroll={"e0": "f"}, cohort_test=dict.fromkeys(blocks.cohort_test_ids, "f"))
    with pytest.raises(InputError, match="conditions of `enroll` lack 'e1'"):
        normalized(blocks, tiling, "z", conditions=conditions)


def test_a_new_norm_needs_no_change_elsewhere(monkeypatch):
    class Twice:
        def __init__(self, method):
            self.method = method

        def normalize(self, blocks):
            return blocks.trials.with_scores(2 * blocks.trials.scores)

    monkeypatch.setattr(registry, "METHODS", dict(registry.METHODS))
    register_norm("twice", Twice)
    assert "twice" in norm_methods()
    trials = TrialList.from_pairs(["e"], ["t"], scores=[1.5])
    assert normalize(ScoreBlocks(trials), "twice").scores.tolist() == [3.0]
    with pytest.raises(InputError, match="there is a norm 'twice' already"):
        register_norm("twice", Twice)


@pytest.mark.parametrize("method", ["z", "zt"])
@pytest.mark.parametrize("listed", [False, True])
@over_tilings
def test_results_too_large_for_their_type_are_refused(method, listed, tiling):
    e, c = ["e1"], ["c", "d", "f"]
    flat = ScoreMatrix(np.array([[1.0, 1.0, 1.0]], np.float32), e, c)
    rng = np.random.default_rng(0)
    trials = ScoreMatrix(np.array([[1e20]], np.float32), e, ["t"])
    blocks = ScoreBlocks(
        trials.to_trials() if listed else trials,
        enroll=flat,
        test=ScoreMatrix(rng.normal(size=(3, 1)), c, ["t"]),
        cohort=ScoreMatrix(rng.normal(size=(3, 3)), c, c),
    )
    if listed:
        blocks = ScoreBlocks(
            TrialList.from_pairs(e, ["t"], scores=[1e29]), enroll=flat, test=blocks.test, cohort=blocks.cohort
        )
    with pytest.raises(
        InputError, match=r"normalized score of 'e1 t' is infinite, or beyond 1e.30; give a larger std_floor"
    ):
        normalized(blocks, tiling, method, std_floor=1e-29)
