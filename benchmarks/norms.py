"""Z, T, S and ZT on an 8000 x 8000 float32 matrix, against np.copyto and reading the cohort blocks once.

The budget is twice the time of np.copyto into a new matrix, plus one read of each cohort block (np.sum). Top-k
selection (AS-norm) is compared with np.partition and with a full np.sort of the same blocks.

    python benchmarks/norms.py [--size 8000] [--repeat 9]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from evenscore import ScoreBlocks, ScoreMatrix
from evenscore.norms import prepare_norm


def alternated(tasks: dict[str, Callable[[], object]], repeat: int) -> dict[str, float]:
    """Shortest time of each task; they run in turn, so that a busy moment of the machine meets all of them."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for task in tasks.values():
        task()  # compiles
    for _ in range(repeat):
        for name, task in tasks.items():
            start = time.perf_counter()
            result = task()
            times[name].append(time.perf_counter() - start)
            del result
    return {name: min(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=8000)
    parser.add_argument("--cohort", type=int, default=6000)
    parser.add_argument("--repeat", type=int, default=9)
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

    warm, some = np.empty_like(trials.scores), enroll.scores[:500]
    norms = {method: prepare_norm(method) for method in ("z", "t", "s", "zt", "tz")}
    norms["as"] = prepare_norm("as", top_k=300)
    tasks: dict[str, Callable[[], object]] = {
        "copy": copy,
        "copy, warm": lambda: np.copyto(warm, trials.scores),
        "read e": enroll.scores.sum,
        "read t": test.scores.sum,
        "read c": cohort.scores.sum,
        "sort": lambda: np.sort(some, axis=1),
        "partition": lambda: np.partition(some, c - 300, axis=1),
        **{method: lambda norm=norm: norm.normalize(blocks) for method, norm in norms.items()},
    }
    ms = {name: 1e3 * seconds for name, seconds in alternated(tasks, repeat).items()}
    print(f"np.copyto {n} x {n} float32: {ms['copy']:.1f} ms into a new array,", end="")
    print(f" {ms['copy, warm']:.1f} ms into one that is there")
    print("np.sum of the blocks: " + ", ".join(f"{name} {ms[f'read {name}']:.1f} ms" for name in "etc"))
    print("norm  time      beyond reading  ratio to np.copyto (target 2)")
    for method, needs in (("z", "e"), ("t", "t"), ("s", "et"), ("zt", "etc"), ("tz", "etc")):
        beyond = ms[method] - sum(ms[f"read {name}"] for name in needs)
        print(f"{method:4}  {ms[method]:6.1f} ms {beyond:9.1f} ms    {beyond / ms['copy']:8.2f}")
    scale = 2 * n / 500
    print(f"as    {ms['as']:6.1f} ms in all; selecting alone, on one core and extrapolated from 500 rows, takes")
    print(f"      {scale * ms['sort']:.0f} ms by np.sort and {scale * ms['partition']:.0f} ms by np.partition")


if __name__ == "__main__":
    main()
