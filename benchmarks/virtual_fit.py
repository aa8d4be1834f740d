"""Train the score model on 10^6 x 10^6 cosine scores that are never formed, from float32 embeddings.

Baseline: the two Gram matrices E'E and T'T of the length-normalized embeddings, in float64 as the fit needs them,
from chunks of the same size, in the same run. The fit counts from the embeddings: length normalization, all sums, EM.

Claim: at most 3x the time of the two Gram matrices, below 6 GB (peak of the whole process, embeddings included).

    python benchmarks/virtual_fit.py [--size 1000000] [--dim 256] [--speakers 100000]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import numpy as np

from evenscore import Cosine, Embeddings, Labels, fit_score_model
from evenscore.sources.chunks import float64_chunks


def draw(prefix: str, size: int, dim: int, speakers: int, seed: int) -> Embeddings:
    """Embeddings of equally many utterances of each speaker; the speakers' own directions do not depend on the seed."""
    codes = np.arange(size) % speakers
    centers = np.random.default_rng(0).standard_normal((speakers, dim), dtype=np.float32)
    rng = np.random.default_rng(seed)
    vectors = np.empty((size, dim), dtype=np.float32)
    for first in range(0, size, 1 << 16):
        part = slice(first, first + (1 << 16))
        rng.standard_normal(out=vectors[part], dtype=np.float32)
        vectors[part] += centers[codes[part]]
    return Embeddings([f"{prefix}{n}" for n in range(size)], vectors, [f"s{code}" for code in codes])


def gram(vectors: np.ndarray) -> np.ndarray:
    total = np.zeros((vectors.shape[1], vectors.shape[1]))
    for _, chunk in float64_chunks(vectors):
        total += chunk.T @ chunk
    return total


def measure(size: int, dim: int, speakers: int, repeat: int) -> None:
    warm = [draw(side, 500, dim, 50, seed) for seed, side in enumerate("et", start=1)]
    fit_score_model((Cosine().score(*warm), Labels.from_speakers(warm[0].speakers, warm[1].speakers)))  # compiles
    enroll, test = draw("e", size, dim, speakers, 1), draw("t", size, dim, speakers, 2)
    times: dict[str, list[float]] = {"grams": [], "scorer": [], "fit": []}
    for _ in range(repeat):
        labels = Labels.from_speakers(enroll.speakers, test.speakers)
        start = time.perf_counter()
        source = Cosine().score(enroll, test)
        times["scorer"].append(time.perf_counter() - start)
        result = fit_score_model((source, labels))
        times["fit"].append(time.perf_counter() - start)
        start = time.perf_counter()
        gram(source.left), gram(source.right)
        times["grams"].append(time.perf_counter() - start)
        del source
    grams, scorer, fit = (min(times[name]) for name in ("grams", "scorer", "fit"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{size} x {size} scores, d = {dim}, {speakers} speakers; sigma2 = {result.model.sigma2.round(6).tolist()}")
    print(f"two Gram matrices (float64)  {grams:7.2f} s")
    print(f"fit from float32 embeddings  {fit:7.2f} s, of that {scorer:.2f} s for the length normalization")
    print(f"ratio {fit / grams:.2f} (target 3), peak memory {peak:.2f} GB (target 6)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--speakers", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--here", action="store_true", help="measure in this process instead of a fresh one")
    arguments = parser.parse_args()
    if arguments.here:
        measure(arguments.size, arguments.dim, arguments.speakers, arguments.repeat)
    else:  # a fresh process, so that the peak of memory is that of the fit alone
        subprocess.run([sys.executable, __file__, *sys.argv[1:], "--here"], check=True)


if __name__ == "__main__":
    main()
