"""Cosine, transforms and PLDA on real embeddings: trained on one half of the speakers, judged on the other, and back.

Every speaker's first utterances (of each phrase, if there are phrases) are the enrolment, the others of that phrase are
tests. A calibration (logistic) is trained on the training half's own pairs, scored by folds of speakers or, for
comparison, by the very model that was trained on them. Then a PLDA of one set is taken to another, and adapted there
without speakers. Means of both directions.

    python benchmarks/vector_models.py --data DIRECTORY [--quick]      (or EVENSCORE_DATA)
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from accuracy_data import PHRASES, STATUS, column, files_of, read
from evenscore import Cosine, Embeddings, LogisticCalibration, cllr, eer, fit_plda, min_cllr
from evenscore.plda import adapt_plda
from evenscore.scoring import Transformed, average_embeddings, enroll_models, fit_transform, score_by_folds

PENALTY = 1e-3  # of the calibration: a model that has met the speakers may tell them apart without error
PAIRS = 700  # utterances of the training half whose pairs train the calibration
Trainer = Callable[[Embeddings], object]


class Half:
    """Speakers of a set: what is trained on them, or their trials."""

    def __init__(self, vectors: np.ndarray, speakers: np.ndarray, phrases: np.ndarray | None, takes: int) -> None:
        self.all = Embeddings([f"u{n}" for n in range(len(vectors))], vectors, speakers)
        self.phrases = np.zeros(len(vectors), dtype=int) if phrases is None else phrases
        self.members: dict[str, list[str]] = {}
        tests = []
        for phrase in np.unique(self.phrases):
            for speaker in np.unique(speakers):
                own = np.flatnonzero((speakers == speaker) & (self.phrases == phrase))
                if len(own) > takes:
                    self.members[f"{speaker}/{phrase}"] = self.all.ids[own[:takes]].tolist()
                    tests += own[takes:].tolist()
        self.tests = self.all.take(np.array(sorted(tests)))
        self.test_phrases = self.phrases[np.array(sorted(tests))]

    def trials(self, scorer: object, enroll: Embeddings) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores of same-phrase trials, and the key."""
        phrases = np.array([name.rpartition("/")[2] for name in enroll.ids])
        speakers = np.array([name.rpartition("/")[0] for name in enroll.ids])
        scores, keys = [], []
        for phrase in np.unique(self.test_phrases):
            rows, columns = np.flatnonzero(phrases == str(phrase)), np.flatnonzero(self.test_phrases == phrase)
            part = self.tests.take(columns)
            scores.append(scorer.score(enroll.take(rows), part).block().ravel())
            keys.append((speakers[rows][:, None] == part.speakers.astype(str)).ravel())
        return np.concatenate(scores).astype(float), np.concatenate(keys).astype(np.int8)


def halves(path: Path, status: str | None, takes: int, quick: bool) -> list[Half]:
    arrays = read(path)
    kept = np.ones(len(arrays["speakers"]), dtype=bool) if status is None else arrays[STATUS] == status
    speakers, vectors = arrays["speakers"][kept].astype(str), arrays["embeddings"][kept]
    phrases = column(arrays, None, PHRASES)
    phrases = None if phrases is None else phrases[kept].astype(str)
    names = np.random.default_rng(0).permutation(np.unique(speakers))
    if quick:
        names = names[:30]
    found = []
    for part in np.array_split(names, 2):
        here = np.isin(speakers, part)
        found.append(Half(vectors[here], speakers[here], None if phrases is None else phrases[here], takes))
    return found


def recipes(train: Embeddings) -> dict[str, tuple[Trainer, Trainer]]:
    """Return what trains each system on a half, and again on a part of it with the same choices."""
    found: dict[str, tuple[Trainer, Trainer]] = {
        "cosine": (lambda part: Cosine(),) * 2,
        "cosine, centred": (lambda part: Cosine(part.vectors.mean(axis=0)),) * 2,
    }

    def transform(steps: list[str]) -> None:
        fit = fit_transform(train, steps)
        again = lambda part: Transformed(fit_transform(part, steps, shrinkage=fit.shrinkage).transform)  # noqa: E731
        name = f"cosine, {', '.join(steps)} (shrinkage {fit.shrinkage:g})"
        found[name] = (lambda part: Transformed(fit.transform), again)

    def plda(**options: object) -> None:
        fit = fit_plda(train, **options)
        how = {**options, "shrinkage": fit.shrinkage, "inflation": fit.inflation}
        name = f"PLDA (shrinkage {fit.shrinkage:g}, inflation {fit.inflation:.2f})"
        found[name] = (lambda part: fit.model, lambda part: fit_plda(part, **how).model)

    for steps in (["center", "whiten"], ["center", "wccn"], ["center", "lda"]):
        transform(steps)
    if len(train) - len(set(train.speakers)) > 2 * train.dim:  # else the covariances of a fold are singular
        plda(shrinkage=0, max_iter=20)
    plda()
    return found


