"""Whether the cohort is fit for its job: its size, its speakers, and members that stand out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.engine.engine import engine_for
from evenscore.metrics.points import Points
from evenscore.progress import Progress, silent
from evenscore.tables import TARGET, Axis, LabelledBlocks, Labels, Place, ScoreBlocks, ScoreTable
from evenscore.tables.score_table import Source

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["CohortDiagnostics", "CohortMember", "HiddenTarget", "cohort_diagnostics", "usual_target"]

FAR_OUT = 5.0  #: robust standard deviations from the other members
SURPRISING = 5.0  #: standard deviations above the other scores of either id
MOST_LISTED = 20
_ROUNDING = 1e-12
_FEWEST = 10  # of members, to tell which of them stands out


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
    evaluation: Sequence[LabelledBlocks],
    usual_target: float,
    speakers: Sequence[Iterable[str]],
    *,
    client: Any = None,
    progress: Progress = silent,
) -> tuple[CohortDiagnostics, ...]:
    """Look at the cohort of each condition.

    ``usual_target`` is the median score of the training side's targets, ``speakers`` are those of the training and of
    the evaluation side.
    """
    summed = partial(_side_sums, usual_target=usual_target, client=client, progress=progress)
    found = [(part, _sides(part.blocks, summed)) for part in evaluation]
    return tuple(_diagnosed(part, sides, *map(set, speakers)) for part, sides in found if sides)


def usual_target(points: Iterable[Points]) -> float:
    """Return the median score of the target trials; to the width of a bin where they are not in memory."""
    pairs = [one.class_scores(TARGET) for one in points]
    scores, weights = (np.concatenate(each) for each in zip(*pairs, strict=True))
    order = np.argsort(scores, kind="stable")
    below = np.cumsum(weights[order])
    middle = [np.searchsorted(below, below[-1] / 2, side) for side in ("left", "right")]
    return float(scores[order][middle].mean())


def _diagnosed(
    part: LabelledBlocks, sides: Sequence[_Side], training: set[str], evaluation: set[str]
) -> CohortDiagnostics:
    blocks = part.blocks
    members = [blocks.cohort_enroll_speakers, blocks.cohort_test_speakers]
    names = {name for side in members if side is not None for name in side.tolist()} - {None}
    outliers = [one for side in sides for one in side.outliers()]
    hidden = [one for side in sides for one in side.hidden_targets()]
    outliers.sort(key=lambda one: (-max(abs(one.mean_z), abs(one.std_z)), one.side, one.id))
    hidden.sort(key=lambda one: (-one.z, one.side, one.trial_id, one.cohort_id))
    return CohortDiagnostics(
        name=part.name,
        enrolments=0 if blocks.cohort_enroll_ids is None else len(blocks.cohort_enroll_ids),
        tests=0 if blocks.cohort_test_ids is None else len(blocks.cohort_test_ids),
        speakers=len(names) if names else None,
        smallest=min(side.sums.smallest for side in sides),
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
    sums: _SideSums
    axis: Axis
    cohort: Axis

    def outliers(self) -> list[CohortMember]:
        there = self.sums.counts > 0
        if np.count_nonzero(there) < _FEWEST or self.sums.n_rows < _FEWEST:
            return []
        mean = np.where(there, self.sums.means, np.nan)
        std = np.sqrt(self.sums.scatters / np.where(there, self.sums.counts, np.nan))
        mean_z, std_z = _robust_z(mean), _robust_z(std)
        far = np.flatnonzero((np.abs(mean_z) > FAR_OUT) | (np.abs(std_z) > FAR_OUT))
        cohort_side = "test" if self.name == "enroll" else "enroll"
        return [
            CohortMember(
                side=cohort_side,
                id=self.cohort.ids[at],
                speaker=None if self.cohort.speakers is None else self.cohort.speakers[at],
                mean=float(mean[at]),
                std=float(std[at]),
                mean_z=float(mean_z[at]),
                std_z=float(std_z[at]),
            )
            for at in far.tolist()
        ]

    def hidden_targets(self) -> list[HiddenTarget]:
        sums = self.sums
        if min(sums.n_rows, len(sums.counts)) < _FEWEST:
            return []
        columns = sums.columns
        others = _surprise(sums.values, sums.counts[columns], sums.means[columns], sums.scatters[columns])
        z = np.minimum(sums.surprises, others)
        return [
            HiddenTarget(
                side=self.name,
                trial_id=self.axis.ids[sums.rows[at]],
                cohort_id=self.cohort.ids[columns[at]],
                score=float(sums.values[at]),
                z=float(z[at]),
            )
            for at in np.flatnonzero(z > SURPRISING).tolist()
        ]


def _sides(blocks: ScoreBlocks, summed: Callable[..., _SideSums]) -> list[_Side]:
    found = []
    if (block := blocks.enroll) is not None:
        found.append(_Side("enroll", summed(block, by_column=False), block.enroll_axis, block.test_axis))
    if (block := blocks.test) is not None:
        found.append(_Side("test", summed(block, by_column=True), block.test_axis, block.enroll_axis))
    return found


def _robust_z(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return how many robust standard deviations each value lies from the median; 0 where that is not known."""
    known = values[~np.isnan(values)]
    middle = np.median(known)
    spread = 1.4826 * np.median(np.abs(known - middle))
    if not spread > 0:
        return np.zeros_like(values)
    return np.nan_to_num((values - middle) / spread)


