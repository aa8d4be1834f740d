"""Does the location-scale score model pay? Its Cllr and time against the score model and S-norm.

Every setting trains, and takes its cohort, on one half of the speakers and is judged on the other. ``lgsm`` and
``lssm`` are the models' own log-likelihood ratios; everything with ``+log`` has a logistic calibration that was fitted
to the training trials, normalized without their own speakers in the cohort. The scores that come with evenscore are
always judged.

    python benchmarks/location_scale.py [--data DIRECTORY_OR_FILES] [--phrases 3] [--quick]

Without --data, the variable EVENSCORE_DATA names the directory of the embeddings (see benchmarks/accuracy.py).
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from accuracy import Setting, embedding_settings, files_of, llrs_of, shipped_settings
from evenscore import cllr

METHODS = ("raw+log", "s+log", "lgsm", "lgsm+log", "lssm", "lssm+log")
HEAD = f"| Cllr | {' | '.join(METHODS)} | c_0 | d_0 | seconds lgsm | seconds lssm |"


def first_phrases(setting: Setting, number: int) -> Setting:
    return replace(setting, training=setting.training[:number], evaluation=setting.evaluation[:number])


def settings(args: argparse.Namespace) -> Iterator[Setting]:
    for setting in shipped_settings():
        yield first_phrases(setting, 2) if args.quick else setting
    if args.quick:
        return
    options = argparse.Namespace(phrase_column=None, take_column=None, enroll_takes=None, seeds=[0])
    for path in files_of(args.data):
        for setting in embedding_settings(Path(path), options):
            yield first_phrases(setting, args.phrases)


def row(setting: Setting) -> str:
    """Train every method, and return its line of the table."""
    key = np.concatenate([part.labels.matrix.reshape(-1) for part in setting.evaluation])
    known: dict[str, Any] = {}
    losses, seconds = {}, {}
    for method in METHODS:
        start = time.perf_counter()
        losses[method] = cllr(llrs_of(method, setting, known), key)
        seconds[method] = time.perf_counter() - start
    best = min(losses.values())
    cells = [f"**{loss:.4f}**" if loss == best else f"{loss:.4f}" for loss in losses.values()]
    model = known["lssm"][0].model
    cells += [f"{model.c[0]:.2f}", f"{model.d[0]:.2f}", f"{seconds['lgsm']:.1f}", f"{seconds['lssm']:.1f}"]
    return f"| {setting.name}, {setting.direction} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = [os.environ["EVENSCORE_DATA"]] if os.environ.get("EVENSCORE_DATA") else []
    parser.add_argument("--data", nargs="*", default=default, help="directories and npz files of embeddings")
    parser.add_argument("--phrases", type=int, default=3, help="most phrases of a set of embeddings")
    parser.add_argument("--quick", action="store_true", help="only the scores that come with evenscore, two digits")
    args = parser.parse_args()
    print(HEAD)
    print("|---" * (HEAD.count("|") - 1) + "|")
    for setting in settings(args):
        print(row(setting), flush=True)


if __name__ == "__main__":
    main()
