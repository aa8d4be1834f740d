"""Single trials: microseconds of a norm and of a verifier, as ratios to the same computation in plain NumPy.

NumPy does what a service would write by hand: no ids, no checks, mean and standard deviation of (the highest) cohort
scores, two products with the cohort for each pair of vectors. The target for norms is a ratio of 2.

    python benchmarks/online.py [--cohort 5000] [--dim 192] [--repeat 15] [--quick]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from evenscore import (
    Embeddings,
    LabelledBlocks,
    LogisticCalibration,
    ScoreMatrix,
    ScoreModel,
    fit_evidence,
    prepare_norm,
    simulate,
)
from evenscore.online import Verifier

TOP = 300
MODEL = ScoreModel(mu=[0.0, 0.6], alpha=[[0.05], [0.05]], beta=[[0.05], [0.05]], sigma2=[0.01, 0.01])
CALIBRATION = LogisticCalibration(weights=[2.0], quality_weights=[], offset=-5.0)


def microseconds(tasks: dict[str, Callable[[], object]], repeat: int, calls: int) -> dict[str, float]:
    """Shortest time of a call; tasks run in turn, so that a busy moment of the machine meets all of them."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for task in tasks.values():
        task()  # loads and compiles
    for _ in range(repeat):
        for name, task in tasks.items():
            start = time.perf_counter()
            for _ in range(calls):
                task()
            times[name].append((time.perf_counter() - start) / calls)
    return {name: 1e6 * min(values) for name, values in times.items()}


def moments(row: np.ndarray, k: int | None = None) -> tuple[float, float]:
    """Mean and standard deviation of the k highest scores, or of all."""
    if k is not None:
        row = -np.partition(-row, k - 1)[:k]
    return row.mean(), row.std()


def by_both(score: float, enroll: np.ndarray, test: np.ndarray, k: int | None = None) -> float:
    """S-norm and AS-norm by hand."""
    (m_e, s_e), (m_t, s_t) = moments(enroll, k), moments(test, k)
    return 0.5 * ((score - m_e) / s_e + (score - m_t) / s_t)


def by_each_other(score: float, enroll: np.ndarray, test: np.ndarray, k: int) -> float:
    """AS-norm by hand, where each side takes the members that the other ranks highest."""
    best_e, best_t = (np.argpartition(-row, k - 1)[:k] for row in (enroll, test))
    (m_e, s_e), (m_t, s_t) = moments(enroll[best_t]), moments(test[best_e])
    return 0.5 * ((score - m_e) / s_e + (score - m_t) / s_t)


def show(title: str, pairs: dict[str, tuple[Callable[[], object], Callable[[], object]]], repeat: int) -> None:
    tasks = {f"{who} {name}": pair[at] for name, pair in pairs.items() for at, who in enumerate(("ours", "NumPy"))}
    found = microseconds(tasks, repeat, 20)
    print(f"{title:38} ours       NumPy      ratio")
    for name in pairs:
        ours, plain = found[f"ours {name}"], found[f"NumPy {name}"]
        print(f"  {name:36} {ours:7.1f} µs {plain:7.1f} µs {ours / plain:6.2f}")


