"""Do quality measures help? Logistic calibration with and without them, held out: speaker-disjoint halves of real sets.

One half of the speakers trains the calibration and is the cohort, the other half is judged, then they change places.
Enrolments are the mean of a speaker's first takes (three where there are phrases, else one); vectors are centred on the
training half's mean, training trials without their own two speakers; scores are cosines.

    python benchmarks/quality.py --data DIRECTORY_OR_FILES [--seeds 0 1 2]

Without --data, the variable EVENSCORE_DATA names the directory.
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from accuracy_data import PHRASES, STATUS, TAKES, column, files_of, read
from evenscore import Cosine, Embeddings, LabelledBlocks, Labels, LogisticCalibration, ScoreBlocks, evaluate, fit_norm
from evenscore.calibrate import quality_measures
from evenscore.sources import LeftOutCenter

NORMS: dict[str, dict[str, Any]] = {"raw": {}, "s": {}, "as": {"top_k": 0.2}}
LENGTH, DURATION = ("min:mag", "max:mag"), ("log:min:duration", "log:max:duration")
COHORT = ("min:mu", "max:mu")
MEASURES = {
    "length": LENGTH,
    "cohort mean": COHORT,
    "cohort deviation": ("min:sigma", "max:sigma"),
    "length, cohort mean": (*LENGTH, *COHORT),
    "the same by side": ("mag_e", "mag_t", "mu_e", "mu_t"),
    "duration": DURATION,
    "all of wespeaker": (*DURATION, "ratio:duration", *LENGTH, "ratio:mag", *COHORT),
}
METRICS = ("cllr", "eer", "min_dcf")
Sides = tuple[Embeddings, Embeddings]


def sides_of(arrays: dict[str, np.ndarray], rows: np.ndarray, prefix: str) -> Iterator[Sides]:
    """Yield the enrolments and tests of each phrase."""
    phrases, takes = column(arrays, None, PHRASES), column(arrays, None, TAKES)
    speakers, number = arrays["speakers"].astype(str), 1 if phrases is None else 3
    codes = np.zeros(len(speakers), dtype=int) if phrases is None else np.unique(phrases, return_inverse=True)[1]
    seconds = arrays.get("duration", np.ones(len(speakers))).astype(float)
    for phrase in np.unique(codes[rows]):
        enroll, test = [], []
        for speaker in np.unique(speakers[rows]):
            at = rows[(codes[rows] == phrase) & (speakers[rows] == speaker)]
            at = at if takes is None else at[np.argsort(takes[at], kind="stable")]
            if len(at) > number:
                enroll.append((speaker, at[:number]))
                test += [(speaker, at[place : place + 1]) for place in range(number, len(at))]
        yield tuple(  # type: ignore[misc]
            Embeddings(
                [f"{prefix}{side}{place}" for place in range(len(members))],
                [arrays["embeddings"][at].astype(float).mean(axis=0) for _, at in members],
                [speaker for speaker, _ in members],
                columns={"duration": [seconds[at].mean() for _, at in members]},
            )
            for side, members in (("e", enroll), ("t", test))
        )


def blocks_of(training: Sides, judged: Sides, background: Embeddings) -> tuple[LabelledBlocks, LabelledBlocks]:
    """Return the training trials, and the judged trials with the training side as cohort."""
    usual = Cosine(background.vectors.mean(axis=0))
    E, T = training
    own = LabelledBlocks.own_cohort(LeftOutCenter(background).score(E, T).in_memory())
    pairs = {"trials": judged, "enroll": (judged[0], T), "test": (E, judged[1]), "cohort": training}
    blocks = ScoreBlocks(**{name: usual.score(*pair).in_memory() for name, pair in pairs.items()})
    return own, LabelledBlocks(blocks, Labels.of_axes(judged[0], judged[1]))


def judge(
    arrays: dict[str, np.ndarray], train: np.ndarray, test: np.ndarray
) -> dict[tuple[str, str], dict[str, float]]:
    """Return the metrics of each norm with each set of measures."""
    background = Embeddings(train, arrays["embeddings"][train].astype(float), arrays["speakers"][train].astype(str))
    pairs = list(zip(sides_of(arrays, train, "c"), sides_of(arrays, test, ""), strict=True))
    parts = [blocks_of(*pair, background) for pair in pairs]
    keys = [np.concatenate([part[at].labels.matrix.reshape(-1) for part in parts]) for at in (0, 1)]
    found = {}
    for norm, options in NORMS.items():
        fitted = fit_norm(norm, [part[0] for part in parts], **options)
        tables = fitted.training_scores, [fitted.normalizer.normalize(part[1].blocks) for part in parts]
        scores = [np.concatenate([table.scores.reshape(-1) for table in side]) for side in tables]
        columns: list[dict[str, list[np.ndarray]]] = [defaultdict(list), defaultdict(list)]
        names = list(dict.fromkeys(name for group in MEASURES.values() for name in group))
        for pair, part in zip(pairs, parts, strict=True):
            for at in (0, 1):
                vectors = {"enroll": pair[at][0], "test": pair[at][1], "center": background.vectors.mean(axis=0)}
                quality = quality_measures(part[at].blocks, "as" if norm == "as" else "s", **vectors, **options)
                for name, values in quality.columns(part[at].blocks.trials, names).items():
                    columns[at][name].append(values.reshape(-1))
        for title, group in {"none": (), **MEASURES}.items():
            if "duration" not in arrays and any("duration" in name for name in group):
                continue
            rows = [
                np.column_stack([np.concatenate(side[name]) for name in group]) if group else None for side in columns
            ]
            fit = LogisticCalibration.fit(scores[0], keys[0], quality=rows[0])
            found[norm, title] = evaluate(fit(scores[1], rows[1]), keys[1])
    return found


def main() -> None:
    """Print, for each set and norm, what measures change, and in how many of the settings they help."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=[os.environ.get("EVENSCORE_DATA", ".")])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    args = parser.parse_args()
    for path in files_of(args.data):
        arrays = read(Path(path))
        views = {path.stem: np.ones(len(arrays["speakers"]), dtype=bool)}
        if STATUS in arrays:
            views[f"{path.stem} (validated)"] = arrays[STATUS] == "validated"
        for name, keep in views.items():
            show(name, [judge(arrays, *half) for half in halves(arrays["speakers"], keep, args.seeds)])


def halves(speakers: np.ndarray, keep: np.ndarray, seeds: list[int]) -> Iterator[list[np.ndarray]]:
    """Yield the rows of both halves of the speakers, in both directions."""
    names = np.unique(speakers[keep])
    for seed in seeds:
        first = np.random.default_rng(seed).permutation(names)[: len(names) // 2]
        half = [np.flatnonzero(keep & (np.isin(speakers, first) == here)) for here in (True, False)]
        yield from (half, half[::-1])


def show(name: str, settings: list[dict[tuple[str, str], dict[str, float]]]) -> None:
    """Print the mean of each metric over the settings, and how often measures made it lower."""
    print(f"\n{name}: {len(settings)} settings")
    print("| norm | measures | Cllr | lower in | EER % | lower in | minDCF | lower in |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for norm, title in settings[0]:
        cells = []
        for metric in METRICS:
            values, plain = (
                np.array([setting[norm, which][metric] for setting in settings]) for which in (title, "none")
            )
            cells.append(f"{values.mean() * (100 if metric == 'eer' else 1):.3f}")
            cells.append("" if title == "none" else f"{np.count_nonzero(values < plain)}")
        print(f"| {norm} | {title} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
