"""Which cohort, and which top-k? Sizes and values compared on the training side alone, by folds of speakers.

Each candidate normalizes the labelled training trials with the speakers of a smaller cohort, drawn at random a few
times; a trial's own speakers never are in its cohort. The normalized trials are calibrated by folds of speakers, and
their Cllr is compared on the same redrawn speakers. Evaluation trials are not looked at.

    python -m recipes.choose_cohort --scores dev.npz --speakers utt2spk --norm s --sizes 10,20,all
    python -m recipes.choose_cohort --scores dev.npz --speakers utt2spk --norm as --top-k 10,50,0.2
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from evenscore import (
    EvenscoreError,
    LabelledBlocks,
    TrialList,
    cllr,
    normalize,
    paired_test,
    read_scores,
    read_speakers,
)
from evenscore.calibrate import cross_validate

__all__ = ["Candidate", "choose_cohort", "main"]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A size of the cohort and an option of the norm, and what they gave."""

    name: str
    cllr: float  #: mean over the cohorts that were drawn
    spread: float  #: their standard deviation
    difference: tuple[float, float]  #: 95 % interval of the Cllr less that of the best candidate


def choose_cohort(
    training: LabelledBlocks,
    norm: str = "s",
    *,
    sizes: Sequence[int | None] = (None,),
    top_k: Sequence[int | float | None] = (None,),
    repeats: int = 3,
    replicates: int = 200,
    seed: int = 0,
) -> list[Candidate]:
    """Compare sizes of the cohort (in speakers; None is all) and values of ``top_k``; the best comes first.

    Examples
    --------
    >>> from evenscore import ScoreModel, simulate
    >>> truth = ScoreModel(mu=[0.0, 3.0], alpha=[[1.0], [1.0]], beta=[[0.8], [0.8]], sigma2=[1.0, 1.0])
    >>> people = [f"s{n // 2}" for n in range(40)]
    >>> training = LabelledBlocks.own_cohort(*simulate(truth, people, people, seed=1))
    >>> [candidate.name for candidate in choose_cohort(training, sizes=[3, None], replicates=50)]
    ['all', '3 speakers']
    """
    blocks = training.blocks
    of_enroll, of_test = blocks.cohort_enroll.speakers, blocks.cohort_test.speakers
    names = np.unique([name for name in of_test if name])
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(names) for _ in range(repeats)]  # a larger cohort contains the smaller ones
    llrs: dict[str, list[TrialList]] = {}
    for size, k in product(sizes, top_k):
        name = ("all" if size is None else f"{size} speakers") + ("" if k is None else f", top_k {k}")
        llrs[name] = []
        for cohort in [names] if size is None else [order[:size] for order in orders]:
            rows, cols = (np.flatnonzero(np.isin(speakers.astype(str), cohort)) for speakers in (of_enroll, of_test))
            options = {} if k is None else {"top_k": k}
            normalized = normalize(blocks.take_cohort(rows, cols), norm, empty="raw", **options)
            llrs[name].append(cross_validate(training.labelled(normalized)).llr)
    figures = {name: [cllr(run.scores, run.labels) for run in runs] for name, runs in llrs.items()}
    means = {name: float(np.mean(values)) for name, values in figures.items()}
    ranked = sorted(means, key=lambda name: means[name])
    found = []
    for name in ranked:
        test = paired_test(llrs[name][0], llrs[ranked[0]][0], metric="cllr", replicates=replicates, seed=seed)
        interval = test.interval.low, test.interval.high
        found.append(Candidate(name, means[name], float(np.std(figures[name])), interval))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table of the candidates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scores", required=True, help="scores of the training side, a matrix")
    parser.add_argument("--speakers", required=True, help="speakers by id")
    parser.add_argument("--norm", default="s", help="any norm that is not trained")
    parser.add_argument("--sizes", default="all", help="numbers of cohort speakers, such as 10,50,all")
    parser.add_argument("--top-k", default="", help="values of top_k, such as 50,300,0.2")
    parser.add_argument("--repeats", type=int, default=3, help="random cohorts of each size")
    given = parser.parse_args(arguments)
    try:
        sizes = [None if size == "all" else int(size) for size in given.sizes.split(",")]
        top_k = [float(k) if "." in k else int(k) for k in given.top_k.split(",") if k] or [None]
        known = read_speakers(given.speakers)
        matrix = read_scores(given.scores).to_matrix().compute().with_speakers(known, known)
        training = LabelledBlocks.own_cohort(matrix)
        candidates = choose_cohort(training, given.norm, sizes=sizes, top_k=top_k, repeats=given.repeats)
    except (EvenscoreError, ValueError) as error:  # a size that is no number
        sys.stderr.write(f"error: {error}\n")
        return 2
    print(f"{given.norm:28s} Cllr   spread   less the best, 95 %")
    for one in candidates:
        low, high = one.difference
        interval = f"{low:+.3f} to {high:+.3f}" if low or high else ""
        print(f"{one.name:26s} {one.cllr:.4f}   {one.spread:.4f}   {interval}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
