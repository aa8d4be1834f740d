"""Commands on small files, beside importing the libraries that they may need.

Bar: at most 1.3 x `python -c "import numba, polars, numpy"`.

    python benchmarks/start_up.py [--small] [--repeat 9]
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from side_by_side import Task, main, run_command, run_evenscore

LIBRARIES = "import numba, polars, numpy"
BLOCKS = "--trials eval/trials.scores --enroll-cohort eval/enroll.scores --test-cohort eval/test.scores"
TRAIN = "dev/scores.scores --{}key dev/key.trials"
COMMANDS = {
    "evaluate": f"evaluate {TRAIN.format('')}",
    "fit": f"fit --scores {TRAIN.format('')} -o m.json",
    "fit gaussian": f"fit --norm lgsm:residuals=gaussian --scores {TRAIN.format('')} -o m.json",
    "normalize as": f"normalize --norm as:top_k=20 {BLOCKS} -o out.scores",
    "normalize lgsm": f"normalize --norm lgsm --model model.json {BLOCKS} -o out.scores",
    "calibrate": f"calibrate --train {TRAIN.format('train-')} eval/trials.scores -o out.scores",
    "--help": "--help",
}


def make(folder: Path, _: bool) -> None:
    run_evenscore("simulate --speakers 20 --cohort-speakers 30 -o eval --to kaldi", folder)
    run_evenscore("simulate --speakers 20 --seed 1 -o dev --to kaldi", folder)
    run_evenscore(f"fit --norm lgsm:residuals=gaussian --scores {TRAIN.format('')} -o model.json", folder)


def prepare(folder: Path, _: bool) -> dict[str, Task]:
    tasks = {name: partial(run_evenscore, line, folder) for name, line in COMMANDS.items()}
    return {LIBRARIES: partial(run_command, [sys.executable, "-c", LIBRARIES], folder), **tasks}


if __name__ == "__main__":
    main(prepare, make, repeat=9, baseline=LIBRARIES)
