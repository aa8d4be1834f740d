"""Z, T, S and ZT on an 8000 x 8000 float32 matrix, against np.copyto and reading the cohort blocks once.

The budget is twice the time of np.copyto into a new matrix, plus one read of each cohort block (np.sum). Top-k
selection (AS-norm) is compared with np.partition and with a full np.sort of the same blocks.

    python benchmarks/norms.py [--size 8000] [--repeat 5]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from evenscore import ScoreBlocks, ScoreMatrix
from evenscore.norms import prepare_norm


def best(task: Callable[[], object], repeat: int) -> float:
    """Shortest time of several runs, after one that is not counted."""
    task()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        result = task()
        times.append(time.perf_counter() - start)
        del result
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=8000)
    parser.add_argument("--cohort", type=int, default=6000)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    n, c, repeat = arguments.size, arguments.cohort, arguments.repeat
    rng = np.random.default_rng(0)

    def matrix(rows: str, columns: str, shape: tuple[int, int]) -> ScoreMatrix:
        scores = rng.standard_normal(shape, dtype=np.float32)
        return ScoreMatrix(scores, [f"{rows}{i}" for i in range(shape[0])], [f"{columns}{i}" for i in range(shape[1])])

    trials, enroll = matrix("e", "t", (n, n)), matrix("e", "d", (n, c))
    test, cohort = matrix("c", "t", (c, n)), matrix("c", "d", (c, c))
    blocks = ScoreBlocks(trials, enroll=enroll, test=test, cohort=cohort)

    def copy() -> np.ndarray:
        out = np.empty_like(trials.scores)
        np.copyto(out, trials.scores)
        return out

    copied = best(copy, repeat)
    warm = np.empty_like(trials.scores)
    print(f"np.copyto {n} x {n} float32: {1e3 * copied:.1f} ms into a new array, ", end="")
    print(f"{1e3 * best(lambda: np.copyto(warm, trials.scores), repeat):.1f} ms into one that is there")
    read = {name: best(lambda m=m: m.scores.sum(), repeat) for name, m in (("e", enroll), ("t", test), ("c", cohort))}
    print("np.sum of the blocks: " + ", ".join(f"{name} {1e3 * seconds:.1f} ms" for name, seconds in read.items()))
    print("norm  time      beyond reading  ratio to np.copyto (target 2)")
    for method, needs in (("z", "e"), ("t", "t"), ("s", "et"), ("zt", "etc"), ("tz", "etc")):
        norm = prepare_norm(method)
        seconds = best(lambda norm=norm: norm.normalize(blocks), repeat)
        beyond = seconds - sum(read[name] for name in needs)
        print(f"{method:4}  {1e3 * seconds:6.1f} ms {1e3 * beyond:9.1f} ms    {beyond / copied:8.2f}")
    norm = prepare_norm("as", top_k=300)
    seconds = best(lambda: norm.normalize(blocks), repeat)
    some = enroll.scores[:500]
    scale = 2 * n / 500
    sort = best(lambda: np.sort(some, axis=1), 1) * scale
    partition = best(lambda: np.partition(some, c - 300, axis=1), 1) * scale
    print(f"as    {1e3 * seconds:6.1f} ms; the selection alone takes {sort:.2f} s by np.sort ({sort / seconds:.0f}x),")
    print(f"      {partition:.2f} s by np.partition ({partition / seconds:.1f}x), both extrapolated from 500 rows")


if __name__ == "__main__":
    main()
