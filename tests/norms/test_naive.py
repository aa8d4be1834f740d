"""Every method and option against the naive twin, on awkward blocks."""

import functools

import numpy as np
import pytest
from hypothesis import given, strategies as st
from norm_blocks import assert_same, block_cases, make_blocks

from evenscore.norms import normalize
from reference.naive_norms import naive_normalize
from tilings import RAGGED, ROUTES, SINGLE, WHOLE, every_way, on_route, tiled_blocks

how = st.fixed_dictionaries(
    {
        "statistic": st.sampled_from(["mean", "mean", "trimmed", "median"]),
        "trim": st.sampled_from([0.0, 0.1, 0.4]),
        "ddof": st.sampled_from([0, 1]),
        "combine": st.sampled_from(["mean", "sqrt2"]),
    }
)
# A floor keeps equal scores from being an error; it is no power of ten, so that leaving it out would show.
FLOOR = 0.37


def assert_same_every_way(blocks, method, options):
    expected = naive_normalize(blocks, method, **options)
    for tiling, route in every_way():
        with on_route(route):
            found = normalize(tiled_blocks(blocks, tiling), method, vanished="missing", **options).in_memory()
        assert type(found) is type(blocks.trials)
        assert found.scores.dtype == blocks.trials.scores.dtype
        assert_same(found, expected, blocks.enroll.scores.dtype, f"{tiling}, {route}")


@pytest.mark.parametrize("method", ["z", "t", "s", "zt", "tz"])
@given(data=st.data(), blocks=block_cases(), options=how)
def test_whole_cohort_norms_equal_the_naive_ones(method, data, blocks, options):
    smallest = min(blocks.enroll.shape[1], blocks.test.shape[0])
    options |= {"drop_top": data.draw(st.integers(0, min(2, smallest - 1)), "drop_top"), "std_floor": FLOOR}
    assert_same_every_way(blocks, method, options)


@pytest.mark.parametrize("method", ["az", "at", "as"])
@pytest.mark.parametrize(
    ("select", "cohorts"),
    [("own", {}), ("cross", {"same_cohort": True}), ("cross", {"same_speakers": True}), ("profile", {})],
)
@given(data=st.data(), options=how)
def test_adaptive_norms_equal_the_naive_ones(method, select, cohorts, data, options):
    blocks = data.draw(block_cases(**cohorts))
    smallest = min(blocks.enroll.shape[1], blocks.test.shape[0])
    drop_top = data.draw(st.integers(0, min(2, smallest - 1)), "drop_top")
    top_k = data.draw(st.integers(1, smallest - drop_top), "top_k")
    options |= {"top_k": top_k, "drop_top": drop_top, "select": select, "std_floor": FLOOR}
    assert_same_every_way(blocks, method, options)


def some_slow(dtype, tiling, route):
    """Leave to `make test-all` what the others show together: each type on each route, whole and cut."""
    shown = {(np.float32, WHOLE, "few scores"), (np.float64, WHOLE, "many scores")}
    shown |= {(np.float32, RAGGED, "many scores"), (np.float64, SINGLE, "few scores")}
    return pytest.param(dtype, tiling, route, marks=[] if (dtype, tiling, route) in shown else pytest.mark.slow)


LARGER = pytest.mark.parametrize(
    ("dtype", "tiling", "route"),
    [
        some_slow(dtype, tiling, route)
        for dtype, tiling in ((np.float32, WHOLE), (np.float64, WHOLE), (np.float32, RAGGED), (np.float64, SINGLE))
        for route in ROUTES
    ],
)


@functools.cache
def naively(method, *size, select="own", same_speakers=False, **how):
    """Return larger blocks, options of a method, and what its twin makes of them, which is the same for all tilings."""
    blocks = make_blocks(3, 9, 11, *size, speakers=8, missing=0.1, same_speakers=same_speakers, **how)
    options = {"top_k": size[0] // 5, "select": select} if method.startswith("a") else {}
    return blocks, options, naive_normalize(blocks, method, **options)


@pytest.mark.parametrize("method", ["z", "t", "s", "zt", "tz", "az", "at", "as"])
@pytest.mark.parametrize("listed", [None, 0.3])
@LARGER
def test_larger_blocks_equal_the_naive_ones(method, listed, dtype, tiling, route):
    size = (40, 50) if method in ("zt", "tz") else (90, 130)
    blocks, options, expected = naively(method, *size, listed=listed, dtype=dtype)
    with on_route(route):
        found = normalize(tiled_blocks(blocks, tiling), method, **options).in_memory()
    assert_same(found, expected, dtype)


@pytest.mark.parametrize("method", ["az", "at", "as"])
@pytest.mark.parametrize(("select", "cohorts"), [("cross", {"same_speakers": True}), ("profile", {})])
@pytest.mark.parametrize("listed", [None, 0.3])
@LARGER
def test_larger_blocks_that_the_other_side_ranks_equal_the_naive_ones(
    method, select, cohorts, listed, dtype, tiling, route
):
    blocks, options, expected = naively(method, 40, 50, select=select, listed=listed, dtype=dtype, **cohorts)
    with on_route(route):
        found = normalize(tiled_blocks(blocks, tiling), method, **options).in_memory()
    assert_same(found, expected, dtype)


@pytest.mark.usefixtures("route")
@pytest.mark.parametrize("size", [1500, 3000])
@pytest.mark.parametrize("shape", ["random", "sorted", "constant but a few", "one high speaker", "many missing"])
def test_top_k_of_long_rows_is_exact_whatever_their_order(size, shape):
    rng = np.random.default_rng(size)
    X = rng.normal(size=(6, size)).astype(np.float32)
    if shape == "sorted":
        X = np.sort(X, axis=1)
    elif shape == "constant but a few":
        X[:, 40:] = 0.25
    elif shape == "one high speaker":
        X[:, 1 :: size // 256] += 9  # where a regular sample would look
    elif shape == "many missing":
        X[rng.random(X.shape) < 0.9] = np.nan
    from evenscore.norms.statistics import Summary, row_statistics

    for k, drop in ((1, 0), (50, 0), (300, 7), (size // 2, 1), (size - 3, 3)):
        found = row_statistics(X, Summary(k=k, drop=drop, whole=False, statistic=0, trim=0.0, ddof=0))
        for row, count, mean, std in zip(X, found.count, found.mean, found.std, strict=True):
            best = np.sort(row[~np.isnan(row)].astype(np.float64))[::-1][drop : drop + k]
            assert count == len(best)
            np.testing.assert_allclose([mean, std], [best.mean(), best.std()], rtol=1e-12, atol=1e-12)
