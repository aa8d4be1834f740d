"""AS-norm from embeddings: 20 000 embeddings (d = 256), a cohort of 6000, top 300, 500 000 listed trials.

Bars: at most 1.0 x the old program; at most 1.5 x the product of all vectors alone (20 000 x 6000, in float32 and in
pieces, once for each side, though both sides are one set here); and at least 12 x faster than a full sort of each
side's scores and a loop over trials, as in wespeaker, of which 2000 embeddings and 10 000 trials are timed and scaled.

    python benchmarks/asnorm_embeddings.py [--small] [--repeat 5]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from side_by_side import Task, is_new, main


def old_task(takes: np.ndarray, cohort: np.ndarray, rows: np.ndarray, cols: np.ndarray, top_k: int) -> Task:
    from evenscore import Embeddings, TrialList
    from evenscore.scoring import score_embeddings

    utterances = Embeddings([f"u{i}" for i in range(len(takes))], takes)
    others = Embeddings([f"c{i}" for i in range(len(cohort))], cohort)
    trials = TrialList(utterances.ids, utterances.ids, rows, cols)
    options = {"method": "as", "top_k": top_k, "memory": 100e6, "convention": "wespeaker"}
    return lambda: score_embeddings(utterances, utterances, trials, cohort=others, **options)


def new_task(takes: np.ndarray, cohort: np.ndarray, rows: np.ndarray, cols: np.ndarray, top_k: int) -> Task:
    from evenscore import Embeddings, TrialList
    from evenscore.scoring import score_embeddings

    utterances = Embeddings([f"u{i}" for i in range(len(takes))], takes)
    others = Embeddings([f"c{i}" for i in range(len(cohort))], cohort)
    trials = TrialList.from_codes(utterances, utterances, rows, cols)
    return lambda: score_embeddings(utterances, utterances, trials, others, method="as", top_k=top_k, excess="clip")


def multiply(takes: np.ndarray, cohort: np.ndarray) -> None:
    """Compute the cohort scores of both sides, on threads with one BLAS thread each, and forget them."""
    from evenscore.parallel import run_blocks

    for _ in range(2):
        run_blocks(lambda rows: takes[rows] @ cohort.T, len(takes), len(cohort), 1 << 20)


def sort_and_loop(takes: np.ndarray, cohort: np.ndarray, rows: np.ndarray, cols: np.ndarray, top_k: int) -> None:
    """Sort all cohort scores of each embedding, for both sides, and normalize one trial after the other."""
    takes = takes / np.linalg.norm(takes, axis=1, keepdims=True)
    cohort = cohort / np.linalg.norm(cohort, axis=1, keepdims=True)
    sides = []
    for _ in range(2):
        top = np.sort(takes @ cohort.T, axis=1)[:, ::-1][:, :top_k]
        sides.append({f"u{i}": (row.mean(), row.std()) for i, row in enumerate(top)})
    scores = []
    for i, j in zip(rows.tolist(), cols.tolist(), strict=True):
        (m_e, s_e), (m_t, s_t), score = sides[0][f"u{i}"], sides[1][f"u{j}"], takes[i] @ takes[j]
        scores.append(0.5 * ((score - m_e) / s_e + (score - m_t) / s_t))


def print_baselines(small: bool) -> None:
    """Print the time of this program over that of the product alone, and of sorting and looping over it."""
    takes, cohort, rows, cols, top_k = random_data(small)
    task, share = new_task(takes, cohort, rows, cols, top_k), 1 if small else 10
    part, some = slice(len(takes) // share), slice(len(rows) // (5 * share))
    trials = rows[some] % (len(takes) // share), cols[some] % (len(takes) // share)
    few = trials[0][:1], trials[1][:1]
    times: dict[str, list[float]] = {}
    for _ in range(2 if small else 4):  # in turns, the best of each
        for name, run in {
            "ours": task,
            "product": lambda: multiply(takes, cohort),
            "sort": lambda: sort_and_loop(takes[part], cohort, *few, top_k),
            "sort and loop": lambda: sort_and_loop(takes[part], cohort, *trials, top_k),
        }.items():
            start = time.perf_counter()
            run()
            times.setdefault(name, []).append(time.perf_counter() - start)
    best = {name: min(found) for name, found in times.items()}
    loop = share * best["sort"] + 5 * share * max(best["sort and loop"] - best["sort"], 0.0)
    print(f"ours {best['ours']:.2f} s, the product alone {best['product']:.2f} s, sort and loop {loop:.2f} s")
    print(f"{best['ours'] / best['product']:.2f} x the product, {loop / best['ours']:.1f} x faster than sort and loop")


def random_data(small: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]:
    size, members, number, top_k = (1000, 400, 5000, 50) if small else (20_000, 6000, 500_000, 300)
    rng = np.random.default_rng(0)
    takes, cohort = (rng.standard_normal((n, 256), dtype=np.float32) for n in (size, members))
    rows, cols = np.divmod(rng.choice(size**2, size=number, replace=False), size)
    return takes, cohort, rows, cols, top_k


def prepare(_: Path, small: bool) -> dict[str, Task]:
    return {"as from embeddings": (new_task if is_new() else old_task)(*random_data(small))}


if __name__ == "__main__":
    main(prepare)
    if "--child" not in sys.argv:
        print_baselines("--small" in sys.argv)
