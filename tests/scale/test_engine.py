"""Places are worked on side by side, and everything else is as if they were worked on one after the other."""

import signal
import threading
import time
from operator import add

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from evenscore import EvenscoreError, InputError, Labels, ScoreBlocks, fit_score_model, normalize
from evenscore.engine.engine import engine_for
from evenscore.files import write_table
from evenscore.model.statistics import label_sums
from scale.chunked_examples import MODEL, contents, ids, in_tiles, matrix

PATIENCE = 20  # seconds after which a test that waits for another thread has failed


@pytest.fixture(params=[1, 2, 3, 9], ids="{} cores".format)
def cores(request, monkeypatch):
    monkeypatch.setattr("evenscore.threads.thread_count", lambda: request.param)
    return request.param


class Counted:
    """A function of a place that remembers which were begun, and how many at a time."""

    def __init__(self, function=add):
        self.function, self.lock = function, threading.Lock()
        self.begun, self.now, self.most = [], 0, 0

    def __call__(self, shared, place):
        with self.lock:
            self.begun.append(place)
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            time.sleep(0.001)
            return self.function(shared, place)
        finally:
            with self.lock:
                self.now -= 1


def test_results_come_in_order_and_few_places_at_a_time(cores):
    places, task = list(range(40)), Counted()
    assert list(engine_for().map(task, 100, places)) == [(place, 100 + place) for place in places]
    assert sorted(task.begun) == places
    assert task.most <= min(cores + 1, 4)


def test_places_are_worked_on_side_by_side(cores):
    meeting = threading.Barrier(2, timeout=PATIENCE)  # nobody passes alone
    assert [arrived >= 0 for _, arrived in engine_for().map(lambda shared, place: shared.wait(), meeting, range(6))]


def test_progress_is_told_in_this_thread_from_nothing_to_all(cores):
    told = []

    def progress(stage, fraction):
        told.append((stage, fraction, threading.current_thread() is threading.main_thread()))

    engine_for().total(add, 0, range(4), stage="adding", progress=progress)
    assert told == [("adding", done / 4, True) for done in range(5)]
    told.clear()
    assert list(engine_for().map(add, 0, [], progress=progress)) == []
    assert [fraction for _, fraction, _ in told] == [1.0]
    with pytest.raises(InputError, match="there is nothing to add up"):
        engine_for().total(add, 0, [])


def fails_at_7_and_later(shared, place):
    if place >= 7:
        raise InputError(f"place {place} is bad")
    time.sleep(0.01 * (place == 6))  # so that a later one fails earlier
    return place


def test_the_first_error_ends_the_work(cores):
    task = Counted(fails_at_7_and_later)
    with pytest.raises(InputError, match="place 7 is bad"):
        list(engine_for().map(task, 0, range(1000)))
    with pytest.raises(InputError, match="place 7 is bad"):
        engine_for().total(task, 0, range(1000))
    assert len(task.begun) < 60
    assert task.now == 0


def test_ctrl_c_ends_the_work(cores):
    """It comes when all threads are there: the pool forgets one that it is just starting, and does not wait for it."""
    threads = min(cores + 1, 4)
    meeting = threading.Barrier(threads, timeout=PATIENCE)

    def interrupt(shared, place):
        if place < threads:
            meeting.wait()
        if place == 2 * threads:  # which is begun when a result was taken
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return place

    task = Counted(interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # who starts the tests may have turned it off
    try:
        with pytest.raises(KeyboardInterrupt):
            for _ in engine_for().map(task, 0, range(5000)):
                pass
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(task.begun) < 100
    assert task.now == 0


def test_who_takes_no_more_results_ends_the_work(cores):
    task = Counted()
    results = engine_for().map(task, 0, range(1000))
    assert next(results) == (0, 0)
    results.close()
    assert len(task.begun) < 30
    assert task.now == 0


def test_work_that_another_thread_gives_up_is_not_waited_for(cores):
    """As the garbage collector does, in any thread, when an error left results untaken."""
    gate = threading.Event()
    results = engine_for().map(lambda _, place: place and gate.wait(PATIENCE), None, range(100))
    assert next(results) == (0, 0)
    other = threading.Thread(target=results.close)
    other.start()
    other.join(10)
    waited = other.is_alive()
    gate.set()
    assert not waited


def test_limits_on_threads_are_lifted_again(cores):
    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = threads()
    for _, products in engine_for().map(lambda *_: threads(), None, range(8)):
        assert set(products) <= {1}
    assert threads() == before


E_, T_, C_ = ids("e", 23), ids("t", 31), ids("c", 9)


def speakers():
    return Labels.from_speakers([f"s{place % 5}" for place in range(23)], [f"s{place % 4}" for place in range(31)])


def outputs(folder, monkeypatch, cores):
    """Return the bytes of statistics, of a trained model and of normalized scores, made on so many cores."""
    monkeypatch.setattr("evenscore.threads.thread_count", lambda: cores)
    rng = np.random.default_rng(0)
    trials, enroll = matrix(rng, E_, T_, missing=0.1, dtype=np.float32), matrix(rng, E_, C_, dtype=np.float32)
    test = matrix(rng, C_, T_, dtype=np.float32)
    whole = matrix(rng, E_, T_, dtype=np.float32)
    made = [one for side in (trials, whole) for one in label_sums([(in_tiles(side), speakers())])]
    found = [getattr(one.sums, name).tobytes() for one in made for name in ("rows", "columns", "squares")]
    fitted = fit_score_model([(in_tiles(whole), speakers())], max_iter=20, starts=1)
    blocks = ScoreBlocks(in_tiles(trials), enroll=in_tiles(enroll), test=in_tiles(test))
    for method, options in (("as", {"top_k": 4}), ("lgsm", {"model": MODEL})):
        path = folder / f"{method}-{cores}.zarr"
        write_table(normalize(blocks, method, **options), path)
        found.append(contents(path))
    return [*found, fitted.log_likelihood.tobytes()]


def test_the_number_of_cores_changes_no_byte(tmp_path, monkeypatch):
    one = outputs(tmp_path, monkeypatch, 1)
    for cores in (2, 4, 9):
        assert outputs(tmp_path, monkeypatch, cores) == one


def test_a_cluster_without_workers_is_told_about(monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr("evenscore.engine.engine._PATIENCE", 0.5)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(EvenscoreError, match=r"no worker for 0\.5 seconds"),
    ):
        engine_for(client).total(add, 1, [1, 2])


class FailingClient:
    """Stands for a client whose workers die while something is sent to them."""

    def __init__(self, *failures):
        self.failures = list(failures)

    def nthreads(self):
        return {"tcp://127.0.0.1:1": 1}

    def scatter(self, shared, **how):
        if self.failures:
            raise self.failures.pop(0)
        return f"sent {shared}"

    def submit(self, *work):
        pass


def test_workers_that_die_while_something_is_sent_get_it_again(monkeypatch):
    """A worker that was just killed gave a CommClosedError, now and then, and the run ended."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr("evenscore.engine.engine._PAUSE", 0.0)
    lost = distributed.comm.CommClosedError("Stream is closed")
    failures = lost, TimeoutError("No valid workers found"), ValueError("Can not use replicate to delete data")
    assert engine_for(FailingClient(*failures))._sent("data") == "sent data"
    with pytest.raises(ValueError, match="again"):  # an error of its own is not tried for ever
        engine_for(FailingClient(*[ValueError("again")] * 10))._sent("data")
    with pytest.raises(TypeError):
        engine_for(FailingClient(*[TypeError("cannot be sent")] * 10))._sent("data")