@dataclass(frozen=True, kw_only=True, eq=False)
class _SideSums:
    """Sums of some rows of cohort scores; rows are enrolments or tests of the trials, columns are cohort members.

    Attributes
    ----------
    n_rows, smallest
        How many rows, and the fewest scores in one of them.
    counts, means, scatters
        Of the scores of each member: number, mean, sum of squared distances from the mean.
    rows, columns, values, surprises
        Scores as high as those of targets that surprise in their row, and how much.
    """

    n_rows: int
    smallest: int
    counts: Int[np.ndarray, " c"]
    means: Float[np.ndarray, " c"]
    scatters: Float[np.ndarray, " c"]
    rows: Int[np.ndarray, " h"]
    columns: Int[np.ndarray, " h"]
    values: Float[np.ndarray, " h"]
    surprises: Float[np.ndarray, " h"]

    @classmethod
    def of(cls, scores: npt.NDArray[Any], first_row: int, usual_target: float) -> _SideSums:
        """Sum up whole rows; NaN is missing."""
        counts, means, scatters = _moments(scores, axis=0)
        in_row, mean, scatter = _moments(scores, axis=1)
        rows, columns = np.nonzero(scores > usual_target)
        values = scores[rows, columns].astype(np.float64)
        surprises = _surprise(values, in_row[rows], mean[rows], scatter[rows])
        kept = surprises > SURPRISING
        return cls(
            n_rows=len(scores),
            smallest=int(in_row.min()) if in_row.size else 0,
            counts=counts,
            means=means,
            scatters=scatters,
            rows=rows[kept] + first_row,
            columns=columns[kept],
            values=values[kept],
            surprises=surprises[kept],
        )

    def __add__(self, other: _SideSums) -> _SideSums:
        counts = self.counts + other.counts
        share = other.counts / np.maximum(counts, 1)
        apart = other.means - self.means
        listed = {
            name: np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("rows", "columns", "values", "surprises")
        }
        return _SideSums(
            n_rows=self.n_rows + other.n_rows,
            smallest=min(self.smallest, other.smallest),
            counts=counts,
            means=self.means + share * apart,
            scatters=self.scatters + other.scatters + np.square(apart) * share * self.counts,
            **listed,
        )


def _surprise(
    values: Float[np.ndarray, " h"],
    count: Int[np.ndarray, " h"],
    mean: Float[np.ndarray, " h"],
    scatter: Float[np.ndarray, " h"],
) -> Float[np.ndarray, " h"]:
    """Return how many standard deviations each value lies above the others it stands among; 0 if they do not vary."""
    with np.errstate(invalid="ignore", divide="ignore"):  # a value alone has no others
        above = (values - mean) * count / (count - 1)  # from the mean of the others
        rest = (scatter - above * (values - mean)) / (count - 1)  # their variance
    usable = rest > _ROUNDING * np.square(above)
    return np.divide(above, np.sqrt(rest, where=usable, out=np.ones_like(rest)), where=usable, out=np.zeros_like(above))


def _moments(scores: npt.NDArray[Any], axis: int) -> tuple[npt.NDArray[Any], ...]:
    """Return number, mean, and sum of squared distances from the mean of what is not NaN; zeros where nothing is."""
    there = ~np.isnan(scores)
    count = np.count_nonzero(there, axis=axis)
    filled = np.where(there, scores, 0.0).astype(np.float64)
    mean = filled.sum(axis=axis) / np.maximum(count, 1)
    deviation = np.where(there, filled - np.expand_dims(mean, axis), 0.0)
    return count, mean, np.square(deviation).sum(axis=axis)


@dataclass(frozen=True, eq=False)
class _Task:
    source: Source
    speakers: Labels | None  #: which pairs are of one speaker, if that is known
    by_column: bool
    usual_target: float


def _side_sums(
    block: ScoreTable,
    *,
    by_column: bool,
    usual_target: float,
    client: Any = None,
    progress: Progress = silent,
) -> _SideSums:
    """Sum up cohort scores without those of one speaker; ``by_column`` if the trials' ids stand in the columns."""
    layout: Any = block.layout  # of a matrix
    places = layout.whole_columns() if by_column else layout.whole_rows()
    axes = (block.enroll_axis, block.test_axis)
    speakers = None if any(axis.speakers is None for axis in axes) else Labels.of_axes(*axes)
    if speakers is not None:
        _ = speakers.speaker_codes  # so that it is made once, not in every task
    task = _Task(block.source, speakers, by_column, usual_target)
    engine = engine_for(None if block.is_in_memory else client)
    found: _SideSums = engine.total(_sums, task, places, stage="looking at the cohort", progress=progress)
    return found


def _sums(task: _Task, place: Place) -> _SideSums:
    tile = task.source.read(place)
    scores = tile.scores
    if task.speakers is not None:
        own = task.speakers.of(tile) == TARGET
        if own.any():
            scores = np.where(own, np.array(np.nan, dtype=scores.dtype), scores)
    first = tile.columns.start if task.by_column else tile.rows.start
    return _SideSums.of(scores.T if task.by_column else scores, first, task.usual_target)
