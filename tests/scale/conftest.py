"""Dask clusters on this machine: one of threads, which is quick to start, and one of processes, which can be killed."""

import contextlib
import random
import sys
import warnings

import pytest

for library in ("zarr", "dask", "distributed"):
    pytest.importorskip(library, reason="large data need the extra 'scale'")

#: No dashboard, and no port that another cluster of this machine may have.
LOCAL = {"host": "127.0.0.1", "protocol": "tcp", "dashboard_address": "127.0.0.1:0"}
LOCAL |= {"scheduler_kwargs": {"dashboard": False}, "silence_logs": 40}
#: Workers look into themselves a hundred times a second, at work or not.
UNWATCHED = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "1s"}


class Chance(random.Random):
    """A generator that can stand for the module `random`."""

    Random = random.Random


@contextlib.contextmanager
def dask_on_its_own():
    """Keep from the other tests what Dask's threads do: its warnings about this machine, and the numbers they draw.

    They live as long as the cluster. Hypothesis sees that the generator of the module `random` has moved while it
    drew an example, and fails the test that happens to run then; so Dask gets a generator of its own.
    """
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        import dask
        import distributed  # noqa: F401

        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in ("dask", "distributed") and vars(module).get("random") is random:
                patch.setattr(module, "random", Chance(0))
        with dask.config.set(UNWATCHED):
            yield


@pytest.fixture(scope="module")  # it is quick to start, and not to keep: its threads never rest
def client():
    """Give a client of workers that are threads of this process, for the tests that compare numbers.

    They talk over sockets all the same, so that everything that is sent to a worker and back is pickled.
    """
    with dask_on_its_own():
        from distributed import Client, LocalCluster

        cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, memory_limit=0, **LOCAL)
        with cluster, Client(cluster) as found:
            yield found


@pytest.fixture(scope="module")
def processes():
    """Give a client of two worker processes, as ``--workers 2`` starts them."""
    with dask_on_its_own():
        from evenscore.engine.cluster import connected

        with connected(workers=2, memory_limit=2e9) as found:
            yield found
