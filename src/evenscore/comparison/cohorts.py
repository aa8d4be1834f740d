"""Whether the cohort is fit for its job: its size, its speakers, and members that stand out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.tables import TARGET, LabelledBlocks, ScoreBlocks, ScoreMatrix
from evenscore.tables.ids import Ids

__all__ = ["CohortDiagnostics", "CohortMember", "HiddenTarget", "cohort_diagnostics"]

FAR_OUT = 5.0  #: robust standard deviations from the other members
SURPRISING = 5.0  #: standard deviations above the other scores of either id
MOST_LISTED = 20
_FEWEST = 10  # of members, to tell which of them stands out
_ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True)
class CohortMember:
    """A cohort member whose scores are unlike those of the others.

    Attributes
    ----------
    side
        ``"enroll"``: it is an enrolment of the cohort, scored against the tests of the trials; or ``"test"``.
    id, speaker
        Who it is; the speaker is None if it is not known.
    mean, std
        Of its scores, without those of its own speaker where that is known.
    mean_z, std_z
        How many robust standard deviations these lie from the median of all members.
    """

    side: str
    id: str
    speaker: str | None
    mean: float
    std: float
    mean_z: float
    std_z: float


@dataclass(frozen=True, kw_only=True)
class HiddenTarget:
    """A cohort score so high that both sides may be the same speaker.

    Attributes
    ----------
    side
        Of the trials: ``"enroll"`` if an enrolment was scored against the cohort's tests, or ``"test"``.
    trial_id, cohort_id
        The two ids.
    score
        Their score.
    z
        How many standard deviations it lies above the other scores of either id, whichever is fewer.
    """

    side: str
    trial_id: str
    cohort_id: str
    score: float
    z: float


@dataclass(frozen=True, kw_only=True)
class CohortDiagnostics:
    """What is known about the cohort of one condition.

    Attributes
    ----------
    name
        Of the condition.
    enrolments, tests
        Members on each side.
    speakers
        How many; None if they are not known.
    smallest
        The fewest members that an enrolment or a test is compared with, its own speaker left out.
    shared_with_evaluation, shared_with_training
        Speakers of the cohort that are also speakers of the evaluation or training trials.
    own_speakers_left_out
        Whether speakers are known well enough for the norms to leave a trial's own speakers out.
    outliers
        Members that stand out, the farthest first; at most 20.
    hidden_targets
        Cohort scores that look like target scores, the most surprising first; at most 20.
    n_outliers, n_hidden_targets
        How many there are of each.
    """

    name: str
    enrolments: int
    tests: int
    speakers: int | None
    smallest: int
    shared_with_evaluation: tuple[str, ...]
    shared_with_training: tuple[str, ...]
    own_speakers_left_out: bool
    outliers: tuple[CohortMember, ...]
    hidden_targets: tuple[HiddenTarget, ...]
    n_outliers: int
    n_hidden_targets: int


def cohort_diagnostics(
    evaluation: Sequence[LabelledBlocks], training: Sequence[LabelledBlocks], speakers: Sequence[Iterable[str]]
) -> tuple[CohortDiagnostics, ...]:
    """Look at the cohort of each condition; ``speakers`` are those of the training and of the evaluation side."""
    targets = _median_target(training)
    return tuple(_diagnosed(part, targets, *map(set, speakers)) for part in evaluation if _has_cohort(part.blocks))


def _has_cohort(blocks: ScoreBlocks) -> bool:
    return blocks.enroll is not None or blocks.test is not None


def _median_target(training: Sequence[LabelledBlocks]) -> float:
    scores = [part.trials.scores[part.trials.labels == TARGET] for part in training]  # type: ignore[index]
    return float(np.median(np.concatenate(scores)))


def _diagnosed(
    part: LabelledBlocks, usual_target: float, training: set[str], evaluation: set[str]
) -> CohortDiagnostics:
    blocks = part.blocks
    members = [blocks.cohort_enroll_speakers, blocks.cohort_test_speakers]
    names = {name for side in members if side is not None for name in side.tolist()} - {None}
    outliers: list[CohortMember] = []
    hidden: list[HiddenTarget] = []
    smallest = []
    for side in _sides(blocks):
        outliers += side.outliers()
        hidden += side.hidden_targets(usual_target)
        smallest.append(side.smallest)
    outliers.sort(key=lambda one: (-max(abs(one.mean_z), abs(one.std_z)), one.side, one.id))
    hidden.sort(key=lambda one: (-one.z, one.side, one.trial_id, one.cohort_id))
    return CohortDiagnostics(
        name=part.name,
        enrolments=0 if blocks.cohort_enroll_ids is None else len(blocks.cohort_enroll_ids),
        tests=0 if blocks.cohort_test_ids is None else len(blocks.cohort_test_ids),
        speakers=len(names) if names else None,
        smallest=min(smallest),
        shared_with_evaluation=tuple(sorted(names & evaluation)),
        shared_with_training=tuple(sorted(names & training)),
        own_speakers_left_out=all(side is not None for side in (blocks.enroll_speakers, blocks.test_speakers) if names)
        and bool(names),
        outliers=tuple(outliers[:MOST_LISTED]),
        hidden_targets=tuple(hidden[:MOST_LISTED]),
        n_outliers=len(outliers),
        n_hidden_targets=len(hidden),
    )


@dataclass(frozen=True, eq=False)
class _Side:
    """Cohort scores of one side: rows are enrolments or tests of the trials, columns are cohort members."""

    name: str
    scores: npt.NDArray[Any]  #: NaN where a pair is missing or of one speaker
    ids: Ids
    cohort_ids: Ids
    cohort_speakers: Ids | None

    @property
    def smallest(self) -> int:
        left = np.count_nonzero(~np.isnan(self.scores), axis=1)
        return int(left.min()) if left.size else 0

    def outliers(self) -> list[CohortMember]:
        _, mean, std = _moments(self.scores)
        if np.count_nonzero(~np.isnan(mean)) < _FEWEST or self.scores.shape[0] < _FEWEST:
            return []
        mean_z, std_z = _robust_z(mean), _robust_z(std)
        far = np.flatnonzero((np.abs(mean_z) > FAR_OUT) | (np.abs(std_z) > FAR_OUT))
        cohort_side = "test" if self.name == "enroll" else "enroll"
        return [
            CohortMember(
                side=cohort_side,
                id=self.cohort_ids[at],
                speaker=None if self.cohort_speakers is None else self.cohort_speakers[at],
                mean=float(mean[at]),
                std=float(std[at]),
                mean_z=float(mean_z[at]),
                std_z=float(std_z[at]),
            )
            for at in far.tolist()
        ]

    def hidden_targets(self, usual_target: float) -> list[HiddenTarget]:
        high = np.argwhere(self.scores > usual_target)
        if not len(high) or min(self.scores.shape) < _FEWEST:
            return []
        rows, columns = high.T
        values = self.scores[rows, columns].astype(np.float64)
        z = np.minimum(
            _surprise(values, rows, *_moments(self.scores, axis=1)), _surprise(values, columns, *_moments(self.scores))
        )
        return [
            HiddenTarget(
                side=self.name,
                trial_id=self.ids[rows[at]],
                cohort_id=self.cohort_ids[columns[at]],
                score=float(values[at]),
                z=float(z[at]),
            )
            for at in np.flatnonzero(z > SURPRISING).tolist()
        ]


def _sides(blocks: ScoreBlocks) -> list[_Side]:
    found = []
    if blocks.enroll is not None:
        columns = blocks.cohort_test_speakers
        scores = _without_own(blocks.enroll, blocks.enroll_speakers, columns)
        found.append(_Side("enroll", scores, blocks.enroll.enroll_ids, blocks.enroll.test_ids, columns))
    if blocks.test is not None:
        rows = blocks.cohort_enroll_speakers
        scores = _without_own(blocks.test, rows, blocks.test_speakers)
        found.append(_Side("test", scores.T, blocks.test.test_ids, blocks.test.enroll_ids, rows))
    return found


def _without_own(block: ScoreMatrix, rows: Ids | None, columns: Ids | None) -> npt.NDArray[Any]:
    """Return the scores with NaN where both sides are known to be one speaker."""
    if rows is None or columns is None:
        return block.scores
    codes = {name: code for code, name in enumerate(dict.fromkeys([*rows, *columns])) if name is not None}
    row = np.array([codes.get(name, -1) for name in rows])
    column = np.array([codes.get(name, -2) for name in columns])
    own = row[:, None] == column
    return np.where(own, np.array(np.nan, dtype=block.scores.dtype), block.scores) if own.any() else block.scores


def _moments(scores: npt.NDArray[Any], axis: int = 0) -> tuple[npt.NDArray[Any], ...]:
    """Return counts, means and standard deviations of what is not NaN; NaN where nothing is."""
    there = ~np.isnan(scores)
    count = np.count_nonzero(there, axis=axis)
    filled = np.where(there, scores, 0.0).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0 where nothing is
        mean = filled.sum(axis=axis) / count
        deviation = np.where(there, filled - np.expand_dims(mean, axis), 0.0)
        std = np.sqrt(np.square(deviation).sum(axis=axis) / count)
    return count, mean, std


def _surprise(
    values: npt.NDArray[np.float64], at: npt.NDArray[np.intp], *moments: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    """Return how many standard deviations each value lies above the others of its row; 0 where they do not vary."""
    count, mean, std = (values_of_row[at].astype(np.float64) for values_of_row in moments)
    above = (values - mean) * count / (count - 1)  # from the mean of the others
    rest = (count * np.square(std) - above * (values - mean)) / (count - 1)  # their variance
    usable = rest > _ROUNDING * np.square(above)
    return np.divide(above, np.sqrt(rest, where=usable, out=np.ones_like(rest)), where=usable, out=np.zeros_like(above))


def _robust_z(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return how many robust standard deviations each value lies from the median; 0 where that is not known."""
    known = values[~np.isnan(values)]
    middle = np.median(known)
    spread = 1.4826 * np.median(np.abs(known - middle))
    if not spread > 0:
        return np.zeros_like(values)
    return np.nan_to_num((values - middle) / spread)
