"""Tiles cover a matrix once; chunked scores read what the matrix holds."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import InputError, ScoreMatrix, TrialList
from evenscore.sources import as_table
from evenscore.tables.tile import Grid
from scale.chunked_examples import ids, in_tiles, matrix

sizes = st.integers(0, 40)


@given(sizes, sizes, st.integers(1, 50), st.integers(1, 50), st.integers(1, 5000))
def test_tiles_cover_every_pair_once_in_whole_chunks(rows, columns, chunk_rows, chunk_columns, nbytes):
    covered = np.zeros((rows, columns), dtype=int)
    for number, tile in enumerate(Grid((rows, columns), 4, (chunk_rows, chunk_columns), nbytes).places()):
        assert tile.number == number
        assert tile.rows.start % min(chunk_rows, rows) == tile.columns.start % min(chunk_columns, columns) == 0
        covered[tile.rows, tile.columns] += 1
    assert (covered == 1).all()


def test_tiles_stay_within_their_size_where_stored_chunks_do():
    tiles = Grid((1000, 1000), 4, (10, 10), 4000).places()
    assert max(tile.shape[0] * tile.shape[1] * 4 for tile in tiles) <= 4000
    assert len(tiles) == 1000
    assert str(tiles[1]) == "chunk 1 (rows 0 to 9, columns 100 to 199)"


def test_a_size_of_nothing_is_refused():
    with pytest.raises(InputError, match="give a size above 0"):
        Grid((2, 2), 4, (1, 1), 0).places()


@given(st.randoms(use_true_random=False), st.integers(1, 12), st.integers(1, 12))
def test_selected_rows_and_columns_are_those_of_the_matrix(random, n_rows, n_columns):
    rng = np.random.default_rng(random.getrandbits(32))
    whole = matrix(rng, ids("e", 12), ids("t", 12), missing=0.1)
    rows, columns = rng.permutation(12)[:n_rows], rng.permutation(12)[:n_columns]
    chunked = in_tiles(whole).take(rows, columns)
    assert chunked.in_memory() == whole.take(rows, columns)
    assert chunked.align(whole.enroll_ids[rows][::-1], whole.test_ids[columns]).in_memory() == whole.take(
        rows[::-1], columns
    )


def test_arrays_need_ids_and_no_ids_are_no_rows():
    with pytest.raises(InputError, match="an array of scores has no ids; give them"):
        as_table(np.zeros((2, 2)))
    assert as_table(np.zeros((0, 2)), [], ["t1", "t2"]).in_memory() == ScoreMatrix(np.zeros((0, 2)), [], ["t1", "t2"])


def test_blocks_and_positions_are_those_of_an_array():
    whole = matrix(np.random.default_rng(0), ids("e", 12), ids("t", 9))
    chunked = in_tiles(whole)
    for rows, columns in ((slice(None), slice(2)), (slice(-3, None), slice(0, 100)), (slice(5, 2), slice(None))):
        np.testing.assert_array_equal(chunked.block(rows, columns), whole.scores[rows, columns])
    for chosen in (np.array([-1, 0]), np.arange(12) % 3 == 1, np.array([], dtype=int)):
        np.testing.assert_array_equal(chunked.take(chosen).in_memory().scores, whole.scores[chosen])
    with pytest.raises(InputError, match=r"rows cannot be taken: .*; give positions below 12, or a mask"):
        chunked.take([12])
    with pytest.raises(InputError, match="must be a slice without a step"):
        chunked.block(slice(0, 8, 2), slice(None))


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ("dev.zarr", "open the file with open_scores"),
        (None, "there are no scores"),
        (TrialList.from_pairs(["e"], ["t"], scores=[1.0]), "have ids of their own"),
        (ScoreMatrix([[1.0]], ["e"], ["t"]), "have ids of their own"),
    ],
)
def test_what_is_no_array(scores, said):
    with pytest.raises(InputError, match=said):
        as_table(scores, ["e1"], ["t1"])


def test_identity_changes_with_scores_and_ids():
    one = as_table(np.zeros((1, 2)), ["e"], ["t1", "t2"]).identity()
    assert one == as_table(np.zeros((1, 2)), ["e"], ["t1", "t2"]).identity()
    assert one != as_table(np.ones((1, 2)), ["e"], ["t1", "t2"]).identity()
    assert one != as_table(np.zeros((1, 2)), ["e"], ["t1", "t3"]).identity()
