"""Work on a real cluster of two processes, a worker that is killed, and a run that was cut short."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import zarr

from evenscore import (
    InputError,
    Labels,
    ScoreBlocks,
    ScoreMatrix,
    fit_score_model,
    large,
    normalize,
    read_scores,
    read_trials,
    simulate,
    write,
)
from evenscore.model import ScoreModel
from evenscore.spelling import parse_name

TRUTH = ScoreModel(mu=[0.0, 4.0], alpha=[[0.7], [0.5]], beta=[[0.6], [0.5]], sigma2=[1.0, 1.0])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Write stores; that of the trials is read in three chunks."""
    folder = tmp_path_factory.mktemp("stores")
    write_blocks(folder, 20, 9000, np.float64)
    scores, labels = simulate(TRUTH, [f"s{n % 20}" for n in range(60)], [f"s{n % 20}" for n in range(80)])
    write(scores, folder / "dev.zarr")
    write(scores.to_trials(labels), folder / "dev.csv")
    return folder


def write_blocks(folder, m, n, dtype):
    rng = np.random.default_rng(0)
    sides = {name: [f"{name}{i}" for i in range(size)] for name, size in (("e", m), ("t", n), ("c", 30), ("d", 40))}
    for name, rows, cols in (("trials", "e", "t"), ("enroll", "e", "d"), ("test", "c", "t"), ("cohort", "c", "d")):
        scores = rng.normal(size=(len(sides[rows]), len(sides[cols]))).astype(dtype)
        write(ScoreMatrix(scores, sides[rows], sides[cols]), folder / f"{name}.zarr")


def command(data, norm, output, *more):
    blocks = [f"--{option}={data}/{name}.zarr" for option, name in (("trials", "trials"), ("cohort", "cohort"))]
    blocks += [f"--enroll-cohort={data}/enroll.zarr", f"--test-cohort={data}/test.zarr"]
    return [sys.executable, "-m", "evenscore", "normalize", "--norm", norm, *blocks, "-o", str(output), *more]


def scores_of(path):
    return zarr.open_group(str(path), mode="r")["scores"][:]


def chunks_of(store):
    return {
        path.relative_to(store): path.stat().st_mtime_ns for path in store.glob("scores/c/*/*") if path.name.isdigit()
    }


def test_a_memory_limit_without_workers_is_refused():
    with pytest.raises(InputError, match="number of workers"), large.cluster(memory_limit="1GB"):
        pass


def test_two_processes_give_the_numbers_of_one_and_a_killed_worker_costs_time_only(data, tmp_path):
    blocks = ScoreBlocks(*(read_scores(data / f"{name}.zarr") for name in ("trials", "enroll", "test", "cohort")))
    parts = {name: getattr(blocks, name).compute() for name in ("trials", "enroll", "test", "cohort")}
    expected = normalize(ScoreBlocks(**parts), "zt").scores
    dev = read_scores(data / "dev.zarr")
    labels = Labels.from_trials(read_trials(data / "dev.csv")).align(dev.enroll, dev.test)
    with large.cluster(workers=2, memory_limit="1GB") as client:
        write(normalize(blocks, "zt"), tmp_path / "two.zarr")
        found = fit_score_model(dev, labels, dim=1)
        pids = set(client.run(os.getpid).values())
        threading.Timer(0.3, os.kill, (min(pids), signal.SIGKILL)).start()
        total = large.reduce_blocks(slow_sum, blocks.trials.scores.rechunk((10, 500)))
        client.wait_for_workers(2, timeout=60)
        assert set(client.run(os.getpid).values()) != pids
    np.testing.assert_allclose(scores_of(tmp_path / "two.zarr"), expected, rtol=1e-12, atol=1e-12)
    alone = fit_score_model(dev.compute(), labels, dim=1)
    np.testing.assert_allclose(found.log_likelihood[-1], alone.log_likelihood[-1], rtol=1e-9)
    np.testing.assert_allclose(total, parts["trials"].scores.sum(), rtol=1e-12)


def slow_sum(block):
    time.sleep(0.1)
    return block.sum()


@pytest.mark.slow
def test_the_command_line_starts_processes(data, tmp_path):
    subprocess.run(command(data, "zt", tmp_path / "one.zarr"), check=True)
    subprocess.run(command(data, "zt", tmp_path / "two.zarr", "--workers", "2", "--memory-limit", "1GB"), check=True)
    np.testing.assert_array_equal(scores_of(tmp_path / "two.zarr"), scores_of(tmp_path / "one.zarr"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.zarr", "two.zarr"]


def run(data, norm, output):
    """Normalize in this process, as the command line does."""
    blocks = ScoreBlocks(*(read_scores(data / f"{name}.zarr") for name in ("trials", "enroll", "test", "cohort")))
    name, options = parse_name(norm)
    write(normalize(blocks, name, **options), output)


@pytest.mark.skipif(not hasattr(zarr, "create_array"), reason="looks at chunks of zarr 3")
@pytest.mark.parametrize("norm", ["s", "as:top_k=7", "zt"])
def test_a_run_that_was_cut_short_is_continued(norm, data, tmp_path):
    whole, cut, partial = (tmp_path / name for name in ("whole.zarr", "cut.zarr", "cut.zarr.partial"))
    subprocess.run(command(data, norm, whole), check=True)
    make_unfinished(whole, partial)
    kept = chunks_of(partial)
    assert 0 < len(kept) < len(chunks_of(whole))
    subprocess.run(command(data, norm, cut), check=True)  # another process has the same computation
    assert kept.items() <= chunks_of(cut).items()
    np.testing.assert_array_equal(scores_of(cut), scores_of(whole))
    assert not partial.exists()


def make_unfinished(whole, partial):
    """Make what a run leaves behind that is killed: some of the chunks, one of them half-written."""
    shutil.copytree(whole, partial)
    for number, path in enumerate(sorted(partial.glob("scores/c/*/*"))):
        if number % 3:
            path.unlink()
    (partial / "scores" / "c" / "0" / "1.partial").write_bytes(b"half")


@pytest.mark.skipif(not hasattr(zarr, "create_array"), reason="looks at chunks of zarr 3")
def test_what_another_job_left_is_not_continued(data, tmp_path):
    run(data, "s", tmp_path / "whole.zarr")
    make_unfinished(tmp_path / "whole.zarr", tmp_path / "cut.zarr.partial")
    for name in ("cut.zarr", "other.zarr"):
        run(data, "s:ddof=1", tmp_path / name)
    np.testing.assert_array_equal(scores_of(tmp_path / "cut.zarr"), scores_of(tmp_path / "other.zarr"))
    assert (scores_of(tmp_path / "cut.zarr") != scores_of(tmp_path / "whole.zarr")).any()


@pytest.mark.slow
def test_a_run_that_was_killed_is_continued(tmp_path):
    """The same with a process that really is killed."""
    write_blocks(tmp_path, 3000, 9000, np.float32)
    cut = tmp_path / "cut.zarr"
    partial = cut.with_name("cut.zarr.partial")
    running = subprocess.Popen(command(tmp_path, "zt", cut))
    while len(chunks_of(partial)) < 2:
        assert running.poll() is None
        time.sleep(0.01)
    running.kill()
    running.wait()
    kept = chunks_of(partial)
    subprocess.run(command(tmp_path, "zt", cut), check=True)
    assert 2 <= len(kept) <= 9
    assert kept.items() <= chunks_of(cut).items()
    subprocess.run(command(tmp_path, "zt", tmp_path / "whole.zarr"), check=True)
    np.testing.assert_array_equal(scores_of(cut), scores_of(tmp_path / "whole.zarr"))
