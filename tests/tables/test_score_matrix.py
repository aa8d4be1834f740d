import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from evenscore import InputError, Labels, ScoreMatrix
from strategies import score_matrices

EMPTY = st.sampled_from(
    [
        ScoreMatrix(np.zeros(shape), list("abc")[: shape[0]], list("xy")[: shape[1]])
        for shape in ((0, 0), (3, 0), (0, 2))
    ]
)
MATRICES = score_matrices(spaces=True) | EMPTY


def scores_by_pair(matrix):
    return {
        (row, column): matrix.scores[i, j]
        for i, row in enumerate(matrix.enroll_ids)
        for j, column in enumerate(matrix.test_ids)
        if not np.isnan(matrix.scores[i, j])
    }


@given(score_matrices(missing=False, spaces=True))
def test_trials_and_back_is_the_same_matrix(matrix):
    assert matrix.to_trials().to_matrix() == matrix


@given(MATRICES)
def test_trials_hold_every_pair_that_is_not_missing(matrix):
    trials = matrix.to_trials()
    assert dict(zip(zip(trials.enroll, trials.test, strict=True), trials.scores, strict=True)) == scores_by_pair(matrix)
    assert len(trials) == matrix.scores.size - matrix.n_missing


@given(MATRICES, st.data())
def test_labels_go_with_their_scores(matrix, data):
    key = data.draw(arrays.arrays(np.int8, matrix.shape, elements=st.integers(-1, 1)))
    trials = matrix.to_trials(Labels.from_key(key, enroll_ids=matrix.enroll_ids, test_ids=matrix.test_ids))
    assert trials.labels.tolist() == key[~matrix.missing].tolist()


@given(MATRICES, st.randoms())
def test_align_finds_scores_by_id(matrix, random):
    rows, columns = matrix.enroll_ids.tolist(), matrix.test_ids.tolist()
    random.shuffle(rows)
    random.shuffle(columns)
    aligned = matrix.align(rows, columns)
    assert aligned.enroll_ids.tolist() == rows
    assert aligned.test_ids.tolist() == columns
    assert scores_by_pair(aligned) == scores_by_pair(matrix)
    assert aligned.align(matrix.enroll_ids, matrix.test_ids) == matrix
    assert aligned.n_missing == matrix.n_missing


def test_align_to_the_same_order_shares_the_memory():
    matrix = ScoreMatrix(np.ones((2, 2)), ["a", "b"], ["x", "y"])
    assert np.shares_memory(matrix.align(["a", "b"], ["x", "y"]).scores, matrix.scores)


@given(MATRICES, st.integers(0, 4), st.integers(0, 4))
def test_concat_of_four_quarters_is_the_whole(matrix, row, column):
    rows, columns = np.arange(matrix.shape[0]), np.arange(matrix.shape[1])
    quarters = [matrix.take(r, c) for r in (rows[:row], rows[row:]) for c in (columns[:column], columns[column:])]
    assert ScoreMatrix.concat(quarters) == matrix


def test_concat_refuses_a_pair_that_stands_twice():
    part = ScoreMatrix([[1.0]], ["a"], ["x"])
    with pytest.raises(InputError, match=r"the pair \('a', 'x'\) stands in more than one of the matrices"):
        ScoreMatrix.concat([part, part])
    with pytest.raises(InputError, match="nothing to concatenate"):
        ScoreMatrix.concat([])


@given(MATRICES)
def test_missing_is_where_the_scores_are_nan(matrix):
    assert np.array_equal(matrix.missing, np.isnan(matrix.scores))
    assert matrix.n_missing == np.count_nonzero(matrix.missing)
    again = ScoreMatrix(matrix.scores, matrix.enroll_ids, matrix.test_ids, missing="nan")
    assert again == matrix


@given(MATRICES)
def test_with_scores_keeps_pairs_and_missing(matrix):
    other = matrix.with_scores(np.ones(matrix.shape))
    assert other.n_missing == matrix.n_missing
    assert other.enroll_ids.tolist() == matrix.enroll_ids.tolist()
    assert np.nansum(other.scores) == matrix.scores.size - matrix.n_missing


@given(MATRICES)
def test_astype_changes_only_the_type(matrix):
    double = matrix.astype(np.float64)
    assert double.scores.dtype == np.float64
    assert np.array_equal(double.scores, matrix.scores, equal_nan=True)
    assert matrix.astype(matrix.scores.dtype) is matrix


