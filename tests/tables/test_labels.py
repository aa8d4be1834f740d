import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from evenscore import InputError, Labels
from evenscore.tables import NONTARGET, TARGET, UNKNOWN

SPEAKERS = st.lists(st.sampled_from(["ann", "bob", "eve", None, ""]), max_size=6)


def label_of(row, column):
    """Return the label of a pair, straight from the definition."""
    if not row or not column:
        return UNKNOWN
    return TARGET if row == column else NONTARGET


@given(SPEAKERS, SPEAKERS)
def test_labels_by_speaker_follow_the_definition(rows, columns):
    labels = Labels.from_speakers(rows, columns)
    expected = [[label_of(row, column) for column in columns] for row in rows]
    assert labels.by_speaker
    assert labels.matrix.tolist() == expected
    flat = [label for line in expected for label in line]
    assert labels.counts == tuple(flat.count(label) for label in (TARGET, NONTARGET, UNKNOWN))
    assert labels.counts == (labels.n_target, labels.n_nontarget, labels.n_unknown)


@given(arrays.arrays(np.int8, st.tuples(st.integers(0, 4), st.integers(0, 4)), elements=st.integers(-1, 1)))
def test_labels_by_key_count_what_is_there(key):
    labels = Labels.from_key(key)
    assert not labels.by_speaker
    assert labels.counts == tuple(int((key == label).sum()) for label in (TARGET, NONTARGET, UNKNOWN))


@given(SPEAKERS, SPEAKERS, st.randoms(), st.booleans())
def test_align_finds_labels_by_id(rows, columns, random, by_key):
    ids = {"enroll_ids": [f"e{i}" for i in range(len(rows))], "test_ids": [f"t{j}" for j in range(len(columns))]}
    labels = Labels.from_speakers(rows, columns, **ids)
    if by_key:
        labels = Labels.from_key(labels.matrix, **ids)
    order, across = list(range(len(rows))), list(range(len(columns)))
    random.shuffle(order)
    random.shuffle(across)
    aligned = labels.align([f"e{i}" for i in order], [f"t{j}" for j in across])
    assert np.array_equal(aligned.matrix, labels.matrix[np.ix_(order, across)])
    assert aligned.by_speaker == labels.by_speaker
    assert aligned.align(**ids) == labels


def test_align_without_ids_takes_the_order_as_it_is():
    labels = Labels.from_key([[1, 0]])
    aligned = labels.align(["a"], ["x", "y"])
    assert aligned.matrix.tolist() == [[1, 0]]
    assert aligned.test_ids.tolist() == ["x", "y"]
    with pytest.raises(InputError, match="labels are 1 x 2, but the scores are 2 x 1"):
        labels.align(["a", "b"], ["x"])


def test_a_mapping_gives_ids_and_speakers():
    speakers = {"u1": "ann", "u2": "bob", "u3": "ann"}
    labels = Labels.from_speakers(speakers, speakers, enroll_ids=["u3"], test_ids=["u2", "u1"])
    assert labels.matrix.tolist() == [[0, 1]]
    with pytest.raises(InputError, match="test_speakers has no speaker for 'u9'"):
        Labels.from_speakers(speakers, speakers, test_ids=["u9"])


def test_equality_sees_labels_and_not_how_they_were_made():
    by_speaker = Labels.from_speakers(["ann"], ["ann", "bob"])
    assert by_speaker == Labels.from_key([[1, 0]])
    assert by_speaker != Labels.from_key([[1, 1]])
    assert by_speaker != Labels.from_key([[1, 0]], enroll_ids=["a"], test_ids=["x", "y"])
    assert (by_speaker == 1) is False
    with pytest.raises(TypeError, match="unhashable"):
        hash(by_speaker)


def test_labels_cannot_be_changed():
    labels = Labels.from_speakers(["ann"], ["ann"])
    for array in (labels.matrix, labels.enroll_speakers, *labels.speaker_codes[:2]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    key = np.array([[1]])
    fixed = Labels.from_key(key)
    key[0, 0] = 0
    assert fixed.matrix.tolist() == [[1]]


def test_repr_tells_the_counts():
    assert repr(Labels.from_speakers(["ann", None], ["ann"])) == (
        "Labels(2 x 1 by speaker: 1 target, 0 non-target, 1 unknown)"
    )
    assert repr(Labels.from_key([[0]])) == "Labels(1 x 1 by key: 0 target, 1 non-target, 0 unknown)"


@pytest.mark.parametrize(
    ("key", "options", "message"),
    [
        ([[2]], {}, r"key must hold only 1 \(target\), 0 \(non-target\) and -1 \(unknown\)"),
        ([[np.nan]], {}, r"key must hold only"),
        ([["target"]], {}, r"key must hold only"),
        ([1, 0], {}, r"key must have 2 dimensions, but has shape \(2,\)"),
        ([[1, 0]], {"enroll_ids": ["a", "b"]}, r"enroll_ids has 2 ids, but 1 are needed"),
        ([[1, 0]], {"test_ids": ["x", "x"]}, r"test_ids has 'x' more than once"),
    ],
)
def test_wrong_keys_are_refused(key, options, message):
    with pytest.raises(InputError, match=message):
        Labels.from_key(key, **options)


def test_labels_from_a_key_have_no_speakers():
    with pytest.raises(InputError, match="these labels come from a key"):
        _ = Labels.from_key([[1]]).speaker_codes
    with pytest.raises(InputError, match="enrolment 'z' not in the labels"):
        Labels.from_key([[1]], enroll_ids=["a"], test_ids=["x"]).align(["z"], ["x"])
