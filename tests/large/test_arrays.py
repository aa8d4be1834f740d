"""What is done with NumPy arrays and with ragged dask arrays gives the same numbers."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import large
from evenscore.parallel import thread_count

SIZES = st.tuples(st.integers(1, 40), st.integers(1, 30))


def ragged(array, rng):
    """Return a dask array in chunks of uneven sizes."""
    chunks = []
    for size in array.shape:
        cuts = np.sort(rng.integers(0, size + 1, 3))
        chunks.append(tuple(int(n) for n in np.diff([0, *cuts, size]) if n) or (0,))
    return da.from_array(array, chunks=tuple(chunks))


@given(SIZES, st.integers(0, 99), st.sampled_from([np.float32, np.float64]))
def test_a_formula_of_both_sides(shape, seed, dtype):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=shape).astype(dtype)
    enroll, test = rng.normal(size=(2, shape[0])), rng.normal(size=(1, shape[1]))

    def formula(s, mean, std, other, power):
        return (s - mean) / (2 + std**2) - other * power

    expected = formula(scores, enroll[0][:, None], enroll[1][:, None], test[0], 3.0).astype(dtype)
    found = large.map_pairs(formula, scores, enroll, test, (3.0,))
    lazy = large.map_pairs(formula, ragged(scores, rng), enroll, test, (3.0,))
    rows, cols = np.nonzero(rng.random(shape) < 0.5)
    listed = large.map_pairs(formula, scores[rows, cols], enroll, test, (3.0,), rows, cols)
    assert found.dtype == lazy.dtype == listed.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_array_equal(lazy.compute(), found)
    np.testing.assert_array_equal(listed, found[rows, cols])
    assert large.map_pairs(formula, scores, enroll, test, (3.0,), out=scores) is scores
    np.testing.assert_array_equal(scores, found)


@given(SIZES, st.integers(0, 99))
def test_numbers_of_rows_and_sums_of_blocks(shape, seed):
    rng = np.random.default_rng(seed)
    scores, weights = rng.normal(size=(2, *shape))
    lazy = ragged(scores, rng)

    def two_numbers(rows):
        return np.stack([rows.mean(1), rows.max(1)], axis=1)

    for array in (scores, lazy):
        np.testing.assert_allclose(large.map_rows(two_numbers, array, 2), two_numbers(scores), rtol=1e-12)
        total = large.reduce_blocks(lambda s, w: np.array([s.sum(), (s * w).sum()]), array, weights)
        np.testing.assert_allclose(total, [scores.sum(), (scores * weights).sum()], rtol=1e-9, atol=1e-9)


def test_large_arrays_are_done_in_blocks_on_threads():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(600, 5000)).astype(np.float32)  # several blocks of rows and of tiles
    mean = scores.mean(1, dtype=np.float64)
    np.testing.assert_allclose(
        large.map_rows(lambda rows: rows.mean(1, dtype=np.float64)[:, None], scores, 1)[:, 0], mean
    )
    found = large.map_pairs(lambda s, m: s - m, scores, [mean], [])
    np.testing.assert_allclose(found, scores - mean[:, None], atol=1e-6)
    np.testing.assert_array_equal(large.in_row_order(scores.T), scores.T)
    assert large.in_row_order(scores.T).flags.c_contiguous
    assert thread_count() >= 1


def test_an_error_in_a_block_is_raised():
    def refuse(rows):
        raise ValueError("no")

    for array in (np.ones((3, 2)), da.ones((3, 2), chunks=1), np.ones((2000, 1000))):
        with pytest.raises(ValueError, match="no"):
            large.map_rows(refuse, array, 1)


def test_tasks_are_counted_while_dask_computes():
    seen = []
    lazy = da.ones((6, 6), chunks=2)
    with large.task_progress(lambda *counts: seen.append(counts)):
        assert lazy.sum().compute() == 36
    assert [total for _, total in seen] == [seen[0][1]] * len(seen)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] > seen[0][0]
    counted = len(seen)
    with large.task_progress(None):
        lazy.sum().compute()
    assert len(seen) == counted
