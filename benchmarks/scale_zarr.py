"""S-norm of a zarr store of 20 000 x 50 000 float32 scores (4 GB) with cohorts of 500, from the command line.

Bars: at most 1.5 x the old program, below 1 GB of memory; with two workers not slower. The peak is that of the largest
process. Twice 4 GB of disk are needed.

    python benchmarks/scale_zarr.py [--small] [--repeat 3] [--folder DIRECTORY]
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from resource import struct_rusage

import numpy as np

from side_by_side import Task, is_new, main, run_evenscore

LINE = "normalize --norm s --trials trials.zarr --enroll-cohort enroll.zarr --test-cohort test.zarr"


def make(folder: Path, small: bool) -> None:
    """Write each store in the layout of the program, then its scores chunk by chunk."""
    import zarr

    from evenscore import as_table, write_table

    rows, columns, cohort = (800, 1000, 50) if small else (20_000, 50_000, 500)
    rng = np.random.default_rng(0)
    shapes = {"trials": (rows, columns, "et"), "enroll": (rows, cohort, "ec"), "test": (cohort, columns, "dt")}
    for name, (m, n, (row, column)) in shapes.items():
        zeros = np.broadcast_to(np.float32(0), (m, n))
        ids = [[f"{row}{i}" for i in range(m)], [f"{column}{i}" for i in range(n)]]
        write_table(as_table(zeros, *ids), folder / f"{name}.zarr")
        scores = zarr.open_group(folder / f"{name}.zarr", mode="r+")["scores"]
        for start in range(0, m, scores.chunks[0]):
            stop = min(m, start + scores.chunks[0])
            scores[start:stop] = rng.standard_normal((stop - start, n), dtype=np.float32)


def normalize(folder: Path, more: str) -> struct_rusage:
    """Normalize into an empty place, as both programs go on where an output is unfinished."""
    output = folder / f"out-{'new' if is_new() else 'old'}.zarr"
    shutil.rmtree(output, ignore_errors=True)
    return run_evenscore(f"{LINE} {more} -o {output}", folder)


def prepare(folder: Path, _: bool) -> dict[str, Task]:
    return {
        "s, zarr": partial(normalize, folder, ""),
        "s, zarr, 2 workers": partial(normalize, folder, "--workers 2"),
    }


if __name__ == "__main__":
    main(prepare, make, repeat=3)
