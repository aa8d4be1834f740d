"""The norms on plain arrays, in memory and as dask arrays, in NumPy and in compiled loops; and trials one by one."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, strategies as st

import evenscore
from evenscore import InputError, NormOptions, large, normalize
from evenscore.norms import CLASSICAL, prepare_norm, statistics
from norms.norm_blocks import make_blocks

NEEDS = {"z": "e", "az": "e", "t": "t", "at": "t", "s": "et", "as": "et", "zt": "etI", "tz": "etI"}


def arrays_of(blocks, method):
    """The arrays that the function of a norm takes."""
    named = {"e": blocks.enroll, "t": blocks.test, "I": blocks.cohort}
    return [blocks.trials.scores, *(named[name].scores for name in NEEDS[method])]


def plain_norm(method):
    return getattr(evenscore, f"{method}_norm")


@pytest.mark.parametrize("method", CLASSICAL)
@pytest.mark.parametrize("listed", [None, 0.6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_plain_arrays_equal_blocks(method, listed, dtype):
    blocks = make_blocks(2, 5, 6, 11, 12, speakers=0, missing=0.1, listed=listed, dtype=dtype)
    options = {"ddof": 1} | ({"top_k": 4} if method.startswith("a") else {})
    where = {} if listed is None else {"rows": blocks.trials.rows, "cols": blocks.trials.cols}
    arrays = arrays_of(blocks, method)
    before = [array.copy() for array in arrays]
    found = plain_norm(method)(*arrays, **where, **options)
    expected = normalize(blocks, method, **options).scores
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == dtype
    for array, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, old)
    same = plain_norm(method)(*arrays, **where, options=NormOptions(**options))
    np.testing.assert_array_equal(same, expected)
    if listed is None:
        lazy = plain_norm(method)(*(da.from_array(array, chunks=(2, 5)) for array in arrays), **options)
        assert isinstance(lazy, da.Array)
        np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-5)
    else:
        as_lists = {name: positions.tolist() for name, positions in where.items()}
        np.testing.assert_array_equal(plain_norm(method)(*arrays, **as_lists, **options), expected)


@pytest.mark.parametrize(("method", "select"), [("az", "cross"), ("at", "cross"), ("as", "cross"), ("as", "profile")])
def test_rankings_by_the_other_side_on_plain_arrays(method, select):
    blocks = make_blocks(2, 5, 6, 12, 12, speakers=0, same_cohort=True)
    arrays = {"S": blocks.trials, "S_e": blocks.enroll, "S_t": blocks.test}
    arrays = {name: table.scores for name, table in arrays.items()}
    more = {"S_I": blocks.cohort.scores} if select == "profile" else {}
    found = plain_norm(method)(**arrays, top_k=4, select=select, **more)
    np.testing.assert_allclose(found, normalize(blocks, method, top_k=4, select=select).scores)


@pytest.mark.parametrize(
    ("offset", "spread", "dtype"), [(0, 1, np.float32), (1e4, 1, float), (1, 1e-6, float), (0, 1e-20, float)]
)
def test_rankings_by_the_other_side_of_a_matrix_equal_those_of_a_list(offset, spread, dtype):
    rng = np.random.default_rng(3)
    S, S_e, S_t = ((offset + spread * rng.normal(size=shape)).astype(dtype) for shape in ((7, 5), (7, 30), (30, 5)))
    S_e[:, :8] += 1e3 * spread  # far from the mean of the row: sums of squares lose digits
    S_t[:8] += 1e3 * spread
    rows, cols = np.indices(S.shape).reshape(2, -1)
    whole = evenscore.as_norm(S, S_e, S_t, top_k=6, select="cross", ddof=1)
    listed = evenscore.as_norm(S.ravel(), S_e, S_t, top_k=6, select="cross", ddof=1, rows=rows, cols=cols)
    np.testing.assert_allclose(whole.ravel(), listed, rtol=1e-4 if dtype == np.float32 else 1e-9)


def test_lists_and_whole_numbers_are_arrays_of_floats():
    assert evenscore.z_norm([[3, 2]], [[0, 2]]).tolist() == [[2.0, 1.0]]
    assert evenscore.z_norm(np.array([[3]]), np.array([[0, 4]], np.int16)).tolist() == [[0.5]]
    assert evenscore.t_norm([3, 2], [[0], [4]], rows=[0, 1], cols=[0, 0]).tolist() == [0.5, 0.0]


@pytest.mark.parametrize(
    ("method", "shapes"),
    [
        ("z", [(3, 4), (2, 5)]),
        ("t", [(3, 4), (5, 3)]),
        ("s", [(3, 4), (3, 5), (6, 5)]),
        ("zt", [(3, 4), (3, 5), (6, 4), (5, 6)]),
        ("z", [(3,), (3, 5)]),
        ("z", [(3, 4), (3,)]),
    ],
)
def test_shapes_that_do_not_fit_are_refused(method, shapes):
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match=r"S"):
        plain_norm(method)(*(rng.normal(size=shape) for shape in shapes))


def test_bad_positions_and_doubled_options_are_refused():
    S_e = np.array([[0.0, 2.0]])
    for where in ({"rows": [0]}, {"cols": [0]}, {"rows": [0, 0], "cols": [0]}, {"rows": [1], "cols": [0]}):
        with pytest.raises(InputError, match="rows"):
            evenscore.z_norm([1.0], S_e, **where)
    with pytest.raises(InputError, match="ddof"):
        evenscore.z_norm([[1.0]], S_e, options=NormOptions(), ddof=1)


@pytest.mark.parametrize("method", ["z", "t", "s", "as", "zt", "tz"])
@pytest.mark.parametrize(("missing", "dtype"), [(0.0, np.float64), (0.2, np.float32)])
def test_compiled_loops_equal_numpy(monkeypatch, method, missing, dtype):
    blocks = make_blocks(5, 9, 8, 33, 41, speakers=0, missing=missing, dtype=dtype)
    options = {"empty": "missing"} | ({"top_k": 7} if method.startswith("a") else {})
    options |= {"combine": "sqrt2", "ddof": 1} if missing else {}
    expected = normalize(blocks, method, **options).scores
    monkeypatch.setattr(large, "COMPILED", 0)
    monkeypatch.setattr(statistics, "COMPILED", 0)
    found = normalize(blocks, method, **options).scores
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == np.float32 else 1e-12, atol=1e-5)


@given(
    seed=st.integers(0, 99),
    shape=st.sampled_from(["random", "sorted", "backwards", "ties", "constant but a few", "all equal", "many missing"]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_compiled_statistics_are_exact_whatever_the_order(seed, shape, dtype):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4, 1500)).astype(dtype) + 3
    if shape in ("sorted", "backwards"):
        X = np.sort(X, axis=1)[:, :: 1 if shape == "sorted" else -1]
    elif shape == "ties":
        X = np.round(X)
    elif shape == "constant but a few":
        X[:, 40:] = 0.1
    elif shape == "all equal":
        X[:] = 0.1
    elif shape == "many missing":
        X[rng.random(X.shape) < 0.95] = np.nan
        X[0] = np.nan
    for k in (1, 50, 300, 1499, 1500, None):
        for rows in (np.ascontiguousarray(X), np.asfortranarray(X)):
            found = statistics._compiled_statistics(rows, k, 1, None)
            for row, numbers in zip(X, found, strict=True):
                best = np.sort(row[~np.isnan(row)].astype(np.float64))[::-1][:k]
                expected = [best.mean(), best.std(ddof=min(1, len(best) - 1))] if len(best) else [np.nan, np.nan]
                np.testing.assert_allclose(numbers, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("method", CLASSICAL)
def test_one_trial_at_a_time_equals_the_matrix(method):
    blocks = make_blocks(5, 3, 4, 9, 8, speakers=0, missing=0.1)
    options = {"top_k": 4} if method.startswith("a") else {}
    whole = normalize(blocks, method, **options).scores
    norm = prepare_norm(method, cohort=blocks.cohort.scores, **options)
    for i, j in np.argwhere(~np.isnan(blocks.trials.scores)):
        sides = norm.enroll(blocks.enroll.scores[i]), norm.test(blocks.test.scores[:, j])
        np.testing.assert_allclose(norm.score(blocks.trials.scores[i, j], *sides), whole[i, j])


def test_what_single_trials_cannot_do_is_refused():
    for method, options in (("zt", {}), ("as", {"select": "cross"}), ("unheard-of", {})):
        with pytest.raises(InputError, match=options.get("select", method)):
            prepare_norm(method, **options)