def norms(size: int, repeat: int) -> None:
    rng = np.random.default_rng(0)
    e, t = rng.normal(0, 0.1, size=(2, size))
    w_e, w_t = rng.normal(size=(2, 2, size))
    top = min(TOP, size // 5)

    def one(method: str, **options: Any) -> Callable[[], object]:
        norm = prepare_norm(method, **options)
        return lambda: norm.normalize_one(0.5, e, t)

    def score_model() -> float:
        p0, p1 = w_e @ e + w_t @ t
        return 0.3 + 2.0 * (0.5 - p0) ** 2 - 3.0 * (0.5 - p1) ** 2

    show(
        f"normalize_one, {size} cohort scores",
        {
            "z": (one("z"), lambda: (0.5 - e.mean()) / e.std()),
            "s": (one("s"), lambda: by_both(0.5, e, t)),
            f"as, {top} highest": (one("as", top_k=top), lambda: by_both(0.5, e, t, top)),
            f"as, {top} by each other": (
                one("as", top_k=top, select="cross"),
                lambda: by_each_other(0.5, e, t, top),
            ),
            "lgsm": (one("lgsm", model=MODEL), score_model),
        },
        repeat,
    )


def with_cohort(repeat: int, size: int = 300) -> None:
    """Norms that need the cohort against itself, or are trained on it."""
    rng = np.random.default_rng(1)
    speakers = [f"s{n % 30}" for n in range(size)]
    dev = LabelledBlocks.own_cohort(*simulate(MODEL, speakers, speakers, seed=1))
    cohort: ScoreMatrix = dev.blocks.cohort
    e, t = rng.normal(0, 0.1, size=(2, size))
    mean, std = cohort.scores.mean(axis=1), cohort.scores.std(axis=1)
    basis = rng.normal(size=(2, size, 40))

    def zt() -> float:
        m_e, s_e = moments(e)
        m_t, s_t = moments((t - mean) / std)
        return ((0.5 - m_e) / s_e - m_t) / s_t

    def evidence() -> float:
        """What the model looks at: S- and AS-norm, scales, predictions of the score model, coordinates of the pair."""
        x, y = e @ basis[0], t @ basis[1]
        return by_both(0.5, e, t) + by_both(0.5, e, t, size // 5) + np.log(e.std() * t.std()) + x @ y

    models = {"zt": prepare_norm("zt", cohort=cohort)}
    models["evidence"] = prepare_norm("evidence", model=fit_evidence([dev]), cohort=cohort, cohort_labels=dev.labels)
    show(
        f"normalize_one, {size} cohort scores",
        {name: (lambda norm=norm: norm.normalize_one(0.5, e, t), plain)
         for (name, norm), plain in zip(models.items(), (zt, evidence), strict=True)},
        repeat,
    )  # fmt: skip


def verifiers(size: int, dim: int, repeat: int) -> None:
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(size, dim)).astype(np.float32)
    cohort = Embeddings(range(size), vectors)
    ready = vectors / np.linalg.norm(vectors, axis=1)[:, None]
    ann, take = rng.normal(size=(2, dim)).astype(np.float32)
    top = min(TOP, size // 5)

    def unit(vector: np.ndarray) -> np.ndarray:
        return vector / np.sqrt(vector @ vector)

    enrolled = unit(ann), moments(ready @ unit(ann), top)

    def numpy_test() -> float:
        (left, (m_e, s_e)), right = enrolled, unit(take)
        m_t, s_t = moments(ready @ right, top)
        score = left @ right
        return -5.0 + 2.0 * 0.5 * ((score - m_e) / s_e + (score - m_t) / s_t)

    def numpy_both() -> float:
        left, right = unit(ann), unit(take)
        return -5.0 + 2.0 * by_both(float(left @ right), ready @ left, ready @ right, top)

    as_norm = Verifier(cohort=cohort, method="as", top_k=top, calibration=CALIBRATION)
    score_model = Verifier(cohort=cohort, method="lgsm", model=MODEL)
    cases = {}
    for name, verifier in ((f"as, {top} highest", as_norm), ("lgsm", score_model)):
        e, t = verifier.enroll(ann), verifier.test(take)
        cases[f"{name}: two vectors"] = (lambda v=verifier: v.llr(ann, take), numpy_both)
        cases[f"{name}: enrolled, and a vector"] = (lambda v=verifier, e=e: v.llr(e, take), numpy_test)
        cases[f"{name}: enrolled and tested"] = (lambda v=verifier, e=e, t=t: v.llr(e, t), numpy_test)
    show(f"verifier, cohort {size} x {dim} (AS by hand)", cases, repeat)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cohort", type=int, default=5000)
    parser.add_argument("--dim", type=int, default=192)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--quick", action="store_true", help="a small cohort")
    arguments = parser.parse_args()
    size, repeat = (400, 3) if arguments.quick else (arguments.cohort, arguments.repeat)
    norms(size, repeat)
    with_cohort(repeat)
    verifiers(size, arguments.dim, repeat)


if __name__ == "__main__":
    main()
