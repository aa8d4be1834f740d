"""Laws that norms obey, whatever the scores."""

import functools
from itertools import product
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from norm_blocks import as_dict, assert_same, block_cases, make_blocks

from evenscore import Labels, ScoreBlocks, ScoreMatrix, TrialList
from evenscore.norms import CLASSICAL_METHODS, Conditions, normalize, prepare_norm
from evenscore.norms.normalize import normalize_with
from tilings import over_tilings, tiled_blocks

METHODS = pytest.mark.parametrize("method", CLASSICAL_METHODS)
ADAPTIVE = ("as", "at", "az")


def replaced(blocks, **changes):
    """The same blocks with some of them replaced."""
    names = ("enroll", "test", "cohort", "cohort_labels", "enroll_speakers", "test_speakers")
    names += ("cohort_enroll_speakers", "cohort_test_speakers")
    kept = {name: getattr(blocks, name) for name in names} | changes
    return ScoreBlocks(kept.pop("trials", blocks.trials), **kept)


def mapped(blocks, change):
    """The same blocks with every score changed."""
    return replaced(
        blocks, **{name: getattr(blocks, name).with_scores(change(getattr(blocks, name).scores))
                   for name in ("trials", "enroll", "test", "cohort")}
    )  # fmt: skip


def options_for(method):
    return {"top_k": 4} if method.startswith("a") else {}


@METHODS
@given(seed=st.integers(0, 10**6), shift=st.floats(-50, 50), scale=st.floats(0.01, 100))
def test_shifting_and_scaling_all_scores_changes_nothing(method, seed, shift, scale):
    blocks = make_blocks(seed, cohort_enroll=29, cohort_test=28, missing=0.1, speakers=2)
    before = normalize(blocks, method, **options_for(method))
    after = normalize(mapped(blocks, lambda s: s * scale + shift), method, **options_for(method))
    np.testing.assert_allclose(after.scores, before.scores, rtol=1e-6, atol=1e-6)


@METHODS
@given(blocks=block_cases(max_cohort=9))
def test_a_list_of_all_trials_equals_the_matrix(method, blocks):
    assume(isinstance(blocks.trials, ScoreMatrix) and blocks.trials.n_missing < blocks.trials.scores.size)
    listed = blocks.trials.to_trials()
    options = {"vanished": "raw", "std_floor": 0.01, "excess": "clip"} | options_for(method)
    whole = normalize(blocks, method, **options)
    single = normalize(replaced(blocks, trials=listed), method, **options)
    expected = {pair: score for pair, score in as_dict(whole).items() if score is not None}
    found = as_dict(single)
    assert found.keys() == expected.keys()
    np.testing.assert_allclose(list(found.values()), [expected[pair] for pair in found], rtol=1e-4, atol=1e-5)


@METHODS
@given(blocks=block_cases(max_cohort=9), memory=st.sampled_from([1.0, 300.0, 2000.0]))
def test_pieces_equal_the_whole(method, blocks, memory):
    norm = prepare_norm(method, vanished="missing", std_floor=0.01, excess="clip", **options_for(method))
    with mock.patch("evenscore.norms.sides.MEMORY", memory):
        small = norm.normalize(blocks)
    assert_same(small, as_dict(norm.normalize(blocks)), np.float32)


@pytest.mark.parametrize(("plain", "adaptive"), [("z", "az"), ("t", "at"), ("s", "as")])
@given(blocks=block_cases())
def test_top_k_of_the_whole_cohort_is_the_plain_norm(plain, adaptive, blocks):
    options = {"vanished": "missing", "std_floor": 0.01}
    found = normalize(blocks, adaptive, top_k=1.0, **options)
    assert_same(found, as_dict(normalize(blocks, plain, **options)), np.float32)


