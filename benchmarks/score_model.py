"""The score model: training, statistics, normalizing, one trial; each against a baseline in the same run.

1. one EM iteration, K = L = 1000, D = 2, 100 speakers: against the dense Cholesky EM of the paper (4000 x 4000
   precision), which must give the same parameters (target: 1000x faster); and K = L = 1 000 000 (at most 2x slower)
2. the statistics of a float32 8000 x 8000 matrix, against np.copyto of it (at most 2x)
3. normalizing that matrix, against np.copyto (at most 1.5x) and against plain NumPy (more than 20x faster)
6. one trial with a cohort of 5000, both dot products included (below 50 us, median)

    python benchmarks/score_model.py [--quick] [--repeat 7]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numba import get_num_threads
from scipy.linalg import cho_factor, cho_solve

from evenscore import Labels, ScoreBlocks, ScoreMatrix, ScoreModel, ScoreModelNormalizer, simulate
from evenscore.model.em import Statistics, expect, m_step
from evenscore.model.patterns import SpeakerBlocks, compress
from evenscore.model.residuals import ResidualDensities
from evenscore.model.score_weights import llrs_of_sums
from evenscore.model.statistics import label_sums, standardize
from evenscore.model.sums import ClassSums, sum_tile

MODEL = ScoreModel(
    mu=np.array([-2.0, 3.0]),
    alpha=np.array([[0.9, 0.0], [0.7, 0.5]]),
    beta=np.array([[0.8, 0.0], [0.6, -0.5]]),
    sigma2=np.array([1.0, 1.5]),
)
SHAPES = ((8, 12), (10, 10), (12, 8), (10, 10))  # enrolments and tests of the speakers, in turn: 3 distinct shapes
DENSITIES = ResidualDensities(location=[-0.2, 0.4], scale=[0.9, 0.7], skew=[0.2, -0.4], tail=[0.9, 0.8])


def best(task: Callable[[], object], repeat: int, inner: int = 1) -> float:
    """Shortest time of several runs, after one that is not counted."""
    return best_of({"": task}, repeat, inner)[""]


def best_of(tasks: dict[str, Callable[[], object]], repeat: int, inner: int = 1) -> dict[str, float]:
    """Shortest time of each task; they take turns, so that a busy moment of the machine hits all of them."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for number in range(repeat + 1):  # the first round warms up
        for name, task in tasks.items():
            start = time.perf_counter()
            for _ in range(inner if number else 1):
                result = task()
            if number:
                times[name].append((time.perf_counter() - start) / inner)
            del result
    return {name: min(taken) for name, taken in times.items()}