def calibrated(train: Half, trainer: Trainer, model: object, by_folds: bool) -> LogisticCalibration:
    some = np.random.default_rng(0).permutation(len(train.all))[:PAIRS]
    part = train.all.take(some)
    scores = (
        score_by_folds(trainer, train.all, part, part).scores
        if by_folds
        else model.score(part, part).block().astype(float)
    )
    rows, columns = np.triu_indices(len(part), 1)
    return LogisticCalibration.fit(scores[rows, columns], part.speakers[rows] == part.speakers[columns], l2=PENALTY)


def judge(train: Half, new: Half) -> dict[str, list[float]]:
    found = {}
    for name, (first, again) in recipes(train.all).items():
        model = first(train.all)
        ways = {name: average_embeddings(new.all, new.members)}
        if name.startswith("PLDA") and any(len(own) > 1 for own in new.members.values()):
            ways = {
                f"{name}, mean vector": ways[name],
                f"{name}, posterior": enroll_models(model, new.all, new.members),
            }
        fitted = [calibrated(train, again, model, by_folds) for by_folds in (True, False)]
        for way, enroll in ways.items():
            scores, key = new.trials(model, enroll)
            own = cllr(scores, key) if "PLDA" in name else np.nan
            figures = [100 * eer(scores, key), min_cllr(scores, key), own]
            found[way] = [*figures, *(cllr(calibration(scores), key) for calibration in fitted)]
    return found


def carried(old: Half, train: Half, new: Half) -> dict[str, list[float]]:
    """A PLDA of another set: as it is, centred on the new one, and adapted to it without speakers."""
    fit = fit_plda(old.all)
    models = {
        "of the other set": fit.model,
        "centred on the new one": fit.model.recentered(train.all.vectors.mean(axis=0)),
        "adapted as Kaldi does": adapt_plda(fit.model, train.all, inflation=fit.inflation),
        "adapted by CORAL+": adapt_plda(fit.model, train.all, method="coral+", inflation=fit.inflation),
        "trained on the new one": fit_plda(train.all).model,
    }
    found = {}
    for name, model in models.items():
        scores, key = new.trials(model, average_embeddings(new.all, new.members))
        found[f"PLDA {name}"] = [100 * eer(scores, key), min_cllr(scores, key), cllr(scores, key)]
    return found


def table(title: str, results: list[dict[str, list[float]]], heads: list[str]) -> None:
    print(f"\n{title}\n" + " | ".join(["system", *heads]), flush=True)
    for names in zip(*results, strict=True):
        figures = np.mean([result[name] for result, name in zip(results, names, strict=True)], axis=0)
        shown = names[0] if len(set(names)) == 1 else " / ".join(names)
        print(" | ".join([shown, f"{figures[0]:.2f}", *(f"{figure:.3f}" for figure in figures[1:])]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", nargs="*", default=[os.environ["EVENSCORE_DATA"]] if "EVENSCORE_DATA" in os.environ else []
    )
    parser.add_argument("--quick", action="store_true", help="30 speakers of each set")
    arguments = parser.parse_args()
    files = {path.stem: path for path in files_of(arguments.data)}
    heads = ["EER %", "min Cllr", "own Cllr", "Cllr, calibrated by folds", "Cllr, calibrated on seen"]
    sets = {}
    for name, status, takes in (
        ("common_voice_campplus", None, 1),
        ("common_voice_campplus", "validated", 1),
        ("audiomnist_campplus", None, 3),
        ("audiomnist_ge2e", None, 3),
    ):
        if name in files:
            sides = sets[name, status] = halves(files[name], status, takes, arguments.quick)
            table(f"{name} {status or ''}", [judge(*sides), judge(*sides[::-1])], heads)
    old, new = (sets.get(name) for name in (("common_voice_campplus", None), ("audiomnist_campplus", None)))
    if old is not None and new is not None:
        both = [carried(old[0], *new), carried(old[1], *new[::-1])]
        table("Common Voice's PLDA on AudioMNIST", both, heads[:3])
    if not sets:
        print("no data: give --data, or set EVENSCORE_DATA")


if __name__ == "__main__":
    main()
