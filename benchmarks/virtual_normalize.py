"""Score 8000 x 8000 trials from float32 embeddings and normalize them with the score model, cohort folded.

Baseline: the raw matrix product of the same embeddings, left @ right.T in float32, into a new array, in the same run.
The runs alternate, so that both meet the same machine. Preparing the cohort is not counted; it is printed.

Claim: at most 1.2x the time of the raw product.

    python benchmarks/virtual_normalize.py [--size 8000] [--dim 256] [--cohort 5000]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from evenscore import Cosine, Embeddings, ScoreModel
from evenscore.model.bilinear_normalizer import BilinearNormalizer

MODEL = ScoreModel(
    mu=[0.0, 0.6], alpha=[[0.03, 0.0], [0.02, 0.05]], beta=[[0.03, 0.0], [0.01, 0.06]], sigma2=[0.004, 0.01]
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=8000)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--cohort", type=int, default=5000)
    parser.add_argument("--repeat", type=int, default=9)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)

    def embeddings(prefix: str, size: int) -> Embeddings:
        vectors = rng.standard_normal((size, arguments.dim), dtype=np.float32)
        return Embeddings([f"{prefix}{n}" for n in range(size)], vectors)

    trials = Cosine().score(embeddings("e", arguments.size), embeddings("t", arguments.size))
    cohort = Cosine().score(embeddings("c", arguments.cohort), embeddings("d", arguments.cohort))
    BilinearNormalizer(MODEL, cohort)  # compiles
    start = time.perf_counter()
    normalizer = BilinearNormalizer(MODEL, cohort)
    prepared = time.perf_counter() - start
    tasks = {
        "raw matrix product, left @ right.T": lambda: trials.left @ trials.right.T,
        "normalized scores, normalizer.block": lambda: normalizer.block(trials),
        "raw ScoreMatrix, scores.matrix": lambda: trials.in_memory(),
        "normalized ScoreMatrix, normalizer.normalize": lambda: normalizer.normalize(trials),
    }
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(arguments.repeat + 1):
        for name, task in tasks.items():
            start = time.perf_counter()
            result = task()
            times[name].append(time.perf_counter() - start)
            del result
    size, dim = arguments.size, arguments.dim
    print(f"{size} x {size} from float32 embeddings, d = {dim}, cohort {arguments.cohort}; best of {arguments.repeat}")
    seconds = [min(times[name][1:]) for name in tasks]
    for name, taken in zip(tasks, seconds, strict=True):
        print(f"{name:46} {1e3 * taken:7.1f} ms   {taken / seconds[0]:.2f}")
    print(f"ratio of the arrays {seconds[1] / seconds[0]:.2f} (target 1.2), of the checked tables ", end="")
    print(f"{seconds[3] / seconds[2]:.2f}; the cohort was prepared once in {1e3 * prepared:.1f} ms")


if __name__ == "__main__":
    main()
