"""Sides, score matrices and trial lists: ids decide what belongs together, and errors name the culprit."""

import pickle

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from evenscore import InputError, Labels, ScoreMatrix, Side, TrialList
from evenscore.data.score_matrix import LARGEST_SCORE

SCORES = st.one_of(st.floats(-1e6, 1e6), st.just(np.nan))


@st.composite
def matrices(draw, dtype=np.float64):
    shape = draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    scores = draw(hnp.arrays(np.float64, shape, elements=SCORES)).astype(dtype)
    return ScoreMatrix(scores, [f"e{i}" for i in range(shape[0])], [f"t{i}" for i in range(shape[1])])


# --- sides


def test_a_side_knows_speakers_and_columns():
    side = Side([7, "u2", b"u3"], {"7": "ann", "u2": "", "u3": None}, {"gender": ["f", "m", "m"]})
    assert side.ids.tolist() == ["7", "u2", "u3"]
    assert side.speakers.tolist() == ["ann", None, None]
    assert side.take([2, 0]).columns["gender"].tolist() == ["m", "f"]
    assert side.take(np.array([False, True, False])).ids.tolist() == ["u2"]
    assert len(side.take([])) == 0
    assert side.find(["u3", "u9"]).tolist() == [2, -1]
    assert pickle.loads(pickle.dumps(side)) == side  # noqa: S301
    assert side.with_columns({"phrase": ["a", "b", "c"]}).take([1]).columns["phrase"].tolist() == ["b"]
    assert side != side.with_speakers(["ann", "ann", "ann"])
    assert side != Side(["7", "u2"])


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        ((["a", "b", "a"],), "'a'"),
        ((["a", ""],), r"\[1\]"),
        ((["a", None],), r"\[1\]"),
        ((["a", 1.5],), "1.5"),
        (("abc",), "'abc'"),
        ((["a", "b"], ["ann"]), "1"),
        ((["a", "b"], {"a": "ann"}), "'b'"),
        ((["a", "b"], None, {"gender": ["f"]}), "gender"),
    ],
)
def test_bad_sides_are_refused(arguments, culprit):
    with pytest.raises(InputError, match=culprit):
        Side(*arguments)


def test_ids_that_are_not_there_are_named_with_a_likely_cause():
    side, other = Side(["wav/a.wav", "b"]), Side(["t1", "t2"])
    for ids, culprits in ((["a"], ["'a'", "wav/a.wav"]), (["t2"], ["'t2'", "swap"]), (["x", "b"], ["'x'"])):
        with pytest.raises(InputError) as caught:
            side.positions(ids, other=other)
        assert all(culprit in str(caught.value) for culprit in culprits)


def test_what_one_side_does_not_know_comes_from_the_other():
    one, two = (
        Side(["a", "b"], None, {"gender": ["f", "m"]}),
        Side(["b", "c", "a"], ["B", "C", "A"], {"phrase": [1, 2, 3]}),
    )
    both = one.completed_by(two)
    assert (both.speakers.tolist(), both.columns["phrase"].tolist()) == (["A", "B"], [3, 1])
    assert two.take([2, 0]).completed_by(one).columns["gender"].tolist() == ["f", "m"]
    assert two.take([2, 0]).completed_by(one).speakers.tolist() == ["A", "B"]


# --- matrices


@given(matrices(), st.randoms(use_true_random=False))
def test_align_and_back_gives_the_same_matrix(matrix, random):
    enroll, test = (side.take(random.sample(range(len(side)), len(side))) for side in (matrix.enroll, matrix.test))
    turned = matrix.align(enroll, test)
    assert turned.enroll.same_ids(enroll)
    assert turned.align(matrix.enroll, matrix.test) == matrix
    assert matrix == matrix.T.T
    assert ScoreMatrix(da.from_array(matrix.scores, chunks=(2, 3)), matrix.enroll, matrix.test).compute() == matrix


@given(matrices(np.float32))
def test_lists_and_matrices_have_the_same_scores(matrix):
    trials = matrix.to_trials()
    assert trials.scores.dtype == np.float32
    assert len(trials) == np.count_nonzero(~np.isnan(matrix.scores))
    back = trials.select(np.arange(len(trials))[::-1]).to_matrix()
    kept = matrix.select(back.enroll_ids, back.test_ids)
    np.testing.assert_array_equal(back.scores, kept.scores)


