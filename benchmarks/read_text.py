"""Reading a Kaldi score file, against polars.read_csv on that file and against a loop over its lines in Python.

Claims: 10 million lines take at most 2 x the time of polars.read_csv and at most a tenth of that of the loop; with
--memory, 60 million trials go from text to table with a peak below 6 GB, and the table takes below 3 GB.

    python benchmarks/read_text.py [--lines 10000000] [--repeat 3]
    python benchmarks/read_text.py --memory [--lines 60000000]
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import polars as pl

import evenscore

_MEASURE = """
import sys
import evenscore

def peak():  # of this process alone; getrusage also counts that of the process that started it
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

import polars
before = peak()
table = evenscore.read(sys.argv[1], format="kaldi")
arrays = table.enroll_index.nbytes + table.test_index.nbytes + table.scores.nbytes
ids = sum(sys.getsizeof(name) + 8 for side in (table.enroll_ids, table.test_ids) for name in side)
print(peak(), before, arrays + ids)
"""


def trials(lines: int) -> evenscore.TrialList:
    """Half of all pairs of some thousand enrolments and tests, ids of 22 characters, the tests in any order."""
    rng = np.random.default_rng(0)
    side = int((2 * lines) ** 0.5) + 1
    picked = np.sort(rng.choice(side * side, lines, replace=False)) if lines < 10**6 else _half(rng, side, lines)
    rows, columns = np.divmod(picked, side)
    return evenscore.TrialList(
        [f"id{i % 1251:05d}/recording{i:06d}" for i in range(side)],
        [f"id{i % 1251:05d}/evaluate-{i:06d}" for i in range(side)],
        rows,
        columns,
        scores=rng.normal(size=lines).round(5),
    )


def _half(rng: np.random.Generator, side: int, lines: int) -> np.ndarray:
    """Pick ``lines`` of side x side pairs, row by row, without a permutation of all of them."""
    picked = np.flatnonzero(rng.random(side * side, dtype=np.float32) < 1.02 * lines / side**2)
    return picked[:lines]


def python_loop(path: Path, most: int) -> evenscore.TrialList:
    """Do the same job line by line: number the ids, refuse scores that are not finite and trials that repeat."""
    enroll: dict[str, int] = {}
    test: dict[str, int] = {}
    seen: set[tuple[int, int]] = set()
    rows, columns, scores = [], [], []
    with open(path) as lines:
        for number, line in enumerate(islice(lines, most), start=1):
            fields = line.split()
            if len(fields) != 3:
                raise ValueError(f"{path}:{number}: expected 3 columns")
            row = enroll.setdefault(fields[0], len(enroll))
            column = test.setdefault(fields[1], len(test))
            score = float(fields[2])
            if not math.isfinite(score) or (row, column) in seen:
                raise ValueError(f"{path}:{number}: not finite, or listed twice")
            seen.add((row, column))
            rows.append(row)
            columns.append(column)
            scores.append(score)
    return evenscore.TrialList(list(enroll), list(test), rows, columns, scores=scores)


def seconds(task: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def speed(path: Path, lines: int, repeat: int) -> None:
    part = min(lines, 10**6)  # the loop takes long, and its time grows with the lines
    tasks: dict[str, Callable[[], object]] = {
        "polars.read_csv": lambda: pl.read_csv(path, has_header=False, separator=" "),
        "evenscore.read": lambda: evenscore.read(path, format="kaldi"),
        "Python loop": lambda: python_loop(path, part),
    }
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for round_ in range(repeat + 1):  # in turns, so that other work on the machine hits all; the first is not counted
        for name, task in tasks.items():
            taken = seconds(task) * (lines / part if name == "Python loop" else 1)
            if round_:
                times[name].append(taken)
    best = {name: min(values) for name, values in times.items()}
    ours = best["evenscore.read"]
    print(f"polars.read_csv      {best['polars.read_csv']:7.2f} s")
    print(f"Python loop          {best['Python loop']:7.2f} s   ({part} lines, times {lines / part:g})")
    print(f"evenscore.read       {ours:7.2f} s   {ours / best['polars.read_csv']:.2f} x polars.read_csv", end=", ")
    print(f"{best['Python loop'] / ours:.1f} x as fast as the Python loop")


def memory(path: Path, lines: int) -> None:
    command = [sys.executable, "-c", _MEASURE, str(path)]
    peak, before, table = map(int, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    print(f"{lines} trials: peak {peak / 2**20:.2f} GiB ({before / 2**20:.2f} before), table {table / 2**30:.2f} GiB")
    print(f"{peak * 1024 / table:.2f} x the table")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--memory", action="store_true")
    arguments = parser.parse_args()
    lines = arguments.lines or (60_000_000 if arguments.memory else 10_000_000)
    with tempfile.TemporaryDirectory(prefix="evenscore-bench-") as directory:
        path = Path(directory) / "scores"
        evenscore.write(trials(lines), path, format="kaldi")
        gc.collect()
        print(f"{lines} lines, {path.stat().st_size / 1e6:.0f} MB, {os.cpu_count()} cores")
        if arguments.memory:
            memory(path, lines)
        else:
            speed(path, lines, arguments.repeat)


if __name__ == "__main__":
    main()
