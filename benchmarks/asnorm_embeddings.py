"""AS-norm from embeddings: 20 000 embeddings (d = 256), a cohort of 6000, top 300, 500 000 listed trials.

Bar: at most 1.0 x the old program.

    python benchmarks/asnorm_embeddings.py [--small] [--repeat 5]
"""

from __future__ import annotations

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


def prepare(_: Path, small: bool) -> dict[str, Task]:
    size, members, number, top_k = (1000, 400, 5000, 50) if small else (20_000, 6000, 500_000, 300)
    rng = np.random.default_rng(0)
    takes, cohort = (rng.standard_normal((n, 256), dtype=np.float32) for n in (size, members))
    rows, cols = np.divmod(rng.choice(size**2, size=number, replace=False), size)
    task = new_task if is_new() else old_task
    return {"as from embeddings": task(takes, cohort, rows, cols, top_k)}


if __name__ == "__main__":
    main(prepare)
