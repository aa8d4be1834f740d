"""A Dask cluster of two processes on this machine, for the tests that need one."""

import warnings

import pytest


@pytest.fixture(scope="session")
def client():
    """Give a client of a LocalCluster; Dask's own warnings about the machine it runs on are not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from evenscore.scale.cluster import connected

        with connected(workers=2, memory_limit=2e9) as found:
            yield found
