"""Training PLDA on 150 speakers x 192 dimensions, against EM in plain NumPy, in the same run.

Plain EM inverts a matrix for each number of utterances that a speaker can have, and computes no likelihood. Ratios are
its time over ours: of one iteration, where speakers have 2 to 10 utterances and where all have 6; and of a whole fit,
200 plain iterations over `fit_plda` with its default choices.

    python benchmarks/plda.py [--speakers 150] [--dim 192] [--repeat 5]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from evenscore import Embeddings, fit_plda


def plain_em(vectors: np.ndarray, codes: np.ndarray, iterations: int) -> tuple[np.ndarray, np.ndarray]:
    """Between and within after so many iterations, from the covariances of means and of what is left."""
    sizes = np.bincount(codes)
    means = np.stack([vectors[codes == code].mean(axis=0) for code in range(len(sizes))])
    inner = vectors - means[codes]
    scatter, mu = inner.T @ inner, means.mean(axis=0)
    W, B = scatter / (len(vectors) - len(sizes)), np.cov(means.T) + 1e-3 * np.eye(vectors.shape[1])
    for _ in range(iterations):
        inverse_W, inverse_B = np.linalg.inv(W), np.linalg.inv(B)
        between, within, y = np.zeros_like(B), scatter.copy(), np.empty_like(means)
        for n in np.unique(sizes):
            own = sizes == n
            C = np.linalg.inv(inverse_B + n * inverse_W)
            y[own] = (means[own] - mu) @ (n * inverse_W @ C)
            rest = means[own] - mu - y[own]
            between += own.sum() * C
            within += n * (rest.T @ rest + own.sum() * C)
        shift = y.mean(axis=0)
        between += (y - shift).T @ (y - shift)
        mu, B, W = mu + shift, between / len(sizes), within / len(vectors)
    return B, W


def best(task: Callable[[], object], repeat: int) -> float:
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("speakers", 150), ("dim", 192), ("repeat", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    a = parser.parse_args()
    rng = np.random.default_rng(0)
    for title, sizes in (("2 to 10", rng.integers(2, 11, a.speakers)), ("6", np.full(a.speakers, 6))):
        codes = np.repeat(np.arange(a.speakers), sizes)
        vectors = 0.7 * rng.normal(size=(a.speakers, a.dim))[codes] + rng.normal(size=(len(codes), a.dim))
        report(title, vectors, codes, a.repeat)


def report(title: str, vectors: np.ndarray, codes: np.ndarray, repeat: int) -> None:
    data = Embeddings(range(len(codes)), vectors, codes)

    def ours(iterations: int) -> object:
        return fit_plda(data, length_normalize=False, shrinkage=0, tol=0, max_iter=iterations)

    def each(task: Callable[[int], object]) -> float:
        return (best(lambda: task(25), repeat) - best(lambda: task(5), repeat)) / 20

    plain, own = each(lambda number: plain_em(vectors, codes, number)), each(ours)
    print(f"{title} utterances: {1e3 * own:.1f} ms an iteration, {plain / own:.2f} times as fast as plain NumPy")
    plain, own = best(lambda: plain_em(vectors, codes, 200), 1), best(lambda: fit_plda(data), 1)
    fit = fit_plda(data)
    print(
        f"    a whole fit {own:.2f} s, shrinkage {fit.shrinkage:g} chosen, {fit.n_iter} iterations; "
        f"200 plain iterations take {plain / own:.2f} times as long"
    )


if __name__ == "__main__":
    main()
