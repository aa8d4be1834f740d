"""EER, minDCF, Cllr and minCllr of many scores against llreval (if it is installed), lazily, and the speaker bootstrap.

    python benchmarks/metrics.py [--scores 10000000] [--repeat 3] [--llreval PYTHON] [--billion]

``--llreval`` names a Python with llreval, such as that of another environment; it runs on one thread. Times are of the
CPU, in memory also of the clock. Bars: a tenth of the time of llreval; ten times as many lazy scores, without the time
to make them, in at most 12 times the time. ``--billion`` goes on to a hundred times as many, which takes minutes.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

THEIRS = """
import json, sys, time
import numpy as np
from llreval.cllr import cllr, min_cllr
from llreval.pav_rocch import PAV, ROCCH
data, times = np.load(sys.argv[1]), []
scores, labels = data["scores"], data["labels"]
for _ in range(int(sys.argv[2])):
    start = time.process_time()
    pav = PAV(scores, labels)
    hull = ROCCH(pav)
    cost = hull.Bayes_error_rate(np.array([np.log(0.01 / 0.99)]))[0] / 0.01
    found = [hull.EER(), cost, cllr(scores[labels == 1], scores[labels == 0]), min_cllr(pav)]
    times.append(time.process_time() - start)
print(json.dumps([min(times), [float(x) for x in found]]))
"""


def simulated(n: int, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
    """Return scores and labels, one target in ten."""
    rng = np.random.default_rng(0)
    labels = (rng.random(n) < 0.1).astype(np.int8)
    return rng.normal(6.0 * labels - 3.0, 2.0).astype(dtype), labels


def timed(function: Callable[[], object], repeat: int) -> tuple[float, object]:
    """Return the least CPU time of some calls, and the last result."""
    best, found = float("inf"), None
    for _ in range(repeat):
        start = time.process_time()
        found = function()
        best = min(best, time.process_time() - start)
    return best, found


def in_memory(n: int, repeat: int, python: str) -> None:
    """Print the time of all metrics, and the ratio to llreval."""
    from evenscore.metrics import evaluate

    scores, labels = simulated(n)
    clock = []

    def evaluated() -> object:
        start = time.perf_counter()
        result = evaluate(scores, labels)
        clock.append(time.perf_counter() - start)
        return result

    ours, found = timed(evaluated, repeat)
    print(f"evaluate, {n:.0e} scores in memory: {ours:.3f} s of the CPU, {min(clock):.3f} s of the clock")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trials.npz"
        np.savez(path, scores=scores, labels=labels)
        run = subprocess.run([python, "-c", THEIRS, path, str(repeat)], capture_output=True, text=True, check=False)
    if run.returncode:
        print("llreval is not installed there, so there is no ratio")
        return
    theirs, values = json.loads(run.stdout)
    np.testing.assert_allclose([found.eer, found.min_dcf, found.cllr, found.min_cllr], values, atol=1e-7)  # type: ignore[attr-defined]
    print(f"llreval: {theirs:.3f} s, {theirs / ours:.1f} x as long, {theirs / min(clock):.1f} x by the clock")


def lazily(n: int) -> float:
    """Print time and memory of a float32 matrix that is made block by block; return the time without making it."""
    import dask.array as da

    from evenscore.metrics import evaluate

    side = int(n**0.5)
    speakers = np.arange(side) % (side // 10)
    made = da.random.default_rng(0).normal(size=(side, side), chunks=(1024, 4096)).astype("float32")
    labels = da.from_array(speakers[:, None], (1024, 1)) == da.from_array(speakers[None, :], (1, 4096))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    scores = made + 3 * labels.astype("float32")
    seconds, found = timed(lambda: evaluate(scores, labels.astype("int8")), 1)
    drawn, _ = timed(lambda: scores.max().compute(), 1)
    extra = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"evaluate, {side * side:.0e} scores by dask: {seconds:.1f} s, of which making them twice {2 * drawn:.1f} s")
    print(f"    {extra:.0f} MB beside the program; {found}")
    return seconds - 2 * drawn


def drawn_speakers(n: int, repeat: int) -> None:
    """Print the time of 20 replicates of a square of trials."""
    from evenscore.metrics import bootstrap, evaluate

    side = int(n**0.5)
    speakers = np.arange(side) // 10
    enroll, test = np.repeat(speakers, side), np.tile(speakers, side)
    labels = (enroll == test).astype(np.int8)
    scores = np.random.default_rng(0).normal(3.0 * labels, 1.0)
    how = {"enroll_speakers": enroll, "test_speakers": test, "replicates": 20}
    seconds, _ = timed(lambda: bootstrap(scores, labels, **how), repeat)
    once, _ = timed(lambda: evaluate(scores, labels), repeat)
    print(
        f"bootstrap, {side * side:.0e} trials, 20 draws: {seconds:.2f} s, {seconds / (20 * once):.2f} x 20 evaluations"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scores", type=float, default=1e7)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--llreval", default=sys.executable)
    parser.add_argument("--billion", action="store_true")
    given = parser.parse_args()
    in_memory(int(given.scores), given.repeat, given.llreval)
    drawn_speakers(int(given.scores / 10), given.repeat)
    times = [lazily(int(given.scores) * size) for size in ([1, 10, 100] if given.billion else [1, 10])]
    print("lazily, without making the scores:", ", ".join(f"{one:.1f} s, {one / times[0]:.1f} x" for one in times))
