"""How long a new user waits: each command on small files, warm and cold, against importing the libraries alone.

    python benchmarks/start_up.py [--quick]

Warm: everything is compiled; the median of several runs, as a ratio to ``python -c "import numba, polars, numpy"``,
whose runs stand between them. Cold: an empty compile cache, as on a new machine; a single run in seconds, and how many
specializations of loops it compiled; small data need none. --quick runs each command once.

Claims: at most 1.5 for `evaluate`, `normalize`, `fit` and `calibrate`; --help below 0.3 s; cold at most 5 s each, 10 s
for `as`, 30 s for the demo.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BASELINE = [sys.executable, "-c", "import numba, polars, numpy"]
EVENSCORE = [sys.executable, "-m", "evenscore"]
BLOCKS = "--trials eval/trials.scores --enroll eval/enroll.scores --test eval/test.scores --cohort eval/cohort.scores"
LABELS = "--cohort-key eval/cohort.trials"
COMPARED = (
    "compare --train eval/cohort.scores --train-key eval/cohort.trials --trials eval/trials.scores"
    " --key eval/key.trials --enroll eval/enroll.scores --test eval/test.scores --speakers eval/utt2spk"
)
COMMANDS = {
    "--version": "--version",
    "--help": "--help",
    "evaluate --help": "evaluate --help",
    "info": "info eval/trials.scores --key eval/key.trials",
    "evaluate": "evaluate eval/trials.scores --key eval/key.trials",
    "fit": "fit --scores train/scores.scores --key train/key.trials -o model.json",
    "normalize s": f"normalize --method s {BLOCKS} -o out.scores",
    "normalize as": f"normalize --method as --top-k 20 {BLOCKS} -o out.scores",
    "normalize lgsm": f"normalize --method lgsm --model lgsm.json {BLOCKS} {LABELS} -o out.scores",
    "normalize evidence": f"normalize --method evidence --model evidence.json {BLOCKS} {LABELS} -o out.scores",
    "calibrate": "calibrate --train train/scores.scores --train-key train/key.trials eval/trials.scores -o out.llr",
    "normalize as, 8 million": "normalize --method as --trials large/trials.npz --enroll large/enroll.npz"
    " --test large/test.npz -o out.npz",
    "compare": f"{COMPARED} -o report",
    "demo": "demo -o demo",
}
MADE = ("report", "demo")
PREPARE = (
    "simulate --speakers 20 -o train --to kaldi",
    "simulate --speakers 20 --cohort-speakers 30 -o eval --to kaldi --seed 1",
    "simulate --speakers 500 --cohort-speakers 1000 -o large",
    "fit --scores train/scores.scores --key train/key.trials -o lgsm.json",
    "fit --method evidence --scores train/scores.scores --key train/key.trials -o evidence.json",
)


def seconds(command: list[str], folder: Path, cache: Path | None = None) -> float:
    environment = dict(os.environ) | ({"NUMBA_CACHE_DIR": str(cache)} if cache else {})
    for made in MADE:  # or a comparison would go on where the last one stopped
        shutil.rmtree(folder / made, ignore_errors=True)
    start = time.perf_counter()
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    taken = time.perf_counter() - start
    if run.returncode:
        sys.exit(f"{' '.join(command[2:])}: {run.stderr}")
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="run each command once")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(COMMANDS)}; all if none is named")
    arguments = parser.parse_args()
    runs = 1 if arguments.quick else 5
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        for line in PREPARE:
            seconds([*EVENSCORE, *line.split()], folder)
        print(f"{'command':24} {'warm':>7} {'imports':>8} {'ratio':>6} {'cold':>7}  compiled")
        for name in arguments.names or COMMANDS:
            command = [*EVENSCORE, *COMMANDS[name].split()]
            cache = Path(tempfile.mkdtemp(dir=folder))
            cold = seconds(command, folder, cache)
            compiled = len(list(cache.rglob("*.nbc")))
            pairs = [(seconds(command, folder, cache), seconds(BASELINE, folder)) for _ in range(runs)]
            warm, baseline = (statistics.median(times) for times in zip(*pairs, strict=True))
            print(
                f"{name:24} {warm:5.2f} s {baseline:6.2f} s {warm / baseline:6.2f} {cold:5.1f} s  {compiled:8}",
                flush=True,
            )


if __name__ == "__main__":
    main()
