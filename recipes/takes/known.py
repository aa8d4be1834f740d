"""Enrolments with known target scores: further takes that the trials do not have, or the enrolment's own takes.

An enrolment of several takes has target scores of its own: each take against what the others enrol. They tell how high
its speaker scores before the first test comes. `ScoreBlocks.with_targets` takes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenscore import InputError, LabelledBlocks, Labels, ScoreModel, TrialList, evaluate, normalize
from evenscore.files import ScoreSet

__all__ = ["Known", "Outcome", "further_takes", "judge"]

Known = Mapping[str, Sequence[float]]  #: the known target scores of each enrolment


@dataclass(frozen=True)
class Outcome:
    """How good the score model's log-likelihood ratios are with some known target scores of each enrolment."""

    name: str
    n_trials: int
    eer: float
    min_cllr: float
    cllr: float


def judge(name: str, model: ScoreModel, parts: Sequence[LabelledBlocks], known: Sequence[Known]) -> Outcome:
    """Return the figures of the model's own log-likelihood ratios on the trials of all phrases."""
    scored = [
        part.labelled(normalize(part.blocks.with_targets(enroll=scores), "lgsm", model=model))
        for part, scores in zip(parts, known, strict=True)
    ]
    trials = TrialList.concat(scored)
    found = evaluate(trials)
    figures = {metric: float(found[metric]) for metric in ("eer", "min_cllr", "cllr")}
    return Outcome(name=name, n_trials=len(trials), **figures)


def further_takes(scores: ScoreSet, model: ScoreModel, numbers: Sequence[int]) -> list[Outcome]:
    """Judge the score model with these numbers of further takes of each speaker, whose scores are known targets.

    The takes are the first tests of each speaker, as many as the largest number; they are left out of all trials.
    """
    split = [_take_apart(part, max(numbers)) for part in scores.evaluation]
    parts = [part for part, _ in split]
    return [
        judge(
            f"{number} further take{'s' * (number != 1)}",
            model,
            parts,
            [{name: takes[:number] for name, takes in all_takes.items()} for _, all_takes in split],
        )
        for number in numbers
    ]


def _take_apart(part: LabelledBlocks, most: int) -> tuple[LabelledBlocks, dict[str, list[float]]]:
    """Return the trials without the first tests of each speaker, and each enrolment's scores against its speaker's."""
    blocks = part.blocks
    rows, columns = blocks.enroll_speakers, blocks.test_speakers
    if rows is None or columns is None:
        raise InputError(f"the speakers of phrase {part.name!r} are not known; give them with the score blocks")
    first = [np.flatnonzero(columns == name)[:most] for name in dict.fromkeys(columns)]
    rest = np.setdiff1d(np.arange(len(columns)), np.concatenate(first))
    takes = {
        name: blocks.trials.scores[i, np.flatnonzero(columns == rows[i])[:most]].tolist()
        for i, name in enumerate(blocks.trials.enroll_ids)
    }
    trials = blocks.trials.take(None, rest)
    labels = Labels.from_speakers(rows, columns[rest], enroll_ids=trials.enroll_ids, test_ids=trials.test_ids)
    return LabelledBlocks(blocks.replace(trials=trials), labels, part.name), takes
