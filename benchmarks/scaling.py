"""How time and memory grow with the number of scores: fit, normalize and evaluate of matrices never held as a whole.

Scores are drawn chunk by chunk whenever they are needed, so nothing is read or written; the row "draw" is what drawing
them once costs, the baseline of the others (`fit` and `evaluate` pass over the scores twice, `normalize` once). They
run on the threads of one process, and on a local cluster of one and of two workers with a thread each. Every cell of
the table is a process of its own; its memory is the peak (VmHWM) of the largest process, libraries included.

    python benchmarks/scaling.py [--sizes 1e4,1e6,1e8] [--jobs fit,evaluate] [--workers 0,1,2]

10^10 scores (--sizes 1e10) take about a quarter of an hour on two cores.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

COHORT = 1000  # recordings of other speakers
EACH = 10  # enrolments and tests of a speaker, so that 1 trial in (number of speakers) is a target


def drawn(rows: int, columns: int, seed: int, targets: bool = True) -> Any:
    """Return a dask array of float32 scores: effects of both sides, noise, and 5 for targets, which are near i = j."""
    import dask.array as da

    def draw(block_info: Any = None) -> np.ndarray:
        (top, bottom), (left, right) = block_info[None]["array-location"]
        noise = np.random.Generator(np.random.SFC64((seed, top, left)))
        scores = noise.standard_normal((bottom - top, right - left), np.float32)
        scores += np.random.default_rng((seed, 1, top)).standard_normal((bottom - top, 1), np.float32)
        scores += np.random.default_rng((seed, 2, left)).standard_normal(right - left, np.float32)
        first, last = max(top, left) // EACH, min(bottom, right) // EACH
        for speaker in range(first, last + 1) if targets else ():
            start, stop = speaker * EACH, (speaker + 1) * EACH
            scores[max(start - top, 0) : max(stop - top, 0), max(start - left, 0) : max(stop - left, 0)] += 5
        return scores

    chunks = da.core.normalize_chunks((1024, 4096), (rows, columns), dtype=np.float32)
    return da.map_blocks(
        draw, chunks=chunks, dtype=np.float32, name=f"drawn-{seed}-{rows}-{columns}", meta=np.empty((0, 0), np.float32)
    )


def prepared(job: str, size: float) -> Callable[[], object]:
    """Return what is measured."""
    from evenscore import Labels, ScoreBlocks, ScoreMatrix, Side, evaluate, fit_score_model, normalize

    n = round(size**0.5)
    speakers = np.arange(n) // EACH
    enroll, test = (Side([f"{side}{i}" for i in range(n)], [f"s{k}" for k in speakers]) for side in "et")
    members = Side([f"c{i}" for i in range(COHORT)], [f"c{i}" for i in range(COHORT)])
    trials = ScoreMatrix(drawn(n, n, 0), enroll, test)
    if job == "fit":
        return lambda: fit_score_model(trials, Labels.from_speakers(enroll, test))
    if job == "evaluate":
        return lambda: evaluate(trials)
    if job == "draw":
        return lambda: trials.scores.sum().compute()
    S_e = ScoreMatrix(drawn(n, COHORT, 1, targets=False), enroll, members)
    S_t = ScoreMatrix(drawn(COHORT, n, 2, targets=False), members, test)
    return lambda: normalize(ScoreBlocks(trials, S_e, S_t), "as", top_k=300).scores.sum().compute()


def peak_gigabytes() -> float:
    """Return the peak memory of this process."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**20


def measure(job: str, size: float, workers: int) -> tuple[float, float]:
    """Return seconds and gigabytes of a job."""
    from evenscore.large import cluster

    with cluster(workers or None) as client:
        task = prepared(job, size)
        start = time.perf_counter()
        task()
        seconds = time.perf_counter() - start
        return seconds, max([peak_gigabytes(), *(client.run(peak_gigabytes).values() if client else ())])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", default="1e4,1e6,1e8", help="numbers of scores")
    parser.add_argument("--jobs", default="draw,fit,normalize,evaluate")
    parser.add_argument("--workers", default="0,1,2", help="0: the threads of one process")
    parser.add_argument("--cell", action="store_true", help="measure one job, size and number of workers")
    given = parser.parse_args()
    if given.cell:
        print(json.dumps(measure(given.jobs, float(given.sizes), int(given.workers))))
        return
    columns = [(job, workers) for job in given.jobs.split(",") for workers in given.workers.split(",")]
    sizes = given.sizes.split(",")
    print("| job, workers | " + " | ".join(sizes) + " |\n|---" + "|---:" * len(sizes) + "|")
    for job, workers in columns:
        cells = []
        for size in sizes:
            command = [sys.executable, __file__, "--cell", "--jobs", job, "--sizes", size, "--workers", workers]
            run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            seconds, gigabytes = json.loads(run.stdout.splitlines()[-1])
            cells.append(f"{seconds:.1f} s, {gigabytes:.2f} GB")
        print(f"| {job}, {'threads' if workers == '0' else workers} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
