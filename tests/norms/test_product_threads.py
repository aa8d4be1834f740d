"""The limit on threads of matrix products is one for the process, whoever sets it and whoever is done first."""

import numpy as np
import pytest

from evenscore.threads import one_thread_if_small, one_thread_per_product

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


@pytest.mark.parametrize(("size", "wanted"), [(10, {1}), (1 << 23, {3})])
def test_only_small_work_is_limited(size, wanted):
    with control.threadpool_limits(3, user_api="blas"), one_thread_if_small(None, np.empty(size, np.int8)):
        assert product_threads() == wanted
