"""Norms of tiled trials whose own speakers are in the cohort: tables of statistics against reading for each tile.

Scores are memory-mapped npy files in tiles of 8 MB. Processor time of all threads; one run of each way is thrown away.

    python benchmarks/own_speakers.py [--enroll 4000] [--test 12000] [--cohort 2000] [--speakers 400] [--quick]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from evenscore import ScoreBlocks, normalize, open_scores
from evenscore.norms import prepare_norm
from evenscore.norms.parts import ByBlocks


def blocks_in(folder: Path, sizes: dict[str, int], speakers: int) -> ScoreBlocks:
    rng = np.random.default_rng(0)
    shapes = {"trials": ("e", "t"), "enroll": ("e", "c"), "test": ("d", "t")}
    found = {}
    for name, sides in shapes.items():
        scores = rng.standard_normal([sizes[side] for side in sides], dtype=np.float32)
        np.save(folder / f"{name}.npy", scores)
        for side, ending in zip(sides, ("enroll_ids", "test_ids"), strict=True):
            (folder / f"{name}.{ending}").write_text("".join(f"{side}{n}\n" for n in range(sizes[side])))
        found[name] = open_scores(folder / f"{name}.npy").in_tiles(1 << 23)
    who = {side: [f"s{n % speakers}" for n in range(size)] for side, size in sizes.items()}
    return ScoreBlocks(
        found.pop("trials"),
        **found,
        enroll_speakers=who["e"],
        test_speakers=who["t"],
        cohort_enroll_speakers=who["d"],
        cohort_test_speakers=who["c"],
    )


def timed(blocks: ScoreBlocks, method: str, *, tables: bool) -> float:
    start = time.process_time()
    if tables:
        result = normalize(blocks, method)
        for place in result.places():
            result.read(place)
    else:
        way, trials = ByBlocks(prepare_norm(method), blocks), blocks.trials
        for place in trials.places():
            way.tile(trials.read(place), trials.enroll_axis, trials.test_axis)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("enroll", 4000), ("test", 12000), ("cohort", 2000), ("speakers", 400)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--quick", action="store_true", help="1000 x 3000 trials, a cohort of 500 by 100 speakers")
    a = parser.parse_args()
    if a.quick:
        a.enroll, a.test, a.cohort, a.speakers = 1000, 3000, 500, 100
    with tempfile.TemporaryDirectory() as folder:
        blocks = blocks_in(Path(folder), {"e": a.enroll, "t": a.test, "c": a.cohort, "d": a.cohort}, a.speakers)
        tiles = len(blocks.trials.places())
        print(f"{a.enroll} x {a.test} trials, {tiles} tiles, cohort {a.cohort}, {a.speakers} speakers")
        for method in ("s", "as"):
            for tables in (True, False):
                timed(blocks, method, tables=tables)
            once, again = timed(blocks, method, tables=True), timed(blocks, method, tables=False)
            print(f"{method}: tables {once:.2f} s, reading for each tile {again:.2f} s, {again / once:.1f} x as fast")


if __name__ == "__main__":
    main()
