"""EM of the text-dependent recognizer's background model: a mixture of diagonal Gaussians on frames of speech features.

Baseline: `sklearn.mixture.GaussianMixture` with diagonal covariances on the same float32 frames, from the same start,
for the same number of iterations, in the same run (scikit-learn comes with the extra ``bench``).

Claim: an iteration takes at most half of scikit-learn's time, and both end with the same likelihood.

    python benchmarks/background_model.py [--frames 130000] [--gaussians 128] [--iterations 5] [--quick]
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for recipes

from recipes.text_dependent.ubm import DiagonalMixture, fit_mixture, sum_moments, update


def draw(count: int, dim: int, clusters: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    centers = 2.0 * rng.standard_normal((clusters, dim), dtype=np.float32)
    return centers[rng.integers(clusters, size=count)] + rng.standard_normal((count, dim), dtype=np.float32)


def ours(frames: np.ndarray, start: DiagonalMixture, iterations: int) -> DiagonalMixture:
    floor = np.full(frames.shape[1], 1e-6)
    mixture = start
    for _ in range(iterations):
        mixture = update(mixture, sum_moments(mixture, frames), floor)
    return mixture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=130_000)
    parser.add_argument("--gaussians", type=int, default=128)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="few frames, to see that it runs")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.frames, arguments.gaussians = 5_000, 16
    try:
        from sklearn.mixture import GaussianMixture
    except ImportError:
        print("skipped: the baseline needs scikit-learn")
        return
    frames = draw(arguments.frames, 40, 200)
    start = fit_mixture(frames[: len(frames) // 4], arguments.gaussians, split_iterations=2, iterations=1)
    ours(frames[:2000], start, 1)
    begun = time.perf_counter()
    mixture = ours(frames, start, arguments.iterations)
    taken = time.perf_counter() - begun
    peer = GaussianMixture(
        arguments.gaussians,
        covariance_type="diag",
        tol=0.0,
        max_iter=arguments.iterations,
        weights_init=start.weights,
        means_init=start.means,
        precisions_init=1.0 / start.variances,
        init_params="random_from_data",
    )
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has not converged
        peer.fit(frames)
    baseline = time.perf_counter() - begun
    likelihood = sum_moments(mixture, frames).log_likelihood / len(frames)
    shape = f"{len(frames)} frames, {arguments.gaussians} Gaussians, {arguments.iterations} iterations"
    print(f"{shape}: {taken:.2f} s, scikit-learn {baseline:.2f} s, ratio {taken / baseline:.2f}")
    print(f"log-likelihood of a frame: {likelihood:.4f}, scikit-learn {peer.score(frames):.4f}")
    assert abs(likelihood - peer.score(frames)) < 1e-2


if __name__ == "__main__":
    main()
