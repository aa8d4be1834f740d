"""The trials that a calibration is fitted to: scores, labels and weights as arrays, and the speakers of each trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import NONTARGET, TARGET, UNKNOWN, Labels
from evenscore.data.score_matrix import LARGEST_SCORE, ScoreMatrix, as_scores
from evenscore.data.side import Ids, Side, SpeakersLike, as_strings
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.metrics.points import LabelsLike, Points, ScoresLike, as_labels, labelled_scores

__all__ = ["SystemsLike", "Training", "stack_systems", "trial_speakers"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]

#: Scores of one system, or of several: n x k numbers, or a sequence of tables.
SystemsLike: TypeAlias = "ScoresLike | Sequence[ScoreMatrix | TrialList]"


@dataclass(frozen=True, eq=False)
class Training:
    """Trials in memory, one row each; a table is listed trial by trial.

    Attributes
    ----------
    scores
        n scores, or n x k scores of k systems.
    labels
        1 (target), 0 (non-target), -1 (not used).
    weights
        How many trials each trial counts for; None if all count once.
    table
        The ids of the trials, if they are known.
    """

    scores: npt.NDArray[Any]
    labels: npt.NDArray[np.int8]
    weights: Floats | None = None
    table: TrialList | None = None

    @classmethod
    def from_scores(
        cls,
        scores: SystemsLike,
        labels: LabelsLike = None,
        weights: npt.ArrayLike | None = None,
        *,
        supervised: bool = True,
        infinite: bool = False,
    ) -> Training:
        """Validate trials to fit to; ``supervised`` needs labels of both classes."""
        if isinstance(scores, Points):
            found = _from_points(scores, labels, weights)
        elif isinstance(scores, ScoreMatrix | TrialList) or _is_tables(scores):
            found = _from_tables([scores] if isinstance(scores, ScoreMatrix | TrialList) else scores, labels, weights)  # type: ignore[arg-type, list-item]
        else:
            found = _from_arrays(scores, labels, weights, supervised)
        values = found.scores[found.labels != UNKNOWN] if supervised else found.scores
        largest = max(-values.min(), values.max()) if values.size else 0.0
        if np.isnan(largest):
            raise InputError("a score to fit to is nan; drop the trial or label it -1")
        if largest > LARGEST_SCORE and not (infinite and np.isinf(largest)):
            raise InputError(f"a score to fit to is {largest:g} in size, but must be finite; drop the trial")
        if supervised:
            found.refuse_one_class()
        return found

    def refuse_one_class(self) -> None:
        """Raise an error unless there are targets and non-targets, each with some weight."""
        counts = [int(np.count_nonzero(self.labels == label)) for label in (TARGET, NONTARGET)]
        if not all(counts):
            raise InputError(
                f"there are {counts[0]} target and {counts[1]} non-target trials, but both kinds are needed; "
                "check the key"
            )
        for name, label in (("target", TARGET), ("non-target", NONTARGET)):
            if not self.mass(label).sum() > 0:
                raise InputError(f"the {name} trials weigh nothing; give some of them a weight above 0")

    def mass(self, label: int) -> Floats:
        """Return the weight of each trial in a class: 0 for trials of the other one."""
        member = self.labels == label
        return member.astype(np.float64) if self.weights is None else self.weights * member

    def moments(self) -> tuple[Floats, Floats, Floats]:
        """Return number, mean and variance of the non-targets and of the targets."""
        found = []
        for label in (NONTARGET, TARGET):
            values = self.scores[self.labels == label].astype(np.float64)
            weights = None if self.weights is None else self.weights[self.labels == label]
            mean = np.average(values, weights=weights)
            number = len(values) if weights is None else weights.sum()
            found.append((number, mean, np.average((values - mean) ** 2, weights=weights)))
        number, mean, variance = np.array(found, np.float64).T
        return number, mean, variance

    def points(self) -> Points:
        """Return the sorted distinct scores, with the weight of each class."""
        return Points.from_scores(self.scores, self.labels, self.weights, merge=False)

    def take(self, mask: npt.NDArray[np.bool_]) -> Training:
        """Return some of the trials, without their ids."""
        weights = None if self.weights is None else self.weights[mask]
        return Training(self.scores[mask], self.labels[mask], weights)


def _is_tables(scores: object) -> bool:
    return isinstance(scores, list | tuple) and bool(scores) and isinstance(scores[0], ScoreMatrix | TrialList)


def _from_points(points: Points, labels: LabelsLike, weights: npt.ArrayLike | None) -> Training:
    if labels is not None or weights is not None or points.merged:
        raise InputError("points have labels and weights of their own, and must not be merged; give the scores instead")
    scores, key = np.tile(points.score, 2), np.repeat(np.array([TARGET, NONTARGET], np.int8), points.score.size)
    mass = np.concatenate([points.target, points.nontarget]).astype(np.float64)
    return Training(scores, key, mass).take(mass > 0)


def _from_arrays(scores: Any, labels: LabelsLike, weights: npt.ArrayLike | None, supervised: bool) -> Training:
    values = np.asarray(scores)
    if values.dtype.kind not in "fiu" or values.shape[1:] == (0,):
        raise InputError(f"scores must be n numbers or n x k numbers, but are {values.dtype} of shape {values.shape}")
    values = as_scores(values, ndim=values.ndim)
    if labels is None and not supervised:
        values = values[~np.isnan(values)] if weights is None else values
        return Training(values, np.zeros(len(values), np.int8), _as_weights(weights, values.shape))
    if labels is None:
        raise InputError("labels are missing; give one label per trial: 1 (target), 0 (non-target), -1 (unknown)")
    key = np.asarray(labels)
    if key.shape != values.shape:  # one row of scores per label: several systems
        return Training(values, as_labels(labels, values.shape[:1]), _as_weights(weights, values.shape[:1]))
    mass = _as_weights(weights, key.shape)
    return Training(
        values.reshape(-1), as_labels(labels, values.shape).reshape(-1), None if mass is None else mass.ravel()
    )


def _from_tables(
    systems: Sequence[ScoreMatrix | TrialList], labels: LabelsLike, weights: npt.ArrayLike | None
) -> Training:
    """List the trials of the first table, with the scores of all of them; unlabelled ones have the label -1."""
    first = systems[0]
    mass = _as_weights(weights, first.shape if isinstance(first, ScoreMatrix) else (len(first),))
    if isinstance(first, ScoreMatrix):
        first = first.compute()
        known = labels is not None or (first.enroll.speakers is not None and first.test.speakers is not None)
        key = labelled_scores(first, labels)[1] if known else np.full(first.shape, UNKNOWN, np.int8)
        table = first.to_trials().with_labels(key[~np.isnan(first.scores)])
        mass = None if mass is None else mass[~np.isnan(first.scores)]
    else:
        table = first.join(labels, unmatched="drop") if isinstance(labels, Labels | TrialList) else first
        if mass is not None and len(table) < len(first):
            mass = mass[table.find(first)]
        if labels is not None and not isinstance(labels, Labels | TrialList):
            table = table.with_labels(labels)
        table = table if table.labels is not None else table.with_labels(np.full(len(table), UNKNOWN))
    values = stack_systems([table, *systems[1:]])
    return Training(values, table.labels, mass, table)  # type: ignore[arg-type]


def stack_systems(systems: Sequence[ScoreMatrix | TrialList]) -> npt.NDArray[Any]:
    """Return the scores of several tables on the trials of the first one, found by id: one column each.

    Examples
    --------
    >>> one = TrialList(["a", "b"], ["t", "t"], scores=[1.0, 2.0])
    >>> stack_systems([one, TrialList(["b", "a"], ["t", "t"], scores=[4.0, 3.0])])
    array([[1., 3.],
           [2., 4.]])
    """
    first = systems[0]
    columns = [first.compute().scores if isinstance(first, ScoreMatrix) else first.needs_scores()]
    for number, system in enumerate(systems[1:], 1):
        if isinstance(first, ScoreMatrix):
            matrix = system if isinstance(system, ScoreMatrix) else system.to_matrix()
            values = matrix.align(first.enroll, first.test).compute().scores
            same = np.array_equal(np.isnan(values), np.isnan(columns[0]))
        else:
            trials = system.to_trials() if isinstance(system, ScoreMatrix) else system
            at = first.find(trials)
            same = bool((at >= 0).all())
            values = trials.needs_scores()[at] if same else columns[0]
        if not same:
            raise InputError(f"system {number} does not have the trials of system 0; give all systems the same trials")
        columns.append(values)
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=-1)


def _as_weights(weights: npt.ArrayLike | None, shape: tuple[int, ...]) -> Floats | None:
    if weights is None:
        return None
    mass = np.asarray(weights, np.float64)
    if mass.shape != shape:
        raise InputError(f"weights have shape {mass.shape}, but must have shape {shape}; give one per trial")
    if not np.isfinite(mass).all() or (mass < 0).any():
        raise InputError("weights must be finite and not negative")
    return mass


def trial_speakers(
    training: Training, enroll: SpeakersLike | None, test: SpeakersLike | None
) -> tuple[Ids, Codes, Codes]:
    """Return the names of all speakers, sorted, and for each trial the position of its two speakers among them.

    With a table, speakers are those that its sides know, a mapping from id to speaker, or one per id of each side; else
    one per trial.
    """
    if training.table is None:
        of_enroll, of_test = _per_trial(enroll, "enroll"), _per_trial(test, "test")
    else:
        of_enroll = _per_side(training.table.enroll, enroll, "enroll")[training.table.rows]
        of_test = _per_side(training.table.test, test, "test")[training.table.cols]
    for name, found in (("enroll", of_enroll), ("test", of_test)):
        if len(found) != len(training.labels):
            raise InputError(f"{name}_speakers has {len(found)} speakers, but {len(training.labels)} are needed")
    names, code = np.unique(np.concatenate([of_enroll, of_test]), return_inverse=True)
    return names, code[: len(of_enroll)], code[len(of_enroll) :]


def _per_side(side: Side, speakers: SpeakersLike | None, name: str) -> Ids:
    found = side.with_speakers(speakers).speakers
    if found is None:
        raise InputError(f"the speakers of the {name} side are not known; give {name}_speakers")
    if None in set(found.tolist()):
        unknown = side.ids[found.tolist().index(None)]
        raise InputError(f"the {name} id {unknown!r} has no speaker; give it one, or leave its trials out")
    return found


def _per_trial(speakers: SpeakersLike | None, name: str) -> Ids:
    if speakers is None or isinstance(speakers, Mapping):
        raise InputError(f"give {name}_speakers, one speaker per trial; only tables have ids to look up in a mapping")
    found = as_strings(speakers, f"{name}_speakers")
    if None in set(found.tolist()) or "" in set(found.tolist()):
        raise InputError(f"{name}_speakers has a trial without a speaker; leave out such trials")
    return found
