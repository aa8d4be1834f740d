"""Where tiles are worked on: here, a few at a time, or on the workers of a Dask cluster.

Both engines call the same function with the same arguments and put the results together in the same order, so they
give the same numbers, whoever finishes first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from operator import add
from threading import get_ident
from time import monotonic, sleep
from typing import Any, Generic, TypeVar

from evenscore.errors import EvenscoreError, InputError
from evenscore.progress import Progress, silent

__all__ = ["Engine", "engine_for"]

Place = TypeVar("Place")
Result = TypeVar("Result")

_SIDE_BY_SIDE = 4  # tiles that are worked on at a time in this process; what they take fits into the memory limit
_PATIENCE = 300  # seconds to wait for a worker
_PAUSE = 0.1  # seconds, before it is looked for again
_MOST_LOST = 5  # how often all workers may die before we give up


@dataclass(frozen=True, eq=False)
class _Work(Generic[Place, Result]):
    """``function(shared, place)`` for many places, and who is told how much of it is done."""

    function: Callable[[Any, Place], Result]
    shared: Any
    places: Sequence[Place]
    stage: str
    progress: Progress

    def report(self, done: int) -> None:
        self.progress(self.stage, done / len(self.places) if self.places else 1.0)


class Engine(ABC):
    """Calls ``function(shared, place)`` for many places."""

    def map(
        self,
        function: Callable[[Any, Place], Result],
        shared: Any,
        places: Sequence[Place],
        *,
        stage: str = "",
        progress: Progress = silent,
    ) -> Iterator[tuple[Place, Result]]:
        """Yield each place with its result, in the order of the places or as they get ready."""
        return self._reported(_Work(function, shared, places, stage, progress))

    def total(
        self,
        function: Callable[[Any, Place], Any],
        shared: Any,
        places: Sequence[Place],
        *,
        stage: str = "",
        progress: Progress = silent,
    ) -> Any:
        """Return the sum of all results, added pairwise in the order of the places."""
        return self._sum(_Work(function, shared, places, stage, progress))

    def _reported(self, work: _Work[Place, Result]) -> Iterator[tuple[Place, Result]]:
        work.report(0)
        for done, found in enumerate(self._results(work), start=1):
            work.report(done)
            yield found

    @abstractmethod
    def _results(self, work: _Work[Place, Result]) -> Iterator[tuple[Place, Result]]: ...

    @abstractmethod
    def _sum(self, work: _Work[Place, Any]) -> Any: ...


def engine_for(client: Any = None) -> Engine:
    """Return the engine of a `distributed.Client`, or the one that works here if there is none.

    Examples
    --------
    >>> engine_for().total(lambda factor, number: factor * number, 10, [1, 2, 3])
    60
    """
    if client is None:
        return _Here()
    if not hasattr(client, "submit") or not hasattr(client, "scatter"):
        raise InputError(f"client is a {type(client).__name__}, but must be a distributed.Client, or None")
    return _Cluster(client)


class _Here(Engine):
    """A few places at a time, each in a thread: while one waits for the disk, others compute. Results keep their order.

    When the last result is taken, or the work ends by an error or by Ctrl-C, no thread is at work any more.
    """

    def _results(self, work: _Work[Place, Result]) -> Iterator[tuple[Place, Result]]:
        if len(work.places) == 1:  # what is in memory: all cores work on it
            yield work.places[0], work.function(work.shared, work.places[0])
            return
        threads, cores = _shares()
        left = iter(work.places)
        begun: deque[tuple[Place, Future[Result]]] = deque()
        pool = ThreadPoolExecutor(threads, thread_name_prefix="evenscore-tile")
        owner, wait = get_ident(), True
        try:
            while True:
                for place in islice(left, 2 * threads - len(begun)):  # so that a slow one does not hold up the rest
                    begun.append((place, pool.submit(_on_cores, cores, work.function, work.shared, place)))
                if not begun:
                    return
                place, future = begun[0]
                result = future.result()
                begun.popleft()
                try:
                    yield place, result
                except GeneratorExit:
                    # Nobody wants the rest. If it is the garbage collector who says so, in a thread that is just
                    # starting, waiting for other threads can last for ever.
                    wait = get_ident() == owner
                    raise
        finally:
            pool.shutdown(wait=wait, cancel_futures=True)

    def _sum(self, work: _Work[Place, Any]) -> Any:
        return _pairwise((part for _, part in self._reported(work)), add)


def _shares() -> tuple[int, int]:
    """Return how many places are worked on at a time in this process, and how many cores each of them may use."""
    from evenscore.threads import thread_count

    cores = thread_count()
    threads = min(cores + 1, _SIDE_BY_SIDE)  # one more than cores, as one may wait
    return threads, -(-cores // threads)


class _Cluster(Engine):
    """Tasks on a Dask cluster; what they share is sent once. A task whose worker dies is done again elsewhere."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def _results(self, work: _Work[Place, Result]) -> Iterator[tuple[Place, Result]]:
        from distributed import as_completed

        if not work.places:
            return
        sent, sendings = self._sent(work.shared), 1
        waiting = iter(work.places)
        open_places: dict[Any, tuple[Place, int]] = {}

        def submitted(some: Iterable[Place]) -> list[Any]:
            futures = []
            for place in some:
                future = self._submit(work.function, sent, place)
                open_places[future.key] = (place, sendings)
                futures.append(future)
            return futures

        ready = as_completed(submitted(islice(waiting, self._most_waiting())))
        for future in ready:
            place, sending = open_places.pop(future.key)
            try:
                result = _result(future)
            except _LostError:  # all workers that held what they share are gone; those that come get it anew
                if sending == sendings:
                    sent, sendings = self._sent(work.shared), _one_more(sendings)
                ready.update(submitted([place]))
                continue
            future.release()
            ready.update(submitted(islice(waiting, 1)))
            yield place, result

    def _sum(self, work: _Work[Place, Any]) -> Any:
        sendings = 1
        while True:
            try:
                whole = self._sum_once(work)
            except _LostError:  # noqa: PERF203
                sendings = _one_more(sendings)
            else:
                work.report(len(work.places))
                return whole

    def _sum_once(self, work: _Work[Place, Any]) -> Any:
        from distributed import wait

        sent = self._sent(work.shared)
        waiting: list[Any] = []

        def parts() -> Iterator[Any]:
            for count, place in enumerate(work.places):
                if len(waiting) >= self._most_waiting():
                    with _losses():
                        wait(waiting, return_when="FIRST_COMPLETED")
                    waiting[:] = [future for future in waiting if not _finished(future)]
                work.report(max(count - len(waiting), 0))
                future = self._submit(work.function, sent, place)
                waiting.append(future)
                yield future

        # Sums are made where the parts are; a part is forgotten as soon as it is in a sum.
        return _result(_pairwise(parts(), lambda left, right: self._client.submit(add, left, right, pure=False)))

    def _sent(self, shared: Any) -> Any:
        """Send what all tasks share to the workers; those of a queue, and those that replace others, take a while.

        Whether there are workers is asked of the scheduler: what the client knows can be out of date for ever after
        some have died. And the scheduler itself fails in many ways at a worker that dies while it is sent something.
        """
        from asyncio import TimeoutError as AsyncTimeoutError  # another one before Python 3.11

        deadline, failures = monotonic() + _PATIENCE, 0
        while monotonic() < deadline:
            if self._client.nthreads():
                try:
                    return self._client.scatter(shared, broadcast=True, hash=False)
                except (OSError, TimeoutError, AsyncTimeoutError):  # lost connections are among these
                    pass
                except Exception:
                    failures += 1
                    if failures > _MOST_LOST:
                        raise
            sleep(_PAUSE)
        raise EvenscoreError(
            f"the cluster had no worker for {_PATIENCE} seconds; start workers, or look into their logs"
        )

    def _submit(self, function: Callable[[Any, Place], Result], sent: Any, place: Place) -> Any:
        # A worker starts as many tasks at a time as it may use cores.
        return self._client.submit(_on_cores, 1, function, sent, place, pure=False)

    def _most_waiting(self) -> int:
        threads = sum(self._client.nthreads().values())
        return max(4 * threads, 16)  # enough that no worker waits, few enough for a scheduler of modest memory