@functools.cache
def dropped_by_hand(method, select, seed):
    """Return blocks, options of a method, and each trial normalized without its speakers: the same for all tilings."""
    blocks = make_blocks(seed, 5, 4, 16, 18, speakers=3, same_speakers=select == "cross")
    options = {"top_k": 5} if method.startswith("a") else {}
    options |= {} if select is None else {"select": select, "excess": "clip"}
    expected = np.empty(blocks.trials.shape)
    for i, e in enumerate(blocks.trials.enroll_ids):
        for j, t in enumerate(blocks.trials.test_ids):
            own = {blocks.enroll_speakers[i], blocks.test_speakers[j]} - {None}
            rows = blocks.cohort_enroll_ids[[name not in own for name in blocks.cohort_enroll_speakers]]
            columns = blocks.cohort_test_ids[[name not in own for name in blocks.cohort_test_speakers]]
            by_hand = ScoreBlocks(
                blocks.trials.select([e], [t]),
                enroll=blocks.enroll.select([e], columns),
                test=blocks.test.select(rows, [t]),
                cohort=blocks.cohort.select(rows, columns),
                cohort_labels=blocks.cohort_labels.align(rows, columns),
                cohort_enroll_speakers=dict(zip(blocks.cohort_enroll_ids, blocks.cohort_enroll_speakers, strict=True)),
                cohort_test_speakers=dict(zip(blocks.cohort_test_ids, blocks.cohort_test_speakers, strict=True)),
            )
            expected[i, j] = normalize(by_hand, method, **options).scores[0, 0]
    return blocks, options, expected


@pytest.mark.parametrize(
    ("method", "select"), [*((method, None) for method in CLASSICAL_METHODS), *product(ADAPTIVE, ("cross", "profile"))]
)
@over_tilings
@pytest.mark.parametrize("seed", range(3))
def test_own_speakers_are_left_out_as_if_dropped_by_hand(method, select, tiling, seed):
    blocks, options, expected = dropped_by_hand(method, select, seed)
    found = normalize(tiled_blocks(blocks, tiling), method, **options).in_memory()
    np.testing.assert_allclose(found.scores, expected)


@pytest.mark.parametrize(
    ("method", "select"),
    [*((method, "own") for method in CLASSICAL_METHODS), *product(ADAPTIVE, ("cross", "profile"))],
)
@pytest.mark.parametrize("with_speakers", [False, True])
def test_one_trial_online_equals_the_matrix(method, select, with_speakers):
    blocks = make_blocks(5, 3, 4, 9, 9, speakers=2 if with_speakers else 0, same_cohort=True, missing=0.1)
    options = {"top_k": 4, "select": select, "std_floor": 0.01} if method.startswith("a") else {}
    whole = normalize(blocks, method, **options).scores
    norm = prepare_norm(
        method,
        cohort=blocks.cohort,
        cohort_labels=blocks.cohort_labels,
        cohort_enroll_speakers=blocks.cohort_enroll_speakers,
        cohort_test_speakers=blocks.cohort_test_speakers,
        **options,
    )
    for i in range(3):
        for j in range(4):
            if np.isnan(blocks.trials.scores[i, j]):
                continue
            one = norm.normalize_one(
                blocks.trials.scores[i, j],
                blocks.enroll.scores[i],
                blocks.test.scores[:, j],
                enroll_speaker=blocks.enroll_speakers[i] if with_speakers else None,
                test_speaker=blocks.test_speakers[j] if with_speakers else None,
            )
            np.testing.assert_allclose(one, whole[i, j])


@pytest.mark.parametrize("method", ["zt", "tz"])
@over_tilings
def test_a_norm_prepared_with_a_cohort_serves_blocks_without_one(method, tiling):
    blocks = make_blocks(8, 3, 4, 6, 7, speakers=0)
    norm = prepare_norm(method, cohort=blocks.cohort)
    bare = ScoreBlocks(blocks.trials, enroll=blocks.enroll, test=blocks.test)
    expected = normalize(blocks, method)
    for _ in range(2):
        found = normalize_with(norm, tiled_blocks(bare, tiling), method).in_memory()
        np.testing.assert_allclose(found.scores, expected.scores)