@given(matrices())
def test_a_matrix_in_parts_is_put_together_by_id(matrix):
    cut = matrix.shape[0] // 2
    parts = [matrix.take(np.arange(cut, matrix.shape[0])), matrix.take(np.arange(cut), None)]
    whole = ScoreMatrix.concat([part for part in parts if part.shape[0]])
    assert whole.align(matrix.enroll, matrix.test) == matrix


def test_parts_that_overlap_or_leave_gaps():
    one, two = ScoreMatrix([[1.0, np.nan]], ["e1"], ["t1", "t2"]), ScoreMatrix([[2.0], [3.0]], ["e1", "e2"], ["t2"])
    np.testing.assert_array_equal(ScoreMatrix.concat([one, two]).scores, [[1.0, 2.0], [np.nan, 3.0]])
    lazy = two.with_scores(da.from_array(two.scores, chunks=1))
    np.testing.assert_array_equal(ScoreMatrix.concat([one, lazy]).scores, [[1.0, 2.0], [np.nan, 3.0]])
    with pytest.raises(InputError, match=r"'e1', 't2'"):
        ScoreMatrix.concat([one, two, ScoreMatrix([[5.0]], ["e1"], ["t2"])])


def test_scores_keep_their_type_and_are_not_copied():
    scores = np.zeros((2, 2), np.float32)
    assert ScoreMatrix(scores, ["a", "b"], ["c", "d"]).scores is scores
    assert ScoreMatrix([[1, 2]], ["a"], ["c", "d"]).scores.dtype == np.float64
    assert ScoreMatrix(np.zeros((1, 1), ">f4"), ["a"], ["c"]).scores.dtype == np.float32
    assert ScoreMatrix(np.zeros((0, 3)), [], ["a", "b", "c"]).shape == (0, 3)
    assert ScoreMatrix(da.zeros((1, 2), dtype=int), ["a"], ["c", "d"]).scores.dtype == np.float64


@pytest.mark.parametrize(
    ("scores", "ids", "culprit"),
    [
        ([[1.0, np.inf]], (["e"], ["t", "u"]), "'e', 'u'"),
        ([[1.0], [-2 * LARGEST_SCORE]], (["e", "f"], ["t"]), "'f', 't'"),
        ([[1.0, 2.0]], (["e"], ["t"]), "test_ids"),
        ([[1.0, 2.0]], (["e", "f"], ["t", "u"]), "enroll_ids"),
        ([1.0, 2.0], (["e"], ["t", "u"]), "shape"),
        ([[1.0], [1.0, 2.0]], (["e", "f"], ["t"]), "length"),
        ([["x"]], (["e"], ["t"]), "type"),
        ([[1j]], (["e"], ["t"]), "type"),
        ([[1.0, 2.0]], (["e"], ["t", "t"]), "'t'"),
        (da.zeros(2), (["e"], ["t", "u"]), "shape"),
    ],
)
def test_bad_matrices_are_refused(scores, ids, culprit):
    with pytest.raises(InputError, match=culprit):
        ScoreMatrix(scores, *ids)


def test_missing_ids_are_named():
    matrix = ScoreMatrix([[1.0, 2.0]], ["e"], ["t", "u"])
    with pytest.raises(InputError, match="'x'"):
        matrix.select(["x"])
    with pytest.raises(InputError, match="'y'"):
        matrix.align(matrix.enroll, Side(["t", "y"]))


# --- lists


