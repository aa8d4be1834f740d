"""The same work on a cluster: mostly of threads, for the numbers, and of processes, which are killed now and then."""

import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import dask
import dask.array
import numpy as np
import pytest

from evenscore import (
    Embeddings,
    EvenscoreError,
    FileError,
    InputError,
    Labels,
    ScoreBlocks,
    fit_score_model,
    normalize,
    read_scores,
    score_embeddings,
)
from evenscore.engine.cluster import connected
from evenscore.files import open_scores, write_table
from evenscore.model.statistics import label_sums
from evenscore.scoring import score_lazily
from evenscore.sources import as_table
from in_process import run_command
from scale.chunked_examples import MODEL, contents, ids, in_tiles, matrix
from slow_tiles import slowed
from zarr_formats import chunk_name

E, T, C, D = ids("e", 53), ids("t", 71), ids("c", 17), ids("d", 19)

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets of workers that were killed
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Give trials and cohort scores in memory, and in zarr stores of small chunks."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("stores")
    shapes = {"trials": (E, T), "enroll": (E, C), "test": (D, T), "cohort": (D, C)}
    tables = {name: matrix(rng, *sides, dtype=np.float32) for name, sides in shapes.items()}
    opened = {}
    for name, table in tables.items():
        write_table(in_tiles(table), folder / f"{name}.zarr")
        opened[name] = open_scores(folder / f"{name}.zarr").in_tiles(600.0)
    return tables, opened


def labels():
    return Labels.from_speakers([f"s{place % 7}" for place in range(53)], [f"s{place % 9}" for place in range(71)])


def kill_workers(client, number):
    found = client.run(os.getpid, on_error="return").values()  # one may be dying of an earlier test
    for pid in [pid for pid in found if isinstance(pid, int)][:number]:
        os.kill(pid, signal.SIGKILL)


def killing(client, number, stage_of="writing"):
    """Return a progress callback that kills workers once, in the middle of a stage."""
    left = [number]

    def progress(stage, fraction):
        if stage == stage_of and fraction > 0.2 and left[0]:
            kill_workers(client, left[0])
            left[0] = 0

    return progress


def test_statistics_are_those_in_memory(client, stores):
    tables, opened = stores
    [there] = label_sums([(tables["trials"], labels())])
    [here] = label_sums([(opened["trials"], labels())], client=client)
    moved = here.sums.recentered(there.sums.center)
    for name in ("rows", "columns", "squares", "row_counts", "column_counts"):
        np.testing.assert_allclose(getattr(moved, name), getattr(there.sums, name), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("as", {"top_k": 5}),
        pytest.param("zt", {}, marks=pytest.mark.slow),  # without files, `test_norms` has it on a cluster, too
        pytest.param("lgsm", {"model": MODEL}, marks=pytest.mark.slow),
    ],
)
def test_norms_are_those_in_memory(client, stores, tmp_path, method, options):
    tables, opened = stores
    others = {name: table for name, table in tables.items() if name != "trials"}
    wanted = normalize(ScoreBlocks(tables["trials"], **others), method, **options)
    blocks = ScoreBlocks(**opened)
    write_table(normalize(blocks, method, client=client, **options), tmp_path / "out.zarr", client=client)
    np.testing.assert_allclose(read_scores(tmp_path / "out.zarr").scores, wanted.scores, rtol=1e-6, atol=1e-6)
    write_table(normalize(blocks, method, **options), tmp_path / "here.zarr")
    assert contents(tmp_path / "out.zarr") == contents(tmp_path / "here.zarr")


def test_embeddings_are_scored_where_they_are_sent(client, tmp_path):
    rng = np.random.default_rng(1)
    enroll, test, cohort = (Embeddings(names, rng.normal(size=(len(names), 6))) for names in (E, T, C))
    asked = {"cohort": cohort, "method": "as", "top_k": 5}
    wanted = score_embeddings(enroll, test, **asked)
    write_table(score_lazily(enroll, test, client=client, **asked), tmp_path / "out.parquet", client=client)
    found = read_scores(tmp_path / "out.parquet").to_matrix().align(E, T)
    np.testing.assert_allclose(found.scores, wanted.scores, rtol=1e-9)


def test_processes_give_the_numbers_of_memory(processes, stores, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tables, opened = stores
    others = {name: table for name, table in tables.items() if name != "trials"}
    for method, options in (("as", {"top_k": 5}), ("lgsm", {"model": MODEL})):
        wanted = normalize(ScoreBlocks(tables["trials"], **others), method, **options)
        found = normalize(ScoreBlocks(**opened), method, client=processes, **options)
        write_table(found, tmp_path / f"{method}.zarr", client=processes)
        stored = read_scores(tmp_path / f"{method}.zarr").scores
        np.testing.assert_allclose(stored, wanted.scores, rtol=1e-6, atol=1e-6)
    files = [word for name in opened if name != "cohort" for word in (f"--{name}", opened[name].source.source.path)]
    asked = ("normalize", "--method", "s", *files, "--scheduler", processes.scheduler.address, "-o", "s.zarr")
    run = run_command(*asked)
    assert run.exit_code == 0, run.output
    assert "dashboard: http" in run.stderr
    wanted = normalize(ScoreBlocks(tables["trials"], **others), "s")
    np.testing.assert_allclose(read_scores("s.zarr").scores, wanted.scores, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("persisted", [False, True], ids=["recipe", "on the cluster"])
def test_dask_arrays(processes, stores, persisted):
    table = stores[0]["trials"]
    array = dask.array.from_array(table.scores, chunks=(20, 30))
    scores = as_table(processes.persist(array) if persisted else array, E, T).in_tiles(3000.0)
    how = {"client": processes, "max_iter": 3, "starts": 1}
    here, there = (fit_score_model([(one, labels())], **how) for one in (scores, table))
    np.testing.assert_allclose(here.log_likelihood, there.log_likelihood, rtol=1e-11)
    assert as_table(array, E, T).in_memory() == table


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2], ids=["one worker", "all workers"])
def test_killed_workers_change_nothing(processes, stores, tmp_path, number):
    blocks = ScoreBlocks(**stores[1])
    result = normalize(blocks, "s", client=processes)
    write_table(result, tmp_path / "calm.zarr")
    write_table(slowed(result), tmp_path / "killed.zarr", client=processes, progress=killing(processes, number))
    assert contents(tmp_path / "killed.zarr") == contents(tmp_path / "calm.zarr")