def test_equality_sees_type_ids_scores_and_missing():
    matrix = ScoreMatrix([[1.0, 2.0]], ["a"], ["x", "y"])
    assert matrix == ScoreMatrix([[1.0, 2.0]], ["a"], ["x", "y"])
    assert matrix != matrix.astype(np.float32)
    assert matrix != ScoreMatrix([[1.0, 2.0]], ["a"], ["y", "x"])
    assert matrix != ScoreMatrix([[1.0, 2.5]], ["a"], ["x", "y"])
    assert matrix != ScoreMatrix([[1.0, 2.0]], ["a"], ["x", "y"], missing=[[True, False]])
    assert (matrix == 3) is False


def test_arrays_and_fields_cannot_be_changed():
    matrix = ScoreMatrix([[1.0]], ["a"], ["x"])
    for array, value in ((matrix.scores, 2.0), (matrix.enroll_ids, "b"), (matrix.missing, True)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = value
    with pytest.raises(AttributeError):
        matrix.scores = np.zeros((1, 1))
    with pytest.raises(TypeError, match="unhashable"):
        hash(matrix)


def test_the_callers_array_stays_writable():
    scores = np.ones((1, 1))
    ScoreMatrix(scores, ["a"], ["x"])
    scores[0, 0] = 2.0
    assert scores[0, 0] == 2.0


def test_repr_tells_what_is_in_it():
    matrix = ScoreMatrix(np.float32([[1, 2]]), ["a"], ["x", "y"], missing=[[True, False]])
    assert repr(matrix) == "ScoreMatrix(1 enrolments x 2 tests, float32, scores 2 to 2, 1 missing)"
    assert "no scores" in repr(ScoreMatrix(np.zeros((0, 0)), [], []))


@pytest.mark.parametrize("dtype", [">f4", ">f8", np.float16, np.int32, np.uint8])
def test_other_number_types_become_native_floats(dtype):
    matrix = ScoreMatrix(np.array([[1, 2]], dtype=dtype), ["a"], ["x", "y"])
    assert matrix.scores.dtype in (np.float32, np.float64)
    assert matrix.scores.dtype.isnative
    assert matrix.scores.tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        ([[1.0, np.nan]], {}, r"the score of \('a', 'y'\) is nan, but scores must be finite; .*missing='nan'"),
        ([[1.0, np.inf]], {"missing": "nan"}, r"the score of \('a', 'y'\) is inf"),
        ([[np.nan, 1.0]], {"missing": [[False, True]]}, r"the score of \('a', 'x'\) is nan"),
        ([[1.0, 2.0]], {"missing": "zero"}, r"missing is 'zero', but must be 'nan'"),
        ([[1.0, 2.0]], {"missing": [[0, 1]]}, r"missing must be truth values of shape \(1, 2\), but is int64"),
        ([[1.0, 2.0]], {"missing": [True]}, r"missing must be truth values of shape \(1, 2\), but is bool of"),
        ([1.0, 2.0], {}, r"scores must have 2 dimensions, but has shape \(2,\)"),
        ([[1.0], [1.0, 2.0]], {}, r"scores is ragged"),
        ([["1", "2"]], {}, r"scores has type <U1"),
        ([[1.0]], {}, r"test_ids has 2 ids, but 1 are needed"),
        ([[1.0, 2.0], [3.0, 4.0]], {}, r"enroll_ids has 1 ids, but 2 are needed"),
    ],
)
def test_wrong_scores_are_refused_with_the_culprit(scores, options, message):
    with pytest.raises(InputError, match=message):
        ScoreMatrix(scores, ["a"], ["x", "y"], **options)


def test_unknown_ids_and_shapes_are_refused():
    matrix = ScoreMatrix(np.ones((1, 2)), ["a"], ["x", "y"])
    with pytest.raises(InputError, match="enrolment 'b' not in the scores"):
        matrix.select(enroll_ids=["b"])
    with pytest.raises(InputError, match="test 'p', 'q', 'r' and 1 more not in the scores"):
        matrix.select(test_ids=["p", "q", "x", "r", "s"])
    with pytest.raises(InputError, match=r"scores have shape \(2, 2\), but the pairs have shape \(1, 2\)"):
        matrix.with_scores(np.ones((2, 2)))
    with pytest.raises(InputError, match="enroll_ids must be one-dimensional"):
        matrix.align(np.array([["a"]]), ["x"])
