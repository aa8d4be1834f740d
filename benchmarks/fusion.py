"""Fusion of several systems, against scikit-learn's Newton-Cholesky; and AS-norm with either side's selection.

    python benchmarks/fusion.py [--trials 1000000] [--systems 5] [--repeat 5] [--quick]

scikit-learn fits the same objective (sample weights make both classes count alike), without our checks of the input.
Times are those of the processor, as far as one core is given, so that a busy machine does not matter much.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from evenscore import LogisticCalibration, ScoreBlocks, ScoreMatrix, TrialList, prepare_norm


def seconds(tasks: dict[str, Callable[[], object]], repeat: int) -> dict[str, float]:
    """Least processor time of each task; they run in turn."""
    found = dict.fromkeys(tasks, np.inf)
    for task in tasks.values():
        task()  # loads and compiles
    for _ in range(repeat):
        for name, task in tasks.items():
            start = time.process_time()
            task()
            found[name] = min(found[name], time.process_time() - start)
    return found


def fusion(n: int, systems: int, repeat: int) -> None:
    rng = np.random.default_rng(0)
    labels = (rng.random(n) < 0.1).astype(int)
    scores = (
        rng.normal(size=(n, systems)) + labels[:, None] * rng.uniform(0.5, 1.5, size=systems) + rng.normal(size=(n, 1))
    )
    tasks: dict[str, Callable[[], object]] = {"evenscore": lambda: LogisticCalibration.fit(scores, labels)}
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        print("scikit-learn is not installed, so that there is nothing to compare the fusion with")
    else:
        share = labels.mean()
        weights = np.where(labels == 1, 0.5 / share, 0.5 / (1 - share))
        theirs = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-6)
        tasks["scikit-learn"] = lambda: theirs.fit(scores, labels, sample_weight=weights)
    found = seconds(tasks, repeat)
    print(f"fusion of {systems} systems, {n} trials")
    for name, each in found.items():
        ratio = f"   ratio {found['evenscore'] / each:.2f}" if name != "evenscore" else ""
        print(f"  {name:14} {1e3 * each:8.1f} ms{ratio}")
    if len(tasks) > 1:
        ours = LogisticCalibration.fit(scores, labels)
        print(f"  largest difference of a weight: {np.abs(ours.weights - theirs.coef_[0]).max():.1g}")


def selection(n: int, members: int, k: int, repeat: int) -> None:
    rng = np.random.default_rng(1)
    e, t, c = ([f"{name}{i}" for i in range(size)] for name, size in (("e", n), ("t", n), ("c", members)))
    matrix = ScoreMatrix(rng.normal(size=(n, n)), e, t)
    sides = {"enroll": ScoreMatrix(rng.normal(size=(n, members)), e, c)}
    sides["test"] = ScoreMatrix(rng.normal(size=(members, n)), c, t)
    row, column = np.unique(rng.integers(0, n, size=(2, 10 * n)), axis=1)
    listed = TrialList(e, t, row, column, scores=matrix.scores[row, column])
    norms = {name: prepare_norm("as", top_k=k, select=name) for name in ("own", "cross")}
    for what, trials in ((f"{n} x {n} trials", matrix), (f"{len(row)} listed trials of {n} x {n}", listed)):
        blocks = ScoreBlocks(trials, **sides)
        tasks = {name: lambda norm=norm, blocks=blocks: norm.normalize(blocks) for name, norm in norms.items()}
        found = seconds(tasks, repeat)
        ours, other = (1e3 * found[name] for name in ("own", "cross"))
        print(f"AS-norm, {what}, {k} of {members} members")
        print(f"  own {ours:.1f} ms, cross {other:.1f} ms, ratio {other / ours:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=1_000_000)
    parser.add_argument("--systems", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    arguments = parser.parse_args()
    if arguments.quick:
        fusion(20_000, arguments.systems, 2)
        selection(200, 400, 80, 1)
        return
    fusion(arguments.trials, arguments.systems, arguments.repeat)
    selection(1000, 2000, 300, 2)


if __name__ == "__main__":
    main()