@over_tilings
def test_same_speaker_pairs_and_unknown_ones_are_left_out_of_the_cohort_scores(tiling):
    blocks = make_blocks(2, 2, 2, 5, 6, speakers=0)
    key = np.zeros((5, 6), dtype=int)
    key[1, 2], key[3, 0] = 1, -1
    labels = Labels.from_key(key, enroll_ids=blocks.cohort.enroll_ids, test_ids=blocks.cohort.test_ids)
    scores = blocks.cohort.scores.copy()
    scores[1, 2] = scores[3, 0] = np.nan
    holes = ScoreMatrix(scores, blocks.cohort.enroll_ids, blocks.cohort.test_ids, missing="nan")
    for method in ("zt", "tz"):
        found = normalize(tiled_blocks(replaced(blocks, cohort_labels=labels), tiling), method).in_memory()
        expected = normalize(replaced(blocks, cohort=holes, cohort_labels=None), method)
        np.testing.assert_allclose(found.scores, expected.scores)
        assert not np.allclose(found.scores, normalize(blocks, method).scores)


@pytest.mark.parametrize(
    ("method", "select"), [*((method, "own") for method in CLASSICAL_METHODS), *product(ADAPTIVE, ("profile",))]
)
@over_tilings
def test_a_condition_leaves_members_of_other_conditions_out(method, select, tiling):
    blocks = make_blocks(4, 4, 5, 14, 15, speakers=0)
    rng = np.random.default_rng(3)

    def drawn(ids, values):
        return {name: values[k] for name, k in zip(ids, rng.integers(len(values), size=len(ids)), strict=True)}

    enroll, test = (drawn(ids, ["f", "m", None]) for ids in (blocks.trials.enroll_ids, blocks.trials.test_ids))
    rows, columns = (drawn(ids, ["f", "m"]) for ids in (blocks.cohort_enroll_ids, blocks.cohort_test_ids))
    conditions = Conditions(enroll=enroll, test=test, cohort_enroll=rows, cohort_test=columns)
    options = {"top_k": 3, "select": select} if method.startswith("a") else {}
    if select == "profile":  # the nearest members may all be of another condition
        options |= {"vanished": "missing", "std_floor": 0.01}
    found = normalize(tiled_blocks(blocks, tiling), method, conditions=conditions, **options).in_memory()

    def masked(block, one, other):
        apart = [[one[a] is not None and one[a] != other[b] for b in block.test_ids] for a in block.enroll_ids]
        return ScoreMatrix(block.scores, block.enroll_ids, block.test_ids, missing=np.array(apart))

    test_block = blocks.test
    apart = [[test[t] is not None and test[t] != rows[c] for t in test_block.test_ids] for c in test_block.enroll_ids]
    by_hand = replaced(
        blocks,
        enroll=masked(blocks.enroll, enroll, columns),
        test=ScoreMatrix(test_block.scores, test_block.enroll_ids, test_block.test_ids, missing=np.array(apart)),
        cohort=masked(blocks.cohort, rows, columns),
    )
    np.testing.assert_allclose(found.scores, normalize(by_hand, method, **options).scores)


@over_tilings
def test_missing_trials_stay_missing(tiling):
    blocks = make_blocks(1, 4, 5, speakers=0)
    scores = blocks.trials.scores.copy()
    scores[1, 2] = np.nan
    holes = ScoreMatrix(scores, blocks.trials.enroll_ids, blocks.trials.test_ids, missing="nan")
    for method in CLASSICAL_METHODS:
        found = normalize(tiled_blocks(replaced(blocks, trials=holes), tiling), method).in_memory()
        assert np.array_equal(found.missing, holes.missing)
        assert found.n_missing == 1
        whole = normalize(blocks, method).scores
        np.testing.assert_allclose(found.scores[~found.missing], whole[~found.missing])


