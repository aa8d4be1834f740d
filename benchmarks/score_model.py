"""The score model: statistics, EM, fits, log-likelihood ratios, single trials, and scores that are never formed.

Bars, in wall time: statistics of 8000 x 8000 float32 scores at most 1.5 x np.copyto; LLRs into an array that exists
1.2 x np.copyto, with residual densities 4 x Gaussian ones (LLRs in new memory stand beside a copy to new memory, whose
pages cost more than the formula); an EM iteration on 1000 x 1000 scores 2000 x faster than the paper's dense one (here
on 200 x 200 scores), on 10^6 x 10^6 scores 15 ms; a fit on 400 speakers 5 x faster than the first edition's 10 s; a
single trial 1.5 x NumPy; training on 10^12 virtual scores 2.2 x the Gram matrices of both sides in float64, in at most
5 GB; LLRs from embeddings 1.3 x their product. Tasks of a few milliseconds are repeated; their names say how often.

    python benchmarks/score_model.py [--small] [--repeat 5] [--only copy statistics ...]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from side_by_side import Task, is_new, main

MODEL = {
    "mu": np.array([-2.0, 3.0]),
    "alpha": np.array([[0.9, 0.0], [0.7, 0.5]]),
    "beta": np.array([[0.8, 0.0], [0.6, -0.5]]),
    "sigma2": np.array([1.0, 1.5]),
}
DENSITIES = {"location": [-0.2, 0.4], "scale": [0.9, 0.7], "skew": [0.2, -0.4], "tail": [0.9, 0.8]}


def repeated(task: Task, times: int) -> Task:
    def run() -> None:
        for _ in range(times):
            task()

    return run


def passes(size: int) -> dict[str, Task]:
    """Passes over all scores, beside a copy of them."""
    from evenscore import Labels, ScoreBlocks, ScoreMatrix, ScoreModel, ScoreModelNormalizer
    from evenscore.model import ResidualDensities

    rng = np.random.default_rng(0)
    raw = rng.standard_normal((size, size), dtype=np.float32)
    enroll, test = rng.standard_normal((size, 50)), rng.standard_normal((50, size))
    cohort, there = rng.standard_normal((50, 50)), np.empty_like(raw)
    ids, members = [str(n) for n in range(size)], [str(n) for n in range(50)]
    sides = {"enroll": ScoreMatrix(enroll, ids, members), "test": ScoreMatrix(test, members, ids)}
    blocks = ScoreBlocks(ScoreMatrix(raw, ids, ids), **sides, cohort=ScoreMatrix(cohort, members, members))
    plain = ScoreModelNormalizer(ScoreModel(**MODEL), blocks)
    bent = ScoreModelNormalizer(ScoreModel(**MODEL, residuals=ResidualDensities(**DENSITIES)), blocks)
    labels = Labels.from_speakers(np.arange(size) // 10, np.arange(size) // 10)
    if is_new():
        from evenscore.model.pattern import PairLabels
        from evenscore.model.sums import matrix_sums
        from evenscore.parallel import one_blas_thread

        pairs = PairLabels.from_labels(labels)

        def statistics() -> None:
            with one_blas_thread():  # as fits do
                matrix_sums(raw, pairs)

    else:
        from evenscore.model.sums import sum_tile

        statistics = lambda: sum_tile(blocks.trials.tile, labels)  # noqa: E731
    return {
        "copy": lambda: np.copyto(there, raw),
        "copy to a new array": lambda: np.copyto(np.empty_like(raw), raw),
        "statistics": statistics,
        "LLRs, Gaussian": lambda: plain.normalize(blocks),
        "LLRs, densities": lambda: bent.normalize(blocks),
        "LLRs, Gaussian, out": lambda: plain.llr(raw, enroll, test, out=there),
        "LLRs, densities, out": lambda: bent.llr(raw, enroll, test, out=there),
    }


def training(small: bool) -> dict[str, Task]:
    """EM iterations and whole fits."""
    from evenscore import ScoreModel, fit_score_model, simulate
    from evenscore.model.em import m_step

    model, names = ScoreModel(**MODEL), [f"s{n // 10}" for n in range(200 if small else 1000)]
    scores, labels = simulate(model, names, names, seed=1)
    people = [f"s{n // 5}" for n in range(200 if small else 2000)]
    many, many_labels = simulate(model, people, people, seed=2)
    few, few_labels = simulate(model, people[:500], people[:500], seed=3)
    listed = np.array(few.scores)  # all targets, and as many non-targets
    listed[(few_labels.matrix == 0) & (np.random.default_rng(0).random(listed.shape) > 0.01)] = np.nan
    size = 1000 if small else 1_000_000
    if is_new():
        from evenscore.model.pattern import PairLabels
        from evenscore.model.posterior import expect
        from evenscore.model.statistics import collect
        from evenscore.model.sums import ClassSums, labelled_parts, part_sums

        stats = collect([part_sums(*part) for part in labelled_parts(scores, labels)])
        codes = np.arange(size) // 10
        pairs = PairLabels(codes, codes, *np.empty((3, 0), np.intp))
        sums, counts = np.random.default_rng(0).normal(size=(2, size, 2)), pairs.row_counts()
        squares = counts.sum(0) * (model.sigma2 + model.variances.nu)
        large = collect([ClassSums(pairs, *(np.sqrt(counts) * part for part in sums), squares, model.mu)])
        tasks: dict[str, Task] = {"EM, 10^6 x 10^6, 50 x": repeated(lambda: m_step(expect(model, large)), 50)}
        start = model.rescaled(1 / stats.scale, -stats.center / stats.scale)
        sys.path.append(str(Path(__file__).parents[1] / "tests"))
        from reference.paper import em_step

        part = scores.scores[:200, :200], labels.matrix[:200, :200]
        tasks["dense EM, 200 x 200"] = lambda: em_step(model, [part])
        tasks["fit, 400 speakers, default"] = lambda: fit_score_model(many, many_labels)
    else:
        from evenscore.model.em import expect
        from evenscore.model.statistics import label_sums, standardize

        stats, tasks = standardize(label_sums([(scores, labels)])), {}
        start = model.rescaled(1 / stats[0].scale, -stats[0].center / stats[0].scale)
    how = {"residuals": "gaussian"} if is_new() else {}
    return tasks | {
        "EM, 1000 x 1000, 50 x": repeated(lambda: m_step(expect(start, stats)), 50),
        "fit, 400 speakers, Gaussian": lambda: fit_score_model((many, many_labels), **how),
        "fit, 5,000 listed trials": lambda: fit_score_model((few.with_scores(listed), few_labels), **how),
    }


def single_trials(size: int) -> dict[str, Task]:
    """Single trials with a cohort of many members: complete, beside NumPy, and with a tenth of the scores missing."""
    from evenscore import Labels, ScoreMatrix, ScoreModel, ScoreModelNormalizer

    rng = np.random.default_rng(0)
    speakers = np.arange(size) // 5
    cohort = ScoreMatrix(rng.standard_normal((size, size)), *([str(n) for n in range(size)] for _ in "et"))
    normalizer = ScoreModelNormalizer(ScoreModel(**MODEL), cohort, Labels.from_speakers(speakers, speakers))
    e, t, weights = rng.normal(size=size), rng.normal(size=size), rng.normal(size=(2, 2, size))

    def in_numpy() -> float:
        d = 1.0 - weights[0] @ e - weights[1] @ t
        return float(0.2 + 0.5 * d[0] * d[0] - 0.4 * d[1] * d[1])

    def with_gaps() -> None:
        for _ in range(20):  # new gaps each time: predictions are remembered
            enroll, test = np.where(rng.random((2, size)) < 0.1, np.nan, rng.normal(size=(2, size)))
            normalizer.normalize_one(1.0, enroll, test)

    return {
        "one trial in NumPy, 1000 x": repeated(in_numpy, 1000),
        "one trial, 1000 x": repeated(lambda: normalizer.normalize_one(1.0, e, t), 1000),
        "one trial with gaps, 20 x": with_gaps,
    }


def virtual_scores(size: int, dim: int = 192) -> dict[str, Task]:
    """Training on size x size cosine scores that are never formed, beside two Gram matrices."""
    from evenscore import Embeddings, Labels, fit_score_model

    names = [f"s{n // 10}" for n in range(size)]
    vectors = np.random.default_rng(0).standard_normal((size, dim), dtype=np.float32)
    sides = [Embeddings([f"{side}{n}" for n in range(size)], vectors[:: 1 - 2 * (side == "t")], names) for side in "et"]

    def grams() -> None:
        for side in sides:
            total = np.zeros((dim, dim))
            for start in range(0, size, 10_000):
                part = side.vectors[start : start + 10_000].astype(np.float64)
                total += part.T @ part

    def fit() -> None:
        labels = Labels.from_speakers(names, names)
        if is_new():
            from evenscore.scoring import CosineScorer

            fit_score_model(CosineScorer().bilinear(*sides), labels, residuals="gaussian")
        else:
            from evenscore import Cosine

            fit_score_model((Cosine().score(*sides), labels))

    return {"two Gram matrices": grams, "fit, virtual scores": fit}


def from_embeddings(trials: int, dim: int = 256) -> dict[str, Task]:
    """LLRs of trials x trials scores that are products of vectors."""
    if not is_new():
        return {}
    from evenscore import ScoreModel, ScoreModelNormalizer
    from evenscore.model import BilinearScores

    vectors = np.random.default_rng(0).standard_normal((2 * trials + 500, dim), dtype=np.float32)
    left, right, members = np.split(vectors, [trials, 2 * trials])
    blocks = BilinearScores(left, right), BilinearScores(left, members), BilinearScores(members, right)
    normalizer = ScoreModelNormalizer(ScoreModel(**MODEL), BilinearScores(members, members))
    return {
        "product": lambda: np.asarray(blocks[0]),
        "LLRs from embeddings": lambda: normalizer.llr(*blocks),
    }


def prepare(_: Path, small: bool) -> dict[str, Task]:
    tasks = passes(400 if small else 8000) | training(small) | single_trials(200 if small else 1000)
    return tasks | from_embeddings(400 if small else 8000) | virtual_scores(500 if small else 1_000_000)


if __name__ == "__main__":
    main(prepare, baseline="copy")
