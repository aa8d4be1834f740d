"""S-norm and LGSM of a zarr store of 20 000 x 50 000 float32 scores (4 GB) with cohorts of 500, from the command line.

Bars: at most 1.3 x the old program, at most 2 x copying the trials' store with zarr-python, below 1 GB of memory; with
two workers not slower. The peak is that of the largest process. Three times 4 GB of disk are needed.

    python benchmarks/scale_zarr.py [--small] [--repeat 3] [--folder DIRECTORY]
"""

from __future__ import annotations

import shutil
import sys
from functools import partial
from pathlib import Path
from resource import struct_rusage

import numpy as np

from side_by_side import Task, main, run_command, run_evenscore

LINE = "normalize --trials trials.zarr --enroll-cohort enroll.zarr --test-cohort test.zarr"
COPIED = "copy with zarr-python"
COPY = """
import sys, zarr
source = zarr.open_group(sys.argv[1], mode="r")["scores"]
how = {"shape": source.shape, "chunks": source.chunks, "dtype": source.dtype, "compressors": None}
target = zarr.create_array(sys.argv[2], overwrite=True, **how)
for i in range(0, source.shape[0], source.chunks[0]):
    for j in range(0, source.shape[1], source.chunks[1]):
        at = slice(i, i + source.chunks[0]), slice(j, j + source.chunks[1])
        target[at] = source[at]
"""


def make(folder: Path, small: bool) -> None:
    """Write each store in the layout of the program, then its scores chunk by chunk."""
    import zarr

    from evenscore import ScoreModel, as_table, write_table
    from evenscore.files.models import save_model  # of the old program, in which this runs

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

    loadings = [[0.1], [0.1]]
    save_model(ScoreModel(mu=[0.0, 1.0], alpha=loadings, beta=loadings, sigma2=[1.0, 1.0]), folder / "model.json")


def normalize(folder: Path, more: str) -> struct_rusage:
    """Normalize into an empty place, as both programs go on where an output is unfinished."""
    shutil.rmtree(folder / "out.zarr", ignore_errors=True)
    return run_evenscore(f"{LINE} {more} -o out.zarr", folder)


def copy(folder: Path) -> struct_rusage:
    shutil.rmtree(folder / "out.zarr", ignore_errors=True)
    return run_command([sys.executable, "-c", COPY, "trials.zarr", "out.zarr"], folder)


def prepare(folder: Path, _: bool) -> dict[str, Task]:
    return {
        COPIED: partial(copy, folder),
        "s, zarr": partial(normalize, folder, "--norm s"),
        "lgsm, zarr": partial(normalize, folder, "--norm lgsm --model model.json"),
        "s, zarr, 2 workers": partial(normalize, folder, "--norm s --workers 2"),
    }


if __name__ == "__main__":
    main(prepare, make, repeat=3, baseline=COPIED)