def _pairwise(parts: Iterable[Any], combine: Callable[[Any, Any], Any]) -> Any:
    """Add in order, neighbours first, as in a balanced tree: rounding errors and open parts grow with the logarithm."""
    open_sums: list[tuple[int, Any]] = []
    for part in parts:
        level = 0
        while open_sums and open_sums[-1][0] == level:
            part = combine(open_sums.pop()[1], part)
            level += 1
        open_sums.append((level, part))
    if not open_sums:
        raise InputError("there is nothing to add up; the scores are empty")
    whole = open_sums.pop()[1]
    while open_sums:
        whole = combine(open_sums.pop()[1], whole)
    return whole


class _LostError(Exception):
    """A worker that held what cannot be computed again is gone."""


@contextmanager
def _losses() -> Iterator[None]:
    """Tell losses and workers that die of their work from errors of the work itself."""
    from asyncio import CancelledError
    from concurrent.futures import CancelledError as AlsoCancelledError

    from distributed.scheduler import KilledWorker

    try:
        yield
    except (CancelledError, AlsoCancelledError):
        raise _LostError from None
    except KilledWorker as error:
        raise EvenscoreError(
            f"a piece of the work brought down {error.allowed_failures + 1} workers, most likely for lack of memory; "
            "give each worker more, or have fewer of them"
        ) from None


def _result(future: Any) -> Any:
    with _losses():
        return future.result()


def _finished(future: Any) -> bool:
    if future.status == "error" or future.cancelled():
        _result(future)
    return bool(future.done())


def _one_more(sendings: int) -> int:
    if sendings > _MOST_LOST:
        raise EvenscoreError("all workers died again and again; look into their logs, or give them more memory")
    return sendings + 1


def _on_cores(cores: int, function: Callable[[Any, Place], Result], shared: Any, place: Place) -> Result:
    """Work in this thread, beside others."""
    from evenscore.threads import alone, one_thread_per_product

    with one_thread_per_product(), alone() if cores == 1 else nullcontext():
        return function(shared, place)
