"""The fast search for pairs against dictionaries, on both of its branches."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore.tables import pairs
from reference import trial_pairs

PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=12)


def codes_of(listed, n_columns=4):
    rows, columns = (np.array([pair[side] for pair in listed], dtype=np.int32) for side in (0, 1))
    return pairs.pair_codes(rows, columns, n_columns)


@pytest.fixture(params=["table", "sort"], autouse=True, scope="module")
def branch(request):
    """Run everything with the table of all pairs, and with sorting."""
    patch = pytest.MonkeyPatch()
    if request.param == "sort":
        patch.setattr(pairs, "_TABLE_LIMIT", -1)
    yield request.param
    patch.undo()


@given(PAIRS)
def test_first_repeated_pair_is_the_one_a_reader_would_meet(listed):
    assert pairs.first_repeated_pair(codes_of(listed)) == trial_pairs.first_repeated_pair(listed)


@given(PAIRS, st.integers(1, 5))
def test_any_repeated_pair_agrees_with_the_first_one(listed, block):
    rows, columns = (np.array([pair[side] for pair in listed], dtype=np.int32) for side in (0, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "_PAIRS_AT_ONCE", block)
        repeated = pairs.any_repeated_pair(rows, columns, 5, 4)
    assert repeated == (trial_pairs.first_repeated_pair(listed) is not None)


@given(PAIRS, st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), unique=True, max_size=20))
def test_match_pairs_finds_what_a_dictionary_finds(listed, others):
    found = pairs.match_pairs(codes_of(listed), codes_of(others), 20)
    assert found.tolist() == trial_pairs.match(listed, others)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), unique=True, max_size=20))
def test_negative_codes_match_nothing(others):
    found = pairs.match_pairs(np.array([-1, -1, -7]), codes_of(others), 20)
    assert found.tolist() == [-1, -1, -1]


def test_codes_of_large_tables_do_not_overflow():
    big = 2**31 - 1
    code = pairs.pair_codes(np.array([big - 1], dtype=np.int32), np.array([big - 1], dtype=np.int32), big)
    assert int(code[0]) == big * big - 1


def test_a_repeat_is_found_among_more_possible_pairs_than_fit_in_memory():
    codes = np.array([10**15, 3, 10**15, 3])
    assert pairs.first_repeated_pair(codes) == (0, 2)
    assert pairs.match_pairs(np.array([3, 4, 10**15]), np.array([10**15, 3]), 10**16).tolist() == [1, -1, 0]
