"""``evenscore compare`` of 454 x 454 trials from files, 227 speakers on either side, with all methods and 1,000 draws.

The training side is as large, and is the cohort. Both programs write the scores and LLRs of each method. Bar: a third
of the CPU time of the first edition.

    python benchmarks/compare.py [--small] [--repeat 2]
"""

from __future__ import annotations

import itertools
from pathlib import Path

from side_by_side import Task, is_new, main, run_evenscore

FILES = "--train {0}/cohort.npz --trials {0}/trials.npz --enroll-cohort {0}/enroll.npz --test-cohort {0}/test.npz"


def make(folder: Path, small: bool) -> None:
    n = 20 if small else 227
    takes = "--enroll-per-speaker 2 --test-per-speaker 2"
    run_evenscore(f"simulate --speakers {n} --cohort-speakers {n} {takes} -o data", folder)


def prepare(folder: Path, small: bool) -> dict[str, Task]:
    command = f"compare {FILES.format('data')} --speakers data/utt2spk"
    output = "--scores -o new" if is_new() else "-o old"
    runs = itertools.count()  # the first edition goes on with the results that it finds in its output

    def compare(options: str) -> Task:
        return lambda: run_evenscore(f"{command} {options} {output}{next(runs)}", folder)

    return {"compare, all methods": compare(""), "compare, raw and s": compare("--methods raw,s")}


if __name__ == "__main__":
    main(prepare, make, repeat=2)
