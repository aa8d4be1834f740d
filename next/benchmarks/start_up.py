"""Start of `normalize` on small files, beside importing the libraries that it may need.

Bar: at most 1.2 x `python -c "import numba, polars, numpy"`.

    python next/benchmarks/start_up.py [--small] [--repeat 9]
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from side_by_side import Task, main, run_command, run_evenscore

LIBRARIES = "import numba, polars, numpy"
BLOCKS = "--trials eval/trials.scores --enroll-cohort eval/enroll.scores --test-cohort eval/test.scores"


def make(folder: Path, _: bool) -> None:
    run_evenscore("simulate --speakers 20 --cohort-speakers 30 -o eval --to kaldi", folder)


def prepare(folder: Path, _: bool) -> dict[str, Task]:
    return {
        LIBRARIES: partial(run_command, [sys.executable, "-c", LIBRARIES], folder),
        "normalize s": partial(run_evenscore, f"normalize --norm s {BLOCKS} -o out.scores", folder),
        "normalize as": partial(run_evenscore, f"normalize --norm as:top_k=20 {BLOCKS} -o out.scores", folder),
        "--help": partial(run_evenscore, "--help", folder),
    }


if __name__ == "__main__":
    main(prepare, make, repeat=9, baseline=LIBRARIES)
