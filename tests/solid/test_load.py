"""Load: many threads, many trials, workers that are killed. `pytest -m slow -s` prints the figures."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from evenscore import Embeddings, LogisticCalibration, ScoreMatrix, Verifier, read_scores, score_embeddings, write

pytestmark = pytest.mark.slow
SECONDS = float(os.environ.get("EVENSCORE_LOAD_SECONDS", "10"))
EVALUATE = """
import sys
from evenscore import Labels, evaluate, read_scores
scores = read_scores(sys.argv[1])
people = [[int(name[1:]) % 500 for name in side.ids] for side in (scores.enroll, scores.test)]
found = evaluate(scores, Labels.from_speakers(*people))
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(found.n_target + found.n_nontarget, found.eer, int(peak) >> 10)  # getrusage would count the parent's peak, too
"""


def test_a_verifier_of_sixteen_threads_gives_the_numbers_of_one():
    rng = np.random.default_rng(0)
    cohort = Embeddings([f"c{i}" for i in range(2000)], rng.normal(size=(2000, 192)))
    verifier = Verifier(
        cohort=cohort, method="as", top_k=300, calibration=LogisticCalibration(weights=[2.0], offset=-5.0)
    )
    vectors = rng.normal(size=(64, 192))
    enrolled = [verifier.enroll(vector) for vector in vectors]
    expected = [verifier.llr(enrolled[i], vectors[-1 - i]) for i in range(64)]
    stop, times, wrong = time.monotonic() + SECONDS, [], []

    def serve(seed):
        draw = np.random.default_rng(seed)
        while time.monotonic() < stop:
            i, start = int(draw.integers(64)), time.perf_counter()
            found = verifier.llr(enrolled[i], vectors[-1 - i])
            times.append(time.perf_counter() - start)
            if abs(found - expected[i]) > 1e-10:
                wrong.append((i, found))

    threads = [threading.Thread(target=serve, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    p50, p99 = np.percentile(times, [50, 99]) * 1e3
    sys.stdout.write(f"verifier: {len(times) / SECONDS:.0f} trials/s, p50 {p50:.2f} ms, p99 {p99:.2f} ms\n")
    assert len(times) > 16
    assert wrong == []


def write_matrix(path, rows, cols, m, n):
    scores = np.random.default_rng(m + n).normal(size=(m, n)).astype(np.float32)
    write(ScoreMatrix(scores, [f"{rows}{i}" for i in range(m)], [f"{cols}{i}" for i in range(n)]), path)


def test_a_hundred_million_trials_are_evaluated_in_little_memory(tmp_path):
    write_matrix(tmp_path / "s.zarr", "e", "t", 10_000, 10_000)
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", EVALUATE, str(tmp_path / "s.zarr")], check=True, capture_output=True, text=True
    )
    trials, eer, megabytes = map(float, done.stdout.split())
    sys.stdout.write(f"evaluate: {trials:.0g} trials, {time.monotonic() - start:.0f} s, {megabytes:.0f} MB\n")
    assert trials == 1e8
    assert abs(eer - 0.5) < 0.01
    assert megabytes < 500  # blocks of both threads, and the libraries; 4 bytes per trial would be 400 MB more


def test_workers_that_are_killed_every_ten_seconds_cost_time_only(tmp_path):
    size, vectors = int(8000 * (SECONDS / 10) ** 0.5), {}
    line = ["normalize", "--norm", "as:top_k=100", "-o", str(tmp_path / "out.zarr"), "--workers", "2"]
    for name, rows in (("enroll", size), ("test", size), ("cohort", 300)):
        values = np.random.default_rng(rows).normal(size=(rows, 2000)).astype(np.float32)
        vectors[name] = Embeddings([f"{name}{row}" for row in range(rows)], values)
        write(vectors[name], tmp_path / f"{name}.npz")
        line += [f"--{name}-embeddings", str(tmp_path / f"{name}.npz")]
    start, killed = time.monotonic(), []
    running = subprocess.Popen([sys.executable, "-m", "evenscore", *line])
    while running.poll() is None:
        time.sleep(0.05)
        begun = (tmp_path / "out.zarr.partial" / "scores" / "c").exists()
        if begun and (not killed or time.monotonic() - killed[-1] > 10):
            command = ["pgrep", "-P", str(running.pid), "-f", "spawn_main"]
            workers = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
            for worker in workers[-1:]:  # none while all of them start
                os.kill(int(worker), signal.SIGKILL)
                killed.append(time.monotonic())
    seconds = time.monotonic() - start
    sys.stdout.write(f"normalize: {size**2:.1e} trials, {seconds:.0f} s, {len(killed)} workers killed\n")
    assert running.returncode == 0
    assert killed
    some = vectors["enroll"].take(np.arange(0, size, 97))
    expected = score_embeddings(some, vectors["test"], cohort=vectors["cohort"], method="as", top_k=100).scores
    found = read_scores(tmp_path / "out.zarr").scores[::97].compute()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
