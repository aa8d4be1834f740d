"""How many folds of speakers: time, and Cllr after calibration, against exact leaving-out.

The training half of a set of embeddings is its own cohort: its trials are normalized with their speakers left out by
folds, a logistic calibration is trained on them, and it is judged on the other half, whose cohort is the training half.
Both directions. Needs EVENSCORE_DATA, the folder with the sets of embeddings.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

from evenscore import Labels, ScoreBlocks, ScoreMatrix, Side, normalize

SETS = {"common_voice_campplus": 1, "audiomnist_ge2e": 3}  # enrolment takes of each
NORMS = ("s", "as", "zt")
FOLDS = (3, 5, 10, 20, 40, None)  # None: one for each speaker


def main() -> None:
    if "EVENSCORE_DATA" not in os.environ:
        sys.exit("set EVENSCORE_DATA to the folder that has embeddings/*.npz")
    print(f"{'set':24s} {'norm':5s} {'folds':>6s} {'CPU s':>7s} {'rms diff':>9s} {'Cllr':>8s} {'/ exact':>8s}")
    for name, takes in SETS.items():
        halves = load_halves(Path(os.environ["EVENSCORE_DATA"]) / "embeddings" / f"{name}.npz", takes)
        for norm in NORMS:
            report(name, norm, halves)


def report(name, norm, halves) -> None:
    rows = {}
    for folds in FOLDS:
        cpu, scores, cllrs = 0.0, [], []
        for train, judged in (halves, halves[::-1]):
            center = np.vstack([train[0], train[1]]).mean(axis=0)
            own = score(train, train, center)
            start = time.process_time()
            n_folds = len(set(train[2]) | set(train[3])) if folds is None else folds
            done = normalize(ScoreBlocks(own, own, own, own), norm, folds=n_folds)
            cpu += time.process_time() - start
            labels = Labels.from_speakers(own.enroll, own.test).matrix
            scale, offset = logistic(done.scores, labels)
            new = score(judged, judged, center)
            blocks = ScoreBlocks(new, score(judged, train, center), score(train, judged, center), own)
            llr = scale * normalize(blocks, norm).scores + offset
            cllrs.append(cllr(llr, Labels.from_speakers(new.enroll, new.test).matrix))
            scores.append(done.scores.ravel())
        rows[folds] = cpu, scores, np.mean(cllrs)
    exact = rows[None]
    for folds, (cpu, scores, value) in rows.items():
        apart = [np.sqrt(np.mean((one - two) ** 2)) / two.std() for one, two in zip(scores, exact[1], strict=True)]
        text = "exact" if folds is None else str(folds)
        print(f"{name:24s} {norm:5s} {text:>6s} {cpu:7.2f} {np.mean(apart):9.4f} {value:8.5f} {value / exact[2]:8.4f}")


def load_halves(path, takes):
    """Return (enrolment vectors, test vectors, their speakers) of two halves of the speakers."""
    data = np.load(path)
    speakers, vectors = data["speakers"].astype(str), data["embeddings"].astype(np.float64)
    names = np.random.default_rng(10).permutation(np.unique(speakers))
    halves = []
    for part in (names[: len(names) // 2], names[len(names) // 2 :]):
        enroll, test, test_speakers, enroll_speakers = [], [], [], []
        for name in part:
            own = vectors[speakers == name][:16]
            if len(own) > takes:
                enroll.append(own[:takes].mean(axis=0))
                enroll_speakers.append(name)
                test.extend(own[takes:])
                test_speakers += [name] * (len(own) - takes)
        halves.append((np.array(enroll), np.array(test), enroll_speakers, test_speakers))
    return halves


def score(enrolments, tests, center) -> ScoreMatrix:
    def unit(x):
        return (x - center) / np.linalg.norm(x - center, axis=1, keepdims=True)

    enroll = Side([f"e{name}" for name in enrolments[2]], enrolments[2])
    test = Side([f"t{name}-{at}" for at, name in enumerate(tests[3])], tests[3])
    return ScoreMatrix(unit(enrolments[0]) @ unit(tests[1]).T, enroll, test)


def logistic(scores, labels) -> tuple[float, float]:
    """Return scale and offset of a logistic calibration at equal priors, by Newton's method."""
    x, y = np.column_stack([scores.ravel(), np.ones(scores.size)]), labels.ravel()
    weights = np.where(y == 1, 0.5 / y.sum(), 0.5 / (len(y) - y.sum()))
    w = np.zeros(2)
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(x @ w, -500, 500)))
        step = np.linalg.solve(
            (x * (weights * p * (1 - p))[:, None]).T @ x + 1e-12 * np.eye(2), x.T @ (weights * (y - p))
        )
        w += step
        if abs(step).max() < 1e-10:
            break
    return tuple(w)


def cllr(llr, labels) -> float:
    target, nontarget = llr[labels == 1], llr[labels == 0]
    return float((np.logaddexp(0, -target).mean() + np.logaddexp(0, nontarget).mean()) / 2 / np.log(2))


if __name__ == "__main__":
    main()