def speakers(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the speakers of the rows and of the columns."""
    sizes = np.array([SHAPES[n % len(SHAPES)] for n in range(count)])
    return np.repeat(np.arange(count), sizes[:, 0]), np.repeat(np.arange(count), sizes[:, 1])


def dense_em_step(model: ScoreModel, scores: np.ndarray, key: np.ndarray) -> ScoreModel:
    """One iteration straight from the paper: factorize and invert the whole posterior precision."""
    n_rows, n_columns = scores.shape
    d, n = model.dim, model.dim * (n_rows + n_columns)
    precision, gamma = np.eye(n), np.zeros(n)
    cut = d * n_rows
    alpha, beta = model.alpha, model.beta
    cross = precision[:cut, cut:].reshape(n_rows, d, n_columns, d)
    for h in (0, 1):
        where = (key == h).astype(float)
        a, b, c = (np.outer(u, v) / model.sigma2[h] for u, v in ((alpha[h],) * 2, (beta[h],) * 2, (alpha[h], beta[h])))
        rows, columns = np.arange(n_rows), np.arange(n_columns)
        precision[:cut, :cut].reshape(n_rows, d, n_rows, d)[rows, :, rows] += where.sum(axis=1)[:, None, None] * a
        precision[cut:, cut:].reshape(n_columns, d, n_columns, d)[columns, :, columns] += (
            where.sum(axis=0)[:, None, None] * b
        )
        cross += where[:, None, :, None] * c[:, None, :]
        rest = where * (scores - model.mu[h]) / model.sigma2[h]
        gamma[:cut] += np.outer(rest.sum(axis=1), alpha[h]).ravel()
        gamma[cut:] += np.outer(rest.sum(axis=0), beta[h]).ravel()
    precision[cut:, :cut] = precision[:cut, cut:].T
    factor = cho_factor(precision, lower=True, overwrite_a=True)
    covariance = cho_solve(factor, np.eye(n), overwrite_b=True)
    mean = covariance @ gamma
    x, y = mean[:cut].reshape(n_rows, d), mean[cut:].reshape(n_columns, d)
    rows, columns = np.arange(n_rows), np.arange(n_columns)
    xx = covariance[:cut, :cut].reshape(n_rows, d, n_rows, d)[rows, :, rows] + x[:, :, None] * x[:, None]
    yy = covariance[cut:, cut:].reshape(n_columns, d, n_columns, d)[columns, :, columns] + y[:, :, None] * y[:, None]
    xy = covariance[:cut, cut:].reshape(n_rows, d, n_columns, d)
    found = []
    for h in (0, 1):
        where = (key == h).astype(float)
        per_row, per_column = where.sum(axis=1), where.sum(axis=0)
        ww, sw = np.zeros((1 + 2 * d, 1 + 2 * d)), np.zeros(1 + 2 * d)
        at_x, at_y = slice(1, 1 + d), slice(1 + d, 1 + 2 * d)
        ww[0, 0] = where.sum()
        ww[0, at_x] = ww[at_x, 0] = per_row @ x
        ww[0, at_y] = ww[at_y, 0] = per_column @ y
        ww[at_x, at_x], ww[at_y, at_y] = np.einsum("i,ide->de", per_row, xx), np.einsum("j,jde->de", per_column, yy)
        ww[at_x, at_y] = np.einsum("ij,idje->de", where, xy) + x.T @ where @ y
        ww[at_y, at_x] = ww[at_x, at_y].T
        values = where * scores
        sw[0], sw[at_x], sw[at_y] = values.sum(), values.sum(axis=1) @ x, values.sum(axis=0) @ y
        weights = np.linalg.solve(ww, sw)
        found.append((weights, ((values * scores).sum() - weights @ sw) / where.sum()))
    weights, sigma2 = np.array([w for w, _ in found]), np.array([s for _, s in found])
    mu, loadings = weights[:, 0], [weights[:, 1 : 1 + d], weights[:, 1 + d :]]
    for at, (first, second) in enumerate(((x, xx), (y, yy))):  # minimum divergence
        center = first.mean(axis=0)
        mu = mu + loadings[at] @ center
        loadings[at] = loadings[at] @ np.linalg.cholesky(second.mean(axis=0) - np.outer(center, center))
    return ScoreModel(mu=mu, alpha=loadings[0], beta=loadings[1], sigma2=sigma2)


def virtual_statistics(count: int) -> Statistics:
    """Statistics of a matrix that is never formed: sums of rows and columns, drawn for their own sizes."""
    rng = np.random.default_rng(0)
    row_codes, column_codes = speakers(count)
    n_rows, n_columns = len(row_codes), len(column_codes)
    sizes = np.stack([np.bincount(row_codes), np.bincount(column_codes)])
    counts = {}
    for name, codes, other, size in (
        ("row", row_codes, sizes[1], n_columns),
        ("column", column_codes, sizes[0], n_rows),
    ):
        targets = other[codes].astype(float)
        counts[name] = np.stack([size - targets, targets])

    def sums(loading: np.ndarray, number: np.ndarray) -> np.ndarray:
        effects = loading @ rng.normal(size=(2, number.shape[1]))
        noise = np.sqrt(MODEL.sigma2[:, None] * number) * rng.normal(size=number.shape)
        return number * (MODEL.mu[:, None] + effects) + noise

    table, total = MODEL.variances, counts["row"].sum(axis=1)
    whole = ClassSums(
        center=0.0,
        rows=sums(MODEL.alpha, counts["row"]),
        columns=sums(MODEL.beta, counts["column"]),
        squares=total * (table.sigma2 + table.nu + MODEL.mu**2),
        row_counts=counts["row"],
        column_counts=counts["column"],
    )
    blocks = SpeakerBlocks(row_codes=row_codes, column_codes=column_codes, n_speakers=count)
    return compress(whole, blocks, center=MODEL.mu, scale=1.0)


def iteration(repeat: int, count: int, many: int) -> None:
    row_codes, column_codes = speakers(count)
    scores, labels = simulate(MODEL, row_codes, column_codes, seed=1)
    statistics = standardize(label_sums([(scores, labels)]))
    start = MODEL.rescaled(1 / statistics[0].scale, -statistics[0].center / statistics[0].scale)
    large = [virtual_statistics(many)]
    tasks = {"here": lambda: m_step(expect(start, statistics)), "large": lambda: m_step(expect(MODEL, large))}
    taken = best_of(tasks, 2 * repeat, inner=50)
    ours, huge = taken["here"], taken["large"]
    dense = best(lambda: dense_em_step(MODEL, scores.scores, labels.matrix), max(repeat // 3, 1))
    fast = m_step(expect(start, statistics)).rescaled(statistics[0].scale, statistics[0].center)
    slow = dense_em_step(MODEL, scores.scores, labels.matrix)
    odd = max(
        float(np.abs(getattr(fast, name) - getattr(slow, name)).max()) for name in ("mu", "alpha", "beta", "sigma2")
    )
    size = f"K = {len(row_codes)}, L = {len(column_codes)}, {count} speakers, D = 2"
    print(f"1. EM iteration, {size}: {1e6 * ours:.0f} us; dense Cholesky EM {dense:.2f} s: {dense / ours:.0f}x")
    print(f"   largest difference of a parameter after it: {odd:.1e}")
    size = f"K = {large[0].n_rows}, L = {large[0].n_columns}, {many} speakers"
    print(f"   EM iteration, {size}: {1e6 * huge:.0f} us: {huge / ours:.2f}x")


def passes(repeat: int, size: int) -> None:
    rng = np.random.default_rng(0)
    raw = rng.standard_normal((size, size), dtype=np.float32)
    ids = [str(n) for n in range(size)]
    scores = ScoreMatrix(raw, ids, ids)
    labels = Labels.from_speakers(np.arange(size) // 10, np.arange(size) // 10)
    cohort = ScoreMatrix(rng.standard_normal((50, 50)), range(50), range(50))
    enroll = ScoreMatrix(rng.standard_normal((size, 50)), ids, range(50))
    test = ScoreMatrix(rng.standard_normal((50, size)), range(50), ids)
    blocks = ScoreBlocks(scores, enroll=enroll, test=test, cohort=cohort)
    normalizer = ScoreModelNormalizer(MODEL, cohort)
    w = normalizer.weights()
    bent = replace(w, reading=DENSITIES)
    known = blocks.with_targets(enroll={name: [3.0] for name in ids})
    rows, columns = rng.normal(size=(size, 2)), rng.normal(size=(2, size))
    there = np.empty_like(raw)

    def plain() -> np.ndarray:
        """The formula of the kernel in NumPy, in double precision like it."""
        s = raw.astype(np.float64)
        first = w.half[0] * (s - rows[:, :1] - columns[0]) ** 2
        return (w.constant + first - w.half[1] * (s - rows[:, 1:] - columns[1]) ** 2).astype(np.float32)

    tasks: dict[str, Callable[[], object]] = {
        "copy": lambda: np.copyto(there, raw),
        "copy into a new array": lambda: np.copyto(np.empty_like(raw), raw),
        "statistics": lambda: sum_tile(blocks.trials.tile, labels),
        "llrs": lambda: llrs_of_sums(w, raw, rows, columns, out=there),
        "normalize": lambda: normalizer.normalize(blocks),
        "densities": lambda: llrs_of_sums(bent, raw, rows, columns, out=there),
        "known": lambda: normalizer.normalize(known),
    }
    taken = best_of(tasks, repeat)
    llrs_of_sums(w, raw, rows, columns, out=there)
    assert np.allclose(plain(), there, rtol=1e-5, atol=1e-5)
    taken["NumPy"] = best(plain, 2)
    ms = {name: f"{1e3 * seconds:.1f} ms" for name, seconds in taken.items()}
    copy, new = taken["copy"], taken["copy into a new array"]
    print(f"np.copyto, float32 {size} x {size}: {ms['copy']}; into a new array {ms['copy into a new array']}")
    print(f"2. statistics: {ms['statistics']}, {taken['statistics'] / copy:.2f}x np.copyto")
    print(f"3. normalizing, cohort shifts given: {ms['llrs']}, {taken['llrs'] / copy:.2f}x np.copyto; ", end="")
    print(f"plain NumPy {ms['NumPy']}, {taken['NumPy'] / taken['llrs']:.1f}x")
    print(f"   ScoreModelNormalizer.normalize into a new array, cohort of 50 + 50: {ms['normalize']}, ", end="")
    print(f"{taken['normalize'] / new:.2f}x np.copyto into a new array")
    print(f"   with a known target score of each enrolment: {ms['known']}, ", end="")
    print(f"{taken['known'] / taken['normalize']:.2f}x the time without")
    print(f"   with sinh-arcsinh densities, cohort shifts given: {ms['densities']}, ", end="")
    print(f"{taken['densities'] / taken['llrs']:.1f}x the time of Gaussians")


def online(size: int, calls: int) -> None:
    rng = np.random.default_rng(0)
    cohort = ScoreMatrix(rng.standard_normal((size, size), dtype=np.float32), range(size), range(size))
    normalizer = ScoreModelNormalizer(MODEL, cohort)
    enroll, test = rng.standard_normal((2, size), dtype=np.float32)
    normalizer.normalize_one(1.0, enroll, test)
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        normalizer.normalize_one(1.0, enroll, test)
        times.append(time.perf_counter() - start)
    dot = best(lambda: (enroll @ enroll, test @ test), 5, inner=200)
    median = float(np.median(times))
    print(f"6. one trial, cohort of {size}: {1e6 * median:.1f} us median, {median / dot:.1f}x its two np.dot")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--repeat", type=int, default=7)
    arguments = parser.parse_args()
    print(f"{get_num_threads()} threads")
    iteration(arguments.repeat, *((20, 1000) if arguments.quick else (100, 100_000)))
    passes(arguments.repeat, 1000 if arguments.quick else 8000)
    online(500 if arguments.quick else 5000, 2000)


if __name__ == "__main__":
    main()
