"""AS-norm from embeddings: 20 000 embeddings (d = 256) x 6000 cohort, top 300, and 500 000 listed trials.

Against (1) the matrix product alone, embeddings times cohort, in one piece; (2) a baseline written after wespeaker's
published recipe: the whole score matrix, a full sort of each row, then a Python loop over the trials. The baseline
keeps all cohort scores; ours keeps a piece of them.

    python benchmarks/asnorm_embeddings.py [--embeddings 20000] [--cohort 6000] [--trials 500000] [--repeat 7]
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np

from evenscore import Embeddings, TrialList
from evenscore.scoring import score_embeddings


def sorted_rows(vectors: np.ndarray, cohort: np.ndarray, top_n: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the top scores of each row, by a full sort."""
    best = np.sort(vectors @ cohort.T, axis=1)[:, ::-1][:, :top_n]
    return best.mean(axis=1), best.std(axis=1)


def recipe(vectors: dict[str, np.ndarray], cohort: np.ndarray, lines: list[tuple[str, str]], top_n: int) -> list[float]:
    """Normalize trial by trial, after statistics of the enrolments and of the tests."""
    place, statistics = [], []
    for side in (0, 1):
        names = sorted({line[side] for line in lines})
        unit = np.array([vectors[name] for name in names])
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
        place.append({name: row for row, name in enumerate(names)})
        statistics.append(sorted_rows(unit, cohort, top_n))
    normalized = []
    for enroll, test in lines:
        a, b = vectors[enroll], vectors[test]
        score = a @ b / (np.linalg.norm(a) * np.linalg.norm(b))
        i, j = place[0][enroll], place[1][test]
        z = (score - statistics[0][0][i]) / statistics[0][1][i]
        t = (score - statistics[1][0][j]) / statistics[1][1][j]
        normalized.append(0.5 * (z + t))
    return normalized


def seconds(task: Callable[[], object]) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def alternated(tasks: dict[str, Callable[[], object]], repeat: int) -> dict[str, list[float]]:
    """Run tasks in turn, so that a busy moment of the machine meets all of them."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repeat):
        for name, task in tasks.items():
            times[name].append(seconds(task))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("embeddings", 20000), ("cohort", 6000), ("trials", 500_000), ("dim", 256), ("top-k", 300)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--memory", type=float, default=100e6, help="bytes for cohort scores")
    parser.add_argument("--repeat", type=int, default=7)
    a = parser.parse_args()
    rng = np.random.default_rng(0)
    takes = Embeddings(
        [f"u{i}" for i in range(a.embeddings)], rng.standard_normal((a.embeddings, a.dim), dtype=np.float32)
    )
    cohort = Embeddings([f"c{i}" for i in range(a.cohort)], rng.standard_normal((a.cohort, a.dim), dtype=np.float32))
    pairs = rng.choice(a.embeddings**2, size=a.trials, replace=False)
    trials = TrialList(takes.ids, takes.ids, pairs // a.embeddings, pairs % a.embeddings)
    result = {}

    def ours() -> None:
        found = score_embeddings(
            takes, takes, trials, cohort=cohort, method="as", top_k=a.top_k, memory=a.memory, convention="wespeaker"
        )
        result["ours"] = found.scores

    ours()  # compiles
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    whole = 4e-6 * a.embeddings * a.cohort
    print(f"peak memory of the process before any whole matrix: {before / 1e3:.0f} MB; one is {whole:.0f} MB")
    there = np.empty((a.embeddings, a.cohort), dtype=np.float32)
    tasks = {
        "ours": ours,
        "fresh": lambda: takes.vectors @ cohort.vectors.T,
        "there": lambda: np.matmul(takes.vectors, cohort.vectors.T, out=there),
    }
    times = {name: min(times) for name, times in alternated(tasks, a.repeat).items()}
    our_time, fresh, product = times["ours"], times["fresh"], times["there"]
    print(f"matrix product {a.embeddings} x {a.dim} x {a.cohort}: {fresh:.2f} s,", end="")
    print(f" {product:.2f} s into an array that is there")
    print(f"evenscore, {a.trials} trials, memory {a.memory / 1e6:.0f} MB: {our_time:.2f} s", end="")
    print(f" = {our_time / fresh:.2f} x the product, {our_time / product:.2f} x that into an array (target 1.5)")
    vectors = dict(zip(takes.ids.tolist(), takes.vectors, strict=True))
    unit = cohort.vectors / np.linalg.norm(cohort.vectors, axis=1, keepdims=True)
    lines = list(zip(trials.enroll.tolist(), trials.test.tolist(), strict=True))

    def baseline() -> None:
        result["baseline"] = recipe(vectors, unit, lines, a.top_k)

    base_time = seconds(baseline)
    print(f"full sort and a loop over the trials: {base_time:.2f} s, {base_time / our_time:.1f} x slower (target 5)")
    print(f"largest difference: {np.abs(result['ours'] - np.array(result['baseline'])).max():.1e}")


if __name__ == "__main__":
    main()
