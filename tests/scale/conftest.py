"""Dask clusters on this machine: one of threads, which is quick to start, and one of processes, which can be killed."""

import warnings

import pytest

#: No dashboard, and no port that another cluster of this machine may have.
LOCAL = {"host": "127.0.0.1", "protocol": "tcp", "dashboard_address": "127.0.0.1:0"}
LOCAL |= {"scheduler_kwargs": {"dashboard": False}, "silence_logs": 40}


@pytest.fixture(scope="session")
def client():
    """Give a client of workers that are threads of this process, for the tests that compare numbers.

    They talk over sockets all the same, so that everything that is sent to a worker and back is pickled.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dask's own warnings about the machine it runs on are not ours
        from distributed import Client, LocalCluster

        cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, memory_limit=0, **LOCAL)
        with cluster, Client(cluster) as found:
            yield found


@pytest.fixture(scope="session")
def processes():
    """Give a client of two worker processes, as ``--workers 2`` starts them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from evenscore.scale.cluster import connected

        with connected(workers=2, memory_limit=2e9) as found:
            yield found