@pytest.mark.slow
def test_killed_workers_do_not_change_sums(processes, stores):
    scores = slowed(stores[1]["trials"], 0.02)
    [calm] = label_sums([(stores[1]["trials"], labels())])
    [killed] = label_sums([(scores, labels())], client=processes, progress=killing(processes, 2, "summing scores"))
    for name in ("rows", "columns", "squares", "row_counts", "column_counts"):
        np.testing.assert_allclose(getattr(killed.sums, name), getattr(calm.sums, name), rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_a_worker_that_is_slow_to_come_again_is_waited_for():
    """On a busy machine that took more than 15 s; then the cluster forgot it, and the sums waited for ever."""
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "1 ms"}), connected(workers=1) as client:
        [before] = client.run(os.getpid).values()
        os.kill(before, signal.SIGKILL)
        deadline, found = time.monotonic() + 120, []
        while time.monotonic() < deadline and found in ([], [before]):
            time.sleep(0.1)
            found = list(client.run(os.getpid, on_error="ignore").values())
    assert found not in ([], [before])


KILLED = """
import sys
sys.path[:0] = {path!r}
from distributed import Client
from evenscore.files import open_scores, write_table
from slow_tiles import slowed
scores = open_scores({source!r}).in_tiles(600.0)
write_table(slowed(scores), {target!r}, client=Client({scheduler!r}))
"""


@pytest.mark.slow
def test_a_killed_client_can_go_on(processes, stores, tmp_path):
    scores = stores[1]["trials"]
    target, tests = tmp_path / "out.zarr", str(Path(__file__).parents[1])
    scheduler = processes.scheduler.address
    code = KILLED.format(path=[tests], source=scores.source.source.path, target=str(target), scheduler=scheduler)
    run = subprocess.Popen([sys.executable, "-W", "ignore", "-c", code])
    journal = tmp_path / "out.zarr.partial" / "journal.jsonl"
    while run.poll() is None and not (journal.exists() and journal.read_bytes().count(b'"chunk"') >= 5):
        time.sleep(0.01)
    run.kill()
    assert run.wait() == -signal.SIGKILL
    before = journal.read_bytes().count(b'"chunk"')
    assert before < len(scores.places())
    told = []
    write_table(scores, target, client=processes, resume=True, progress=lambda *stage: told.append(stage))
    assert len(told) <= len(scores.places()) - 4
    write_table(scores, tmp_path / "one.zarr")
    assert contents(target) == contents(tmp_path / "one.zarr")


def test_errors_of_workers_arrive_as_one_sentence(processes, stores, tmp_path):
    write_table(in_tiles(stores[0]["trials"]), tmp_path / "in.zarr")
    name = chunk_name(tmp_path / "in.zarr", 3, 2)
    (tmp_path / "in.zarr" / "scores" / name).write_bytes(b"nonsense")
    damaged = open_scores(tmp_path / "in.zarr").in_tiles(600.0)
    with pytest.raises(FileError, match=rf"in.zarr\[scores/{name}\]: the chunk is damaged"):
        write_table(damaged, tmp_path / "out.zarr", client=processes)
    with pytest.raises(FileError, match=rf"in.zarr\[scores/{name}\]: the chunk is damaged"):
        fit_score_model([(damaged, labels())], client=processes)


def test_ctrl_c_waits_until_workers_are_started(monkeypatch):
    done = []

    class Cluster:
        def __init__(self, **how):
            os.kill(os.getpid(), signal.SIGINT)
            assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])  # as in the processes that are started
            done.append("started")

        def __enter__(self):
            return self

        def __exit__(self, *failure):
            done.append("closed")

    monkeypatch.setattr("distributed.LocalCluster", Cluster)
    monkeypatch.setattr("distributed.Client", lambda cluster: nullcontext())
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), connected(workers=1):
            done.append("used")
        assert done == ["started", "closed"]
        signal.signal(signal.SIGINT, lambda *_: None)
        with pytest.raises(AttributeError), connected(workers=1):
            done.append("used").wrong()
    finally:
        signal.signal(signal.SIGINT, before)
    assert done[2:] == ["started", "used", "closed"]


def test_what_cannot_be_connected_is_said(client, monkeypatch):
    with connected() as nobody:
        assert nobody is None
    with pytest.raises(InputError, match="give one of the two"), connected(workers=1, scheduler="tcp://x:1"):
        pass
    with pytest.raises(InputError, match="at least one worker"), connected(workers=0):
        pass
    with pytest.raises(InputError, match="give at least 400 MB"), connected(workers=1, memory_limit=2.5e8):
        pass  # Dask would let such a worker rest for ever
    monkeypatch.setattr("evenscore.engine.cluster._PATIENCE", 0.2)
    nobody_there = pytest.raises(EvenscoreError, match=r"no scheduler answers at tcp://127.0.0.1:1")
    with nobody_there, connected(scheduler="tcp://127.0.0.1:1"):
        pass
    with connected(scheduler=client.scheduler.address) as other:
        assert other.submit(max, 1, 2).result() == 2
