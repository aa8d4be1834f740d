"""Cross-selection by matrix products: the numbers of the loop, and the loop itself where products lose digits."""

import numpy as np
import pytest

from evenscore.norms import statistics
from evenscore.norms.sides import NO_GROUP
from evenscore.norms.statistics import Summary, cross_statistics

RNG = np.random.default_rng(0)


def both_ways(monkeypatch, X, picked, length, summary, needed):
    nobody = np.full(X.shape[1], NO_GROUP), np.full(len(X), NO_GROUP)
    members = (*nobody, picked, length, needed)
    found = []
    for pay in (1e9, 0.0):
        monkeypatch.setattr(statistics, "_PRODUCTS", pay)
        found.append(cross_statistics(X, members, summary, len(X)))
    return found


@pytest.mark.parametrize("drop", [0, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", ["plain", "missing", "constant", "far"])
def test_products_find_what_looking_up_finds(monkeypatch, drop, dtype, case):
    X = RNG.normal(size=(7, 30)).astype(dtype)
    if case == "missing":
        X[2, 5], X[3] = np.nan, np.nan
    if case == "constant":
        X[1] = 0.1
        X[4, :25] = 3.0
    if case == "far":
        X[:, 0] = 1e6
    picked = np.stack([RNG.permutation(30)[:12] for _ in range(9)]).astype(np.int32)
    length = np.array([12, 12, 12, 5, 2, 1, 0, 12, 12])
    summary = Summary(k=8, drop=drop, whole=False, statistic=0, trim=0.0, ddof=1)
    needed = RNG.random((7, 9)) < 0.9
    products, looked_up = both_ways(monkeypatch, X, picked, length, summary, needed)
    np.testing.assert_array_equal(products.count[needed], looked_up.count[needed])
    needed &= looked_up.count > 0
    np.testing.assert_allclose(products.mean[needed], looked_up.mean[needed], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(products.std[needed], looked_up.std[needed], rtol=1e-10)


def test_more_columns_than_go_into_one_product(monkeypatch):
    monkeypatch.setattr(statistics, "_COLUMNS", 4)
    picked = np.stack([RNG.permutation(20)[:6] for _ in range(9)]).astype(np.int32)
    summary = Summary(k=6, drop=0, whole=False, statistic=0, trim=0.0, ddof=0)
    X, needed = RNG.normal(size=(3, 20)), np.ones((3, 9), dtype=bool)
    products, looked_up = both_ways(monkeypatch, X, picked, np.full(9, 6), summary, needed)
    np.testing.assert_allclose(products.std, looked_up.std, rtol=1e-12)