@over_tilings
def test_labels_and_measures_of_a_list_are_kept(tiling):
    trials = TrialList.from_pairs(["e"], ["t"], scores=[3.0], labels=[1], measures={"snr": [20.0]})
    blocks = ScoreBlocks(trials, enroll=ScoreMatrix([[0.0, 2.0]], ["e"], ["c", "d"]))
    found = normalize(tiled_blocks(blocks, tiling), "z").in_memory()
    assert found.scores.tolist() == [2.0]
    assert found.labels.tolist() == [1]
    assert found.measures["snr"].tolist() == [20.0]
    assert trials.scores.tolist() == [3.0]
    with pytest.raises(ValueError, match="read-only"):
        found.scores[0] = 1.0


@pytest.mark.parametrize("method", ADAPTIVE)
@given(blocks=block_cases(max_cohort=9), memory=st.sampled_from([1.0, 300.0, 2000.0]))
def test_pieces_of_profiles_equal_the_whole(method, blocks, memory):
    norm = prepare_norm(method, vanished="missing", std_floor=0.01, excess="clip", top_k=4, select="profile")
    with mock.patch("evenscore.norms.sides.MEMORY", memory):
        small = norm.normalize(blocks)
    assert_same(small, as_dict(norm.normalize(blocks)), np.float32)


@over_tilings
def test_recordings_of_the_same_speakers_rank_like_one_cohort(tiling):
    blocks = make_blocks(3, 5, 6, 12, 12, speakers=0, same_cohort=True)
    speakers = [f"s{n}" for n in range(12)]
    twins = dict(zip(blocks.cohort.test_ids, [f"twin {name}" for name in blocks.cohort.test_ids], strict=True))
    renamed = [
        ScoreMatrix(table.scores, table.enroll_ids, [twins[name] for name in table.test_ids])
        for table in (blocks.enroll, blocks.cohort)
    ]
    apart = ScoreBlocks(
        blocks.trials,
        enroll=renamed[0],
        test=blocks.test,
        cohort=renamed[1],
        cohort_enroll_speakers=speakers,
        cohort_test_speakers=speakers,
    )
    for method in ADAPTIVE:
        found = normalize(tiled_blocks(apart, tiling), method, select="cross", top_k=4).in_memory()
        np.testing.assert_allclose(found.scores, normalize(blocks, method, select="cross", top_k=4).scores)


def test_the_models_nearest_to_the_enrolment_normalize_the_test():
    blocks = ScoreBlocks(
        ScoreMatrix([[3.0]], ["e"], ["t"]),
        enroll=ScoreMatrix([[1.0, 2.0]], ["e"], ["d1", "d2"]),
        test=ScoreMatrix([[0.0], [2.0], [50.0]], ["c1", "c2", "c3"], ["t"]),  # c3 scores highest, but is far from e
        cohort=ScoreMatrix([[1.5, 2.5], [0.0, 2.0], [9.0, 9.0]], ["c1", "c2", "c3"], ["d1", "d2"]),
    )
    assert normalize(blocks, "at", top_k=2, select="profile").scores.tolist() == [[2.0]]


@METHODS
@over_tilings
@pytest.mark.parametrize("speakers", [0, 2])
def test_a_cohort_of_nobody_leaves_the_scores_as_they_are(method, tiling, speakers):
    blocks = tiled_blocks(make_blocks(7, 4, 5, 0, 0, speakers=speakers), tiling)
    found = normalize(blocks, method, vanished="raw").in_memory()
    np.testing.assert_array_equal(found.scores, make_blocks(7, 4, 5, 0, 0, speakers=speakers).trials.scores)


@over_tilings
def test_empty_blocks_give_empty_results(tiling):
    empty = TrialList([], [], [], [], scores=[])
    blocks = ScoreBlocks(empty, enroll=ScoreMatrix(np.zeros((0, 2)), [], ["c", "d"]))
    assert len(normalize(tiled_blocks(blocks, tiling), "z").in_memory()) == 0
    nothing = ScoreBlocks(ScoreMatrix(np.zeros((0, 0)), [], []), test=ScoreMatrix(np.zeros((2, 0)), ["c", "d"], []))
    assert normalize(tiled_blocks(nothing, tiling), "t").in_memory().shape == (0, 0)
