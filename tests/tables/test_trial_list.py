import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import InputError, Labels, TrialList
from reference import trial_pairs

ENROLL, TEST = st.sampled_from("abcde"), st.sampled_from(["1", "2", "3", "a"])
FINITE = st.floats(-1e30, 1e30)


@st.composite
def listed(draw, labels=True, min_size=0):
    """Trials with scores and labels, in any order."""
    pairs = draw(st.lists(st.tuples(ENROLL, TEST), unique=True, min_size=min_size, max_size=12))
    size = len(pairs)
    scores = draw(st.lists(FINITE, min_size=size, max_size=size))
    return TrialList.from_pairs(
        [pair[0] for pair in pairs],
        [pair[1] for pair in pairs],
        scores=np.array(scores, dtype=draw(st.sampled_from([np.float32, np.float64]))),
        labels=np.array(draw(st.lists(st.sampled_from([1, 0, -1]), min_size=size, max_size=size)), int)
        if labels
        else None,
        measures={"duration": np.arange(size, dtype=float)},
    )


def rows_of(trials):
    labels = [None] * len(trials) if trials.labels is None else trials.labels.tolist()
    return list(zip(trial_pairs.pairs_of(trials), trials.scores.tolist(), labels, strict=True))


@given(listed(), listed())
def test_match_equals_the_dictionary_twin(trials, other):
    expected = trial_pairs.match(trial_pairs.pairs_of(trials), trial_pairs.pairs_of(other))
    assert trials.match(other).tolist() == expected


@given(listed(labels=False), listed())
def test_join_equals_the_dictionary_twin(trials, key):
    dictionary = dict(zip(trial_pairs.pairs_of(key), key.labels.tolist(), strict=True))
    expected = trial_pairs.join(trial_pairs.pairs_of(trials), trials.scores.tolist(), dictionary)
    assert rows_of(trials.join(key, unmatched="drop")) == expected


@given(listed(labels=False, min_size=1), st.randoms())
def test_join_does_not_depend_on_the_order_of_the_key(trials, random):
    key = trials.with_labels(np.arange(len(trials)) % 2)
    order = list(range(len(trials)))
    random.shuffle(order)
    assert trials.join(key.select(order)) == key


@given(listed())
def test_join_with_labels_that_have_ids_equals_join_with_the_list(trials):
    bare = trials.with_labels(None)
    assert bare.join(Labels.from_trials(trials)) == bare.join(trials)


def test_join_names_a_trial_that_is_not_in_the_key():
    scores = TrialList.from_pairs(["a", "b"], ["x", "y"], scores=[1.0, 2.0])
    key = TrialList.from_pairs(["a"], ["x"], labels=[1])
    with pytest.raises(InputError, match=r"1 of the 2 scored trials are not in the key, first \('b', 'y'\)"):
        scores.join(key)
    assert scores.join(key, unmatched="drop").labels.tolist() == [1]
    with pytest.raises(InputError, match=r"the trial \('b', 'y'\) has a score but no label"):
        scores.join(Labels.from_trials(key))
    assert scores.join(Labels.from_trials(key), unmatched="drop").labels.tolist() == [1]


def test_join_names_a_trial_of_the_key_that_has_no_score():
    scores = TrialList.from_pairs(["b"], ["y"], scores=[1.0])
    key = TrialList.from_pairs(["a", "b"], ["x", "y"], labels=[1, 0])
    with pytest.raises(InputError, match=r"1 of the 2 trials of the key have no score, first \('a', 'x'\)"):
        scores.join(key)
    assert scores.join(key, unmatched="drop").labels.tolist() == [0]


def test_join_with_an_empty_key_leaves_an_empty_labelled_list():
    scores = TrialList.from_pairs(["b"], ["y"], scores=[1.0])
    empty = TrialList.from_pairs([], [], labels=[])
    joined = scores.join(empty, unmatched="drop")
    assert len(joined) == 0
    assert joined.labels is not None


def test_join_needs_labels_and_ids():
    scores = TrialList.from_pairs(["b"], ["y"], scores=[1.0])
    with pytest.raises(InputError, match="the key has no labels"):
        scores.join(scores)
    with pytest.raises(InputError, match="these labels have no ids"):
        scores.join(Labels.from_key([[1]]))


