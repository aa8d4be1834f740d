"""The target scores that an enrolment of several takes has of its own: each take against what the others enrol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenscore import InputError, TrialList, fit_norm
from evenscore.files import ScoreSet
from evenscore.tables import TARGET
from recipes.takes.known import Known, Outcome, judge
from recipes.text_dependent import Recognizer, Split, TextDependentSystem
from recipes.text_dependent.recognizer import enrolled, linear_scores, probe_vectors

__all__ = ["OwnTakes", "compare_ways", "own_takes"]


@dataclass(frozen=True, eq=False)
class OwnTakes:
    """Leave-one-out scores of the enrolments of some speakers, by phrase and enrolment."""

    scores: Mapping[str, Mapping[str, Sequence[float]]]

    @property
    def mean(self) -> float:
        """Mean of all of them."""
        return float(np.mean([score for known in self.scores.values() for own in known.values() for score in own]))

    def of(self, phrase: str, *, less: float = 0.0, as_one: bool = False) -> Known:
        """Return those of the enrolments of a phrase, less an offset; ``as_one``: the mean of each enrolment's."""
        moved = {name: [score - less for score in own] for name, own in self.scores[phrase].items()}
        return {name: [float(np.mean(own))] for name, own in moved.items()} if as_one else moved


def own_takes(system: TextDependentSystem, recognizer: Recognizer, speakers: Sequence[str]) -> OwnTakes:
    """Score each enrolment take of these speakers against an enrolment by the others."""
    corpus, found = system.corpus, {}
    for phrase in corpus.phrases:
        takes = sorted(one for one in corpus.of(speakers) if one.phrase == phrase and corpus.is_enrolment(one))
        frames = system.frames(takes)
        models: dict[str, list[int]] = {}
        for place, take in enumerate(takes):
            models.setdefault(take.model, []).append(place)
        found[phrase] = {name: _left_out(recognizer, [frames[takes[n]] for n in at]) for name, at in models.items()}
    return OwnTakes(found)


def _left_out(recognizer: Recognizer, frames: Sequence[np.ndarray]) -> list[float]:
    number = len(frames)
    if number < 2:
        raise InputError("an enrolment has one take only, so none can be left out; enrol with several")
    statistics = recognizer.statistics(frames)
    probes = probe_vectors(recognizer, statistics)
    scores = []
    for left in range(number):
        others = recognizer.statistics([frames[n] for n in range(number) if n != left])
        model = enrolled(recognizer, others, np.zeros(number - 1, dtype=np.intp), 1)
        scores.append(float(linear_scores(model, probes[left : left + 1])[0, 0]))
    return scores


def compare_ways(
    scores: ScoreSet, split: Split, system: TextDependentSystem, residuals: str = "gaussian"
) -> list[Outcome]:
    """Judge the score model without and with the enrolments' own takes, taken as they are, moved, and as one each.

    An enrolment by fewer takes scores lower. By how much is measured on development speakers: the mean of their
    leave-one-out scores less that of their target scores.
    """
    recognizer = system.recognizer(split.background)
    model = fit_norm("lgsm", scores.development, residuals=residuals).model
    known = {role: own_takes(system, recognizer, getattr(split, role)) for role in ("development", "evaluation")}
    trials = TrialList.concat([part.trials for part in scores.development])
    targets = np.asarray(trials.scores)[np.asarray(trials.labels) == TARGET]
    less = known["development"].mean - float(targets.mean())
    parts, own = scores.evaluation, known["evaluation"]
    ways: dict[str, dict[str, Any]] = {
        "own takes": {},
        "own takes, moved": {"less": less},
        "own takes, moved, as one": {"less": less, "as_one": True},
    }
    plain = judge("no known scores", model, parts, [{} for _ in parts])
    return [
        plain,
        *(judge(name, model, parts, [own.of(part.name, **how) for part in parts]) for name, how in ways.items()),
    ]
