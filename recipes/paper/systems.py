"""The systems of the paper on one set of scores: trained on the development side, applied to the evaluation side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore import LabelledBlocks, LogisticCalibration, ScoreModel, TrialList, fit_norm
from evenscore.norms import FittedNorm
from recipes.paper.development_trials import calibration_trials
from recipes.paper.genders import GENDER_NAMES, genders_of, within_gender

if TYPE_CHECKING:
    from evenscore.files import ScoreSet

__all__ = ["POOLED", "SYSTEMS", "Groups", "Scored", "System", "TrainedSystem", "apply_systems", "train_systems"]

Progress = Callable[[str, float], None]

POOLED = "pooled"  #: the group of all trials

# Keeps the calibration of classes that do not overlap finite, as happens with four speakers; else it is not felt.
_PENALTY = 1e-4

# A handful of speakers may have no optimum within reach: the variance goes to zero, slowly. Else 100 are enough.
_ITERATIONS = 1000

_GAUSSIAN = {"residuals": "gaussian"}  # as in the paper

_NO_SCALE = 1e3  # above every standard deviation of scores of a frame


@dataclass(frozen=True)
class System:
    """One way to treat scores: a method of `fit_norm` with its options."""

    name: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)


#: Those of the paper, and four of ours. LGSM 0D has no hidden variables: it is two Gaussians, a calibration without a
#: norm, so that the others show what the norm adds. S shift is S-norm without its division: the floor is above every
#: standard deviation. AS takes the nearer half of each cohort; the usual 300 would be all of it.
SYSTEMS = (
    System("raw", "raw"),
    System("ZT", "zt"),
    System("LGSM 0D", "lgsm", MappingProxyType({"dim": 0, **_GAUSSIAN})),
    System("LGSM 1D", "lgsm", MappingProxyType({"dim": 1, "max_iter": _ITERATIONS, **_GAUSSIAN})),
    System("LGSM 2D", "lgsm", MappingProxyType({"dim": 2, "max_iter": _ITERATIONS, **_GAUSSIAN})),
    System("S", "s"),
    System("S shift", "s", MappingProxyType({"std_floor": _NO_SCALE})),
    System("AS", "as", MappingProxyType({"top_k": 0.5})),
)


@dataclass(frozen=True, eq=False)
class TrainedSystem:
    """A system for one gender, and a calibration of its scores that was trained on the development trials."""

    fitted: FittedNorm
    calibration: LogisticCalibration

    @property
    def model(self) -> ScoreModel | None:
        """The score model, None for the systems that have none."""
        return self.fitted.model if isinstance(self.fitted.model, ScoreModel) else None


@dataclass(frozen=True, eq=False)
class Scored:
    """What a system makes of one group of evaluation trials.

    Attributes
    ----------
    trials
        With labels and the system's own scores.
    calibrated
        The same trials with calibrated scores.
    is_llr
        Whether the system's own scores are log-likelihood ratios.
    speakers
        Of enrolments and tests, by id.
    """

    trials: TrialList
    calibrated: TrialList
    is_llr: bool
    speakers: Mapping[str, str]


Groups = dict[str, dict[str, Scored]]  #: by group ("female", "male", "pooled") and system


def train_systems(
    scores: ScoreSet, *, systems: Sequence[System] = SYSTEMS, by_gender: bool = True, progress: Progress | None = None
) -> dict[str, dict[str, TrainedSystem]]:
    """Train all systems on the development scores, for each gender apart; returned by gender ('' is everybody)."""
    sides = {"development": scores.development, "evaluation": scores.evaluation}
    kinds = genders_of(scores.gender, sides) if by_gender else ("",)
    trained: dict[str, dict[str, TrainedSystem]] = {}
    for place, kind in enumerate(kinds):
        parts = _parts(scores.development, scores.gender, kind)
        trained[kind] = {}
        for at, system in enumerate(systems):
            if progress is not None:
                progress("models", (place + at / len(systems)) / len(kinds))
            trained[kind][system.name] = _trained(system, parts)
    return trained


def _trained(system: System, parts: Sequence[LabelledBlocks]) -> TrainedSystem:
    fitted = fit_norm(system.method, parts, **system.options)
    return TrainedSystem(fitted, LogisticCalibration.fit(calibration_trials(fitted, parts), l2=_PENALTY))


def apply_systems(scores: ScoreSet, trained: Mapping[str, Mapping[str, TrainedSystem]]) -> Groups:
    """Return the evaluation trials of every group and system; the pooled group has the trials of all groups.

    Trials are within one gender, whatever the models were trained on.
    """
    sides = {"development": scores.development, "evaluation": scores.evaluation}
    groups: Groups = {}
    for kind in genders_of(scores.gender, sides):
        systems = trained[kind] if kind in trained else trained[""]
        name = GENDER_NAMES.get(kind, kind)
        if kind in trained:
            parts = _parts(scores.evaluation, scores.gender, kind)
            groups[name] = {system: _scored(it, parts) for system, it in systems.items()}
        else:  # cohorts of everybody, trials within the gender
            groups[name] = {
                system: _within(_scored(it, scores.evaluation), scores.gender, kind) for system, it in systems.items()
            }
    if len(groups) > 1:
        groups[POOLED] = {name: _joined([group[name] for group in groups.values()]) for name in systems}
    return groups


def _parts(parts: Sequence[LabelledBlocks], gender: Mapping[str, str], kind: str) -> list[LabelledBlocks]:
    found = (within_gender(part, gender, kind) for part in parts)
    return [part for part in found if part is not None]


def _scored(system: TrainedSystem, parts: Sequence[LabelledBlocks]) -> Scored:
    trials = TrialList.concat([part.labelled(system.fitted.normalizer.normalize(part.blocks)) for part in parts])
    speakers: dict[str, str] = {}
    for part in parts:
        for ids, names in (
            (part.blocks.trials.enroll_ids, part.blocks.enroll_speakers),
            (part.blocks.trials.test_ids, part.blocks.test_speakers),
        ):
            speakers |= dict(zip(ids, names if names is not None else (), strict=True))
    calibrated = trials.with_scores(system.calibration(_values(trials)))
    return Scored(trials, calibrated, system.fitted.is_llr, speakers)


def _within(scored: Scored, gender: Mapping[str, str], kind: str) -> Scored:
    trials = scored.trials
    rows, columns = (
        np.array([gender.get(scored.speakers[name]) == kind for name in ids])
        for ids in (trials.enroll_ids, trials.test_ids)
    )
    keep = rows[trials.enroll_index] & columns[trials.test_index]
    return Scored(trials.select(keep), scored.calibrated.select(keep), scored.is_llr, scored.speakers)


def _joined(parts: Sequence[Scored]) -> Scored:
    speakers: dict[str, str] = {}
    for part in parts:
        speakers |= part.speakers
    return Scored(
        TrialList.concat([part.trials for part in parts]),
        TrialList.concat([part.calibrated for part in parts]),
        parts[0].is_llr,
        speakers,
    )


def _values(trials: TrialList) -> Any:
    return trials.scores
