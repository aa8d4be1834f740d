"""The limit on threads of matrix products is one for the process, whoever sets it and whoever is done first."""

import threading

import numpy as np
import pytest

from evenscore import threads
from evenscore.threads import one_thread_per_product, product

control = pytest.importorskip("threadpoolctl")


def product_threads():
    return {pool["num_threads"] for pool in control.threadpool_info() if pool["user_api"] == "blas"}


def test_overlapping_limits_leave_things_as_they_were():
    with control.threadpool_limits(3, user_api="blas"):
        first, second = one_thread_per_product(), one_thread_per_product()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert product_threads() == {1}
        second.__exit__(None, None, None)
        assert product_threads() == {3}


def test_the_last_thread_lifts_the_limit_that_the_first_has_set():
    """Whoever sets the limit first, or has set one before, is the only one that threadpoolctl 3.8 listens to."""
    both, first_is_done = threading.Barrier(2), threading.Event()
    seen = []

    def first():
        with one_thread_per_product():
            both.wait()
        first_is_done.set()
        both.wait()  # alive until the second is done

    def second():
        with one_thread_per_product():
            both.wait()
            first_is_done.wait()
            seen.append(product_threads())
        seen.append(product_threads())
        both.wait()

    with control.threadpool_limits(3, user_api="blas"):
        at_work = [threading.Thread(target=work) for work in (first, second)]
        for thread in at_work:
            thread.start()
        for thread in at_work:
            thread.join()
        assert seen == [{1}, {3}]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0, 3, 4), (5, 0, 4), (3, 2, 1), (1100, 65, 1300), (1500, 301, 7), (600, 1, 1025)])
def test_the_digits_of_a_product_do_not_depend_on_threads(monkeypatch, shape, dtype):
    rows, inner, columns = shape
    rng = np.random.default_rng(0)
    left, right = (rng.normal(size=size).astype(dtype) for size in ((rows, inner), (columns, inner)))
    found = []
    for cores in (1, 3):
        monkeypatch.setattr(threads, "thread_count", lambda cores=cores: cores)
        threads._pool.cache_clear()
        with control.threadpool_limits(cores, user_api="blas"):
            found += [product(left, right.T), product(np.asfortranarray(left), right.T.copy())]
    threads._pool.cache_clear()
    np.testing.assert_allclose(found[0], left @ right.T, rtol=1e-4 if dtype == np.float32 else 1e-11, atol=1e-4)
    assert found[0].dtype == dtype
    assert found[0].tobytes() == found[2].tobytes()
    assert found[1].tobytes() == found[3].tobytes()
