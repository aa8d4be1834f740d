"""Time of the cohort-evidence model: fitting on 400 x 1700 scores, and scoring 400 x 1700 trials against AS-norm.

Scores are cosines of made-up embeddings; the training matrix is its own cohort. AS-norm is ours (``as``,
the 300 highest cohort scores), on the same blocks, in the same run.

    python benchmarks/evidence_speed.py [--enroll 400] [--tests 1700] [--dim 192] [--repeat 7]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from evenscore import LabelledBlocks, Labels, ScoreBlocks, ScoreMatrix, fit_norm, normalize, prepare_norm


def vectors(rng: np.random.Generator, speakers: np.ndarray, centers: np.ndarray) -> np.ndarray:
    made = centers[speakers] + 0.9 * rng.normal(size=(len(speakers), centers.shape[1]))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def scores(left: np.ndarray, right: np.ndarray, names: tuple[str, str]) -> ScoreMatrix:
    rows, columns = (
        [f"{name}{at}" for at in range(len(side))] for name, side in zip(names, (left, right), strict=True)
    )
    return ScoreMatrix(left @ right.T, rows, columns)


def quickest(task: Callable[[], object], repeat: int) -> float:
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--enroll", type=int, default=400)
    parser.add_argument("--tests", type=int, default=1700)
    parser.add_argument("--dim", type=int, default=192)
    parser.add_argument("--repeat", type=int, default=7)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    names, test_names = np.arange(args.enroll), np.arange(args.tests) % args.enroll
    sides = []
    for _ in range(2):
        centers = rng.normal(size=(args.enroll, args.dim)) * np.geomspace(3, 0.3, args.dim)
        sides.append((vectors(rng, names, centers), vectors(rng, test_names, centers)))
    (E, T), (E2, T2) = sides
    who = ([f"c{n}" for n in names], [f"c{n}" for n in test_names])
    cohort = scores(E, T, ("ce", "ct"))
    labels = Labels.from_speakers(*who, enroll_ids=cohort.enroll_ids, test_ids=cohort.test_ids)
    training = LabelledBlocks.own_cohort(cohort, labels)
    blocks = ScoreBlocks(
        scores(E2, T2, ("e", "t")),
        enroll=scores(E2, T, ("e", "ct")),
        test=scores(E, T2, ("ce", "t")),
        cohort=cohort,
        cohort_labels=labels,
        cohort_enroll_speakers=who[0],
        cohort_test_speakers=who[1],
    )
    fit_norm("evidence", [training])  # compiles
    start = time.perf_counter()
    fitted = fit_norm("evidence", [training])
    print(f"fitting on {args.enroll} x {args.tests} scores: {time.perf_counter() - start:.1f} s")
    adaptive = prepare_norm("as", top_k=min(300, args.enroll), excess="clip")
    prepared = prepare_norm(
        "evidence",
        model=fitted.model,
        cohort=cohort,
        cohort_labels=labels,
        cohort_enroll_speakers=who[0],
        cohort_test_speakers=who[1],
    )
    normalize(blocks, "evidence", model=fitted.model)
    prepared.normalize(blocks)
    seconds = {
        "AS-norm": quickest(lambda: adaptive.normalize(blocks), args.repeat),
        "evidence, prepared for the cohort": quickest(lambda: prepared.normalize(blocks), args.repeat),
        "evidence, with a new cohort": quickest(lambda: fitted.normalizer.normalize(blocks), args.repeat),
    }
    for name, value in seconds.items():
        print(f"{name}: {1e3 * value:.1f} ms, {value / seconds['AS-norm']:.2f} x AS-norm")
    row, column = blocks.enroll.scores[0], blocks.test.scores[:, 0]
    one = quickest(lambda: prepared.normalize_one(0.5, row, column), 20)
    print(f"one trial: {1e3 * one:.2f} ms")


if __name__ == "__main__":
    main()
