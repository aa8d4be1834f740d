import pytest


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Let dask compute in the thread that asks: the scores of these tests are few."""
    try:
        import dask
    except ImportError:
        yield
        return
    with dask.config.set(scheduler="synchronous"):
        yield
