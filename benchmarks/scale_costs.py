"""What each step costs per score and per embedding, on one core: the numbers behind the table in docs/scale.md.

Processor time is measured, not time on the clock, so that other work on the machine does not count. Reading and writing
are what the processor does for it (copies and checksums); the disk itself is another matter.

    python benchmarks/scale_costs.py [--quick] [--write docs/scale_costs.json]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.update(dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))

import numpy as np

from evenscore import (
    Cosine,
    Embeddings,
    Labels,
    ScoreBlocks,
    ScoreMatrix,
    ScoreModel,
    as_table,
    fit_score_model,
    normalize,
)
from evenscore.files import open_scores, write_table
from evenscore.metrics import summarize
from evenscore.model.bilinear_normalizer import BilinearNormalizer
from evenscore.model.statistics import label_sums
from evenscore.scoring import score_lazily
from evenscore.threads import alone

DIM, COHORT, TOP_K = 256, 5000, 300
MODEL = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[1.0], [1.0]], sigma2=[1.0, 1.0])


def names(prefix: str, number: int) -> list[str]:
    return [f"{prefix}{place}" for place in range(number)]


def speakers(number: int) -> list[str]:
    return [f"s{place % 500}" for place in range(number)]


def cost(task: Callable[[], object], repeat: int) -> float:
    """Return the least processor time of some runs, after one that compiles."""
    task()
    times = []
    for _ in range(repeat):
        start = time.process_time()
        task()
        times.append(time.process_time() - start)
    return min(times)


def of_scores(size: int, repeat: int) -> dict[str, float]:
    """Nanoseconds per score of a size x 4 size matrix."""
    rng = np.random.default_rng(0)
    k, n = size, 4 * size
    scores = ScoreMatrix(rng.standard_normal((k, n), dtype=np.float32), names("e", k), names("t", n))
    labels = Labels.from_speakers(speakers(k), speakers(n))
    cohort = ScoreMatrix(rng.standard_normal((k, COHORT), dtype=np.float32), names("e", k), names("c", COHORT))
    other = ScoreMatrix(rng.standard_normal((COHORT, n), dtype=np.float32), names("c", COHORT), names("t", n))
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        number = iter(range(100))
        write_table(scores, Path(folder) / "in.zarr")
        stored = open_scores(Path(folder) / "in.zarr")
        found["read"] = cost(lambda: [stored.read(place) for place in stored.places()], repeat)
        copied = cost(lambda: write_table(stored, Path(folder) / f"{next(number)}.zarr"), repeat)
        found["write"] = copied - found["read"]
    found["sum for training"] = cost(lambda: label_sums([(scores.in_tiles(), labels)]), repeat)
    found["count for metrics"] = cost(lambda: summarize(scores.scores, labels.matrix, bits=16), repeat)
    blocks = ScoreBlocks(scores.in_tiles(), enroll=cohort, test=other)
    for name, method, options in (("normalize (s, as)", "s", {}), ("normalize (lgsm)", "lgsm", {"model": MODEL})):
        result = normalize(blocks, method, **options)
        found[name] = cost(lambda: [result.read(place) for place in result.places()], repeat)  # noqa: B023
    per_score = {name: 1e9 * value / (k * n) for name, value in found.items()}
    for name, method, options in (
        ("cohort score (s)", "z", {}),
        ("cohort score (as)", "az", {"top_k": TOP_K}),
        ("cohort score (lgsm)", "lgsm", {"model": MODEL}),
    ):
        one = ScoreBlocks(scores.in_tiles(), enroll=cohort)
        per_score[name] = 1e9 * cost(lambda: normalize(one, method, **options), repeat) / (k * COHORT)  # noqa: B023
    return per_score


def of_embeddings(size: int, repeat: int) -> tuple[dict[str, float], dict[str, float]]:
    """Nanoseconds per score that is made, and microseconds per embedding of what needs no matrix."""
    rng = np.random.default_rng(0)
    sides = [
        Embeddings(names(p, k), rng.standard_normal((k, DIM), dtype=np.float32), speakers(k))
        for p, k in (("e", size), ("t", 4 * size))
    ]
    lazy = score_lazily(*sides)
    made = cost(lambda: [lazy.read(place) for place in lazy.places()], repeat)
    many = 20 * size
    more = Embeddings(names("e", many), rng.standard_normal((many, DIM), dtype=np.float32), speakers(many))
    large = Cosine().score(more, more)
    both = Labels.from_speakers(more.speakers, more.speakers)
    others = Embeddings(names("c", 1000), rng.standard_normal((1000, DIM), dtype=np.float32))
    normalizer = BilinearNormalizer(MODEL, Cosine().score(others, Embeddings(names("d", 1000), others.vectors)))
    per_embedding = {
        "length normalization": cost(lambda: Cosine().score(more, more), repeat) / (2 * many),
        "sum for training, no matrix": cost(lambda: label_sums([(large, both)]), repeat) / (2 * many),
        "cohort, score model": cost(lambda: normalizer.block(large, slice(None), slice(0, 1)), repeat) / many,
    }
    return {f"make from embeddings, d = {DIM}": 1e9 * made / (4 * size * size)}, {
        name: 1e6 * value for name, value in per_embedding.items()
    }


def processor() -> str:
    """Return the name of the processor, as far as the system tells."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text(encoding="utf-8").splitlines() if known.exists() else []
    names_of = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names_of[0] if names_of else platform.machine()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=4096, help="rows of the matrix")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="512 rows, one run")
    parser.add_argument("--write", metavar="FILE", help="write the figures to a JSON file")
    a = parser.parse_args()
    size, repeat = (512, 1) if a.quick else (a.size, a.repeat)
    with alone():
        per_score = of_scores(size, repeat)
        made, per_embedding = of_embeddings(size, repeat)
        start = time.process_time()
        fit_score_model(
            [
                (
                    as_table(np.eye(40) + np.random.default_rng(0).normal(size=(40, 40)), range(40), range(40)),
                    Labels.from_speakers(range(40), range(40)),
                )
            ]
        )
        training = time.process_time() - start
    found = {
        "machine": f"{processor()}, Python {platform.python_version()}, NumPy {np.__version__}",
        "rows": size,
        "nanoseconds per score": {name: round(value, 3) for name, value in {**per_score, **made}.items()},
        "microseconds per embedding": {name: round(value, 3) for name, value in per_embedding.items()},
        "seconds of training": round(training, 2),
    }
    print(json.dumps(found, indent=2))
    if a.write:
        Path(a.write).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
