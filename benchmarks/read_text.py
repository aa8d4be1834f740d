"""Reading 10 million lines of Kaldi scores: ids in order, and 70 000 ids at random.

Bars: at most 1.5 x (in order) and 2.5 x (at random) `polars.read_csv` of the same file into two columns of text and one
of float64, which neither finds out which ids are the same nor checks anything. It is called, on all cores, in the same
process, warmed up like ours.

    python benchmarks/read_text.py [--small] [--repeat 3]
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from side_by_side import Task, main


def make(folder: Path, small: bool) -> None:
    """Write distinct pairs: all of a square row by row, and pairs drawn from a large square."""
    import polars as pl

    lines = 10_000 if small else 10_000_000
    rng = np.random.default_rng(0)
    side, many = int(lines**0.5) + 1, max(int(0.007 * lines), 200)
    drawn = rng.permutation(np.unique(rng.integers(many**2, size=lines + lines // 50 + 1000)))[:lines]
    for name, pairs, n in (("in-order", np.arange(lines), side), ("at-random", drawn, many)):
        enroll = pl.Series([f"id{i % 1251:05d}/recording{i:06d}" for i in range(n)])
        test = pl.Series([f"id{i % 1251:05d}/evaluate-{i:06d}" for i in range(n)])
        scores = pl.Series(rng.normal(size=len(pairs)).round(5))
        table = pl.DataFrame({"enroll": enroll[pairs // n], "test": test[pairs % n], "score": scores})
        table.write_csv(folder / f"{name}.scores", include_header=False, separator=" ")


def prepare(folder: Path, _: bool) -> dict[str, Task]:
    import polars as pl

    from evenscore import read_scores

    schema = {"enroll": pl.String, "test": pl.String, "score": pl.Float64}
    plain = partial(pl.read_csv, has_header=False, separator=" ", quote_char=None, schema=schema)
    read = partial(read_scores, format="kaldi")
    return {
        "polars, in order": partial(plain, folder / "in-order.scores"),
        "ids in order": partial(read, folder / "in-order.scores"),
        "polars, at random": partial(plain, folder / "at-random.scores"),
        "70,000 ids at random": partial(read, folder / "at-random.scores"),
    }


if __name__ == "__main__":
    baseline = {"ids in order": "polars, in order", "70,000 ids at random": "polars, at random"}
    main(prepare, make, repeat=3, baseline=baseline)
