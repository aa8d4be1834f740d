"""Fusion of several systems by logistic regression, against scikit-learn's Newton-Cholesky.

    python benchmarks/calibration.py [--trials 1000000] [--systems 5] [--repeat 5]

scikit-learn fits the same objective (sample weights make both classes count alike), without our checks of the input.
Times are those of the processor with one thread of BLAS, so that a busy machine does not matter much.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from evenscore import LogisticCalibration


def seconds(tasks: dict[str, Callable[[], object]], repeat: int) -> dict[str, float]:
    """Return the least processor time of each task; they run in turn."""
    found = dict.fromkeys(tasks, np.inf)
    for _ in range(repeat):
        for name, task in tasks.items():
            start = time.process_time()
            task()
            found[name] = min(found[name], time.process_time() - start)
    return found


def main() -> None:
    """Print both times, their ratio, and how far the weights are apart."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=1_000_000)
    parser.add_argument("--systems", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    labels = (rng.random(args.trials) < 0.1).astype(int)
    gains = rng.uniform(0.5, 1.5, size=args.systems)
    scores = rng.normal(size=(args.trials, args.systems)) + np.outer(labels, gains) + rng.normal(size=(args.trials, 1))
    tasks: dict[str, Callable[[], object]] = {"evenscore": lambda: LogisticCalibration.fit(scores, labels)}
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        print("scikit-learn is not installed, so that there is nothing to compare with")
    else:
        share = labels.mean()
        weights = np.where(labels == 1, 0.5 / share, 0.5 / (1 - share))
        theirs = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-6)
        tasks["scikit-learn"] = lambda: theirs.fit(scores, labels, sample_weight=weights)
    with threadpool_limits(1):
        found = seconds(tasks, args.repeat)
    print(f"fusion of {args.systems} systems, {args.trials} trials")
    for name, each in found.items():
        print(f"  {name:14} {1e3 * each:8.1f} ms   ratio {found['evenscore'] / each:.2f}")
    if "scikit-learn" in tasks:
        ours = LogisticCalibration.fit(scores, labels)
        print(f"  largest difference of a weight: {np.abs(ours.weights - theirs.coef_[0]).max():.1g}")


if __name__ == "__main__":
    main()