def test_a_list_keeps_its_trials_together():
    trials = TrialList(["a", "b", "a"], ["x", "x", "y"], [1.0, 2.0, 3.0], [1, 0, -1], {"snr": [9, 8, np.nan]})
    some = trials.select([2, 1])
    assert [some.pair(at) for at in range(2)] == [("a", "y"), ("b", "x")]
    assert (some.scores.tolist(), some.labels.tolist(), some.shape) == ([3.0, 2.0], [-1, 0], (2, 2))
    assert some.select([False, True]).enroll_ids.tolist() == ["b"]
    assert len(trials.select([])) == 0
    assert TrialList.concat([trials.select([0]), trials.select([1, 2])]) == trials
    assert trials != trials.with_labels([1, 0, 0])
    assert trials != trials.select([1, 0, 2])
    assert trials.with_normalized(np.array([1.0, np.nan, 0.0])).labels.tolist() == [1, -1]
    shifted = trials.map(lambda s, e, t: s + e - t, [np.array([10.0, 20.0])], [np.array([1.0, 2.0])])
    assert shifted.scores.tolist() == [10.0, 21.0, 11.0]


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        ((["a", "b"], ["x"]), "1"),
        ((["a", "b", "a"], ["x", "x", "x"]), "'a', 'x'"),
        ((["a", "b"], ["x", "x"], [1.0]), "scores"),
        ((["a", "b"], ["x", "x"], [1.0, np.nan]), "'b', 'x'"),
        ((["a", "b"], ["x", "x"], [np.inf, 1.0]), "'a', 'x'"),
        ((["a"], ["x"], None, [2]), "labels"),
        ((["a"], ["x"], None, [0, 1]), "labels"),
        ((["a"], ["x"], None, None, {"snr": [1.0, 2.0]}), "snr"),
        ((["a", ""], ["x", "x"]), "enroll_ids"),
    ],
)
def test_bad_lists_are_refused(arguments, culprit):
    with pytest.raises(InputError, match=culprit):
        TrialList(*arguments)


def test_codes_are_checked_and_infinite_llrs_allowed_if_asked_for():
    sides = Side(["a", "b"]), Side(["x"])
    for rows, cols in (([2], [0]), ([0], [-1]), ([0, 1], [0])):
        with pytest.raises(InputError, match=r"position|test"):
            TrialList.from_codes(*sides, rows, cols)
    assert TrialList.from_codes(*sides, [0, 1], [0, 0], [np.inf, -np.inf], infinite=True).scores[0] == np.inf
    with pytest.raises(InputError, match="no scores"):
        TrialList(["a"], ["x"]).to_matrix()


@pytest.mark.parametrize("n_ids", [300, 3000])  # a table of all pairs, or sorting
def test_a_repeated_trial_is_found_in_a_large_list(n_ids):
    rng = np.random.default_rng(0)
    codes = rng.choice(n_ids * n_ids, size=20_000, replace=False)
    rows, cols = np.divmod(codes, n_ids)
    sides = Side([f"e{i}" for i in range(n_ids)]), Side([f"t{i}" for i in range(n_ids)])
    assert len(TrialList.from_codes(*sides, rows, cols)) == 20_000
    rows[-1], cols[-1] = rows[77], cols[77]
    with pytest.raises(InputError, match=f"'e{rows[77]}', 't{cols[77]}'"):
        TrialList.from_codes(*sides, rows, cols)


@given(st.permutations(range(6)))
def test_a_key_is_joined_by_id(order):
    pairs = [(e, t) for e in "ab" for t in "xyz"]
    key = TrialList(*zip(*(pairs[k] for k in order), strict=True), labels=[k % 2 for k in order])
    scores = TrialList(*zip(*pairs, strict=True), scores=np.arange(6.0))
    joined = scores.join(key)
    assert joined.labels.tolist() == [0, 1, 0, 1, 0, 1]
    assert joined.scores.tolist() == scores.scores.tolist()
    assert scores.join(Labels.from_trials(key)).labels.tolist() == joined.labels.tolist()
    assert [scores.pair(at) for at in key.find(scores)] == [pairs[k] for k in order]


def test_trials_that_do_not_match_are_named_or_dropped():
    scores = TrialList(["a", "a", "b"], ["x", "y", "x"], [1.0, 2.0, 3.0])
    key = TrialList(["b", "a", "c"], ["x", "x", "x"], labels=[0, 1, 1])
    with pytest.raises(InputError, match="'y'"):
        scores.join(key)
    with pytest.raises(InputError, match="'c', 'x'"):
        scores.select([0, 2]).join(key)
    with pytest.raises(InputError, match="'b', 'y'"):
        TrialList(["b", "a"], ["y", "y"], [1.0, 2.0]).join(TrialList(["b", "a"], ["x", "y"], labels=[0, 1]))
    dropped = scores.join(key, unmatched="drop")
    assert (dropped.scores.tolist(), dropped.labels.tolist()) == ([1.0, 3.0], [1, 0])
    assert len(scores.join(TrialList(["c"], ["z"], labels=[1]), unmatched="drop")) == 0
    assert len(scores.join(TrialList([], [], labels=[]), unmatched="drop")) == 0
    with pytest.raises(InputError, match="labels"):
        scores.join(scores)
