"""Starting a Dask cluster on this machine, or finding one that is running."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker
from typing import Any

from evenscore.errors import EvenscoreError, InputError

__all__ = ["connected", "dashboard_link"]

_PATIENCE = 30  # seconds for a scheduler to answer
_LEAST_MEMORY = 4e8  # bytes: a worker with our libraries takes 220 MB, and Dask lets it rest from 80 % of its limit on
_ERRORS = 40  # the level of log messages that are shown: a worker that is restarted is not the user's concern


@contextmanager
def connected(
    *, workers: int | None = None, scheduler: str | None = None, memory_limit: float | None = None
) -> Iterator[Any]:
    """Give a `distributed.Client`, or None if nothing is asked for.

    Parameters
    ----------
    workers
        Number of processes to start on this machine, each for one core.
    scheduler
        Address of the scheduler of a cluster, such as ``tcp://head:8786``.
    memory_limit
        Bytes that each process may take, if they are started here.
    """
    if workers is None and scheduler is None:
        yield None
        return
    if workers is not None and scheduler is not None:
        raise InputError("workers are started here or are those of a scheduler; give one of the two")
    if workers is not None and workers < 1:
        raise InputError(f"there must be at least one worker, but {workers} are asked for")
    if workers is not None and memory_limit is not None and memory_limit < _LEAST_MEMORY:
        raise InputError(
            f"a memory limit of {memory_limit / 1e6:g} MB leaves a worker no room to work; give at least "
            f"{_LEAST_MEMORY / 1e6:g} MB"
        )
    distributed = _library()
    if scheduler is not None:
        with _existing(distributed, scheduler) as client:
            yield client
        return
    with ExitStack() as stack:
        stack.enter_context(_never_given_up())
        with _ctrl_c_put_off():
            cluster = distributed.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                memory_limit=memory_limit or "auto",
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                silence_logs=_ERRORS,
            )
            cluster.__enter__()
            stack.push(lambda *failure: _close(cluster, failure))
            client = stack.enter_context(distributed.Client(cluster))
        yield client


def _never_given_up() -> Any:
    """Let a worker that died come again however long that takes.

    By default a cluster forgets a worker that has not come again after 15 s. On a busy machine it needs more than that,
    and when all were forgotten, the work would wait for workers that nobody starts.
    """
    import dask

    return dask.config.set({"distributed.deploy.lost-worker-timeout": "1000 days"})


def _close(cluster: Any, failure: Any) -> None:
    """Close a cluster, whose own list of workers may be out of order if some of them have died."""
    with suppress(KeyError):
        cluster.__exit__(*failure)


@contextmanager
def _ctrl_c_put_off() -> Iterator[None]:
    """Put off Ctrl-C while workers start, as half a cluster cannot be closed; they never hear of it, we end them."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    pressed: list[Any] = []
    signal.signal(signal.SIGINT, lambda *event: pressed.append(event))
    masked = None
    if hasattr(signal, "pthread_sigmask"):
        resource_tracker.ensure_running()  # which would take the mask away
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    except Exception:
        if pressed:  # a terminal tells the workers, too, which then do not start
            raise KeyboardInterrupt from None
        raise
    finally:
        if masked is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)
        signal.signal(signal.SIGINT, handler)
    if pressed:
        handler(*pressed[0])


def dashboard_link(client: Any) -> str | None:
    """Return where the state of a cluster can be looked at, None if it has no dashboard."""
    link = client.dashboard_link
    return str(link) if link else None


def _library() -> Any:
    try:
        import distributed
    except ImportError:
        raise InputError(
            "a cluster needs the package distributed; install it: pip install 'evenscore[scale]'"
        ) from None
    return distributed


def _existing(distributed: Any, scheduler: str) -> Any:
    try:
        return distributed.Client(scheduler, timeout=_PATIENCE, set_as_default=True)
    except (OSError, ValueError, TimeoutError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise EvenscoreError(f"no scheduler answers at {scheduler} ({why}); check the address") from None
