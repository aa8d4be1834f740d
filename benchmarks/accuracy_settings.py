"""Settings of ``accuracy.py``: one half of the speakers, or some of it, trains everything; the other is judged."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from accuracy_data import PHRASES, STATUS, TAKES, column, read
from evenscore import Cosine, Embeddings, LabelledBlocks, Labels, ScoreBlocks, ScoreMatrix, load_audiomnist_scores
from evenscore.scoring import correct_self_centering
from evenscore.sources import LeftOutCenter

__all__ = ["CENTERS", "LEAST", "Setting", "embedding_settings", "shipped_settings"]

GOOD = "validated"  # of the clips with a status, which make a set of their own
CENTERS = ("self", "left-out", "left-out-cohort", "corrected")
LEAST = 3  # training speakers: two of a trial, and one to be its cohort


@dataclass(frozen=True)
class Setting:
    """One split of one set, in one direction, and how many of the training half's speakers are used."""

    name: str
    seed: int
    direction: str
    training: list[LabelledBlocks]
    evaluation: list[LabelledBlocks]
    training_speakers: int
    draw: int = 0
    center: str = ""  #: how training vectors are centred; scores that come as such are not


@dataclass(frozen=True)
class Side:
    """Enrolments and tests of one phrase, of one half of the speakers."""

    enroll: np.ndarray
    enroll_speakers: list[str]
    test: np.ndarray
    test_speakers: list[str]

    def embeddings(self, *names: str) -> tuple[Embeddings, Embeddings]:
        """Return both sides with ids that begin with these names."""
        sides = ((self.enroll, self.enroll_speakers), (self.test, self.test_speakers))
        return tuple(  # type: ignore[return-value]
            Embeddings([f"{name}{at}" for at in range(len(vectors))], vectors, speakers)
            for name, (vectors, speakers) in zip(names, sides, strict=True)
        )


def halves(arrays: dict[str, np.ndarray], keep: np.ndarray, chosen: np.ndarray, args: argparse.Namespace) -> list[Side]:
    """Return for each phrase the enrolments and tests of the chosen speakers; who has no test left is only enrolled."""
    phrases = column(arrays, args.phrase_column, PHRASES)
    takes = column(arrays, args.take_column, TAKES)
    speakers = arrays["speakers"].astype(str)
    number = args.enroll_takes or (3 if phrases is not None else 1)
    codes = np.zeros(len(speakers), dtype=int) if phrases is None else np.unique(phrases, return_inverse=True)[1]
    rows, width = np.flatnonzero(keep & np.isin(speakers, chosen)), arrays["embeddings"].shape[1]
    sides = []
    for phrase in np.unique(codes):
        enroll, names, tests, test_names = [], [], [], []
        here = rows[codes[rows] == phrase]
        for speaker in chosen:
            at = here[speakers[here] == speaker]
            at = at if takes is None else at[np.argsort(takes[at], kind="stable")]
            if len(at) < number:
                continue
            enroll.append(arrays["embeddings"][at[:number]].astype(np.float64).mean(axis=0))
            names.append(str(speaker))
            tests.append(arrays["embeddings"][at[number:]].astype(np.float64))
            test_names += [str(speaker)] * (len(at) - number)
        sides.append(Side(np.array(enroll), names, np.concatenate([np.empty((0, width)), *tests]), test_names))
    return sides


def judged_blocks(scores: ScoreMatrix, enroll: ScoreMatrix, test: ScoreMatrix, own: LabelledBlocks, sides: Any) -> Any:
    """Return trials of one half with the other half as cohort."""
    labels = Labels.from_speakers(*sides, enroll_ids=scores.enroll_ids, test_ids=scores.test_ids)
    blocks = ScoreBlocks(
        scores,
        enroll=enroll,
        test=test,
        cohort=own.blocks.cohort,
        cohort_labels=own.blocks.cohort_labels,
        enroll_speakers=sides[0],
        test_speakers=sides[1],
        cohort_enroll_speakers=own.blocks.cohort_enroll_speakers,
        cohort_test_speakers=own.blocks.cohort_test_speakers,
    )
    return LabelledBlocks(blocks, labels)


