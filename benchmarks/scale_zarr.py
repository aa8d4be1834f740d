"""Train on and normalize a zarr store: 20 000 x 50 000 float32 scores (4 GB), cohorts of 500, in one process.

Against the input and output alone: reading each chunk once and writing it once with the zarr library, as it comes; and
with evenscore's own readers, writers and threads, which are faster, reading once and writing once, or reading twice
(training needs all scores before the first is normalized) and writing once. Each run
is a process of its own, which tells its processor time and peak memory; what is compiled is compiled before the clock
starts. The iterations of training come after the scores are summed up, and take as long whatever their number.

    python benchmarks/scale_zarr.py [--rows 20000] [--columns 50000] [--cohort 500] [--repeat 3] [--quick]
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from evenscore import Labels, ScoreBlocks, ScoreMatrix, ScoreModel, fit_score_model, normalize
from evenscore.engine.engine import engine_for
from evenscore.files import open_scores, write_table
from evenscore.sources import as_table
from evenscore.tables import Place, Tile
from evenscore.tables.score_table import Source

SPEAKERS = 400


class Random:
    """Scores that are made tile by tile, with a shift for each row and column and for targets."""

    def read(self, place: Place) -> Tile:
        rows, columns = place.rows, place.columns
        rng = np.random.default_rng([rows.start, columns.start])
        scores = rng.standard_normal((rows.stop - rows.start, columns.stop - columns.start), dtype=np.float32)
        i, j = np.arange(rows.start, rows.stop), np.arange(columns.start, columns.stop)
        scores += np.sin(i)[:, None].astype(np.float32) + np.cos(j).astype(np.float32)
        scores[i[:, None] % SPEAKERS == j % SPEAKERS] += 4.0
        return Tile(scores, rows, columns)

    def identity(self) -> str:
        return "random"


def names(prefix: str, number: int) -> list[str]:
    return [f"{prefix}{place}" for place in range(number)]


def make(folder: Path, rows: int, columns: int, cohort: int) -> None:
    for name, (k, size), prefixes in (
        ("trials", (rows, columns), "et"),
        ("enroll", (rows, cohort), "ec"),
        ("test", (cohort, columns), "dt"),
    ):
        frame = as_table(np.broadcast_to(np.float32(0), (k, size)), names(prefixes[0], k), names(prefixes[1], size))
        write_table(frame.with_source(Random()), folder / f"{name}.zarr")


def labels_of(shape: tuple[int, int]) -> Labels:
    return Labels.from_speakers(*([f"s{place % SPEAKERS}" for place in range(size)] for size in shape))


def in_and_out(folder: Path, reads: int) -> dict[str, float]:
    scores = open_scores(folder / "trials.zarr")
    for _ in range(reads - 1):
        for _ in engine_for().map(read, scores.source, scores.places()):
            pass
    write_table(scores, folder / "out.zarr")
    return {}


def read(source: Source, place: Place) -> None:
    source.read(place)


def ours(folder: Path) -> dict[str, float]:
    opened = {name: open_scores(folder / f"{name}.zarr") for name in ("trials", "enroll", "test")}
    data = [(opened["trials"], labels_of(opened["trials"].shape))]
    last: dict[str, float] = {}
    model = fit_score_model(data, progress=lambda stage, _: last.update({stage: time.perf_counter()})).model
    write_table(normalize(ScoreBlocks(**opened), "lgsm", model=model), folder / "out.zarr")
    return {"iterations": last["fit"] - last["summing scores"]}


def warm_up() -> None:
    """Compile all kernels on a few scores."""
    rng = np.random.default_rng(0)
    tables = {
        name: ScoreMatrix(rng.standard_normal((k, size), dtype=np.float32), names(p, k), names(q, size))
        for name, k, size, p, q in (
            ("trials", 30, 40, "e", "t"),
            ("enroll", 30, 9, "e", "c"),
            ("test", 9, 40, "d", "t"),
        )
    }
    labels = Labels.from_speakers([f"s{n % 5}" for n in range(30)], [f"s{n % 5}" for n in range(40)])
    fit_score_model([(tables["trials"].in_tiles(), labels)], max_iter=3)
    model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[1.0], [1.0]], sigma2=[1.0, 1.0])
    tiled = {name: table.in_tiles() for name, table in tables.items()}
    normalize(ScoreBlocks(**tiled), "lgsm", model=model).in_memory()


def zarr_alone(folder: Path) -> dict[str, float]:
    """Copy the scores chunk by chunk with the zarr library."""
    import zarr

    source = zarr.open_group(folder / "trials.zarr", mode="r")["scores"]
    out = zarr.open_group(folder / "out.zarr", mode="w", zarr_format=source.metadata.zarr_format)
    copy = out.create_array(
        "scores", shape=source.shape, chunks=source.chunks, dtype=source.dtype, compressors=source.compressors
    )
    for row in range(0, source.shape[0], source.chunks[0]):
        for column in range(0, source.shape[1], source.chunks[1]):
            at = slice(row, row + source.chunks[0]), slice(column, column + source.chunks[1])
            copy[at] = source[at]
    return {}


TASKS = {
    "zarr library, read once, write once": zarr_alone,
    "read twice, write once": lambda folder: in_and_out(folder, 2),
    "read once, write once": lambda folder: in_and_out(folder, 1),
    "fit + normalize": ours,
}


def child(task: str, folder: Path) -> None:
    warm_up()
    start, busy = time.perf_counter(), time.process_time()
    more = TASKS[task](folder)
    found = {"seconds": time.perf_counter() - start, "busy": time.process_time() - busy}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(json.dumps({**found, "gigabytes": peak, **more}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("rows", 20000), ("columns", 50000), ("cohort", 500), ("repeat", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--folder", help="where the stores go (twice their size is needed)")
    parser.add_argument("--quick", action="store_true", help="4000 x 5000 scores, one run")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.child:
        child(a.child, Path(a.folder))
        return
    if a.quick:
        a.rows, a.columns, a.repeat = 4000, 5000, 1
    with tempfile.TemporaryDirectory(dir=a.folder) as place:
        folder = Path(place)
        make(folder, a.rows, a.columns, a.cohort)
        print(f"{a.rows} x {a.columns} float32 scores, {4e-9 * a.rows * a.columns:.2f} GB, cohorts of {a.cohort}")
        found: dict[str, list[dict[str, float]]] = {task: [] for task in TASKS}
        for _ in range(a.repeat):
            for task in TASKS:
                command = [sys.executable, __file__, "--child", task, "--folder", place]
                said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                found[task].append(json.loads(said.splitlines()[-1]))
                shutil.rmtree(folder / "out.zarr")
        best = {task: min(runs, key=lambda run: run["seconds"]) for task, runs in found.items()}
        peak = max(run["gigabytes"] for run in found["fit + normalize"])
        for task, run in best.items():
            cores = f"{run['busy']:.2f} s of processor time"
            print(f"{task}: {run['seconds']:.2f} s, {cores}, peak memory {run['gigabytes']:.2f} GB")
        print(f"of fit + normalize, the iterations of training: {best['fit + normalize']['iterations']:.2f} s")
        mine = best.pop("fit + normalize")["seconds"]
        ratios = ", ".join(f"{mine / run['seconds']:.2f} x '{task}'" for task, run in best.items())
        print(f"fit + normalize takes {ratios} (target 1.5), in at most {peak:.2f} GB (target 1.5 GB)")


if __name__ == "__main__":
    main()