@given(listed(labels=False))
def test_matrix_and_back_keeps_every_score(trials):
    back = trials.to_matrix().to_trials()
    assert dict(zip(trial_pairs.pairs_of(back), back.scores, strict=True)) == dict(
        zip(trial_pairs.pairs_of(trials), trials.scores, strict=True)
    )
    assert back.to_matrix() == trials.to_matrix()
    assert back.scores.dtype == trials.scores.dtype


@given(listed(), st.data())
def test_select_by_mask_equals_select_by_position(trials, data):
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(trials), max_size=len(trials))), dtype=bool)
    chosen = trials.select(mask)
    assert chosen == trials.select(np.flatnonzero(mask))
    assert rows_of(chosen) == [row for row, kept in zip(rows_of(trials), mask, strict=True) if kept]
    assert set(chosen.enroll_ids) == set(chosen.enroll)
    assert chosen.measures["duration"].tolist() == np.flatnonzero(mask).tolist()


@given(listed(), st.integers(0, 12))
def test_concat_of_the_parts_is_the_whole(trials, cut):
    parts = [trials.select(np.arange(len(trials)) < cut), trials.select(np.arange(len(trials)) >= cut)]
    assert TrialList.concat(parts) == trials


@given(listed(), st.randoms())
def test_equality_sees_the_trials_and_not_the_order_of_the_ids(trials, random):
    rows, columns = list(range(len(trials.enroll_ids))), list(range(len(trials.test_ids)))
    random.shuffle(rows)
    random.shuffle(columns)
    same = TrialList(
        trials.enroll_ids[rows],
        trials.test_ids[columns],
        np.argsort(rows)[trials.enroll_index],
        np.argsort(columns)[trials.test_index],
        scores=trials.scores,
        labels=trials.labels,
        measures=trials.measures,
    )
    assert same == trials
    assert (trials == "trials") is False
    if len(trials):
        assert trials.with_scores(np.where(trials.scores < 0, 1.0, -1.0)) != trials
        assert trials.with_labels(None) != trials
        assert trials.select(np.arange(1, len(trials))) != trials


@given(listed())
def test_counts_add_up(trials):
    assert sum(trials.counts) == len(trials)
    assert trials.counts == (trials.n_target, trials.n_nontarget, trials.n_unknown)
    assert trials.n_target == trials.labels.tolist().count(1)
    assert trials.with_labels(None).counts == (0, 0, len(trials))


def test_concat_drops_what_not_all_parts_have():
    first = TrialList.from_pairs(["a"], ["x"], scores=[1.0], labels=[1], measures={"q": [1.0]})
    second = TrialList.from_pairs(["a"], ["y"], scores=[2.0])
    whole = TrialList.concat([first, second])
    assert whole.labels is None
    assert dict(whole.measures) == {}
    assert whole.scores.tolist() == [1.0, 2.0]


