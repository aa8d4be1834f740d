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

from evenscore import BilinearNormalizer, Cosine, Embeddings, ScoreModel

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
    times: dict[str, list[float]] = {"product": [], "normalized": []}
    for _ in range(arguments.repeat + 1):
        for name, task in (
            ("product", lambda: trials.left @ trials.right.T),
            ("normalized", lambda: normalizer.normalize(trials).scores),
        ):
            start = time.perf_counter()
            result = task()
            times[name].append(time.perf_counter() - start)
            del result
    product, normalized = (min(times[name][1:]) for name in times)
    print(
        f"{arguments.size} x {arguments.size} from float32 embeddings, d = {arguments.dim}, cohort {arguments.cohort}"
    )
    print(f"raw matrix product    {1e3 * product:8.1f} ms")
    print(f"normalized scores     {1e3 * normalized:8.1f} ms   (cohort prepared once in {1e3 * prepared:.1f} ms)")
    print(f"ratio {normalized / product:.2f} (target 1.2)")


if __name__ == "__main__":
    main()
