"""Labels and score blocks: everything is aligned by id, and what is not known is not guessed."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import InputError, LabelledBlocks, Labels, ScoreBlocks, ScoreMatrix, Side, TrialList

SPEAKERS = st.lists(st.sampled_from(["ann", "bob", "cas", None, ""]), min_size=1, max_size=6)


@given(SPEAKERS, SPEAKERS)
def test_labels_follow_from_speakers(rows, cols):
    labels = Labels.from_speakers(rows, cols)
    expected = [[-1 if not a or not b else int(a == b) for b in cols] for a in rows]
    assert labels.matrix.tolist() == expected
    flat = np.ravel(expected)
    assert labels.counts == tuple(int((flat == label).sum()) for label in (1, 0, -1))
    at = np.indices(labels.shape).reshape(2, -1)
    assert labels.pairs(*at).tolist() == flat.tolist()
    assert labels.by_speaker
    key = Labels.from_key(expected)
    assert not key.by_speaker
    assert (key.matrix.tolist(), key.counts, key == labels) == (expected, labels.counts, True)


@given(st.permutations(range(4)), st.booleans())
def test_labels_are_aligned_by_id(order, by_speaker):
    ids, speakers = list("abcd"), ["x", "y", "x", None]
    labels = Labels.from_speakers(dict(zip(ids, speakers, strict=True)), {"t": "x", "u": "y"})
    labels = labels if by_speaker else Labels.from_key(labels.matrix, enroll_ids=ids, test_ids=["t", "u"])
    turned = labels.align(Side([ids[k] for k in order]), Side(["u"]))
    assert turned.matrix.tolist() == [[labels.matrix[k, 1]] for k in order]
    assert labels.align(labels.enroll, labels.test) == labels


def test_a_key_lists_labels():
    key = TrialList(["a", "b"], ["x", "y"], labels=[1, -1])
    assert Labels.from_trials(key).matrix.tolist() == [[1, -1], [-1, -1]]
    assert Labels.from_trials(key, unlisted=0).matrix.tolist() == [[1, 0], [0, -1]]
    matrix = ScoreMatrix([[1.0, np.nan], [2.0, 3.0]], ["a", "b"], ["x", "y"])
    assert matrix.to_trials(Labels.from_trials(key, unlisted=0)).labels.tolist() == [1, 0, -1]


def test_bad_labels_are_refused():
    sides = Side(["a", "b"]), Side(["x"])
    for make, culprit in (
        (lambda: Labels.from_key([[2]]), "-1"),
        (lambda: Labels.from_key([1, 0]), "matrix"),
        (lambda: Labels.from_key([[1]]).align(*sides), r"\(1, 1\)"),
        (lambda: Labels.from_key([[1]], enroll_ids=["a"], test_ids=["x"]).align(*sides), "'b'"),
        (lambda: Labels.from_trials(TrialList(["a"], ["x"])), "labels"),
        (lambda: Labels.from_speakers(*sides), "enroll"),
        (lambda: Labels.from_speakers(["ann"], ["bob"], enroll_ids=["a", "b"]), "1"),
        (lambda: Labels.from_key([[1]]).speaker_codes, "speakers"),
    ):
        with pytest.raises(InputError, match=culprit):
            make()


def example(**changes):
    given = {
        "trials": ScoreMatrix([[1.0, 2.0], [3.0, 4.0]], ["e1", "e2"], ["t1", "t2"]),
        "enroll": ScoreMatrix([[0.0, 1, 2], [3, 4, 5], [6, 7, 8]], ["e2", "e1", "e9"], ["d2", "d3", "d1"]),
        "test": ScoreMatrix([[0.0, 1], [2, 3]], ["c2", "c1"], ["t2", "t1"]),
        "cohort": ScoreMatrix([[0.0, 1, 2], [3, 4, 5]], ["c1", "c2"], ["d1", "d2", "d3"]),
    }
    return ScoreBlocks(**given | changes)


def test_blocks_are_aligned_with_trials_and_cohort():
    blocks = example()
    assert blocks.enroll.scores.tolist() == [[5, 3, 4], [2, 0, 1]]
    assert blocks.test.scores.tolist() == [[3, 2], [1, 0]]
    assert blocks.cohort_enroll.ids.tolist() == ["c1", "c2"]
    assert blocks.cohort_test.ids.tolist() == ["d1", "d2", "d3"]
    part = blocks.take_trials([1], None).take_cohort([0], [2, 0])
    assert part.enroll.scores.tolist() == [[1, 2]]
    assert part.cohort.scores.tolist() == [[2, 0]]
    listed = TrialList(["e2"], ["t1"], scores=[3.0])
    assert example(trials=listed).enroll.scores.tolist() == [[2, 0, 1]]
    assert blocks.with_trials(listed).test.scores.tolist() == [[3], [1]]
    assert example(cohort=None).cohort_test.ids.tolist() == ["d2", "d3", "d1"]
    assert example(test=None, cohort=None).cohort_enroll is None


@pytest.mark.parametrize(
    ("changes", "culprit"),
    [
        ({"enroll": ScoreMatrix([[1.0, 2, 3]], ["e1"], ["d1", "d2", "d3"])}, "'e2'"),
        ({"enroll": ScoreMatrix([[1.0], [2.0]], ["e1", "e2"], ["d1"])}, "'d2'"),
        ({"test": ScoreMatrix([[1.0, 2], [3, 4]], ["c1", "c9"], ["t1", "t2"])}, "'c9'"),
        ({"enroll": np.zeros((2, 3))}, "enroll"),
        ({"trials": np.zeros((2, 2))}, "trials"),
        ({"trials": TrialList(["e1"], ["t1"])}, "scores"),
        ({"enroll_speakers": {"e1": "ann"}}, "'e2'"),
        ({"cohort_test_speakers": ["ann"]}, "1"),
        ({"cohort": None, "cohort_labels": Labels.from_key([[1]])}, "cohort"),
        ({"enroll_labels": TrialList(["e7"], ["d1"], labels=[1])}, "enroll"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(changes, culprit):
    with pytest.raises(InputError, match=culprit):
        example(**changes)


def test_speakers_of_any_block_are_known_everywhere():
    spoken = {"d1": "ann", "d2": "bob", "d3": None}
    blocks = example(cohort_test_speakers=spoken, cohort_enroll_speakers=["bob", "ann"])
    assert blocks.enroll.test.speakers.tolist() == ["ann", "bob", None]
    assert blocks.test.enroll.speakers.tolist() == ["bob", "ann"]
    assert blocks.cohort_labels.matrix.tolist() == [[0, 1, -1], [1, 0, -1]]
    told = example().enroll.with_speakers(None, spoken)
    assert example(enroll=told).cohort.test.speakers.tolist() == ["ann", "bob", None]
    genders = example().cohort.test.with_speakers(spoken).with_columns({"gender": np.array(["f", "m", "m"])})
    known = example(enroll=example().enroll.with_sides(Side(["e1", "e2"]), genders), cohort_test_speakers=spoken)
    assert known.cohort_test.columns["gender"].tolist() == ["f", "m", "m"]


@pytest.mark.parametrize("lazy", [False, True])
def test_only_nontargets_are_left(lazy):
    def cut(matrix):
        return matrix.with_scores(da.from_array(matrix.scores, chunks=(1, 2))) if lazy else matrix

    key = TrialList(["e1", "e2"], ["d1", "d3"], labels=[1, -1])
    by_speaker = {"cohort_test_speakers": ["ann", "bob", None], "cohort_enroll_speakers": ["bob", "ann"]}
    tables = {name: cut(getattr(example(), name)) for name in ("trials", "enroll", "test", "cohort")}
    left = ScoreBlocks(**tables, enroll_labels=key, **by_speaker).nontargets()
    nan = np.nan
    np.testing.assert_array_equal(left.enroll.compute().scores, [[nan, 3, 4], [2, 0, nan]])
    np.testing.assert_array_equal(left.cohort.compute().scores, [[0, nan, nan], [nan, 4, nan]])
    assert left.cohort_labels is None
    by_key = ScoreBlocks(**tables, cohort_labels=Labels.from_key([[0, 1, -1], [0, 0, 0]]))
    np.testing.assert_array_equal(by_key.nontargets().cohort.compute().scores, [[0, nan, nan], [3, 4, 5]])


def test_labelled_scores_may_have_members_that_the_cohort_has_not():
    cohort = example().cohort.select(None, ["d1", "d2"])
    with pytest.raises(InputError, match="'d3'"):
        example(cohort=cohort)
    blocks = example(cohort=cohort, enroll_labels=TrialList(["e1"], ["d3"], labels=[1]))
    assert blocks.enroll.test_ids.tolist() == ["d1", "d2", "d3"]
    assert blocks.nontargets().enroll.scores.tolist() == [[5, 3], [2, 0]]


def test_labelled_blocks():
    blocks = example()
    labels = Labels.from_key([[1, 0], [-1, 1]], enroll_ids=["e1", "e2"], test_ids=["t1", "t2"])
    assert LabelledBlocks(blocks, labels).trials.labels.tolist() == [1, 0, -1, 1]
    listed = example(trials=TrialList(["e2"], ["t1"], [3.0], [1]))
    assert LabelledBlocks(listed).trials.labels.tolist() == [1]
    with pytest.raises(InputError, match="labels"):
        _ = LabelledBlocks(blocks).trials
    for key in (None, labels):
        with pytest.raises(InputError, match="speakers"):
            LabelledBlocks.own_cohort(blocks.trials, key)