def test_arrays_and_fields_cannot_be_changed():
    trials = TrialList.from_pairs(["a"], ["x"], scores=[1.0], labels=[1], measures={"q": [1.0]})
    for array in (trials.scores, trials.labels, trials.enroll_index, trials.enroll_ids, trials.measures["q"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        trials.scores = None
    with pytest.raises(TypeError):
        trials.measures["r"] = None
    with pytest.raises(TypeError, match="unhashable"):
        hash(trials)


def test_repr_tells_what_is_in_it():
    trials = TrialList.from_pairs(["a", "a"], ["x", "y"], labels=[1, -1], measures={"q": [1.0, 2.0]})
    assert repr(trials) == (
        "TrialList(2 trials of 1 enrolments and 2 tests, 1 target, 0 non-target, 1 unknown, no scores, measures q)"
    )
    assert repr(TrialList.from_pairs([], [], scores=[])) == (
        "TrialList(0 trials of 0 enrolments and 0 tests, no labels, no scores)"
    )


def trial(**changes):
    fields = {"enroll_ids": ["a"], "test_ids": ["x"], "enroll_index": [0], "test_index": [0]} | changes
    return TrialList(**fields)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"enroll_index": [1]}, r"enroll_index goes from 1 to 1, but there are 1 ids \(0 to 0\)"),
        ({"test_index": [-1]}, r"test_index goes from -1 to -1"),
        ({"enroll_index": [0.0]}, r"enroll_index must be a list of whole numbers, but is float64"),
        ({"test_index": [0, 0]}, r"test_index has 2 entries, but there are 1 trials"),
        ({"enroll_index": [0, 0], "test_index": [0, 0]}, r"the trial \('a', 'x'\) is listed more than once"),
        ({"enroll_ids": ["a", "a"]}, r"enroll_ids has 'a' more than once"),
        ({"enroll_ids": "a"}, r"enroll_ids is the single text 'a'"),
        ({"test_ids": [""]}, r"test_ids\[0\] is empty"),
        ({"test_ids": [None]}, r"test_ids\[0\] is empty"),
        ({"test_ids": [1.5]}, r"test_ids\[0\] is 1.5, but ids must be text"),
        ({"test_ids": [b"\xff"]}, r"test_ids\[0\] is b'\\xff', which is not valid UTF-8"),
        ({"scores": [np.nan]}, r"the score of \('a', 'x'\) is nan, but scores must be finite"),
        ({"scores": [np.inf]}, r"is inf, but scores must be finite"),
        ({"scores": [1.0, 2.0]}, r"scores has 2 entries, but there are 1 trials"),
        ({"scores": [[1.0]]}, r"scores must have 1 dimension, but has shape \(1, 1\)"),
        ({"scores": ["1"]}, r"scores has type <U1, but must hold real numbers"),
        ({"scores": [1j]}, r"scores has type complex128"),
        ({"labels": [2]}, r"labels must be a list of 1 \(target\), 0 \(non-target\) and -1 \(unknown\)"),
        ({"labels": ["target"]}, r"labels must be a list of 1"),
        ({"labels": [1, 0]}, r"labels has 2 entries"),
        ({"measures": {"q": [1.0, 2.0]}}, r"measure 'q' has 2 entries"),
        ({"measures": {"q": ["x"]}}, r"measure 'q' has type <U1"),
    ],
)
def test_wrong_trials_are_refused_with_the_culprit(changes, message):
    with pytest.raises(InputError, match=message):
        trial(**changes)


def test_other_refusals():
    with pytest.raises(InputError, match="nothing to concatenate"):
        TrialList.concat([])
    with pytest.raises(InputError, match="has no scores, so it cannot become a score matrix"):
        trial().to_matrix()
    with pytest.raises(InputError, match="the mask has 2 entries"):
        trial().select([True, False])
    with pytest.raises(InputError, match="test_index has 1 entries, but there are 2 trials"):
        TrialList.from_pairs(["a", "b"], ["x"])
    with pytest.raises(InputError, match="the trial list has no labels"):
        Labels.from_trials(trial())


def test_a_matrix_larger_than_memory_is_refused(monkeypatch):
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1}.__getitem__)
    ids = np.arange(400)
    trials = TrialList(ids, ids, [0], [399], scores=[1.0])
    with pytest.raises(InputError, match=r"a matrix of 400 x 400 scores takes .*, but only .* of memory are free"):
        trials.to_matrix()
    assert trials.select([0]).to_matrix().shape == (1, 1)


def test_numbers_and_bytes_become_text_ids():
    trials = TrialList.from_pairs([1, b"two"], np.array(["x", "y"]))
    assert trial_pairs.pairs_of(trials) == [("1", "x"), ("two", "y")]


def test_infinite_scores_are_for_those_who_ask():
    with pytest.raises(InputError, match="inf"):
        TrialList.from_pairs(["a", "b"], ["c", "d"], scores=[1.0, -np.inf])
    trials = TrialList(["a", "b"], ["c"], [0, 1], [0, 0], scores=[1.0, -np.inf], allow_infinite=True)
    assert trials.select([1]).scores[0] == -np.inf
    assert trials.with_labels([1, 0]).n_target == 1
    assert len(TrialList.concat([trials.select([0]), trials.select([1])])) == 2
    with pytest.raises(InputError, match="nan"):
        TrialList(["a"], ["c"], [0], [0], scores=[np.nan], allow_infinite=True)
    with pytest.raises(InputError, match="inf"):
        trials.with_scores([np.inf, 0.0])