def setting_of(
    arrays: dict[str, np.ndarray],
    keep: np.ndarray,
    halved: Sequence[np.ndarray],
    center: str,
    args: argparse.Namespace,
) -> tuple[list[LabelledBlocks], list[LabelledBlocks]]:
    """Return training and evaluation blocks: trained on the first half, judged on the second."""
    speakers = arrays["speakers"].astype(str)
    used = np.flatnonzero(keep & np.isin(speakers, halved[0]))
    background = Embeddings(range(len(used)), arrays["embeddings"][used].astype(np.float64), speakers[used])
    usual = Cosine(background.vectors.mean(axis=0))
    scorers = {"self": (usual, usual), "left-out": (LeftOutCenter(background), usual)}
    scorers["left-out-cohort"] = (LeftOutCenter(background),) * 2
    first, second = scorers["self" if center == "corrected" else center]
    training, evaluation = [], []
    for dev, new in zip(*(halves(arrays, keep, half, args) for half in halved), strict=True):
        if any(len({*side.enroll_speakers}) < 2 or not side.test_speakers for side in (dev, new)):
            continue  # hardly anybody said this phrase often enough
        (E, T), (E2, T2) = dev.embeddings("ce", "ct"), new.embeddings("e", "t")
        trained = first.score(E, T).in_memory()
        trained = correct_self_centering(trained) if center == "corrected" else trained
        training.append(LabelledBlocks.own_cohort(trained))
        own = LabelledBlocks.own_cohort(second.score(E, T).in_memory())
        trials, cohort = second.score(E2, T2), (second.score(E2, T), second.score(E, T2))
        sides = (new.enroll_speakers, new.test_speakers)
        evaluation.append(judged_blocks(*(table.in_memory() for table in (trials, *cohort)), own, sides))
    return training, evaluation


def drawn(names: np.ndarray, seed: int, args: argparse.Namespace) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the training speakers: all, or as many as asked for, drawn at random, several times if asked for."""
    for number in dict.fromkeys(min(wanted, len(names)) for wanted in args.training_speakers or [len(names)]):
        if number == len(names):
            yield 0, names
            continue
        for draw in range(args.draws):
            yield draw, np.random.default_rng([seed, number, draw]).permutation(names)[:number]


def named(name: str, chosen: np.ndarray, center: str, args: argparse.Namespace) -> str:
    """Return the name of a set: several numbers of training speakers and several centres make several sets."""
    name = name if args.training_speakers is None else f"{name}, {len(chosen)} speakers"
    return name if len(args.center) == 1 else f"{name}, {center}"


def embedding_settings(path: Path, args: argparse.Namespace) -> Iterator[Setting]:
    """Yield all settings of one file; a column of votes makes a set of its own of the clips that are good."""
    arrays = read(path)
    speakers = arrays["speakers"].astype(str)
    views = {path.stem: np.ones(len(speakers), dtype=bool)}
    if STATUS in arrays and (arrays[STATUS] == GOOD).any():
        views[f"{path.stem} ({GOOD})"] = arrays[STATUS] == GOOD
    for name, keep in views.items():
        names = np.unique(speakers[keep])
        for seed in args.seeds:
            order = np.random.default_rng(seed).permutation(len(names))
            half = [names[order[: len(names) // 2]], names[order[len(names) // 2 :]]]
            for direction, halved in (("A to B", half), ("B to A", half[::-1])):
                for (draw, chosen), center in product(drawn(halved[0], seed, args), args.center):
                    training, evaluation = setting_of(arrays, keep, (chosen, halved[1]), center, args)
                    if not training:
                        raise SystemExit(
                            f"{path}: a half of the speakers has fewer than two with enough takes of a phrase "
                            "(--enroll-takes, and one to test); give more speakers or takes, or --enroll-takes 1"
                        )
                    title = named(name, chosen, center, args)
                    yield Setting(title, seed, direction, training, evaluation, len(chosen), draw, center)


def shipped_settings(args: argparse.Namespace) -> Iterator[Setting]:
    """Yield both directions of the scores that come with evenscore."""
    scores = load_audiomnist_scores()
    forth, back = [], []
    for dev, new in zip(scores.development, scores.evaluation, strict=True):
        blocks = new.blocks
        forth.append((dev.blocks.trials, blocks.trials, blocks.enroll, blocks.test, dev.name))
        back.append((blocks.trials, dev.blocks.trials, blocks.test, blocks.enroll, dev.name))
    for direction, parts in (("dev to eval", forth), ("eval to dev", back)):
        names = np.unique(np.concatenate([own.enroll_axis.speakers.astype(str) for own, *_ in parts]))
        for draw, chosen in drawn(names, 0, args):
            training, evaluation = [], []
            for own, trials, enroll, test, name in parts:
                row, column = (np.isin(axis.speakers.astype(str), chosen) for axis in (own.enroll_axis, own.test_axis))
                row, column = np.flatnonzero(row), np.flatnonzero(column)
                training.append(LabelledBlocks.own_cohort(own.take(row, column), name=name))
                sides = (trials.enroll_axis.speakers, trials.test_axis.speakers)
                cohort = enroll.take(None, column), test.take(row, None)
                evaluation.append(judged_blocks(trials, *cohort, training[-1], sides))
            name = named("audiomnist_gmm", chosen, "", args).removesuffix(", ")
            yield Setting(name, 0, direction, training, evaluation, len(chosen), draw)
