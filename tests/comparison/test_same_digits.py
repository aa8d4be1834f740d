"""The number of threads changes no digit of a comparison."""

import json

import numpy as np
import pytest

from comparison.compared_sides import evaluation_side, training_side
from evenscore import compare
from evenscore.tables.arrays import hashed

METHODS = ["z", "as:top_k=5", "lgsm:dim=1"]
SMALL = {"count": 8}
TIMES = ("run", "seconds")


def hashes(folder):
    """Return the hash of every file, without times."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".json":
            record = json.loads(path.read_text())
            found[path.relative_to(folder)] = {name: item for name, item in record.items() if name not in TIMES}
        elif path.is_file():
            found[path.relative_to(folder)] = hashed(path.read_bytes())
    return found


@pytest.mark.parametrize("few", [1 << 20, -1], ids=["NumPy", "compiled loops"])
def test_a_comparison_on_one_and_on_four_threads_is_the_same(tmp_path, monkeypatch, few):
    from evenscore import threads

    monkeypatch.setattr("evenscore.compiled.FEW", few)
    monkeypatch.setattr(threads, "_SMALL", 0)  # tiny data are shared out among threads, too
    for cores in (1, 4):
        monkeypatch.setattr(threads, "thread_count", lambda cores=cores: cores)
        threads._pool.cache_clear()
        compare(
            training_side(**SMALL), evaluation_side(**SMALL), METHODS, bootstrap=10, directory=tmp_path / str(cores)
        )
    threads._pool.cache_clear()
    one, four = (hashes(tmp_path / str(cores)) for cores in (1, 4))
    assert len(one) > 15
    assert one == four


def test_a_row_does_not_depend_on_the_rows_before_it():
    """The highest scores of a row were added up in an order that the rows before it had a say in."""
    from evenscore.norms.kernel_ranks import top_moments

    X = np.random.default_rng(0).normal(size=(40, 60)) * 10.0 ** np.arange(-3, 5).repeat(5)[:, None]
    X[3, ::2] = np.nan
    X[4, :50] = 1.0  # equal values at the border
    for drop in (0, 2):
        at_once, one_by_one = ((np.empty(40, np.int64), np.empty(40), np.empty(40)) for _ in range(2))
        top_moments(X, 9, drop, 0, 0, 40, *at_once)
        for row in range(40):
            top_moments(X, 9, drop, 0, row, row + 1, *one_by_one)
        assert [part.tobytes() for part in at_once] == [part.tobytes() for part in one_by_one]
        means = [np.sort(row[~np.isnan(row)])[::-1][drop : drop + 9].mean() for row in X]
        np.testing.assert_allclose(at_once[1], means, rtol=1e-13)
