"""Time of the cohort-evidence model: fitting on 400 x 1700 scores, and scoring 400 x 1700 trials against AS-norm.

Scores are cosines of made-up embeddings; the training matrix is its own cohort. AS-norm is ours (``as``,
the 300 highest cohort scores), on the same blocks, in the same run. Times are the processor's, of all threads together:
the least of several turns, in which all candidates take part. At the end the same from embeddings, where both score the
trials and compare each embedding with a cohort of 4000 (evidence also factorizes the cohort, which takes most of it).

    python benchmarks/evidence_speed.py [--enroll 400] [--tests 1700] [--dim 192] [--repeat 15]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from evenscore import (
    Embeddings,
    LabelledBlocks,
    Labels,
    ScoreBlocks,
    ScoreMatrix,
    fit_norm,
    prepare_norm,
    score_embeddings,
)


def vectors(rng: np.random.Generator, speakers: np.ndarray, centers: np.ndarray) -> np.ndarray:
    made = centers[speakers] + 0.9 * rng.normal(size=(len(speakers), centers.shape[1]))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def scores(left: np.ndarray, right: np.ndarray, names: tuple[str, str]) -> ScoreMatrix:
    rows, columns = (
        [f"{name}{at}" for at in range(len(side))] for name, side in zip(names, (left, right), strict=True)
    )
    return ScoreMatrix(left @ right.T, rows, columns)


def quickest(tasks: dict[str, Callable[[], object]], repeat: int) -> dict[str, float]:
    """Return the processor time of each task, the least of several turns."""
    found = dict.fromkeys(tasks, float("inf"))
    for turn in range(repeat + 1):
        for name, task in tasks.items():
            start = time.process_time()
            task()
            if turn:  # the first one compiles
                found[name] = min(found[name], time.process_time() - start)
    return found


def show(tasks: dict[str, Callable[[], object]], repeat: int) -> None:
    """Print the times, and how they compare with the first."""
    seconds = quickest(tasks, repeat)
    first = next(iter(seconds))
    for name, value in seconds.items():
        print(f"{name}: {1e3 * value:.1f} ms, {value / seconds[first]:.2f} x {first}")


def from_embeddings(model: object, sides: list[np.ndarray], members: int, repeat: int) -> None:
    rng = np.random.default_rng(1)
    enroll, test = (
        Embeddings([f"{name}{at}" for at in range(len(side))], side)
        for name, side in zip(("e", "t"), sides, strict=True)
    )
    who = np.arange(members) // 4
    made = vectors(rng, who, rng.normal(size=(members, enroll.dim)) * np.geomspace(3, 0.3, enroll.dim))
    cohort = Embeddings([f"c{at}" for at in range(members)], made, [f"s{name}" for name in who])
    tasks = {
        f"AS-norm from embeddings, cohort of {members}": lambda: score_embeddings(
            enroll, test, cohort=cohort, method="as", top_k=300
        ),
        f"evidence from embeddings, cohort of {members}": lambda: score_embeddings(
            enroll, test, cohort=cohort, method="evidence", model=model
        ),
    }
    show(tasks, repeat)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--enroll", type=int, default=400)
    parser.add_argument("--tests", type=int, default=1700)
    parser.add_argument("--dim", type=int, default=192)
    parser.add_argument("--repeat", type=int, default=15)
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
    start = time.process_time()
    fitted = fit_norm("evidence", [training])
    print(f"fitting on {args.enroll} x {args.tests} scores: {time.process_time() - start:.1f} s")
    adaptive = prepare_norm("as", top_k=min(300, args.enroll), excess="clip")
    prepared = prepare_norm(
        "evidence",
        model=fitted.model,
        cohort=cohort,
        cohort_labels=labels,
        cohort_enroll_speakers=who[0],
        cohort_test_speakers=who[1],
    )
    tasks = {
        "AS-norm": lambda: adaptive.normalize(blocks),
        "evidence, prepared for the cohort": lambda: prepared.normalize(blocks),
        "evidence, with a new cohort": lambda: fitted.normalizer.normalize(blocks),
    }
    show(tasks, args.repeat)
    row, column = blocks.enroll.scores[0], blocks.test.scores[:, 0]
    show({"one trial": lambda: prepared.normalize_one(0.5, row, column)}, 20)
    from_embeddings(fitted.model, [E2, T2], 4000, min(args.repeat, 3))


if __name__ == "__main__":
    main()
