import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import InputError, Labels, ScoreBlocks, ScoreMatrix, TrialList


def matrix(rows, columns):
    """Return scores that tell their own pair: 10 * row number + column number."""
    scores = [[10.0 * int(row[1:]) + int(column[1:]) for column in columns] for row in rows]
    return ScoreMatrix(np.reshape(scores, (len(rows), len(columns))), rows, columns)


def names(letter, numbers):
    return [f"{letter}{number}" for number in numbers]


def numbers(most):
    return st.lists(st.integers(1, most), unique=True, min_size=1)


@given(numbers(3), numbers(3), numbers(4), numbers(4), st.randoms())
def test_blocks_are_brought_into_one_order_by_id(enroll, test, cohort_rows, cohort_columns, random):
    def shuffled(values):
        values = list(values)
        random.shuffle(values)
        return values

    blocks = ScoreBlocks(
        matrix(names("e", enroll), names("t", test)),
        enroll=matrix(names("e", shuffled([1, 2, 3])), names("c", shuffled(cohort_columns))),
        test=matrix(names("d", shuffled(cohort_rows)), names("t", shuffled([1, 2, 3]))),
        cohort=matrix(names("d", cohort_rows), names("c", cohort_columns)),
    )
    assert blocks.enroll == matrix(names("e", enroll), names("c", cohort_columns))
    assert blocks.test == matrix(names("d", cohort_rows), names("t", test))
    assert blocks.cohort_enroll_ids.tolist() == names("d", cohort_rows)
    assert blocks.cohort_test_ids.tolist() == names("c", cohort_columns)
    assert blocks.cohort_labels.n_nontarget == len(cohort_rows) * len(cohort_columns)


def test_speakers_come_as_mapping_or_in_order_and_label_the_cohort():
    blocks = ScoreBlocks(
        matrix(["e1"], ["t1"]),
        test=matrix(["d1", "d2"], ["t1"]),
        cohort=matrix(["d2", "d1"], ["c1", "c2"]),
        enroll_speakers=["ann"],
        test_speakers={"t1": "bob", "t7": "eve"},
        cohort_enroll_speakers={"d1": "bob", "d2": "eve"},
        cohort_test_speakers=["eve", "eve"],
    )
    assert blocks.enroll is None
    assert blocks.test.enroll_ids.tolist() == ["d2", "d1"]
    assert blocks.cohort_enroll_speakers.tolist() == ["eve", "bob"]
    assert blocks.cohort_labels.matrix.tolist() == [[1, 1], [0, 0]]
    assert repr(blocks) == (
        "ScoreBlocks(trials 1 x 1, test 2 x 1, cohort 2 x 2, speakers of enroll, test, cohort_enroll, cohort_test)"
    )


def test_given_labels_are_aligned_to_the_cohort():
    labels = Labels.from_key([[1, 0]], enroll_ids=["d1"], test_ids=["c2", "c1"])
    blocks = ScoreBlocks(matrix(["e1"], ["t1"]), cohort=matrix(["d1"], ["c1", "c2"]), cohort_labels=labels)
    assert blocks.cohort_labels.matrix.tolist() == [[0, 1]]


def test_trials_may_be_a_list_and_blocks_may_be_absent():
    trials = TrialList.from_pairs(["e1"], ["t1"], scores=[1.0])
    blocks = ScoreBlocks(trials)
    assert repr(blocks) == "ScoreBlocks(1 listed trials)"
    assert blocks.cohort_enroll_ids is None
    assert blocks.cohort_test_ids is None
    assert blocks == ScoreBlocks(trials)
    assert blocks != ScoreBlocks(trials, enroll_speakers=["ann"])
    assert blocks != ScoreBlocks(matrix(["e1"], ["t1"]))
    assert (blocks == 1) is False
    with pytest.raises(AttributeError):
        blocks.trials = None


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ({"enroll": matrix(["e2"], ["c1"])}, r"block `enroll`: enrolment 'e1' not in the scores"),
        ({"test": matrix(["d1"], ["t2"])}, r"block `test`: test 't1' not in the scores"),
        (
            {"enroll": matrix(["e1"], ["c1"]), "cohort": matrix(["d1"], ["c1", "c2"])},
            r"the cohort's tests .* do not line up: 'c2' only in one of the two",
        ),
        (
            {"test": matrix(["d1", "d2"], ["t1"]), "cohort": matrix(["d1"], ["c1"])},
            r"the cohort's enrolments .* do not line up: 'd2' only in one of the two",
        ),
        ({"cohort_labels": Labels.from_key([[0]])}, r"cohort_labels were given without cohort scores"),
        ({"cohort_enroll_speakers": ["ann"]}, r"cohort_enroll_speakers were given, but there is no block"),
        ({"enroll_speakers": {"e9": "ann"}}, r"enroll_speakers has no speaker for 'e1'"),
        ({"test_speakers": ["ann", "bob"]}, r"test_speakers has 2 speakers, but 1 are needed"),
        (
            {"cohort": matrix(["d1"], ["c1"]), "cohort_labels": Labels.from_key([[0, 1]])},
            r"labels are 1 x 2, but the scores are 1 x 1",
        ),
    ],
)
def test_blocks_that_do_not_fit_are_refused_with_the_culprit(blocks, message):
    with pytest.raises(InputError, match=message):
        ScoreBlocks(matrix(["e1"], ["t1"]), **blocks)


def test_trials_without_scores_are_refused():
    with pytest.raises(InputError, match="the trials have no scores"):
        ScoreBlocks(TrialList.from_pairs(["e1"], ["t1"]))
