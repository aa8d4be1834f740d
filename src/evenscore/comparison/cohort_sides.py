"""Cohort scores of one side, summed up over tiles: what shows whether a member stands out, or a target hides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.engine.engine import engine_for
from evenscore.progress import Progress, silent
from evenscore.tables import TARGET, Labels, Place, ScoreTable
from evenscore.tables.score_table import Source

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["SURPRISING", "SideSums", "side_sums", "surprise"]

SURPRISING = 5.0  #: standard deviations above the other scores of either id
_ROUNDING = 1e-12

Array = np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class SideSums:
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
    counts: Int[Array, " c"]
    means: Float[Array, " c"]
    scatters: Float[Array, " c"]
    rows: Int[Array, " h"]
    columns: Int[Array, " h"]
    values: Float[Array, " h"]
    surprises: Float[Array, " h"]

    @classmethod
    def of(cls, scores: npt.NDArray[Any], first_row: int, usual_target: float) -> SideSums:
        """Sum up whole rows; NaN is missing."""
        counts, means, scatters = _moments(scores, axis=0)
        in_row, mean, scatter = _moments(scores, axis=1)
        rows, columns = np.nonzero(scores > usual_target)
        values = scores[rows, columns].astype(np.float64)
        surprises = surprise(values, in_row[rows], mean[rows], scatter[rows])
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

    def __add__(self, other: SideSums) -> SideSums:
        counts = self.counts + other.counts
        share = other.counts / np.maximum(counts, 1)
        apart = other.means - self.means
        listed = {
            name: np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("rows", "columns", "values", "surprises")
        }
        return SideSums(
            n_rows=self.n_rows + other.n_rows,
            smallest=min(self.smallest, other.smallest),
            counts=counts,
            means=self.means + share * apart,
            scatters=self.scatters + other.scatters + np.square(apart) * share * self.counts,
            **listed,
        )


def surprise(
    values: Float[Array, " h"], count: Int[Array, " h"], mean: Float[Array, " h"], scatter: Float[Array, " h"]
) -> Float[Array, " h"]:
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


def side_sums(
    block: ScoreTable,
    *,
    by_column: bool,
    usual_target: float,
    client: Any = None,
    progress: Progress = silent,
) -> SideSums:
    """Sum up cohort scores without those of one speaker; ``by_column`` if the trials' ids stand in the columns."""
    layout: Any = block.layout  # of a matrix
    places = layout.whole_columns() if by_column else layout.whole_rows()
    axes = (block.enroll_axis, block.test_axis)
    speakers = None if any(axis.speakers is None for axis in axes) else Labels.of_axes(*axes)
    if speakers is not None:
        _ = speakers.speaker_codes  # so that it is made once, not in every task
    task = _Task(block.source, speakers, by_column, usual_target)
    engine = engine_for(None if block.is_in_memory else client)
    found: SideSums = engine.total(_sums, task, places, stage="looking at the cohort", progress=progress)
    return found


def _sums(task: _Task, place: Place) -> SideSums:
    tile = task.source.read(place)
    scores = tile.scores
    if task.speakers is not None:
        own = task.speakers.of(tile) == TARGET
        if own.any():
            scores = np.where(own, np.array(np.nan, dtype=scores.dtype), scores)
    first = tile.columns.start if task.by_column else tile.rows.start
    return SideSums.of(scores.T if task.by_column else scores, first, task.usual_target)
