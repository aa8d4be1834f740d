"""The evidence model beside the best classical norm with logistic calibration, on real embeddings.

One half of the speakers trains everything and is the cohort, the other is judged, in both directions; cosine scores,
centred on the training half, training trials by a centre without their own speakers. Bars: the mean of the ratios of
Cllr to the best classical norm at most 0.953, the worst at most 1.12; `fit_evidence` takes at most three times as long
as AS-norm + logistic. Needs EVENSCORE_DATA, the folder with the sets of embeddings.

    python benchmarks/evidence.py [--seeds 10 11] [--only NAME ...]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

from evenscore import Embeddings, LabelledBlocks, Labels, ScoreBlocks, ScoreMatrix, cllr, normalize
from evenscore.calibrate import LogisticCalibration
from evenscore.evidence import evidence_norm, fit_evidence
from evenscore.scoring import make_scorer, score_by_folds

CLASSICAL = {name: (name, {}) for name in ("raw", "z", "t", "zt", "tz", "s")}
CLASSICAL |= {"as": ("as", {"top_k": 300, "excess": "clip"}), "as20": ("as", {"top_k": 0.2})}
PHRASES = {"arabic_commands_campplus": "word", "audiomnist_campplus": "digit", "audiomnist_ge2e": "half"}
SETS = ("common_voice_campplus", "common_voice_campplus (validated)", *PHRASES)


def main() -> None:
    if "EVENSCORE_DATA" not in os.environ:
        sys.exit("skipped: set EVENSCORE_DATA to the folder that has embeddings/*.npz")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[10, 11])
    parser.add_argument("--only", nargs="+", default=SETS)
    arguments = parser.parse_args()
    ratios, times = [], []
    for name in arguments.only:
        data = read(name)
        for seed in arguments.seeds:
            names = np.unique(data["speakers"])
            order = np.random.default_rng(seed).permutation(len(names))
            halves = names[order[: len(names) // 2]], names[order[len(names) // 2 :]]
            for direction, (trained, judged) in (("A to B", halves), ("B to A", halves[::-1])):
                ratio, seconds = report(f"{name:34s} {seed} {direction}", *make_blocks(data, trained, judged))
                ratios.append(ratio)
                times.append(seconds)
    print(f"mean ratio {np.mean(ratios):.4f} (bar 0.953), worst {max(ratios):.4f} (bar 1.12)")
    total = np.sum(times, axis=0)
    print(
        f"training: evidence {total[1]:.1f} s, AS-norm + logistic {total[0]:.1f} s: {total[1] / total[0]:.2f} x (bar 3)"
    )


def read(name):
    stem = name.split()[0]
    with np.load(Path(os.environ["EVENSCORE_DATA"]) / "embeddings" / f"{stem}.npz", allow_pickle=False) as file:
        data = {key: file[key] for key in file.files}
    keep = data["status"] == "validated" if "validated" in name else np.ones(len(data["ids"]), bool)
    phrase = data[PHRASES[stem]] if stem in PHRASES else np.zeros(len(keep))
    take = data["rep"] if "rep" in data else np.arange(len(keep))
    found = {"vectors": data["embeddings"].astype(float), "speakers": data["speakers"].astype(str)}
    found |= {"phrase": np.unique(phrase, return_inverse=True)[1], "take": take}
    return {"takes": 3 if stem in PHRASES else 1} | {key: values[keep] for key, values in found.items()}


def sides_of(data, chosen, letter):
    """Return enrolments (means of the first takes) and tests of some speakers, with their phrases."""
    parts = {"e": ([], [], []), "t": ([], [], [])}
    for phrase in np.unique(data["phrase"]):
        for name in chosen:
            at = np.flatnonzero((data["phrase"] == phrase) & (data["speakers"] == name))
            at = at[np.argsort(data["take"][at], kind="stable")]
            if len(at) < data["takes"]:
                continue
            first, rest = at[: data["takes"]], at[data["takes"] :]
            for side, vectors in (("e", [data["vectors"][first].mean(axis=0)]), ("t", data["vectors"][rest])):
                for vector in vectors:
                    for values, value in zip(parts[side], (vector, name, phrase), strict=True):
                        values.append(value)
    return [
        Embeddings([f"{letter}{side}{n}" for n in range(len(vectors))], vectors, names, {"phrase": phrases})
        for side, (vectors, names, phrases) in parts.items()
    ]


def make_blocks(data, trained, judged):
    """Return training and evaluation blocks, one of each for a phrase."""
    own = np.isin(data["speakers"], trained)
    background = Embeddings(range(own.sum()), data["vectors"][own], data["speakers"][own])
    scorer = make_scorer("cosine", background, center="mean")
    E, T = sides_of(data, trained, "c")
    E2, T2 = sides_of(data, judged, "n")
    left_out = score_by_folds(lambda part: make_scorer("cosine", part, center="mean"), background, E, T)
    score = {"S": (E2, T2), "S_e": (E2, T), "S_t": (E, T2), "S_I": (E, T)}
    tables = {
        name: ScoreMatrix(np.asarray(scorer.bilinear(*sides)), *map(plain, sides)) for name, sides in score.items()
    }
    training, evaluation = [], []
    for phrase in np.unique(data["phrase"]):
        e, t, e2, t2 = (np.flatnonzero(side.columns["phrase"] == phrase) for side in (E, T, E2, T2))
        training.append(LabelledBlocks.own_cohort(left_out.take(e, t)))
        at = {"S": (e2, t2), "S_e": (e2, t), "S_t": (e, t2), "S_I": (e, t)}
        blocks = ScoreBlocks(*(tables[name].take(*at[name]) for name in ("S", "S_e", "S_t", "S_I")))
        evaluation.append(LabelledBlocks(blocks, Labels.from_speakers(blocks.trials.enroll, blocks.trials.test)))
    return training, evaluation


def plain(embeddings):
    from evenscore import Side

    return Side(embeddings.ids, embeddings.speakers)


def values(tables) -> np.ndarray:
    return np.concatenate([np.ravel(table.scores) for table in tables])


def report(name, training, evaluation):
    """Print the Cllr of all methods; return the ratio of evidence to the best classical one, and the CPU times."""
    key, judged = (np.concatenate([p.labels.matrix.ravel() for p in parts]) for parts in (training, evaluation))
    found, seconds = {}, {}
    for method, (norm, options) in CLASSICAL.items():
        start = time.process_time()
        trained = values([normalize(part.blocks, norm, **options) for part in training])
        calibration = LogisticCalibration.fit(trained, key)
        seconds[method] = time.process_time() - start
        found[method] = cllr(
            calibration(values([normalize(part.blocks, norm, **options) for part in evaluation])), judged
        )
    start = time.process_time()
    model = fit_evidence(training)
    seconds["evidence"] = time.process_time() - start
    found["evidence"] = cllr(values([evidence_norm(part.blocks, model) for part in evaluation]), judged)
    best = min(CLASSICAL, key=found.get)
    ratio = found["evidence"] / found[best]
    texts = " ".join(f"{method} {found[method]:.4f}" for method in ("raw", "s", best, "evidence"))
    print(
        f"{name} {texts} ratio {ratio:.3f}; AS {seconds['as']:.2f} s, evidence {seconds['evidence']:.2f} s", flush=True
    )
    return ratio, (seconds["as"], seconds["evidence"])


if __name__ == "__main__":
    main()
