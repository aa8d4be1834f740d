"""Classical norms of 8000 x 8000 float32 scores with a cohort of 6000, and own speakers left out.

Bars: `as` at most 1.0 x the old program, the others 1.1 x; own speakers (200 of 2000 x 2000 scores) at most 5, 5 and 20
CPU seconds for s, as, zt; "as, cross" (1000 x 1000, cohort 2000) at most 6 x "as, own". "on arrays" calls the plain
functions of the new program, beside the old program's tables.

    python benchmarks/norms.py [--small] [--repeat 5] [--only as ...]
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from side_by_side import Task, is_new, main


def random_blocks(rng: np.random.Generator, size: int, cohort: int) -> dict[str, np.ndarray]:
    shapes = {"trials": (size, size), "enroll": (size, cohort), "test": (cohort, size), "cohort": (cohort, cohort)}
    return {name: rng.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}


def as_blocks(arrays: dict[str, np.ndarray], **speakers: list[str]):
    from evenscore import ScoreBlocks, ScoreMatrix

    prefixes = {"trials": "et", "enroll": "ec", "test": "ct", "cohort": "cc"}
    tables = {}
    for name, scores in arrays.items():
        ids = [[f"{prefix}{i}" for i in range(n)] for prefix, n in zip(prefixes[name], scores.shape, strict=True)]
        tables[name] = ScoreMatrix(scores, *ids)
    return ScoreBlocks(**tables, **speakers)


def with_own_speakers(rng: np.random.Generator, size: int, speakers: int):
    """Trials and cohort are utterances of the same speakers."""
    names = [f"s{i % speakers}" for i in range(size)]
    sides = ("enroll_speakers", "test_speakers", "cohort_enroll_speakers", "cohort_test_speakers")
    return as_blocks(random_blocks(rng, size, size), **dict.fromkeys(sides, names))


def norms_on_arrays(arrays: dict[str, np.ndarray], top_k: int) -> dict[str, Task]:
    from evenscore import as_norm, s_norm, t_norm, z_norm, zt_norm

    S, S_e, S_t, S_I = (arrays[name] for name in ("trials", "enroll", "test", "cohort"))
    return {
        "as": lambda: as_norm(S, S_e, S_t, top_k=top_k),
        "z": lambda: z_norm(S, S_e),
        "t": lambda: t_norm(S, S_t),
        "s": lambda: s_norm(S, S_e, S_t),
        "zt": lambda: zt_norm(S, S_e, S_t, S_I),
    }


def prepare(_: Path, small: bool) -> dict[str, Task]:
    from evenscore import normalize

    size, cohort, top_k = (400, 300, 30) if small else (8000, 6000, 300)
    rng = np.random.default_rng(0)
    arrays = random_blocks(rng, size, cohort)
    blocks = as_blocks(arrays)
    own = with_own_speakers(rng, 200 if small else 2000, 20 if small else 200)
    tasks: dict[str, Task] = {"as": partial(normalize, blocks, "as", top_k=top_k)}
    tasks |= {norm: partial(normalize, blocks, norm) for norm in ("z", "t", "s", "zt", "tz")}
    on_arrays = (
        norms_on_arrays(arrays, top_k) if is_new() else {norm: tasks[norm] for norm in ("as", "z", "t", "s", "zt")}
    )
    tasks |= {f"{norm} on arrays": task for norm, task in on_arrays.items()}
    few = as_blocks(random_blocks(rng, 100 if small else 1000, cohort // 3))
    tasks |= {f"as, {how}": partial(normalize, few, "as", top_k=top_k, select=how) for how in ("own", "cross")}
    tasks |= {f"{norm}, own speakers": partial(normalize, own, norm) for norm in ("s", "zt")}
    tasks["as, own speakers"] = partial(normalize, own, "as", top_k=top_k)
    return tasks


if __name__ == "__main__":
    main(prepare)
