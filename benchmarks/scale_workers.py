"""AS-norm of embeddings on a Dask cluster of this machine: two workers against one.

8000 x 8000 embeddings (d = 256) against a cohort of 150 000, top 300: bound by arithmetic, half a minute on one core. A
worker uses one core. The cluster is up, and has compiled everything, before the clock starts. Preparing the embeddings
and sending them to workers takes a second or two, however many there are; so short jobs gain less from a second worker.

    python benchmarks/scale_workers.py [--embeddings 8000] [--cohort 150000] [--repeat 2] [--quick]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from evenscore import Embeddings
from evenscore.engine.cluster import connected
from evenscore.files import write_table
from evenscore.scoring import score_lazily


def some(rng: np.random.Generator, prefix: str, number: int, dim: int) -> Embeddings:
    return Embeddings([f"{prefix}{n}" for n in range(number)], rng.standard_normal((number, dim), dtype=np.float32))


def run(client: object, sides: list[Embeddings], path: Path, top_k: int) -> float:
    enroll, test, cohort = sides
    start = time.perf_counter()
    scores = score_lazily(enroll, test, cohort=cohort, method="as", top_k=top_k, client=client)
    write_table(scores, path, client=client)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("embeddings", 8000), ("cohort", 150_000), ("dim", 256), ("top-k", 300), ("repeat", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--quick", action="store_true", help="2000 embeddings, a cohort of 4000, one run")
    a = parser.parse_args()
    if a.quick:
        a.embeddings, a.cohort, a.repeat = 2000, 4000, 1
    rng = np.random.default_rng(0)
    sides = [some(rng, prefix, number, a.dim) for prefix, number in (("e", a.embeddings), ("t", a.embeddings))]
    sides.append(some(rng, "c", a.cohort, a.dim))
    small = [side.take(np.arange(400)) for side in sides]
    times: dict[int, list[float]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(a.repeat):
            for workers in times:
                with connected(workers=workers) as client:
                    run(client, small, Path(folder) / f"small-{turn}-{workers}.zarr", 300)
                    times[workers].append(run(client, sides, Path(folder) / f"{turn}-{workers}.zarr", a.top_k))
    one, two = min(times[1]), min(times[2])
    print(f"{a.embeddings} x {a.embeddings} embeddings, cohort {a.cohort}, d = {a.dim}: 1 worker {one:.2f} s,", end="")
    print(f" 2 workers {two:.2f} s, {one / two:.2f} x as fast (target 1.6)")


if __name__ == "__main__":
    main()
